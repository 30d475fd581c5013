"""Who asks: an identity from a credential, and the scope that it may name. Nothing else of a request says who it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast
from urllib.parse import unquote

from everlong.errors import AccessDenied, ConfigError, InvalidScope, MissingExtra, StoreUnavailable
from everlong.records import Principal, Role, Scope
from everlong.server.keys import KEPT_AT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from everlong.server.keys import Keys

__all__ = ["HEADERS", "ByKey", "ByToken", "Credentials", "Identity", "Unauthenticated", "identify", "scope_of"]

HEADERS: Final = {"org": "X-Everlong-Org", "agent": "X-Everlong-Agent", "user": "X-Everlong-User"}
"""By which a request names a part that its credential leaves open; the value is percent-encoded UTF-8."""
CLAIMS: Final = {"org": "org", "user": "sub", "role": "role", "agent": "agent", "groups": "groups"}
"""In which claims of a token an identity stands, unless the setting ``jwt_claims`` says otherwise."""
_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_SECRET: Final = 32
"""Bytes at least of a shared secret for HS256 (RFC 7518, 3.2)."""


class Unauthenticated(Exception):
    """There is no credential, or it opens nothing; the message is for the log and never for the caller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who a credential speaks for. ``by`` acts; empty parts are open. ``source`` names the credential in logs."""

    by: Principal
    source: str
    org: str = ""
    user: str = ""
    agent: str = ""


class Credentials(Protocol):
    """Turns what stands in ``Authorization: Bearer`` into an identity."""

    def identify(self, text: str) -> Identity | None:
        """The identity; ``None`` if this is not a credential of this kind.

        Raises:
            Unauthenticated: it is of this kind and opens nothing.
            StoreUnavailable: that cannot be told now; trying again may help.
        """
        ...


class ByKey:
    """API keys."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    def identify(self, text: str) -> Identity | None:
        """See :class:`Credentials`."""
        if not text.startswith("elk_"):
            return None
        key = self._keys.find(text)
        if key is None:
            raise Unauthenticated("unknown, expired or revoked key")
        name = {"user": key.user, "agent": key.agent}.get(key.role) or key.name
        by = Principal(id=name, role=key.role, groups=key.groups)
        return Identity(by=by, source=f"key:{key.id}", org=key.org, user=key.user, agent=key.agent)


