"""Profiles: one for each scope, versioned."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, select, update

from everlong.errors import Conflict
from everlong.records import Profile
from everlong.store import past, rows, sql
from everlong.store.schema import profiles

if TYPE_CHECKING:
    from datetime import datetime

    from everlong.protocols import Clock, Rights
    from everlong.records import Scope
    from everlong.store.sql import Work

_COLUMNS: Final = rows.profile_columns()
_ADD: Final = sql.Insert(profiles).values({c.name: bindparam(c.name) for c in profiles.c}).on_conflict_do_nothing()
_GET: Final = select(*_COLUMNS).where(sql.exactly(profiles))
_VISIBLE: Final = select(*_COLUMNS).where(sql.visible(profiles))
_PUT: Final = (
    update(profiles)
    .where(sql.exactly(profiles), profiles.c.version == bindparam("w_version"))
    .values({n: bindparam(n) for n in ("sections", "attributes", "version", "updated_at")})
)


class Profiles:
    """The shelf of profiles in one transaction."""

    def __init__(self, work: Work, clock: Clock, rights: Rights | None = None) -> None:
        self._work = work
        self._clock = clock
        self._rights = rights

    def get(self, scope: Scope) -> Profile:
        if self._hides(scope):
            return Profile(scope=scope)
        found = self._work.row(_GET, **sql.place(scope))
        return Profile(scope=scope) if found is None else rows.to_profile(found)

    def as_of(self, scope: Scope, at: datetime) -> Profile:
        if self._hides(scope):
            return Profile(scope=scope)
        ended = past.body_at(self._work, scope, "profile", at)
        if ended is not None:
            return self._if_then(rows.profile_of_body(scope, *ended), at)
        return self._if_then(self.get(scope), at)

    @staticmethod
    def _if_then(profile: Profile, at: datetime) -> Profile:
        stood = profile.updated_at is not None and profile.updated_at <= at
        return profile if stood else Profile(scope=profile.scope)

    def visible(self, scope: Scope) -> tuple[Profile, ...]:
        found = map(rows.to_profile, self._work.rows(_VISIBLE, **sql.place(scope)))
        return tuple(sorted((each for each in found if not self._hides(each.scope)), key=sql.width))

    def _hides(self, scope: Scope) -> bool:
        return self._rights is not None and not self._rights.sees("profile", scope)

    def put(self, profile: Profile, *, expected: int) -> Profile:
        old = self.get(profile.scope)
        made = replace(profile, version=expected + 1)
        values = rows.from_profile(made) | {"version": made.version}
        if old.version != expected or not self._write(profile.scope, expected, values):
            actual = self.get(profile.scope).version
            raise Conflict(f"profile of {profile.scope}", expected=expected, actual=actual)
        if expected:
            at = rows.to_micros(self._clock())
            sql.keep(self._work, profile.scope, "profile", "", expected, at, rows.profile_body(old))
        return made

    def _write(self, scope: Scope, expected: int, values: dict[str, object]) -> int:
        if expected:
            return self._work.change(_PUT, **sql.place(scope), w_version=expected, **values)
        return self._work.change(_ADD, **sql.columns(scope), **values)
