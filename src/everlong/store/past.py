"""What was known at an earlier time: present rows where they stood then already, versions from history elsewhere.

A version that is kept in history bears the time at which it ended. So the state at a time is the first version that ended
after it, or the present one if none did.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Final

from sqlalchemy import and_, bindparam, func, select

from everlong.protocols import IndexRows
from everlong.store import rows, sql
from everlong.store.schema import PLACE, facts, revisions
from everlong.text import pack_terms, terms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import BindParameter
    from sqlalchemy.sql.base import Executable

    from everlong.records import Fact, Scope
    from everlong.store.sql import Work

_AT: Final[BindParameter[int]] = bindparam("at")


@cache
def _present(*, exactly: bool) -> Executable:
    place = sql.exactly(facts) if exactly else sql.visible(facts)
    return select(*rows.fact_columns()).where(place, facts.c.created_at <= _AT)


@cache
def _ended(kind: str, *, exactly: bool) -> Executable:
    """Bodies of the versions that stood at a time and ended later."""
    key = [revisions.c[name] for name in (*PLACE, "id")]
    place = sql.exactly(revisions) if exactly else sql.visible(revisions)
    first = (
        select(*key, func.min(revisions.c.version).label("first"))
        .where(place, revisions.c.kind == kind, revisions.c.at > _AT)
        .group_by(*key)
        .subquery()
    )
    same = and_(*(revisions.c[name] == first.c[name] for name in (*PLACE, "id")))
    joined = revisions.join(first, and_(same, revisions.c.version == first.c.first, revisions.c.kind == kind))
    return select(revisions.c.version, revisions.c.body).select_from(joined)


def facts_at(work: Work, scope: Scope, at: datetime, *, exactly: bool = False) -> list[Fact]:
    """Facts visible from ``scope`` (or kept ``exactly`` there) as they stood then, of any status, newest first."""
    asked = sql.place(scope) | {"at": rows.to_micros(at)}
    found = {(f.scope.org, f.id): f for f in map(rows.to_fact, work.rows(_present(exactly=exactly), **asked))}
    for _, body in work.rows(_ended("fact", exactly=exactly), **asked):
        old = rows.fact_of_body(body)
        if (old.scope.org, old.id) in found:
            found[old.scope.org, old.id] = old
    return sorted(found.values(), key=key, reverse=True)


def body_at(work: Work, scope: Scope, kind: str, at: datetime) -> tuple[int, str] | None:
    """Version and body of the one record of ``kind`` at ``scope`` if it ended since; ``None`` if it stands as it was."""
    found = work.row(_ended(kind, exactly=True), **sql.place(scope), at=rows.to_micros(at))
    return None if found is None else (int(found[0]), str(found[1]))


def key(fact: Fact) -> tuple[int, str, str]:
    """What lists of facts are ordered by, newest last."""
    return rows.to_micros(fact.created_at), fact.id, fact.scope.org


def as_rows(found: Sequence[Fact], present: IndexRows, texts: Mapping[str, str]) -> IndexRows:
    """Facts as they were, as rows: words and vectors of the ``present`` rows where the text is the same as now."""
    place = {identifier: row for row, identifier in enumerate(present.ids)}
    same = [place[fact.id] if texts.get(fact.id) == fact.content else None for fact in found]
    return IndexRows(
        ids=[fact.id for fact in found],
        revision=[1] * len(found),
        live=[fact.status == "active" for fact in found],
        terms=[
            pack_terms(terms(fact.content)) if row is None else present.terms[row]
            for fact, row in zip(found, same, strict=True)
        ],
        vectors=[None if row is None else present.vectors[row] for row in same],
        session=[fact.session for fact in found],
        speaker=[""] * len(found),
        role=[fact.origin for fact in found],
        category=[fact.category for fact in found],
        created_at=[fact.created_at.timestamp() for fact in found],
        position=[0] * len(found),
        length=[len(fact.content) for fact in found],
        question=[rows.is_question(fact.content) for fact in found],
        confidence=[fact.confidence for fact in found],
        origin=[fact.origin for fact in found],
        trust=[fact.trust for fact in found],
        valid_from=[-math.inf if f.valid_from is None else f.valid_from.timestamp() for f in found],
        valid_until=[math.inf if f.valid_until is None else f.valid_until.timestamp() for f in found],
    )
