"""Text edits: exact replacement, line differences, and a merge of three versions that never guesses."""

from __future__ import annotations

from collections import Counter
from difflib import SequenceMatcher, unified_diff
from typing import TYPE_CHECKING, NamedTuple

from everlong.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Overlap", "decode", "difference", "merge", "replaced", "split"]

_MOST_COMPARED = 10_000_000
"""Pairs of equal lines, between the first and the last that changed, that a merge compares at most: 3,000 empty lines
in each version. The worst arrangement of so many takes about two seconds on one core."""


class Overlap(Exception):
    """Two edits touch the same lines; the message names them."""


def decode(content: bytes, path: str) -> str:
    """The text of a file, byte order mark and line endings included.

    Raises:
        InvalidInput: it is not UTF-8 text.
    """
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise InvalidInput(f"file {path} is not UTF-8 text; read and write it as bytes") from None


def split(text: str) -> list[str]:
    """Lines with their ends; only a line feed ends one, so that joining them gives the text again."""
    *lines, last = text.split("\n")
    return [line + "\n" for line in lines] + ([last] if last else [])


def replaced(text: str, old: str, new: str, *, path: str, every: bool) -> str:
    """``text`` with ``old`` replaced by ``new``: the one place where it stands, or every one.

    Line ends of ``old`` and ``new`` follow the file's where it uses CRLF throughout.

    Raises:
        InvalidInput: ``old`` is empty, equals ``new``, is not there, or is there several times and not every one is
            meant.
    """
    if not old or old == new:
        raise InvalidInput("the text to replace is " + ("the same as the new one" if old else "empty"))
    if old not in text and _is_crlf(text) and "\r" not in old + new:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    places = text.count(old)
    if not places:
        raise InvalidInput(f"the text to replace is not in {path}; read the file again and copy it exactly")
    if not every and _ambiguous(text, old):
        raise InvalidInput(f"the text to replace is in {path} {max(places, 2)} times; add more of its surroundings")
    return text.replace(old, new)


def _ambiguous(text: str, old: str) -> bool:
    """Whether ``old`` stands in more than one place; places may overlap."""
    return text.find(old, text.find(old) + 1) != -1


def _is_crlf(text: str) -> bool:
    return "\r\n" in text and text.count("\r\n") == text.count("\n")


def difference(old: str, new: str, *, names: tuple[str, str]) -> str:
    """A unified diff, empty when nothing differs."""
    lines = unified_diff(split(old), split(new), *names)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


class _Hunk(NamedTuple):
    """Lines ``start`` to ``end`` of the base become ``lines``."""

    start: int
    end: int
    lines: list[str]


def merge(base: str, ours: str, theirs: str) -> str:
    """Both changes to ``base`` in one text. Edits may touch but not overlap; equal edits count once.

    Raises:
        Overlap: both changed the same lines differently, or too much changed to compare.
    """
    lines = split(base)
    mine, others = _hunks(lines, ours), _hunks(lines, theirs)
    merged: list[str] = []
    at = 0
    for hunk in _in_order(mine, others):
        merged += [*lines[at : hunk.start], *hunk.lines]
        at = hunk.end
    return "".join(_ended(merged + lines[at:]))


def _ended(lines: list[str]) -> list[str]:
    """A line that was the last one of its version and is so no more gets the end that it had lacked."""
    ending = "\r\n" if any(line.endswith("\r\n") for line in lines) else "\n"
    return [line if line.endswith("\n") else line + ending for line in lines[:-1]] + lines[-1:]


def _in_order(mine: Sequence[_Hunk], others: Sequence[_Hunk]) -> list[_Hunk]:
    """All hunks of both, each once, from the first line to the last."""
    merged: list[_Hunk] = []
    i = j = 0
    while i < len(mine) and j < len(others):
        one, other = mine[i], others[j]
        if one != other and _overlap(one, other):
            first, last = min(one.start, other.start) + 1, max(one.end, other.end, one.start + 1)
            raise Overlap(f"line {first}" if last <= first else f"lines {first} to {last}")
        merged.append(min(one, other, key=_place))
        i, j = i + (_place(one) <= _place(other)), j + (_place(other) <= _place(one))
    return [*merged, *mine[i:], *others[j:]]


def _place(hunk: _Hunk) -> tuple[int, int]:
    return hunk.start, hunk.end


def _overlap(one: _Hunk, other: _Hunk) -> bool:
    if one.start == one.end == other.start == other.end:
        return True
    return max(one.start, other.start) < min(one.end, other.end) or _inside(one, other) or _inside(other, one)


def _inside(insertion: _Hunk, other: _Hunk) -> bool:
    return insertion.start == insertion.end and other.start < insertion.start < other.end


def _hunks(base: list[str], text: str) -> list[_Hunk]:
    lines = split(text)
    head = _common(base, lines)
    tail = _common(base[head:][::-1], lines[head:][::-1])
    old, new = base[head : len(base) - tail], lines[head : len(lines) - tail]
    theirs = Counter(new)
    if sum(theirs[line] for line in old) > _MOST_COMPARED:
        raise Overlap("too many lines that are alike")
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [_Hunk(head + a, head + b, new[c:d]) for kind, a, b, c, d in codes if kind != "equal"]


def _common(one: list[str], other: list[str]) -> int:
    """How many lines agree from the start on."""
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return min(len(one), len(other))
