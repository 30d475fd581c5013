"""Virtual paths: which are valid, at which scope each is kept, which a pattern names."""

from __future__ import annotations

import regex

from everlong.errors import InvalidInput, InvalidPath
from everlong.records import Scope

__all__ = ["PATTERN_SECONDS", "check_path", "check_prefix", "glob_pattern", "kept_at"]

PATTERN_SECONDS = 2.0
"""How long one search may take before it stops and says so."""

_MAX_PATH = 1024
_MAX_NAME = 255
_MAX_PATTERN = 1000
_UNSPEAKABLE = regex.compile(r"[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069\\]")
"""Control characters, lone surrogates, line separators, what turns the direction of writing, and the backslash."""


def check_path(path: str) -> str:
    """``path`` if it names a file: absolute, below ``/``, no ``.``, ``..``, empty part, backslash or control character.

    It names something in the store, never on a disk, so ``%2e%2e`` or ``CON`` are names as any other.

    Raises:
        InvalidPath: it is none of that, or has over 1,024 characters or a part of over 255.
    """
    if not isinstance(path, str):
        raise InvalidPath(f"a file path must be text, not {type(path).__name__}")
    problem = _problem(path, path.split("/")[1:])
    if problem:
        raise InvalidPath(f"file path {path[:80]!r} {problem}; write it like /memories/AGENTS.md")
    return path


def _problem(path: str, parts: list[str]) -> str:
    if not path.startswith("/"):
        return "is not absolute"
    if any(part in {"", ".", ".."} for part in parts):
        return "has a part that is empty, . or .."
    if _UNSPEAKABLE.search(path):
        return "holds a backslash or a control character"
    if len(path) > _MAX_PATH or any(len(part) > _MAX_NAME for part in parts):
        return f"is too long: {_MAX_PATH} characters in all, {_MAX_NAME} in a part"
    return ""


def check_prefix(prefix: str) -> str:
    """``prefix`` as a folder that ends in ``/``. Raises :class:`~everlong.errors.InvalidPath`."""
    if not isinstance(prefix, str) or not prefix.strip("/"):
        if prefix == "/":
            return prefix
        raise InvalidPath(f"folder {prefix!r} is not absolute; write it like /memories/ (or / for all)")
    return check_path(prefix.removesuffix("/")) + "/"


def kept_at(scope: Scope, path: str) -> Scope:
    """Where a file at ``path`` is kept when it is written from ``scope``.

    ``/memories/`` belongs to the user, whichever agent writes; ``/agent/`` to the agent, whomever it serves;
    ``/policies/`` to the organisation; all else to organisation, agent and user together.
    """
    match path.split("/")[1]:
        case "memories":
            return Scope(org=scope.org, user=scope.user)
        case "agent":
            return Scope(org=scope.org, agent=scope.agent)
        case "policies":
            return Scope(org=scope.org)
        case _:
            return scope.home


def glob_pattern(glob: str) -> regex.Pattern[str]:
    """What a glob matches in whole paths: ``*`` and ``?`` within one part, ``**`` over parts, ``[a-z]``, ``{a,b}``.

    A glob without a leading ``/`` may begin in any folder.

    Raises:
        InvalidInput: it is empty, too long or not a glob.
    """
    if not isinstance(glob, str) or not 0 < len(glob) <= _MAX_PATTERN:
        raise InvalidInput(f"a glob must be text of 1 to {_MAX_PATTERN} characters")
    pieces = regex.findall(r"\*\*/|/\*\*$|\*+|\?|\[!?\]?[^\]/]*\]|\{[^{}/]*\}|.", glob, flags=regex.DOTALL)
    body = "".join(map(_piece, pieces))
    try:
        return regex.compile(body if glob.startswith("/") else "/(?:.*/)?" + body, regex.DOTALL)
    except regex.error as error:
        raise InvalidInput(f"{glob!r} is not a glob: {error}") from None


_WILD = {"**/": "(?:.*/)?", "/**": "/.*", "*": "[^/]*", "**": ".*", "?": "[^/]"}


def _piece(piece: str) -> str:
    if piece in _WILD:
        return _WILD[piece]
    if set(piece) == {"*"}:
        return ".*"
    if len(piece) > 1 and piece[0] == "[":
        inner = piece[1:-1].replace("\\", "\\\\").replace("[", "\\[")
        return f"(?!/)[^{inner[1:]}]" if inner.startswith("!") else f"(?!/)[{inner}]"
    if len(piece) > 1 and piece[0] == "{":
        return "(?:" + "|".join(_alternative(each) for each in piece[1:-1].split(",")) + ")"
    return str(regex.escape(piece))


def _alternative(text: str) -> str:
    return "".join(_WILD.get(c) or regex.escape(c) for c in text)
