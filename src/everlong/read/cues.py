"""Cues: words by which a text shows that memory is asked for, that a reply lacks it, or that a message is important.

The patterns are data (``cues.toml``); :func:`load_cues` reads further files of the same form on top of them.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, Literal

from everlong.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Cue", "Cues", "cue", "load_cues"]

Cue = Literal["recall", "unsure", "important"]
_CUES: Final = ("recall", "unsure", "important")
_SCANNED: Final = 4000
"""Characters of a text that are looked at, half of them at its beginning and half at its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cues:
    """Compiled patterns of each cue: what is found, and what is blanked out before."""

    found: Mapping[str, re.Pattern[str]] = field(hash=False)
    unless: Mapping[str, re.Pattern[str]] = field(hash=False)


def cue(name: Cue, text: str, *, cues: Cues | None = None) -> str:
    """The words of ``text`` that are the cue ``name``; empty when there are none. ``cues`` come from :func:`load_cues`.

    Only the first and the last 2,000 characters are looked at.
    """
    cues = cues or _built_in()
    half = _SCANNED // 2
    seen = text if len(text) <= _SCANNED else f"{text[:half]} … {text[-half:]}"
    seen = unicodedata.normalize("NFKC", seen).replace("’", "'")
    if name in cues.unless:
        seen = cues.unless[name].sub(" … ", seen)
    match = cues.found[name].search(seen)
    return match[0].strip(" .,!?;:。，、") if match else ""


def load_cues(*files: Path) -> Cues:
    """The built-in patterns and those of further TOML files of the form of ``everlong/read/cues.toml``.

    Raises:
        ConfigError: a file cannot be read, is no TOML, names an unknown cue or holds a broken pattern.
    """
    tables = [_parsed("cues.toml", resources.files("everlong.read").joinpath("cues.toml").read_text("utf-8"))]
    for file in files:
        try:
            tables.append(_parsed(str(file), file.read_text("utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            msg = f"cues {file} cannot be read: {error}"
            raise ConfigError(msg) from error
    return Cues(found=_compiled(tables, "found"), unless=_compiled(tables, "unless"))


@cache
def _built_in() -> Cues:
    return load_cues()


def _parsed(name: str, source: str) -> Mapping[str, Any]:
    try:
        table = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        msg = f"cues {name} are no TOML: {error}"
        raise ConfigError(msg) from error
    for key, parts in table.items():
        if key not in _CUES or not isinstance(parts, dict) or set(parts) - {"found", "unless"}:
            msg = f"cues {name} name {key!r}; known are {', '.join(_CUES)}, each with found and unless"
            raise ConfigError(msg)
        for pattern in (each for part in ("found", "unless") for each in _patterns(name, parts.get(part, {}))):
            try:
                re.compile(pattern)
            except re.error as error:
                msg = f"cues {name} hold a broken pattern {pattern!r}: {error}"
                raise ConfigError(msg) from error
    return table


def _patterns(name: str, languages: Any) -> list[str]:
    lists: list[Any] = list(languages.values()) if isinstance(languages, dict) else [None]
    if not all(isinstance(each, list) and all(isinstance(pattern, str) for pattern in each) for each in lists):
        msg = f"cues {name} must be lists of patterns, one list a language"
        raise ConfigError(msg)
    return [pattern for each in lists for pattern in each]


def _compiled(tables: list[Mapping[str, Any]], part: str) -> dict[str, re.Pattern[str]]:
    found = {}
    for name in _CUES:
        patterns = [p for table in tables for p in _patterns(name, table.get(name, {}).get(part, {}))]
        if patterns:
            found[name] = re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)
    return found
