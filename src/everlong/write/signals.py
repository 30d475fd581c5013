"""What a message signals beside its content: a correction, praise, a wish to be remembered or forgotten, a task that is
done, or nothing at all.

The patterns are data (``signals.toml``); :func:`load` reads further files of the same form on top of them.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from everlong.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

NAMES: Final = ("correction", "reinforcement", "remember", "forget", "finished", "trivial")
_SCANNED: Final = 2_000
_EAST: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_OTHER: Final = re.compile("[^\\W\\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Letters of Chinese, Japanese and Korean, and all others: patterns of a script that a text has not are not tried."""
_NOT_A_WORD: Final = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Compiled patterns. A signal stands when one of its patterns is found after the parts that ``unless`` matches
    were blanked out; ``trivial`` must match the whole message, word by word, the longest word first and without a second try."""

    found: Mapping[str, tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]]
    """Of each signal: what the text must hold for the pattern to be tried, and the pattern."""
    unless: Mapping[str, re.Pattern[str]]
    trivial: re.Pattern[str]


def detect(text: str, *, rules: Rules | None = None) -> tuple[str, ...]:
    """The signals in one user message: ``correction``, ``reinforcement``, ``remember``, ``forget``, ``finished``, or
    ``trivial`` alone.

    Built-in patterns cover English and Chinese, and the plain phrases of Japanese, Korean, Spanish, French and German.
    Only the first 2,000 characters are looked at. ``rules`` come from :func:`load`.
    """
    rules = rules or _built_in()
    folded = unicodedata.normalize("NFKC", text[:_SCANNED]).casefold().replace("’", "'")
    if len(text) <= _SCANNED and rules.trivial.fullmatch(_NOT_A_WORD.sub(" ", folded).strip()):
        return ("trivial",)
    return tuple(name for name in NAMES if name in rules.found and _stands(name, folded, rules))


def _stands(name: str, folded: str, rules: Rules) -> bool:
    patterns = [pattern for script, pattern in rules.found[name] if script.search(folded)]
    found = any(pattern.search(folded) for pattern in patterns)
    if found and name in rules.unless:
        folded = rules.unless[name].sub(" … ", folded)
        return any(pattern.search(folded) for pattern in patterns)
    return found


def load(*files: Path) -> Rules:
    """The built-in patterns and those of further TOML files of the same form.

    Raises:
        ConfigError: a file cannot be read, is no TOML, names an unknown signal or holds a broken pattern.
    """
    tables = [_parse("signals.toml", resources.files("everlong.write").joinpath("signals.toml").read_text("utf-8"))]
    for file in files:
        try:
            tables.append(_parse(str(file), file.read_text("utf-8")))
        except OSError as error:
            msg = f"signal patterns {file} cannot be read: {error}"
            raise ConfigError(msg) from error
    found = {name: _by_script(_patterns(tables, name, "found")) for name in NAMES if name != "trivial"}
    unless = _gather(tables, "unless")
    words = sorted((w for p in _patterns(tables, "trivial", "found") for w in p.split("|")), key=len, reverse=True)
    return Rules(found=found, unless=unless, trivial=re.compile(rf"(?:(?>{'|'.join(words)})\s?)*+"))


@cache
def _built_in() -> Rules:
    return load()


def _parse(name: str, source: str) -> dict[str, Any]:
    try:
        table = tomllib.loads(source)
        for signal, parts in table.items():
            if signal not in NAMES:
                msg = f"signal patterns {name} name {signal!r}; known are {', '.join(NAMES)}"
                raise ConfigError(msg)
            for pattern in _flat(parts):
                re.compile(pattern)
    except (tomllib.TOMLDecodeError, re.error, TypeError, AttributeError) as error:
        msg = f"signal patterns {name} are malformed: {error}"
        raise ConfigError(msg) from error
    return table


def _flat(parts: Mapping[str, Mapping[str, list[str]]]) -> Iterable[str]:
    return (pattern for languages in parts.values() for patterns in languages.values() for pattern in patterns)


def _patterns(tables: Iterable[Mapping[str, Any]], signal: str, part: str) -> list[str]:
    parts = (table.get(signal, {}).get(part, {}) for table in tables)
    return [pattern for languages in parts for patterns in languages.values() for pattern in patterns]


def _by_script(patterns: list[str]) -> tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]:
    parts = ((_EAST, [p for p in patterns if _EAST.search(p)]), (_OTHER, [p for p in patterns if not _EAST.search(p)]))
    return tuple((script, re.compile("|".join(f"(?:{p})" for p in chosen))) for script, chosen in parts if chosen)


def _gather(tables: list[dict[str, Any]], part: str) -> dict[str, re.Pattern[str]]:
    named = {signal: "|".join(f"(?:{p})" for p in _patterns(tables, signal, part)) for signal in NAMES}
    return {signal: re.compile(pattern) for signal, pattern in named.items() if pattern}
