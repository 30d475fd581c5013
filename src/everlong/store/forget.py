"""Forgetting single records: facts with their past, the words of messages, and what else tells of them."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import bindparam, delete, or_, select, update

from everlong.store import rows, schema, sql

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy import Table
    from sqlalchemy.sql.base import Executable

    from everlong.protocols import NewId
    from everlong.records import Fact, Message, Scope
    from everlong.store.sql import Work

MARK: Final = "[forgotten]"
"""What stands where words were: a mark by which a conversation that is sent again is known again."""

_OF_FACT: Final = {"vectors": "id", "revisions": "id", "proposals": "target", "facts": "id"}
_KINDS: Final = {"vectors": ("fact",), "revisions": ("fact",), "proposals": ("fact", "removal")}


@cache
def _drop(name: str) -> Executable:
    table = schema.metadata.tables[name]
    named = sql.exactly(table) if name != "proposals" else table.c.org == bindparam("w_org")
    found = delete(table).where(named, table.c[_OF_FACT[name]] == bindparam("w_id"))
    return found.where(or_(*(table.c.kind == kind for kind in _KINDS[name]))) if name in _KINDS else found


_messages: Final = schema.messages
_BLANK: Final = (
    update(_messages)
    .where(sql.exactly(_messages), _messages.c.id == bindparam("w_id"))
    .values({n: bindparam(n) for n in ("content", "speaker", "signals", "metadata", "terms", "length", "question")})
)


@cache
def _read(name: str, columns: tuple[str, ...], named: tuple[str, ...]) -> Executable:
    table = schema.metadata.tables[name]
    return select(*(table.c[each] for each in columns)).where(sql.within(table, named))


@cache
def _change(name: str, keys: tuple[str, ...], columns: tuple[str, ...]) -> Executable:
    """One row of a table, by its keys: deleted, or with other values in ``columns``."""
    table: Table = schema.metadata.tables[name]
    where = [table.c[key] == bindparam(f"w_{key}") for key in keys]
    if not columns:
        return delete(table).where(*where)
    return update(table).where(*where).values({column: bindparam(column) for column in columns})


@cache
def _fence(named: tuple[str, ...]) -> Executable:
    return update(schema.sessions).where(sql.within(schema.sessions, named)).values(epoch=bindparam("epoch"))


def forget(
    work: Work,
    scope: Scope,
    new_id: NewId,
    *,
    facts: Sequence[Fact],
    messages: Sequence[Message],
    about: Callable[[str], bool],
) -> dict[str, int]:
    """See :meth:`everlong.protocols.Transaction.forget`. Buckets first, as everyone takes them."""
    places = {(fact.scope, "fact") for fact in facts} | {(message.scope, "message") for message in messages}
    for place, kind in sorted(places, key=lambda bucket: (bucket[1] == "message", bucket)):
        sql.renew(work, place, kind, new_id("epoch"))
    for fact in facts:
        for name in _OF_FACT:
            where = {"w_org": fact.scope.org} if name == "proposals" else sql.place(fact.scope)
            work.change(_drop(name), **where, w_id=fact.id)
    for message in messages:
        _blank(work, message)
    home, where = sql.named(scope, home=True), sql.place(scope)
    gone = {message.id for message in messages}
    counts = {
        "facts": len(facts),
        "messages": len(messages),
        "quotes": _unquote(work, scope, gone, about),
        "revisions": _sweep(work, scope, "revisions", (*schema.PLACE, "kind", "id", "version"), ("body",), about),
        "proposals": _sweep(work, scope, "proposals", ("org", "id"), ("payload", "reason"), about),
        "journal": _sweep(work, scope, "journal", ("org", "id", "kind"), ("payload", "reason"), about, ("{}", MARK)),
        "extractions": _sweep(
            work,
            scope,
            "extractions",
            ("org", "id"),
            ("decisions", "skipped", "raw", "error"),
            about,
            ("[]", "[]", "", ""),
        ),
    }
    work.change(_fence(home), **where, epoch=new_id("epoch"))
    return counts


def _blank(work: Work, message: Message) -> None:
    names = zip(schema.PLACE, (*message.scope.parts[:3], message.session), strict=True)
    where = {f"w_{name}": part for name, part in names}
    signals = json.dumps(["trivial", "forgotten"], separators=(",", ":"))
    words: dict[str, Any] = {"content": MARK, "speaker": "", "signals": signals, "metadata": "{}"}
    work.change(_BLANK, **where, w_id=message.id, **words, terms=b"", length=len(MARK), question=0)
    keys = (*schema.PLACE, "kind", "id")
    work.change(_change("vectors", keys, ()), **where, w_kind="message", w_id=message.id)


def _sweep(
    work: Work,
    scope: Scope,
    name: str,
    keys: tuple[str, ...],
    columns: tuple[str, ...],
    about: Callable[[str], bool],
    blank: tuple[str, ...] = (),
) -> int:
    """Rows within ``scope.home`` that tell of it: deleted, or their ``columns`` made ``blank``."""
    home, where = sql.named(scope, home=True), sql.place(scope)
    swept = 0
    for row in work.rows(_read(name, (*keys, *columns), home), **where):
        key = dict(zip(keys, row, strict=False))
        if key.get("kind") == "file" or not any(about(each) for value in row[len(keys) :] for each in _texts(value)):
            continue
        found = {f"w_{each}": value for each, value in key.items()}
        # A trace without its question and its block is none.
        values = dict(zip(columns, blank, strict=True)) if blank and key.get("kind") != "trace" else {}
        swept += work.change(_change(name, keys, tuple(values)), **found, **values)
    return swept


def _unquote(work: Work, scope: Scope, gone: set[str], about: Callable[[str], bool]) -> int:
    """Takes the words out of the evidence of facts that stay, as another version of them."""
    home, where = sql.named(scope, home=True), sql.place(scope)
    keys, changed = (*schema.PLACE, "id"), 0
    for *key, version, evidence in work.rows(_read("facts", (*keys, "version", "evidence"), home), **where):
        quotes = json.loads(evidence)
        left = [quote for quote in quotes if quote[0] not in gone and not about(quote[1])]
        if left == quotes:
            continue
        found = {f"w_{name}": value for name, value in zip(keys, key, strict=True)}
        values = {"evidence": rows.to_json(left), "version": version + 1}
        changed += work.change(_change("facts", keys, ("evidence", "version")), **found, **values)
    return changed


def _texts(value: Any) -> Iterator[str]:
    """Every text in a column, also those inside JSON, at any depth."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str):
        parsed = _parsed(value)
        if parsed is None:
            yield value
        else:
            yield from _texts(parsed)


def _parsed(value: str) -> Any:
    if not value.startswith(("{", "[")):
        return None
    try:
        return json.loads(value)
    except ValueError:
        return None
