"""What the search cache reads: the state of every visible bucket, and the rows that changed in one."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Table, and_, bindparam, exists, func, literal_column, select

from everlong.protocols import IndexRows, Revision
from everlong.records import TRUST
from everlong.store import past, rows, sql
from everlong.store.forget import MARK
from everlong.store.passages import unpacked
from everlong.store.schema import PLACE, buckets, facts, files, messages, passages, vectors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import BindParameter, ColumnElement
    from sqlalchemy.sql.base import Executable

    from everlong.protocols import Rights
    from everlong.records import Kind, Scope
    from everlong.store.sql import Work


@cache
def _revisions(size: int) -> Executable:
    asked = sql.visible(buckets), sql.one_of(buckets.c.kind, size)
    return select(*(buckets.c[n] for n in (*PLACE, "kind", "epoch", "revision"))).where(*asked)


_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "fact": tuple("id revision status terms learned_in category created_at length question confidence origin trust "
                  "valid_from valid_until".split()),
    "message": tuple("id revision terms session speaker role created_at position length question origin".split()),
}  # fmt: skip
_CHANGED: Final[BindParameter[int]] = bindparam("w_after")


def _table(kind: str) -> Table:
    return facts if kind == "fact" else messages


def _of(kind: str) -> tuple[ColumnElement[bool], ...]:
    return vectors.c.kind == kind, vectors.c.model == bindparam("w_model")


def _rows(kind: str) -> Executable:
    table = _table(kind)
    where = sql.exactly(table, home=kind == "message"), table.c.revision > _CHANGED
    return select(*(table.c[name] for name in _NAMES[kind])).where(*where).order_by(table.c.revision)


def _vectors(kind: str, *, all_of_them: bool) -> Executable:
    """Vectors of a bucket, or of the rows that changed: to join every row to its vectors takes longer than to read both
    one after the other."""
    chosen = select(vectors.c.session, vectors.c.id, vectors.c.data)
    if all_of_them:
        return chosen.where(sql.exactly(vectors, home=kind == "message"), *_of(kind))
    table = _table(kind)
    same = and_(*(vectors.c[name] == table.c[name] for name in (*PLACE, "id")))
    where = sql.exactly(table, home=kind == "message"), table.c.revision > _CHANGED
    return chosen.select_from(table.join(vectors, and_(same, *_of(kind)))).where(*where)


_ROWS: Final = {kind: _rows(kind) for kind in _NAMES}
_VECTORS: Final = {
    (kind, all_of_them): _vectors(kind, all_of_them=all_of_them) for kind in _NAMES for all_of_them in (True, False)
}


_PASSAGES: Final = (
    select(*(passages.c[name] for name in ("path", "pieces", "terms", "revision")))
    .where(sql.exactly(passages), passages.c.revision > bindparam("w_after"))
    .order_by(passages.c.revision)
)
_PASSAGE_VECTORS: Final = select(vectors.c.id, vectors.c.data).where(
    sql.exactly(vectors), vectors.c.kind == "file", vectors.c.model == bindparam("w_model")
)


def _metadata(table: Table, session: str, *, home: bool) -> Executable:
    columns = (table.c[name] for name in (session, "id", "metadata"))
    return select(*columns).where(sql.exactly(table, home=home), table.c.metadata != literal_column("'{}'"))


_METADATA: Final[dict[Kind, Executable]] = {
    "fact": _metadata(facts, "learned_in", home=False),
    "message": _metadata(messages, "session", home=True),
    "file": select(literal_column("''"), passages.c.path, files.c.metadata, passages.c.pieces)
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
    _unembedded(messages, "message", messages.c.content != MARK, home=True),
)
_PLACES: Final = [passages.c[name] for name in PLACE]
_TO_EMBED: Final = select(*_PLACES, func.sum(passages.c.count)).where(passages.c.count > 0).group_by(*_PLACES)
_OWNERS: Final = [vectors.c[name] for name in PLACE]
_HELD: Final = (
    select(*_OWNERS, func.count())
    .where(vectors.c.kind == "file", vectors.c.model == bindparam("w_model"))
    .group_by(*_OWNERS)
)


def _where(bucket: Scope, kind: Kind) -> dict[str, str]:
    return sql.home(bucket) if kind == "message" else sql.place(bucket)


def _fact_columns(found: Mapping[str, list[Any]]) -> dict[str, Any]:
    size = len(found["id"])
    trust = zip(found["origin"], found["trust"], strict=True)
    return {
        "live": [one == "active" for one in found["status"]],
        "session": found["learned_in"],
        "speaker": [""] * size,
        "role": found["origin"],
        "category": found["category"],
        "position": [0] * size,
        "confidence": list(map(float, found["confidence"])),
        "trust": [TRUST[who] if known is None else known for who, known in trust],
        "valid_from": [-math.inf if one is None else one / rows.SECOND for one in found["valid_from"]],
        "valid_until": [math.inf if one is None else one / rows.SECOND for one in found["valid_until"]],
    }


def _message_columns(found: Mapping[str, list[Any]]) -> dict[str, Any]:
    size = len(found["id"])
    return {
        **{name: found[name] for name in ("session", "speaker", "role", "position")},
        "live": [True] * size,
        "category": [""] * size,
        "confidence": [1.0] * size,
        "trust": list(map(TRUST.__getitem__, found["origin"])),
        "valid_from": [-math.inf] * size,
        "valid_until": [math.inf] * size,
    }


class Index:
    """The index shelf in one transaction."""

    def __init__(self, work: Work, rights: Rights | None = None) -> None:
        self._work = work
        self._rights = rights

    def revisions(self, scope: Scope, kinds: Sequence[Kind]) -> dict[tuple[Scope, Kind], Revision]:
        where = sql.place(scope)
        found = {
            (rows.to_scope(*row[:4]), row[4]): Revision(epoch=row[5], number=row[6])
            for size, values in sql.chunks(kinds)
            for row in self._work.rows(_revisions(size), **where, **values)
        }
        if self._rights is None:
            return found
        return {key: state for key, state in found.items() if self._rights.opens(key[1], key[0])}

    def rows(self, bucket: Scope, kind: Kind, *, model: str, after: int = 0) -> IndexRows:
        if kind == "file":
            return self._passages(bucket, model, after)
        where, names = _where(bucket, kind) | {"w_after": after}, _NAMES[kind]
        found = dict(zip(names, self._work.columns(_ROWS[kind], len(names), **where), strict=True))
        size = len(found["id"])
        known: dict[tuple[str, str], bytes] = {}
        if size:
            held = self._work.columns(_VECTORS[kind, not after], 3, **where, w_model=model)
            known = dict(zip(zip(held[0], held[1], strict=True), held[2], strict=True))
        sessions = found["session"] if kind == "message" else [bucket.session] * size
        data = map(known.get, zip(sessions, found["id"], strict=True))
        return IndexRows(
            ids=found["id"],
            revision=found["revision"],
            terms=list(map(bytes, found["terms"])),
            vectors=[None if one is None else bytes(one) for one in data],
            created_at=[one / rows.SECOND for one in found["created_at"]],
            length=found["length"],
            question=list(map(bool, found["question"])),
            origin=found["origin"],
            **(_fact_columns(found) if kind == "fact" else _message_columns(found)),
        )

    def past(self, bucket: Scope, *, model: str, at: datetime) -> IndexRows:
        present = self.rows(bucket, "fact", model=model)
        texts: dict[str, str] = dict(self._work.rows(_CONTENTS, **sql.place(bucket)))
        return past.as_rows(past.facts_at(self._work, bucket, at, exactly=True), present, texts)

    def metadata(self, bucket: Scope, kind: Kind) -> dict[tuple[str, str], Mapping[str, Any]]:
        found = self._work.rows(_METADATA[kind], **_where(bucket, kind))
        if kind == "file":
            named = ((path, rows.from_json(metadata), held) for _, path, metadata, held in found)
            return {("", id_): told for path, told, held in named for id_, *_ in unpacked(path, held, b"")}
        return {(session, id_): rows.from_json(metadata) for session, id_, metadata in found}

    def _passages(self, bucket: Scope, model: str, after: int) -> IndexRows:
        where = sql.place(bucket)
        found = self._work.rows(_PASSAGES, **where, w_after=after)
        known: dict[str, bytes] = dict(self._work.rows(_PASSAGE_VECTORS, **where, w_model=model)) if found else {}
        made = [
            (path, revision, number, *one)
            for path, held, words, revision in found
            for number, one in enumerate(unpacked(path, held, bytes(words)))
        ]
        columns = [list(column) for column in zip(*made, strict=True)] or [[] for _ in range(7)]
        paths, revision, position, ids, texts, created, words = columns
        size = len(ids)
        return IndexRows(
            ids=ids,
            revision=revision,
            live=[True] * size,
            terms=words,
            vectors=[bytes(known[one]) if one in known else None for one in ids],
            session=[""] * size,
            speaker=paths,
            role=["document"] * size,
            category=[""] * size,
            created_at=[one / rows.SECOND for one in created],
            position=position,
            length=list(map(len, texts)),
            question=list(map(rows.is_question, texts)),
            confidence=[1.0] * size,
            origin=["document"] * size,
            trust=[TRUST["document"]] * size,
            valid_from=[-math.inf] * size,
            valid_until=[math.inf] * size,
        )

    def unembedded(self, model: str) -> tuple[Scope, ...]:
        found = [row for one in _UNEMBEDDED for row in self._work.rows(one, w_model=model)]
        held = {tuple(place): count for *place, count in self._work.rows(_HELD, w_model=model)}
        found += [tuple(place) for *place, count in self._work.rows(_TO_EMBED) if count > held.get(tuple(place), 0)]
        return tuple(dict.fromkeys(rows.to_scope(*row) for row in found))
