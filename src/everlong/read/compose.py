"""From what is remembered to a block for a prompt: pure, never over budget, whole sentences and whole facts only; of a
turn that is too long, its beginning and its end.

The block is data inside a prompt that others wrote parts of: nothing in it can close the block, open another or look
like a turn of the conversation. What is stored stays as it was; only the copy in the block is neutralised.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC
from itertools import groupby
from typing import TYPE_CHECKING, Final

from everlong.read.formats import PARTS, STATIC, Format, format_of, neutral, neutral_lines
from everlong.records import SECTIONS, Context, Message, Omitted, Passage
from everlong.text import sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime, tzinfo

    from everlong.protocols import TokenCounter
    from everlong.read.formats import Part
    from everlong.records import Fact, Hit, MemoryFile, Profile

__all__ = ["Material", "Shares", "compose", "neutral", "shortened"]

_LONGEST_TOKEN: Final = 8
"""Characters a token has at most, about: longer texts need no counting to be too long."""
_NO_ROOM: Final = "over budget"
_SHORTENED: Final = "shortened to its share of the budget"
_LAYERS: Final[Mapping[str, tuple[Part, ...]]] = {
    "static_facts": STATIC,
    "extracted_facts": ("facts", "passages"),
    "conversation_history": ("earlier", "recent"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """How a budget is divided. What a layer leaves goes to the next; what all leave, to what found no room at first."""

    static: float = 0.5
    """Most of the budget that profile and files take, whatever the question: else long summaries starve the facts."""
    files: float = 0.5
    """What of that files are sure of beside a long profile."""
    corrections: int = 500
    """Tokens that corrections are sure of before all other facts, as in DeerFlow."""
    facts: float = 0.6
    """Most of what the static layer leaves that facts take while there is conversation to show."""
    recalled: float = 0.6
    """Most of the room for conversation that recalled turns take while there are latest ones."""
    turn: float = 0.25
    """Most of the room for conversation that one turn takes: a pasted log must not push out what was said after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What a block may be made of: the three layers.

    ``profiles`` go from wide to narrow, so that the narrowest word is the last. ``facts`` stand in the order of their
    worth, ``turns`` (recalled hits, turns with their ``window`` and passages of files) too, ``recent`` turns in the order of time.
    """

    profiles: Sequence[Profile] = ()
    files: Sequence[MemoryFile] = ()
    facts: Sequence[Fact] = ()
    turns: Sequence[Hit] = ()
    recent: Sequence[Message] = ()


@dataclass(frozen=True, slots=True)
class _Item:
    """One piece of the block that is there as a whole or not at all; ``place`` is where it stands in its part."""

    part: Part
    place: tuple[int, ...]
    line: str
    what: str


@dataclass(slots=True)
class _Page:
    """Items under a budget. What has no room waits for :meth:`again`, or is noted for good."""

    format: Format
    counter: TokenCounter
    room: int
    taken: list[_Item] = field(default_factory=list)
    waiting: list[_Item] = field(default_factory=list)
    omitted: list[Omitted] = field(default_factory=list)

    def fill(self, items: Iterable[_Item], cap: int) -> int:
        """Takes those of ``items`` for which ``cap`` has room; returns how many tokens they took."""
        cap = left = max(min(cap, self.room), 0)
        for item in items:
            cost = self.cost(item)
            if cost <= left:
                left -= cost
                self.taken.append(item)
            else:
                self.waiting.append(item)
        self.room -= cap - left
        return cap - left

    def cost(self, item: _Item) -> int:
        """Tokens of an item, with the frame of its part when it is the first in it."""
        frame = "" if any(item.part == each.part for each in self.taken) else self.frame(item.part)
        return self.counter(f"{item.line}{self.format.between}") + 1 + (self.counter(frame) + 2 if frame else 0)

    def frame(self, part: Part) -> str:
        return f"{self.format.gap}{self.format.titles[part]}{self.format.end}"

    def again(self) -> None:
        """Gives what has waited the room that is left, the most important first; the rest is left out."""
        waiting, self.waiting = self.waiting, []
        self.fill(waiting, self.room)
        self.refuse()

    def refuse(self) -> None:
        self.omitted += [Omitted(what=item.what, reason=_NO_ROOM) for item in self.waiting]
        self.waiting = []


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writer:
    """Makes items of records, in one format and one zone."""

    format: Format
    counter: TokenCounter
    zone: tzinfo
    at: datetime | None

    def date(self, when: datetime) -> str:
        return self.format.quoted(f"{when.astimezone(self.zone):%Y-%m-%d}")

    def attributes(self, profiles: Sequence[Profile]) -> Iterator[_Item]:
        known: dict[str, object] = {}
        for profile in profiles:
            known |= profile.attributes
        for place, key in enumerate(sorted(known)):
            line = self.format.attribute.format(
                name=self.format.word(key), value=self.format.quoted(_plain(known[key]))
            )
            yield _Item("attributes", (place,), line, f"attribute {key}")

    def section(self, name: str, text: str) -> _Item:
        line = self.format.section.format(name=self.format.word(name), text=self.format.quoted(text))
        part: Part = "user" if SECTIONS[name] == "user" else "history"
        return _Item(part, (list(SECTIONS).index(name),), line, f"section {name}")

    def file(self, place: int, file: MemoryFile, lines: list[str]) -> _Item:
        line = self.format.file.format(
            path=self.format.quoted(file.path),
            date=self.date(file.updated_at),
            text=self.format.quoted_lines(lines),
        )
        return _Item("files", (place,), line, f"file {file.path}")

    def fact(self, place: int, fact: Fact) -> _Item:
        ahead = self.at is not None and fact.valid_from is not None and fact.valid_from > self.at
        line = self.format.fact.format(
            category=self.format.word(fact.category),
            confidence=fact.confidence,
            text=self.format.quoted(fact.content),
            origin=self.format.word(fact.origin),
            date=self.date(fact.created_at),
            ahead=self.format.ahead.format(date=self.date(fact.valid_from)) if ahead and fact.valid_from else "",
        )
        return _Item("facts", (place,), line, f"fact {fact.id}")

    def passage(self, place: int, passage: Passage) -> _Item:
        line = self.format.passage.format(
            path=self.format.quoted(passage.path),
            date=self.date(passage.created_at),
            text=self.format.quoted(passage.content),
        )
        return _Item("passages", (place,), line, f"passage {passage.id}")

    def turn(self, part: Part, place: tuple[int, ...], message: Message, most: int) -> _Item:
        line = self.format.turn.format(
            date=self.date(message.created_at),
            speaker=self.format.quoted(message.speaker) if message.speaker else self.format.word(message.role),
            text=self.format.quoted(shortened(message.content, most, self.counter)),
        )
        return _Item(part, place, line, f"message {message.id}")


def _plain(value: object) -> str:
    """An attribute's value in words: a list as its items, anything else as JSON has it."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return ", ".join(_plain(item) for item in value)
    return json.dumps(value, ensure_ascii=False, default=str)


