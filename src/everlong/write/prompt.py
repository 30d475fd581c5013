"""What a model is asked: rules and examples from files, and records as lines that fit its window and stay data.

A prompt is one Markdown file: ``<!-- version: 2 -->``, the rules, then any number of example turns, each under a line
``--- user`` or ``--- assistant``. A folder of files of the same names replaces the built-in ones file by file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from everlong import text
from everlong.errors import ConfigError
from everlong.protocols import ChatTurn

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from pathlib import Path

    from everlong.records import Message

__all__ = ["Prompt", "block", "escaped", "fitting", "line", "load", "moment"]

_VERSION: Final = re.compile(r"\s*<!-- version: (\S+) -->\s*")
_TURN: Final = re.compile(r"^--- (user|assistant)[ \t]*\n", re.MULTILINE)
_INVISIBLE: Final = re.compile("[\u200b-\u200f\u2060\ufeff]")
_BASE64: Final = re.compile(
    r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{512,}={0,2}"
    r"|(?<![A-Za-z0-9+/])(?:[A-Za-z0-9+/]{60,100}\r?\n){6,}[A-Za-z0-9+/]*={0,2}"
)
_NOT_EVIDENCE: Final = 250
"""Tokens that are shown of a message which is not the user's; it only helps to understand theirs."""
_LONGEST_RUN: Final = 16
"""Characters that one estimated token stands for at most (a run of blanks)."""
_SHORTEST_ECHO: Final = 8


@dataclass(frozen=True, slots=True)
class Prompt:
    """Rules for a model, and turns that show how to answer. ``label`` names file and version, such as ``update@2``."""

    label: str
    rules: str
    examples: tuple[ChatTurn, ...] = ()

    def turns(self, asked: str, *, extra: str = "") -> tuple[ChatTurn, ...]:
        """What to send: rules (with ``extra`` at their end), examples, and then what is asked."""
        system = ChatTurn(role="system", content=self.rules + extra)
        return (system, *self.examples, ChatTurn(role="user", content=asked))

    def repeats(self, content: str) -> bool:
        """Whether ``content`` is found in the rules or examples themselves, word for word."""
        said = text.normal(content)
        shown = text.normal("\n".join([self.rules, *(turn.content for turn in self.examples)]))
        return len(said) >= _SHORTEST_ECHO and said in shown


def load(name: str, folder: Path | None = None) -> Prompt:
    """The prompt ``name``: from ``folder`` if it holds ``name.md``, else the built-in one.

    Raises:
        ConfigError: the file cannot be read or holds no rules.
    """
    own = folder / f"{name}.md" if folder is not None else None
    try:
        if own is not None and own.exists():
            source = own.read_text(encoding="utf-8")
        else:
            source = resources.files("everlong.write").joinpath(f"prompts/{name}.md").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"prompt {own or name} cannot be read: {error}") from error
    header = _VERSION.match(source)
    rules, *parts = _TURN.split(_VERSION.sub("", source, count=1))
    if not rules.strip():
        raise ConfigError(f"prompt {own or name} holds no rules")
    turns = zip(parts[::2], parts[1::2], strict=True)
    examples = tuple(ChatTurn(role="user" if role == "user" else "assistant", content=c.strip()) for role, c in turns)
    return Prompt(f"{name}@{header[1] if header else 'custom'}", rules.strip(), examples)


# ------------------------------------------------------------------------------------------------ records as lines


def block(tag: str, lines: Iterable[str]) -> str:
    """Lines between a pair of tags, which nothing inside can close."""
    return "\n".join([f"<{tag}>", *lines, f"</{tag}>"])


def fitting(messages: Sequence[Message], zone: str, window: int) -> list[str]:
    """A line for each message from the first on, named ``m1``, ``m2`` …, as many as fit into ``window`` tokens.

    There is at least one: a message of the user that is longer than the window alone is cut in its middle to half
    of it, so that what was said after a pasted log can stand beside it.
    """
    lines: list[str] = []
    left = window
    for number, message in enumerate(messages, 1):
        most, cut_to = (window, window // 2) if message.role == "user" else (_NOT_EVIDENCE, _NOT_EVIDENCE)
        lines.append(line(f"m{number}", message, zone, most, cut_to))
        left -= text.estimate_tokens(lines[-1])
        if left < 0 and number > 1:
            return lines[:-1]
    return lines


def line(alias: str, message: Message, zone: str, most: int, cut_to: int = 0) -> str:
    """One message with its role and time; a text of more than ``most`` tokens is cut to ``cut_to`` or ``most``."""
    role = message.role if message.role == "user" else f"{message.role}, not evidence"
    return f"{alias} [{role}, {moment(message.created_at, zone)}] {escaped(message.content, most, cut_to)}"


def moment(at: datetime, zone: str) -> str:
    """Date, time and weekday as the user's clock shows them."""
    return f"{at.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M %a}"


def escaped(content: str, most: int, cut_to: int = 0) -> str:
    """Readable, on one line, unable to open or close a block, without binary data, and at most ``most`` tokens."""
    visible = _INVISIBLE.sub("", _BASE64.sub("[binary data left out]", content))
    plain = visible.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    shown = " ⏎ ".join(plain.splitlines())
    if len(shown) <= _LONGEST_RUN * most and text.estimate_tokens(shown) <= most:
        return shown
    return _cut(shown, cut_to or most)


def _cut(content: str, most: int) -> str:
    """Head and tail of what is too long, with a mark between them."""
    edge = 2 * most
    while True:
        shown = f"{content[:edge]} […{len(content) - 2 * edge} characters left out…] {content[-edge:]}"
        if edge <= 1 or (2 * edge < len(content) and text.estimate_tokens(shown) <= most):
            return shown
        edge = edge * 3 // 4
