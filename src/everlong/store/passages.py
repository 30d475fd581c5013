"""The text of memory files in pieces, written with the file and searched like facts and turns."""

from __future__ import annotations

import json
import re
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import bindparam, select, update

from everlong.errors import InvalidInput
from everlong.records import Passage
from everlong.store import rows, sql
from everlong.store.schema import PLACE, passages, vectors
from everlong.text import clean, pack_terms, pieces, terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sqlalchemy.sql.base import Executable

    from everlong.protocols import Indexed, NewId, Rights
    from everlong.records import MemoryFile, Scope
    from everlong.store.sql import Row, Work

_KIND: Final = "file"
_PARAGRAPHS: Final = re.compile(r"\n[ \t\r]*\n")
_SIZE: Final = 600
"""Characters up to which paragraphs are kept together: what one vector can stand for."""
_LONGEST: Final = 8000
"""Characters of a paragraph that are cut at a time, for to find the ends of its sentences takes the square of them."""
_COLUMNS: Final = [passages.c[name] for name in (*PLACE, "path", "pieces")]
_PATH: Final = passages.c.path == bindparam("w_path")
_PUT: Final = (
    sql.Insert(passages)
    .values({c.name: bindparam(c.name) for c in passages.c})
    .on_conflict_do_update(
        index_elements=[c.name for c in passages.primary_key],
        set_={name: bindparam(name) for name in ("pieces", "count", "revision", "terms")},
    )
)
_HELD: Final = select(passages.c.pieces).where(sql.exactly(passages), _PATH)
_DROP: Final = passages.delete().where(sql.exactly(passages), _PATH)
_ALL: Final = select(*_COLUMNS).where(sql.exactly(passages)).order_by(passages.c.path)
_MARK: Final = update(passages).where(sql.exactly(passages), _PATH).values(revision=bindparam("revision"))
_EMBEDDED: Final = select(vectors.c.id).where(
    sql.exactly(vectors), vectors.c.kind == _KIND, vectors.c.model == bindparam("w_model")
)

Piece = tuple[str, int]
"""A passage's text and the time (microseconds) since which it reads so."""


@cache
def _visible(size: int) -> Executable:
    return select(*_COLUMNS).where(sql.visible(passages), sql.one_of(passages.c.path, size))


def cut(content: bytes) -> list[str]:
    """The text of a file in passages: paragraphs together as long as they are short, long ones cut between sentences.
    A file that is no UTF-8 text, or empty, has a single one without text, which stands for it: so it hides a wider file
    of its path from search too."""
    try:
        text = clean(content.decode().removeprefix("\ufeff"))
    except UnicodeDecodeError:
        return [""]
    return [piece for block in _blocks(text) for piece in pieces(block)] or [""]


def _blocks(text: str) -> Iterator[str]:
    block = ""
    for paragraph in _PARAGRAPHS.split(text):
        if block and len(block) + len(paragraph) > _SIZE:
            yield block
            block = ""
        block = f"{block}\n\n{paragraph}" if block else paragraph
        while len(block) > _LONGEST:
            yield block[:_LONGEST]
            block = block[_LONGEST:]
    yield block


def packed(path: str, made: Sequence[Piece]) -> dict[str, Any]:
    """The passages of one file as columns. Each is found by the words of the file's path too."""
    words = [pack_terms(terms(f"{path} {text}")) if text else b"" for text, _ in made]
    pieces_ = [[text, at, len(found)] for (text, at), found in zip(made, words, strict=True)]
    return {"pieces": rows.to_json(pieces_), "count": sum(bool(text) for text, _ in made), "terms": b"".join(words)}


def unpacked(path: str, held: str, words: bytes) -> Iterator[tuple[str, str, int, bytes]]:
    """Id, text, time and packed terms of each passage of one file."""
    start = 0
    for number, (text, at, size) in enumerate(json.loads(held)):
        yield f"{path}#{number}", text, at, words[start : start + size]
        start += size