def compose(
    material: Material,
    *,
    budget: int,
    counter: TokenCounter,
    look: str | Format = "deerflow",
    shares: Shares | None = None,
    zone: tzinfo = UTC,
    at: datetime | None = None,
    hits: tuple[Hit, ...] = (),
) -> Context:
    """The block: the static layer (``stable``), then facts with corrections first, then conversation.

    ``budget`` is in tokens by ``counter``. ``look`` is a format or its name. Dates are those of ``zone``. A fact that holds only after ``at`` says from
    when. ``omitted`` names what had no room and what was shortened. Nothing to say gives an empty text.

    Raises:
        InvalidInput: there is no such format.
    """
    style = format_of(look)
    shares = shares or Shares()
    writer = _Writer(format=style, counter=counter, zone=zone, at=at)
    page = _Page(style, counter, max(budget - counter(style.open) - counter(style.close) - 2, 0))
    _static(material, page, writer, shares)
    _dynamic(material, page, writer, shares)
    return _whole(page, budget=budget, hits=hits)


# ------------------------------------------------------------------------------------------------ the static layer


def _static(material: Material, page: _Page, writer: _Writer, shares: Shares) -> None:
    """Attributes, sections, files. Nothing here may depend on the question, so that the same bytes come out."""
    cap = int(page.room * shares.static)
    files = [(file, *_beginning(file, cap * _LONGEST_TOKEN)) for file in material.files]
    wanted = sum(page.cost(writer.file(place, file, lines)) for place, (file, lines, _) in enumerate(files))
    left = cap - min(wanted, int(cap * shares.files))
    taken = page.fill(writer.attributes(material.profiles), left)
    taken += _sections(material.profiles, page, writer, left - taken)
    left = cap - taken
    for place, (file, lines, whole) in enumerate(files):
        taken, kept = _file(place, file, lines, page, writer, left // (len(files) - place))
        left -= taken
        if not whole or kept < len(lines):
            page.omitted.append(Omitted(what=f"file {file.path}", reason=_SHORTENED if kept else _NO_ROOM))
    page.refuse()


def _sections(profiles: Sequence[Profile], page: _Page, writer: _Writer, left: int) -> int:
    """Each of the ``n`` texts gets an equal share, and what one leaves goes to the next; returns what they took."""
    found: dict[str, list[str]] = {name: [] for name in SECTIONS}
    for profile in profiles:
        for name, section in profile.sections.items():
            if name in found and section.summary.strip():
                found[name].append(section.summary)
    waiting = [(name, " ".join(neutral(text) for text in texts)) for name, texts in found.items() if texts]
    cap = left
    for index, (name, text) in enumerate(waiting):
        share = left // (len(waiting) - index)
        left -= _fitting(page, share, [text[:end] for _, end in sentences(text)], writer, name)
    return cap - left


def _fitting(page: _Page, share: int, beginnings: Sequence[str], writer: _Writer, name: str) -> int:
    """Takes the longest of ``beginnings`` for which ``share`` has room; each is longer than the one before."""
    kept = None
    for text in beginnings:
        item = writer.section(name, text)
        if page.cost(item) > share:
            page.omitted.append(Omitted(what=item.what, reason=_SHORTENED if kept else _NO_ROOM))
            break
        kept = item
    return page.fill([kept], share) if kept else 0


def _beginning(file: MemoryFile, size: int) -> tuple[list[str], bool]:
    """Whole lines of about the first ``size`` bytes of a file, and whether that is all of it."""
    if len(file.content) <= size:
        return neutral_lines(file.content.decode("utf-8", "replace")), True
    whole, _, _ = file.content[:size].rpartition(b"\n")
    return neutral_lines(whole.decode("utf-8", "replace")) if whole else [], False


def _file(place: int, file: MemoryFile, lines: list[str], page: _Page, writer: _Writer, share: int) -> tuple[int, int]:
    """Takes as many whole lines of a file as fit, from its beginning; returns how many tokens and lines it took."""
    low, high = 0, len(lines)
    while low < high:
        middle = (low + high + 1) // 2
        if page.cost(writer.file(place, file, lines[:middle])) <= share:
            low = middle
        else:
            high = middle - 1
    return (page.fill([writer.file(place, file, lines[:low])], share) if low else 0), low


# ------------------------------------------------------------------------------------------ what the question brings


def _dynamic(material: Material, page: _Page, writer: _Writer, shares: Shares) -> None:
    """Facts, then conversation; what has no room in its share gets what the others leave."""
    talk = bool(material.turns or material.recent)
    facts = list({fact.id: fact for fact in material.facts}.values())
    corrections = [fact for fact in facts if fact.category == "correction"]
    others = [fact for fact in facts if fact.category != "correction"]
    first = [writer.fact(place, fact) for place, fact in enumerate([*corrections, *others])]
    cap = int(page.room * shares.facts) if talk else page.room
    taken = page.fill(first[: len(corrections)], shares.corrections)
    found = [hit.record for hit in material.turns if isinstance(hit.record, Passage)]
    passages = [writer.passage(place, passage) for place, passage in enumerate(found)]
    page.fill([*first[len(corrections) :], *passages], cap - taken)
    _conversation(material, page, writer, shares)
    page.again()


def _conversation(material: Material, page: _Page, writer: _Writer, shares: Shares) -> None:
    """Recalled turns by relevance, then as many of the latest as fit; then the neighbours of recalled turns."""
    most = int(page.room * shares.turn)
    recent = {message.id: message for message in material.recent}
    recalled: dict[str, _Item] = {}
    beside: dict[str, _Item] = {}
    places: dict[str, tuple[int, int]] = {}
    for rank, hit in enumerate(material.turns):
        if not isinstance(hit.record, Message):
            continue
        window = hit.window or (hit.record,)
        for place, message in enumerate(window):
            into = recalled if message.id == hit.id else beside
            where = places.setdefault(message.id, (rank, place))  # beside the best hit that it belongs to
            into.setdefault(message.id, writer.turn("earlier", where, message, most))
    known = recalled.keys() | recent.keys()
    page.fill(
        [item for name, item in recalled.items() if name not in recent],
        int(page.room * shares.recalled) if recent else page.room,
    )
    latest = [writer.turn("recent", (place,), message, most) for place, message in enumerate(recent.values())]
    page.fill(reversed(latest), page.room)
    page.fill([item for name, item in beside.items() if name not in known], page.room)


def shortened(text: str, tokens: int, counter: TokenCounter) -> str:
    """``text`` if it has at most about ``tokens`` tokens, else its beginning and its end with " […] " between."""
    size = tokens * _LONGEST_TOKEN
    if len(text) <= size and counter(text) <= tokens:
        return text
    size = min(size, len(text) - 1)
    while size > 0:
        kept = f"{text[: size * 2 // 3]} […] {text[len(text) - size // 3 :]}"
        if counter(kept) <= tokens:
            return kept
        size = size * 3 // 4
    return ""


# ----------------------------------------------------------------------------------------------------- the whole


def _whole(page: _Page, *, budget: int, hits: tuple[Hit, ...]) -> Context:
    """Lays the items out; a counter for which the whole is more than its pieces loses the least important ones."""
    items = list(page.taken)
    omitted = list(page.omitted)
    while items:
        stable = page.format.open + _laid_out([item for item in items if item.part in STATIC], page.format, first=True)
        rest = [item for item in items if item.part not in STATIC]
        relevant = _laid_out(rest, page.format, first=len(rest) == len(items)) + page.format.close
        tokens = page.counter(stable + relevant)
        if tokens <= budget:
            return Context(
                text=stable + relevant,
                stable=stable,
                relevant=relevant,
                tokens=tokens,
                budget=budget,
                hits=hits,
                omitted=tuple(omitted),
                layers=_by_layer(items),
            )
        omitted.append(Omitted(what=items.pop().what, reason=_NO_ROOM))
    return Context(text="", stable="", relevant="", tokens=0, budget=budget, hits=hits, omitted=tuple(omitted))


def _ordered(items: Iterable[_Item]) -> list[_Item]:
    return sorted(items, key=lambda item: (PARTS.index(item.part), item.place))


def _laid_out(items: Sequence[_Item], look: Format, *, first: bool) -> str:
    text = ""
    for title, group in groupby(_ordered(items), key=lambda item: look.titles[item.part]):
        gap = "" if first and not text else look.gap
        text += gap + title + look.between.join(item.line for item in group) + look.end
    return text


def _by_layer(items: Sequence[_Item]) -> dict[str, tuple[str, ...]]:
    ordered = _ordered(items)
    return {layer: tuple(item.line for item in ordered if item.part in parts) for layer, parts in _LAYERS.items()}
