"""API keys: made at random, shown once, kept as a hash, each bound to whom it speaks for."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, get_args

from everlong.errors import InvalidInput, NotFound
from everlong.records import MemoryFile, Role, Scope
from everlong.records.plain import plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from everlong.protocols import Clock, Store, Transaction

__all__ = ["KEPT_AT", "Key", "Keys"]

KEPT_AT: Final = Scope(org="everlong.server.keys")
"""A tenant of its own, which no credential can name: a tenant is a wall, so no question and no listing gets there."""
_FOLDER: Final = "/keys/"
_MARK: Final = "elk"
_NOBODY: Final = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """An API key without its secret. Empty parts are open: a request may name them, as far as its role goes.

    ``id`` is public, ``hash`` the SHA-256 of the whole key. ``expires_at`` is the first moment at which it is refused.
    """

    id: str
    hash: str
    name: str
    role: Role
    created_at: datetime
    org: str = ""
    user: str = ""
    agent: str = ""
    groups: tuple[str, ...] = ()
    expires_at: datetime | None = None

    def holds(self, at: datetime) -> bool:
        """Whether it is accepted at that time."""
        return self.expires_at is None or at < self.expires_at


class Keys:
    """The keys of one store.

    A key holds 256 random bits, which nobody can guess, so that one round of SHA-256 keeps it as safe as a slow hash
    would, and a request costs no time. Whoever reads the store cannot make a key from it.

    Args:
        store: where they are kept, beside what they open.
        clock: gives the time.
        random: so many random bytes, from a source that is fit for secrets.
    """

    def __init__(self, store: Store, *, clock: Clock, random: Callable[[int], bytes] = secrets.token_bytes) -> None:
        self._store, self._clock, self._random = store, clock, random

    def make(
        self,
        name: str,
        *,
        role: Role = "user",
        org: str = "",
        user: str = "",
        agent: str = "",
        groups: tuple[str, ...] = (),
        lasts: timedelta | None = None,
    ) -> tuple[Key, str]:
        """A new key and its text, which is shown this once and kept nowhere.

        Args:
            name: what it is for, such as a host's name.
            role: ``user`` (needs ``user``), ``agent`` (needs ``agent``) or ``operator``.
            org: the tenant; an operator's key without one is of the installation and may name any.
            user: whose memory it opens; an operator's or agent's key without one may name the user.
            agent: the agent that speaks.
            groups: groups for the rules.
            lasts: until it expires; default: never.

        Raises:
            InvalidInput: the role does not fit the parts.
        """
        _check(name, role=role, org=org, user=user, agent=agent, lasts=lasts)
        Scope(org=org, agent=agent, user=user)  # refuses parts that no scope can have
        now = self._clock()
        made = Key(
            id=self._random(8).hex(),
            hash="",
            name=name,
            role=role,
            created_at=now,
            org=org,
            user=user,
            agent=agent,
            groups=groups,
            expires_at=None if lasts is None else now + lasts,
        )
        text = f"{_MARK}_{made.id}_{self._random(32).hex()}"
        made = replace(made, hash=_hash(text))
        with self._store.write() as tx:
            self._put(tx, made, expected=0)
        return made, text

    def find(self, text: str) -> Key | None:
        """The key of this text, if it is one and holds now. Takes the same time for a wrong secret as for a right one."""
        _, _, rest = text.partition("_")
        identifier = rest.partition("_")[0]
        known = self._known(identifier) if identifier.isalnum() and identifier.isascii() else None
        right = hmac.compare_digest(_hash(text), known.hash if known else _NOBODY)
        return known if known and right and known.holds(self._clock()) else None

    def _known(self, identifier: str) -> Key | None:
        with self._store.read() as tx:
            try:
                return _key(tx.files.get(KEPT_AT, _path(identifier)))
            except NotFound:
                return None

    def list(self) -> tuple[Key, ...]:
        """Every key, those that expired too, oldest first."""
        with self._store.read() as tx:
            paths = [info.path for info in tx.files.list(KEPT_AT, prefix=_FOLDER)]
            found = [_key(tx.files.get(KEPT_AT, path)) for path in paths]
        return tuple(sorted(found, key=lambda key: (key.created_at, key.id)))

    def rotate(self, identifier: str, *, grace: timedelta = timedelta(0)) -> tuple[Key, str]:
        """A new key with the rights of this one, which holds for ``grace`` yet, so that hosts can change over.

        Raises:
            NotFound: there is no such key.
        """
        old = self._known(identifier)
        if old is None:
            raise NotFound(f"no key of id {identifier}")
        lasts = None if old.expires_at is None else old.expires_at - old.created_at
        made, text = self.make(
            old.name, role=old.role, org=old.org, user=old.user, agent=old.agent, groups=old.groups, lasts=lasts
        )
        self._end(identifier, self._clock() + grace)
        return made, text

    def revoke(self, identifier: str) -> Key:
        """Ends a key at once. Raises :class:`~everlong.errors.NotFound`."""
        return self._end(identifier, self._clock())

    def _end(self, identifier: str, at: datetime) -> Key:
        with self._store.write() as tx:
            file = tx.files.get(KEPT_AT, _path(identifier))
            old = _key(file)
            ended = replace(old, expires_at=min(at, old.expires_at or at))
            self._put(tx, ended, expected=file.version)
        return ended

    def _put(self, tx: Transaction, key: Key, *, expected: int) -> None:
        now = self._clock()
        content = json.dumps(plain(key), ensure_ascii=False).encode()
        file = MemoryFile(scope=KEPT_AT, path=_path(key.id), content=content, created_at=now, updated_at=now)
        tx.files.put(file, expected=expected)


def _check(name: str, *, role: Role, org: str, user: str, agent: str, lasts: timedelta | None) -> None:
    problem = ""
    if not name.strip():
        problem = "a key needs a name that says what it is for"
    elif role not in get_args(Role) or role == "system":
        problem = f"a key's role is user, agent or operator, not {role!r}"
    elif role == "user" and not user:
        problem = "a user's key needs the user that it speaks for"
    elif role == "agent" and not agent:
        problem = "an agent's key needs the agent that it speaks for"
    elif org == KEPT_AT.org:
        problem = f"the organisation {org!r} is where keys are kept"
    elif lasts is not None and lasts <= timedelta(0):
        problem = "a key must last for some time"
    if problem:
        raise InvalidInput(problem)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _path(identifier: str) -> str:
    return f"{_FOLDER}{identifier}.json"


def _key(file: MemoryFile) -> Key:
    kept: dict[str, Any] = json.loads(file.content)
    times = {name: datetime.fromisoformat(kept[name]) for name in ("created_at", "expires_at") if kept[name]}
    return Key(**{**kept, **times, "groups": tuple(kept["groups"])})
