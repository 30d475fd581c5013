"""What the search cache reads: the state of every visible bucket, and the rows that changed in one."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Table, and_, bindparam, exists, literal_column, select

from everlong.protocols import IndexRows, Revision
from everlong.records import TRUST
from everlong.store import past, rows, sql
from everlong.store.schema import PLACE, buckets, facts, files, messages, passages, vectors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement
    from sqlalchemy.sql.base import Executable

    from everlong.records import Kind, Scope
    from everlong.store.sql import Work


@cache
def _revisions(size: int) -> Executable:
    asked = sql.visible(buckets), sql.one_of(buckets.c.kind, size)
    return select(*(buckets.c[n] for n in (*PLACE, "kind", "epoch", "revision"))).where(*asked)


def _rows(table: Table, kind: Kind, given: dict[str, Any], *, home: bool) -> Executable:
    same = (vectors.c[name] == table.c[name] for name in (*PLACE, "id"))
    joined = table.outerjoin(vectors, and_(*same, vectors.c.kind == kind, vectors.c.model == bindparam("w_model")))
    columns: list[ColumnElement[Any]] = [
        given[name] if name in given else table.c[name]
        for name in "id revision live terms vectors session speaker role category created_at position length "
        "question confidence origin trust valid_from valid_until".split()
    ]
    changed = table.c.revision > bindparam("w_after")
    return select(*columns).select_from(joined).where(sql.exactly(table, home=home), changed).order_by(table.c.revision)


_FACTS: Final = _rows(
    facts,
    "fact",
    {
        "live": facts.c.status,
        "vectors": vectors.c.data,
        "session": facts.c.learned_in,
        "speaker": literal_column("''"),
        "role": facts.c.origin,
        "position": literal_column("0"),
    },
    home=False,
)
_MESSAGES: Final = _rows(
    messages,
    "message",
    {
        "live": literal_column("'active'"),
        "vectors": vectors.c.data,
        "category": literal_column("''"),
        "confidence": literal_column("1.0"),
        "trust": literal_column("NULL"),
        "valid_from": literal_column("NULL"),
        "valid_until": literal_column("NULL"),
    },
    home=True,
)


_PASSAGES: Final = _rows(
    passages,
    "file",
    {
        "live": literal_column("'active'"),
        "vectors": vectors.c.data,
        "session": literal_column("''"),
        "speaker": passages.c.path,
        "role": literal_column("'document'"),
        "category": literal_column("''"),
        "position": passages.c.number,
        "confidence": literal_column("1.0"),
        "origin": literal_column("'document'"),
        "trust": literal_column("NULL"),
        "valid_from": literal_column("NULL"),
        "valid_until": literal_column("NULL"),
    },
    home=False,
)
_ROWS: Final[dict[Kind, Executable]] = {"fact": _FACTS, "message": _MESSAGES, "file": _PASSAGES}


def _metadata(table: Table, session: str, *, home: bool) -> Executable:
    columns = (table.c[name] for name in (session, "id", "metadata"))
    return select(*columns).where(sql.exactly(table, home=home), table.c.metadata != literal_column("'{}'"))


_METADATA: Final[dict[Kind, Executable]] = {
    "fact": _metadata(facts, "learned_in", home=False),
    "message": _metadata(messages, "session", home=True),
    "file": select(literal_column("''"), passages.c.id, files.c.metadata)
    .select_from(passages.join(files, and_(*(files.c[name] == passages.c[name] for name in (*PLACE, "path")))))
    .where(sql.exactly(passages)),
}
_CONTENTS: Final = select(facts.c.id, facts.c.content).where(sql.exactly(facts))


def _unembedded(table: Table, kind: Kind, *where: ColumnElement[bool], home: bool) -> Executable:
    same = (vectors.c[name] == table.c[name] for name in (*PLACE, "id"))
    known = exists().where(vectors.c.kind == kind, vectors.c.model == bindparam("w_model"), *same)
    place = [literal_column("''").label(n) if home and n == "session" else table.c[n] for n in PLACE]
    return select(*place).where(~known, *where).distinct()


_UNEMBEDDED: Final = (
    _unembedded(facts, "fact", facts.c.status == "active", home=False),
    _unembedded(messages, "message", home=True),
    _unembedded(passages, "file", passages.c.length > 0, home=False),
)


def _where(bucket: Scope, kind: Kind) -> dict[str, str]:
    return sql.home(bucket) if kind == "message" else sql.place(bucket)


class Index:
    """The index shelf in one transaction."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def revisions(self, scope: Scope, kinds: Sequence[Kind]) -> dict[tuple[Scope, Kind], Revision]:
        where = sql.place(scope)
        return {
            (rows.to_scope(*row[:4]), row[4]): Revision(epoch=row[5], number=row[6])
            for size, values in sql.chunks(kinds)
            for row in self._work.rows(_revisions(size), **where, **values)
        }

    def rows(self, bucket: Scope, kind: Kind, *, model: str, after: int = 0) -> IndexRows:
        found = self._work.rows(_ROWS[kind], **_where(bucket, kind), w_model=model, w_after=after)
        columns = [list(column) for column in zip(*found, strict=True)] or [[] for _ in range(18)]
        ids, revision, status, terms, data, session, speaker, role, category, created, position = columns[:11]
        length, question, confidence, origin, trust, since, until = columns[11:]
        return IndexRows(
            ids=ids,
            revision=revision,
            live=[one == "active" for one in status],
            terms=list(map(bytes, terms)),
            vectors=[None if one is None else bytes(one) for one in data],
            session=session,
            speaker=speaker,
            role=role,
            category=category,
            created_at=list(map(rows.to_time, created)),
            position=position,
            length=length,
            question=list(map(bool, question)),
            confidence=list(map(float, confidence)),
            origin=origin,
            trust=[TRUST[who] if known is None else known for who, known in zip(origin, trust, strict=True)],
            valid_from=[-math.inf if one is None else one / rows.SECOND for one in since],
            valid_until=[math.inf if one is None else one / rows.SECOND for one in until],
        )

    def past(self, bucket: Scope, *, model: str, at: datetime) -> IndexRows:
        present = self.rows(bucket, "fact", model=model)
        texts: dict[str, str] = dict(self._work.rows(_CONTENTS, **sql.place(bucket)))
        return past.as_rows(past.facts_at(self._work, bucket, at, exactly=True), present, texts)

    def metadata(self, bucket: Scope, kind: Kind) -> dict[tuple[str, str], Mapping[str, Any]]:
        found = self._work.rows(_METADATA[kind], **_where(bucket, kind))
        return {(session, id_): rows.from_json(metadata) for session, id_, metadata in found}

    def unembedded(self, model: str) -> tuple[Scope, ...]:
        found = (row for one in _UNEMBEDDED for row in self._work.rows(one, w_model=model))
        return tuple(dict.fromkeys(rows.to_scope(*row) for row in found))
