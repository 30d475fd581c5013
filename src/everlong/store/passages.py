"""The text of memory files in pieces, written with the file and searched like facts and turns."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, exists, select, update

from everlong.errors import InvalidInput
from everlong.protocols import Indexed
from everlong.records import Passage
from everlong.store import rows, sql
from everlong.store.schema import PLACE, passages, vectors
from everlong.text import clean, pieces, terms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy.sql.base import Executable

    from everlong.protocols import NewId
    from everlong.records import MemoryFile, Scope
    from everlong.store.sql import Row, Work

_KIND: Final = "file"
_PARAGRAPHS: Final = re.compile(r"\n[ \t\r]*\n")
_SIZE: Final = 600
"""Characters up to which paragraphs are kept together: what one vector can stand for."""
_LONGEST: Final = 8000
"""Characters of a paragraph that are cut at a time, for to find the ends of its sentences takes the square of them."""
_COLUMNS: Final = [passages.c[name] for name in (*PLACE, "id", "path", "number", "content", "created_at")]
_PATH: Final = passages.c.path == bindparam("w_path")
_PUT: Final = (
    sql.Insert(passages)
    .values({c.name: bindparam(c.name) for c in passages.c})
    .on_conflict_do_update(
        index_elements=[c.name for c in passages.primary_key],
        set_={n: bindparam(n) for n in ("content", "created_at", "revision", "terms", "length", "question")},
    )
)
_HELD: Final = select(passages.c.number, passages.c.content).where(sql.exactly(passages), _PATH)
_DROP: Final = passages.delete().where(sql.exactly(passages), _PATH, passages.c.number >= bindparam("w_number"))
_MARK: Final = (
    update(passages)
    .where(sql.exactly(passages), passages.c.id == bindparam("w_id"), passages.c.content == bindparam("w_content"))
    .values(revision=bindparam("revision"))
)
_EMBEDDED: Final = exists().where(
    vectors.c.kind == _KIND,
    vectors.c.model == bindparam("w_model"),
    *(vectors.c[name] == passages.c[name] for name in (*PLACE, "id")),
)
_PENDING: Final = (
    select(*_COLUMNS)
    .where(sql.exactly(passages), passages.c.length > 0, ~_EMBEDDED)
    .order_by(passages.c.path, passages.c.number)
    .limit(bindparam("most"))
)


@cache
def _many(size: int) -> Executable:
    return select(*_COLUMNS).where(sql.visible(passages), sql.one_of(passages.c.id, size))


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


def searched(path: str, text: str) -> Indexed:
    """What search needs of a passage, less its vector: its words and those of the file's path."""
    return Indexed(terms=terms(f"{path} {text}") if text else ())


def index_file(work: Work, file: MemoryFile, new_id: NewId) -> None:
    """Makes the passages those of ``file``. Ones that read as before stay, with their vectors."""
    where = {**sql.place(file.scope), "w_path": file.path}
    held: dict[int, str] = dict(work.rows(_HELD, **where))
    made = cut(file.content)
    changed = [number for number, text in enumerate(made) if held.get(number) != text]
    revision = sql.bump(work, file.scope, _KIND, new_id("epoch"))
    at = rows.to_micros(file.updated_at)
    for number in changed:
        text, name = made[number], f"{file.path}#{number}"
        if number in held:
            sql.drop_vectors(work, file.scope, _KIND, name)
        values = {"path": file.path, "number": number, "id": name, "content": text, "created_at": at}
        row = rows.searchable(text, searched(file.path, text))
        work.change(_PUT, **sql.columns(file.scope), **values, **row, revision=revision)
    if len(held) > len(made):
        _drop(work, file.scope, file.path, [number for number in held if number >= len(made)], new_id)


def drop_file(work: Work, scope: Scope, path: str, new_id: NewId) -> None:
    """Takes the passages of a file that is gone."""
    held = [number for number, _ in work.rows(_HELD, **sql.place(scope), w_path=path)]
    _drop(work, scope, path, held, new_id)


def _drop(work: Work, scope: Scope, path: str, numbers: Sequence[int], new_id: NewId) -> None:
    sql.renew(work, scope, _KIND, new_id("epoch"))
    for number in numbers:
        sql.drop_vectors(work, scope, _KIND, f"{path}#{number}")
    work.change(_DROP, **sql.place(scope), w_path=path, w_number=min(numbers, default=0))


class Passages:
    """The shelf of passages in one transaction."""

    def __init__(self, work: Work, new_id: NewId) -> None:
        self._work = work
        self._new_id = new_id

    def many(self, scope: Scope, ids: Sequence[str]) -> dict[str, Passage]:
        found: list[Passage] = []
        for size, values in sql.chunks(ids):
            found += map(_passage, self._work.rows(_many(size), **sql.place(scope), **values))
        return {passage.id: passage for passage in sorted(found, key=sql.width)}

    def set_vectors(self, passage: Passage, indexed: Indexed) -> bool:
        if indexed.vectors is None:
            raise InvalidInput("there are no vectors to set")
        where = sql.place(passage.scope)
        revision = sql.bump(self._work, passage.scope, _KIND, self._new_id("epoch"))
        text = {"w_id": passage.id, "w_content": passage.content}
        if not self._work.change(_MARK, **where, **text, revision=revision):
            return False
        sql.put_vectors(self._work, passage.scope, _KIND, passage.id, indexed.model, indexed.vectors)
        return True

    def unembedded(self, scope: Scope, model: str, *, limit: int) -> tuple[Passage, ...]:
        found = self._work.rows(_PENDING, **sql.place(scope), w_model=model, most=limit)
        return tuple(map(_passage, found))


def _passage(row: Row) -> Passage:
    org, agent, user, session, id_, path, number, content, created = row
    return Passage(
        id=id_,
        scope=rows.to_scope(org, agent, user, session),
        path=path,
        number=number,
        content=content,
        created_at=rows.to_time(created),
    )
