"""Named ways to fill a prompt block: each preset is one record that says which layers it takes, how much, and its look."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from everlong.errors import InvalidInput
from everlong.read.compose import Shares
from everlong.read.compress import duration
from everlong.read.formats import format_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from everlong.read.formats import Format

__all__ = ["ALWAYS_LOADED", "PRESETS", "Preset", "adapted", "preset_of"]

ALWAYS_LOADED: Final = ("/policies/", "/agent/AGENTS.md", "/memories/AGENTS.md", "/AGENTS.md")
"""Memory files that stand in every block, where they exist; a path that ends in ``/`` means all files below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """One way to fill a block.

    Args:
        name: what it is called.
        format: the look, by name or as a :class:`~everlong.read.formats.Format` of your own.
        filters: fields of :class:`~everlong.records.Query` that a question is asked with when it names no others.
        by_worth: facts by pinning, confidence and importance as far as the budget goes, whatever the question.
        profile: show sections and attributes.
        files: memory files that are always shown, see :data:`ALWAYS_LOADED`.
        standing: show corrections and pinned facts, whatever the question.
        max_messages, max_tokens, time_window: what the latest turns shown stay within, all at once; 0 messages: none.
        duplicate: cosine from which a new fact counts as known already when this preset is set in the settings;
            ``None`` takes what was measured for the embedder.
        shares: how the budget is divided.
    """

    name: str
    format: str | Format = "deerflow"
    filters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    by_worth: bool = False
    profile: bool = True
    files: tuple[str, ...] = ALWAYS_LOADED
    standing: bool = True
    max_messages: int = 10
    max_tokens: int = 2000
    time_window: timedelta = timedelta(days=7)
    duplicate: float | None = None
    shares: Shares = field(default_factory=Shares)


_FACTS: Final = MappingProxyType({"kinds": ("fact",)})

PRESETS: Final[Mapping[str, Preset]] = MappingProxyType(
    {
        each.name: each
        for each in (
            Preset(name="default"),
            Preset(name="deerflow", by_worth=True, files=(), standing=False, max_messages=0, filters=_FACTS),
            Preset(
                name="vector",
                format="marked",
                filters=MappingProxyType({"kinds": ("fact",), "limit": 5}),
                profile=False,
                files=(),
                standing=False,
                max_messages=0,
                duplicate=0.92,
            ),
            Preset(name="three-layer", format="layers", filters=_FACTS, standing=False),
        )
    }
)
"""``default``: everything. ``deerflow``: profile and the surest facts, no question needed. ``vector``: the five facts
nearest to the question, and nothing at all if none is near. ``three-layer``: profile, facts by question, latest turns.

The articles that ``vector`` follows inject nothing below a raw cosine of 0.6. Scores here are calibrated: what stands for
it is the reader's own threshold (0.35), below which a match is most likely chance."""


def preset_of(name: str | Preset) -> Preset:
    """The preset called ``name``, or one of your own as it is.

    Raises:
        InvalidInput: there is no such preset.
    """
    if isinstance(name, Preset):
        return name
    if name not in PRESETS:
        msg = f"no preset is called {name!r}; there are {', '.join(PRESETS)}"
        raise InvalidInput(msg)
    return PRESETS[name]


def adapted(
    preset: Preset,
    *,
    format: str | Format | None = None,  # noqa: A002 - the word that callers use
    max_messages: int | None = None,
    max_tokens: int | None = None,
    time_window: str | timedelta | None = None,
    files: Sequence[str] | None = None,
) -> Preset:
    """``preset`` with what is given here in the place of its own.

    Raises:
        InvalidInput: there is no such format, a limit is negative, ``files`` is a single text, or the window is no length of time.
    """
    for name, limit in (("max_messages", max_messages), ("max_tokens", max_tokens)):
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
            msg = f"{name} is {limit!r}; it must be a whole number from 0 on"
            raise InvalidInput(msg)
    if isinstance(files, str):
        raise InvalidInput(f"files must be a list such as [{files!r}], not a single text")
    return replace(
        preset,
        format=format_of(preset.format if format is None else format),
        max_messages=preset.max_messages if max_messages is None else max_messages,
        max_tokens=preset.max_tokens if max_tokens is None else max_tokens,
        time_window=preset.time_window if time_window is None else duration(time_window),
        files=preset.files if files is None else tuple(files),
    )