class ByToken:
    """JSON Web Tokens of an OpenID provider, or signed with a key of your own.

    Args:
        keys: an address of a JWKS (``https://…``), or a file with a PEM public key or a secret of 32 bytes or more.
            Nothing is fetched before the first token comes; a JWKS is kept for five minutes.
        audience: the token must be meant for it, or one for another application of the provider would open memory.
        issuer: the token must be from it; empty: from whoever has the key.
        claims: claim by part (``org``, ``user``, ``role``, ``agent``, ``groups``); dots lead into objects.

    Raises:
        ConfigError: the file cannot be read, its secret is too short, or there is no audience.
    """

    def __init__(self, keys: str, *, audience: str, issuer: str = "", claims: Mapping[str, str] | None = None) -> None:
        try:
            import jwt
        except ImportError:
            raise MissingExtra("server", "JSON Web Tokens") from None
        if not audience:
            raise ConfigError("jwt_audience is not set: tokens for any application of the provider would open memory")
        unknown = sorted(set(claims or {}) - set(CLAIMS))
        if unknown:
            raise ConfigError(f"jwt_claims names {unknown[0]!r}; there are {', '.join(CLAIMS)}")
        self._jwt, self._audience, self._issuer = jwt, audience, issuer
        self._claims = {**CLAIMS, **(claims or {})}
        self._remote = jwt.PyJWKClient(keys, timeout=10) if keys.startswith(("http://", "https://")) else None
        self._own, self._algorithms = ("", list(_ALGORITHMS)) if self._remote else _own_key(keys)

    def identify(self, text: str) -> Identity | None:
        """See :class:`Credentials`."""
        if text.count(".") != 2:  # noqa: PLR2004 - header, claims, signature
            return None
        try:
            key = self._remote.get_signing_key_from_jwt(text).key if self._remote else self._own
            said = self._jwt.decode(
                text,
                key,
                algorithms=self._algorithms,
                audience=self._audience,
                issuer=self._issuer or None,
                options={"require": ["exp"]},
                leeway=30,
            )
        except self._jwt.PyJWKClientConnectionError:
            raise StoreUnavailable("the keys of the tokens cannot be fetched from their provider; try again") from None
        except self._jwt.PyJWTError as error:
            raise Unauthenticated(type(error).__name__) from None
        return self._identity(said)

    def _identity(self, said: Mapping[str, Any]) -> Identity:
        part = {name: _claim(said, self._claims[name]) for name in ("org", "user", "role", "agent")}
        if not all(isinstance(value, str) for value in part.values()):
            raise Unauthenticated("a claim is not text")
        role = part["role"] or "user"
        groups = _claim(said, self._claims["groups"]) or ()
        subject = part["agent"] if role == "agent" else part["user"]
        if role not in {"user", "agent", "operator"} or not subject or part["org"] == KEPT_AT.org:
            raise Unauthenticated("the claims name no identity")
        if not isinstance(groups, list | tuple):
            groups = (groups,)
        by = Principal(id=subject, role=cast("Role", role), groups=tuple(map(str, groups)))
        # The subject of an operator's or agent's token is who acts, not whose memory it is.
        user = part["user"] if role == "user" else ""
        try:
            Scope(org=part["org"], user=user, agent=part["agent"])
        except InvalidScope:
            raise Unauthenticated("the claims name no scope") from None
        return Identity(by=by, source=f"token:{role}:{subject}", org=part["org"], user=user, agent=part["agent"])


def _own_key(name: str) -> tuple[str, list[str]]:
    try:
        text = Path(name).read_text("utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"jwt_keys names {name}, which cannot be read: {type(error).__name__}") from None
    if text.startswith("-----BEGIN"):
        return text, list(_ALGORITHMS)
    if len(text.encode()) < _SECRET:
        raise ConfigError(f"the secret in {name} is shorter than {_SECRET} bytes")
    return text, ["HS256", "HS384", "HS512"]


def _claim(said: Mapping[str, Any], name: str) -> Any:
    found: Any = said
    for part in [name] if name in said else name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return "" if found is None else found


def identify(text: str, kinds: Sequence[Credentials]) -> Identity:
    """The identity of a credential of one of these kinds.

    Raises:
        Unauthenticated: it opens nothing.
    """
    for kind in kinds:
        found = kind.identify(text)
        if found is not None:
            return found
    raise Unauthenticated("not a credential that is known here")


def scope_of(identity: Identity, headers: Mapping[str, str], session: str) -> Scope:
    """Where a request acts: what its credential binds, and what it may name beside it.

    Users name an agent, agents name the user that they serve, operators name both; an agent names no agent (an empty
    header) to reach what is the user's with every agent. Only an operator of no organisation may name one.

    Raises:
        AccessDenied: a header names what the credential does not open.
        InvalidScope: a part is malformed.
    """
    asked = {part: unquote(headers[name]) if name in headers else None for part, name in HEADERS.items()}
    role = identity.by.role
    openings = {"org": role == "operator", "user": role in {"agent", "operator"}, "agent": role != "agent"}
    parts = {}
    for part, wanted in asked.items():
        bound = getattr(identity, part)
        free = openings[part] and not bound
        shared = part == "agent" and role == "agent" and wanted == ""
        if wanted is None or wanted == bound:
            parts[part] = bound
        elif (free or shared) and not (part == "org" and wanted == KEPT_AT.org):
            parts[part] = wanted
        else:
            here = Scope(org=identity.org, agent=identity.agent, user=identity.user)
            raise AccessDenied("request", here, f"this credential does not open another {part}")
    return Scope(**parts, session=session)
