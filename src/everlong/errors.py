"""Every error that everlong raises, each with one HTTP status and one exit code.

    EverlongError
    ├─ ConfigError                     exit 2   a wrong setting · MissingExtra
    ├─ InvalidInput              400   exit 3   InvalidScope · InvalidPath · UnknownCategory · EmptyText
    ├─ AccessDenied              403   exit 4   └─ ApprovalRequired
    ├─ NotFound (LookupError)    404   exit 5   also for what the caller may not see
    ├─ Conflict                  409   exit 6   someone else wrote first
    ├─ TooLarge                  413   exit 3
    ├─ ModelError                502   exit 7   └─ UnusableExtraction
    ├─ StoreError                503   exit 8   StoreUnavailable · SchemaMismatch
    └─ Overloaded                429   exit 9   too much waits; slow down and try again

A message says what happened and what to do about it; catch the class, never the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from everlong.records import Scope, Usage

__all__ = [
    "AccessDenied",
    "ApprovalRequired",
    "ConfigError",
    "Conflict",
    "EmptyText",
    "EverlongError",
    "InvalidInput",
    "InvalidPath",
    "InvalidScope",
    "MissingExtra",
    "ModelError",
    "NotFound",
    "Overloaded",
    "SchemaMismatch",
    "StoreError",
    "StoreUnavailable",
    "TooLarge",
    "UnknownCategory",
    "UnusableExtraction",
]


class EverlongError(Exception):
    """Root of the tree: catch this to catch everything everlong raises on purpose."""

    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1


class ConfigError(EverlongError):
    """A setting is wrong, or something the setting names is not installed."""

    exit_code = 2


class MissingExtra(ConfigError):
    """An optional dependency is not installed; the message names the extra that brings it."""

    def __init__(self, extra: str, needed_for: str) -> None:
        self.extra = extra
        super().__init__(f"{needed_for} needs an optional dependency: pip install 'everlong[{extra}]'")


class InvalidInput(EverlongError, ValueError):
    """What was given cannot be stored or asked; nothing was changed."""

    status = 400
    exit_code = 3


class InvalidScope(InvalidInput):
    """A scope is malformed, or is wider than this operation allows (for example names no user)."""


class InvalidPath(InvalidInput):
    """A memory file's path is malformed or would leave its root."""


class UnknownCategory(InvalidInput):
    """A fact's category is neither built in nor declared in the settings."""


class EmptyText(InvalidInput):
    """There is no text left to store or to search after cleaning."""


class AccessDenied(EverlongError):
    """The policy forbids this action to this principal at this scope."""

    status = 403
    exit_code = 4

    def __init__(self, action: str, scope: Scope, reason: str) -> None:
        self.action, self.scope, self.reason = action, scope, reason
        super().__init__(f"{action} at {scope} is denied: {reason}")


class ApprovalRequired(AccessDenied):
    """The policy wants a person to approve this action first. It waits in the review inbox as ``proposal_id``, which
    is empty when such a call cannot wait and has to be made again by someone who may."""

    def __init__(self, action: str, scope: Scope, reason: str, proposal_id: str = "") -> None:
        self.proposal_id = proposal_id
        super().__init__(action, scope, reason)


class NotFound(EverlongError, LookupError):
    """No such record, or none that the caller may see: the two are told apart to nobody."""

    status = 404
    exit_code = 5


class Conflict(EverlongError):
    """The record changed since it was read: read it again and decide anew."""

    status = 409
    exit_code = 6

    def __init__(self, what: str, *, expected: object, actual: object) -> None:
        self.expected, self.actual = expected, actual
        super().__init__(f"{what} changed meanwhile: expected {expected}, found {actual}; read it again and retry")


class TooLarge(EverlongError):
    """A text, file or batch is over its limit; the message names limit and setting."""

    status = 413
    exit_code = 3


class ModelError(EverlongError):
    """A chat or embedding model failed, timed out or refused; ``usage`` is what it cost all the same, if known."""

    status = 502
    exit_code = 7
    usage: Usage | None = None


class UnusableExtraction(ModelError):
    """A model answered, but not with an update that is safe to apply; ``raw`` is its answer."""

    def __init__(self, reason: str, raw: str) -> None:
        self.reason, self.raw = reason, raw
        super().__init__(f"the extraction model's answer cannot be used: {reason}")


class StoreError(EverlongError):
    """The database refused or failed; what was acknowledged before is safe."""

    status = 503
    exit_code = 8


class StoreUnavailable(StoreError):
    """The database cannot be reached, opened, or did not answer in time; trying again may help."""


class SchemaMismatch(StoreError):
    """The store was written by a newer version, or holds another embedding space than the one asked for."""


class Overloaded(EverlongError):
    """A queue or a rate is at its limit: nothing was stored, so try again later, after ``seconds`` where that is known;
    the message says which setting bounds it."""

    status = 429
    exit_code = 9

    def __init__(self, message: str, *, seconds: int = 0) -> None:
        self.seconds = seconds
        super().__init__(message)