def index_file(work: Work, file: MemoryFile, new_id: NewId) -> None:
    """Makes the passages those of ``file``. Ones that read as before keep their time and their vectors."""
    where = {**sql.place(file.scope), "w_path": file.path}
    found = work.row(_HELD, **where)
    held: list[Piece] = [(text, at) for text, at, _ in json.loads(found[0])] if found else []
    now = rows.to_micros(file.updated_at)
    texts = cut(file.content)
    same = [number < len(held) and held[number][0] == text for number, text in enumerate(texts)]
    made = [held[number] if same[number] else (text, now) for number, text in enumerate(texts)]
    gone = [number for number in range(len(held)) if number >= len(texts) or not same[number]]
    _forget(work, file.scope, file.path, gone)
    revision = sql.bump(work, file.scope, _KIND, new_id("epoch"))
    work.change(_PUT, **sql.columns(file.scope), path=file.path, revision=revision, **packed(file.path, made))
    if len(held) > len(texts):
        sql.renew(work, file.scope, _KIND, new_id("epoch"))


def drop_file(work: Work, scope: Scope, path: str, new_id: NewId) -> None:
    """Takes the passages of a file that is gone."""
    where = {**sql.place(scope), "w_path": path}
    found = work.row(_HELD, **where)
    if found is not None:
        _forget(work, scope, path, range(len(json.loads(found[0]))))
        work.change(_DROP, **where)
    sql.renew(work, scope, _KIND, new_id("epoch"))


def _forget(work: Work, scope: Scope, path: str, numbers: Iterable[int]) -> None:
    for number in numbers:
        sql.drop_vectors(work, scope, _KIND, f"{path}#{number}")


class Passages:
    """The shelf of passages in one transaction."""

    def __init__(self, work: Work, new_id: NewId, rights: Rights | None = None) -> None:
        self._work = work
        self._new_id = new_id
        self._rights = rights

    def many(self, scope: Scope, ids: Sequence[str]) -> dict[str, Passage]:
        wanted = set(ids)
        paths = list(dict.fromkeys(name.rpartition("#")[0] for name in ids))
        found: list[Passage] = []
        for size, values in sql.chunks(paths):
            for row in self._work.rows(_visible(size), **sql.place(scope), **values):
                found += (passage for passage in _passages(row) if passage.id in wanted)
        if self._rights is not None:
            found = [one for one in found if self._rights.sees(_KIND, one.scope, one.path)]
        return {passage.id: passage for passage in sorted(found, key=sql.width)}

    def set_vectors(self, passage: Passage, indexed: Indexed) -> bool:
        if indexed.vectors is None:
            raise InvalidInput("there are no vectors to set")
        where = sql.place(passage.scope)
        revision = sql.bump(self._work, passage.scope, _KIND, self._new_id("epoch"))
        found = self._work.row(_HELD, **where, w_path=passage.path)
        held = json.loads(found[0]) if found else []
        if passage.number >= len(held) or held[passage.number][0] != passage.content:
            return False
        self._work.change(_MARK, **where, w_path=passage.path, revision=revision)
        sql.put_vectors(self._work, passage.scope, _KIND, passage.id, indexed.model, indexed.vectors)
        return True

    def unembedded(self, scope: Scope, model: str, *, limit: int) -> tuple[Passage, ...]:
        where = sql.place(scope)
        known = {name for (name,) in self._work.rows(_EMBEDDED, **where, w_model=model)}
        kept = (passage for row in self._work.rows(_ALL, **where) for passage in _passages(row))
        return tuple(islice((one for one in kept if one.content and one.id not in known), limit))


def _passages(row: Row) -> Iterator[Passage]:
    org, agent, user, session, path, held = row
    for number, (name, text, at, _) in enumerate(unpacked(path, held, b"")):
        yield Passage(
            id=name,
            scope=rows.to_scope(org, agent, user, session),
            path=path,
            number=number,
            content=text,
            created_at=rows.to_time(at),
        )
