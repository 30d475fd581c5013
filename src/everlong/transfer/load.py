"""Memory in: the whole file is looked at before anything is stored, and all of it is stored in one transaction."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import ValidationError

from everlong import text
from everlong.errors import InvalidInput
from everlong.protocols import Indexed
from everlong.records import (
    TRUST,
    CopyKind,
    Earlier,
    ExtractionRecord,
    Fact,
    Fault,
    Kept,
    MemoryFile,
    Message,
    Profile,
    Proposal,
    Scope,
    Session,
    Tally,
    Transferred,
)
from everlong.transfer.format import FORMAT, VERSION, Header, Trailer, decode, kind_of, named
from everlong.wording import lexical_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from everlong.protocols import Transaction

__all__ = ["Gate", "Loader"]

Fate = Literal["new", "same", "conflicting", "invalid", "left_out"]

_FAULTS: Final = 1000
"""Faulty lines that are told one by one; the tallies count all."""
_LONGEST: Final = 64 * 1024 * 1024
"""Bytes of one line: several times the largest file as base64."""
_FACT: Final = 2000
_PROSE: Final = ("content", "reason", "metadata", "attributes", "payload", "raw", "error", "speaker")
"""Fields in which people and models write; what names a record stays as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What holds at this door as at every other: sizes in characters (of files in bytes), the known ``categories``, what
    ``redact`` takes out of text; ``operator`` is whether one who may bring an operator's records asks."""

    redact: Callable[[Any], Any]
    categories: frozenset[str]
    max_chars: int
    max_file: int
    check_path: Callable[[str], str]
    operator: bool = False
    max_files: int = 1000
    """Memory files kept at one scope."""


class _Source:
    """A file of lines, read through any number of times and the same each time."""

    def __init__(self, lines: BinaryIO) -> None:
        self._lines = lines
        self.header: Header | None = None
        self.digest = ""

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Each record's line with its number.

        Raises:
            InvalidInput: it is no export, one of a newer format, or not whole.
        """
        self._lines.seek(0)
        self.header = self._head(self._lines.readline(_LONGEST))
        digest, counts, number = sha256(), 0, 1
        pending = self._lines.readline(_LONGEST)
        while following := self._lines.readline(_LONGEST):
            number += 1
            digest.update(pending)
            counts += 1
            if pending.strip():
                yield number, pending
            pending = following
        self._check_end(pending, counts, digest.hexdigest())
        self.digest = digest.hexdigest()

    @staticmethod
    def _head(line: bytes) -> Header:
        if not line.strip():
            raise InvalidInput("the file is empty")
        try:
            header = Header.model_validate_json(line)
        except ValidationError:
            raise InvalidInput(
                f"line 1 is not the header of an {FORMAT} export; an export of another program needs its own importer"
            ) from None
        if header.version > VERSION:
            raise InvalidInput(
                f"the file is of format version {header.version}, this program reads {VERSION}: install a newer everlong"
            )
        return header

    @staticmethod
    def _check_end(line: bytes, counts: int, digest: str) -> None:
        try:
            trailer = Trailer.model_validate_json(line)
        except ValidationError:
            raise InvalidInput("the file ends without its last line: it was cut off; export it again") from None
        if sum(trailer.records.values()) != counts or trailer.sha256 != digest:
            raise InvalidInput(
                "the file is not what was exported: its count of records or their digest differs; nothing was changed"
            )


@dataclass
class _Course:
    """One way through a file: what each line came to."""

    counts: Counter[tuple[str, Fate]] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)
    first: Fault | None = None
    """The first line that is invalid."""
    barred: set[tuple[str, ...]] = field(default_factory=set)
    """Owners that conflict: their history is not taken either."""
    shifts: dict[Scope, int] = field(default_factory=dict)
    """By home, what is added to positions because others are there already."""
    places: set[Scope] = field(default_factory=set)
    """Homes that got a text which needs a vector."""
    sessions: set[Scope] = field(default_factory=set)
    """Conversations whose own record was met."""
    talks: set[Scope] = field(default_factory=set)
    """Conversations that got messages."""

    def note(self, kind: str, fate: Fate, line: int = 0, reason: str = "", name: str = "") -> None:
        self.counts[kind, fate] += 1
        if fate == "invalid" and self.first is None:
            self.first = Fault(line=line, reason=reason, kind=kind)
        if reason and len(self.faults) < _FAULTS:
            told: Literal["conflicting", "invalid"] = "conflicting" if fate == "conflicting" else "invalid"
            self.faults.append(Fault(line=line, reason=reason, kind=kind, id=name, fate=told))

    def result(self, backup: str = "") -> Transferred:
        found: dict[str, dict[str, int]] = {}
        for (kind, fate), count in self.counts.items():
            found.setdefault(kind, {})[fate] = count
        tallies = {kind: Tally(**counts) for kind, counts in found.items()}
        return Transferred(tallies=tallies, faults=tuple(self.faults), backup=backup)


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """An import that is stored: ``places`` are homes where texts wait for vectors, ``talks`` conversations that got
    messages."""

    result: Transferred
    places: frozenset[Scope]
    talks: frozenset[Scope]


class Loader:
    """One import into ``scope``."""

    def __init__(self, lines: BinaryIO, scope: Scope, gate: Gate) -> None:
        self._source, self._scope, self._gate = _Source(lines), scope, gate

    def look(self, tx: Transaction) -> Transferred:
        """What an import would do, with every faulty line; stores nothing.

        Raises:
            InvalidInput: it is no whole export of a known version.
        """
        return self._go(tx, store=False).result()

    def merge(self, tx: Transaction) -> Landed:
        """Adds what is new. What is kept already stays as it is, also where the file says otherwise.

        Raises:
            InvalidInput: as :meth:`look`, or some line is invalid; the transaction has to be given up then.
        """
        course = self._go(tx, store=True)
        found = course.result()
        if first := course.first:
            bad = found.count("invalid")
            raise InvalidInput(
                f"{bad} of the file's records cannot be stored, the first in line {first.line}: {first.reason}. "
                "Nothing was changed; a preview lists all of them"
            )
        self._check_files(tx, course.places)
        return Landed(result=found, places=frozenset(course.places), talks=frozenset(course.talks))

    def _check_files(self, tx: Transaction, places: set[Scope]) -> None:
        for place in places:
            if (count := tx.files.count(place)) > self._gate.max_files:
                raise InvalidInput(
                    f"{place} would hold {count:,} memory files, {self._gate.max_files:,} at most (setting max_files); "
                    "nothing was changed"
                )

    def check_replaces(self) -> None:
        """Looks at the whole file before what is there may give way to it.

        Raises:
            InvalidInput: it holds nothing, is of another scope, newer, or not whole.
        """
        records = sum(1 for _ in self._source)
        if not records:
            raise InvalidInput("the file holds no record: replacing by it would wipe what is there; erase does that")
        header = self._source.header
        if header is not None and Scope(**header.scope) != self._scope:
            raise InvalidInput(
                f"the file was exported from {Scope(**header.scope)}, so it cannot replace {self._scope}; merge it"
            )

    # ------------------------------------------------------------------------------------------------ line by line

    def _go(self, tx: Transaction, *, store: bool) -> _Course:
        course = _Course()
        seen: set[tuple[str, ...]] = set()
        for number, line in self._source:
            try:
                kind, record = decode(line)
                record = self._settled(record)
                key = _key(kind, record)
                if key in seen:
                    raise InvalidInput("the same record stands twice in the file")
            except InvalidInput as error:
                course.note(_told_kind(line), "invalid", number, str(error))
                continue
            seen.add(key)
            if not self._gate.operator and _is_operators(record):
                course.note(kind, "left_out")
                continue
            self._land(tx, course, kind, record, number, store=store)
        return course

    def _land(
        self, tx: Transaction, course: _Course, kind: CopyKind, record: Kept, number: int, *, store: bool
    ) -> None:
        kept = tx.copies.find(kind, record)
        key = _key(kind, record)
        if isinstance(record, Session):
            course.sessions.add(record.scope)
        elif isinstance(record, Message) and not _has_session(tx, course, record):
            course.note(kind, "invalid", number, "session: the conversation's own record does not come before")
            return
        if kept is not None:
            if _same(kept, record):
                course.note(kind, "same")
                return
            course.barred.add(key)
            course.note(kind, "conflicting", number, "another state of it is kept; that one stays", _name(record))
            return
        if isinstance(record, Earlier) and (course.barred & {_owner(record)} or _overtaken(tx, record)):
            course.note(kind, "conflicting", number, "its record is kept in another state", _name(record))
            return
        if store and not self._put(tx, course, kind, record):
            course.barred.add(key)
            course.note(kind, "conflicting", number, "something else of the kind waits there already", _name(record))
            return
        course.note(kind, "new")

    def _put(self, tx: Transaction, course: _Course, kind: CopyKind, record: Kept) -> bool:
        if isinstance(record, Message | Session):
            record = self._shifted(tx, course, record)
        if not tx.copies.put(kind, record, _indexed(record)):
            return False
        if isinstance(record, Message):
            course.talks.add(replace(record.scope, session=record.session))
        if isinstance(record, Message | MemoryFile) or (isinstance(record, Fact) and record.status == "active"):
            course.places.add(record.scope)
        return True

    @staticmethod
    def _shifted(tx: Transaction, course: _Course, record: Message | Session) -> Message | Session:
        """Behind what is said there already: a position is the order in which a home got its messages."""
        home = record.scope.home
        if home not in course.shifts:
            course.shifts[home] = tx.copies.last_position(home)
        by = course.shifts[home]
        if isinstance(record, Message):
            return replace(record, position=record.position + by)
        return replace(record, extracted=record.extracted + by if record.extracted else 0)

    # ---------------------------------------------------------------------------------------------------- checking

    def _settled(self, record: Kept) -> Kept:
        """The record as this memory may keep it: cleaned, redacted, within every bound."""
        if isinstance(record, Earlier):
            inner: Any = self._settled(record.record)
            return replace(record, record=inner)
        if not self._scope.contains(record.scope):
            raise InvalidInput(f"scope: {record.scope} does not lie within {self._scope}")
        cleaned: Any = replace(record, **self._prose(record))
        self._check(cleaned)
        return self._trusted(cleaned)

    def _prose(self, record: Kept) -> dict[str, Any]:
        names = {each.name for each in dataclasses.fields(record)}
        changed: dict[str, Any] = {name: self._redacted(getattr(record, name)) for name in _PROSE if name in names}
        if isinstance(record, Fact):
            quotes = [replace(each, quote=self._redacted(each.quote)) for each in record.evidence]
            changed["evidence"] = tuple(quotes)
        if isinstance(record, Profile):
            told = {name: replace(each, summary=self._redacted(each.summary)) for name, each in record.sections.items()}
            changed["sections"] = told
        if isinstance(record, ExtractionRecord):
            said = [replace(each, content=self._redacted(each.content)) for each in record.decisions]
            changed["decisions"] = tuple(said)
            changed["skipped"] = tuple(replace(each, raw=self._redacted(each.raw)) for each in record.skipped)
        return changed

    def _redacted(self, value: Any) -> Any:
        return self._gate.redact(_cleaned(value))

    def _check(self, record: Any) -> None:
        if getattr(record, "id", "x").strip() == "" or _has_controls(getattr(record, "id", "")):
            raise InvalidInput("id: it is blank or holds control characters")
        if isinstance(record, Fact):
            self._check_fact(record)
        elif isinstance(record, Message):
            self._check_message(record)
        elif isinstance(record, MemoryFile):
            self._gate.check_path(record.path)
            if len(record.content) > self._gate.max_file:
                raise InvalidInput(f"content: {len(record.content):,} bytes; {self._gate.max_file:,} at most")
        elif isinstance(record, Session) and not record.scope.session:
            raise InvalidInput("scope: a session's names its conversation")

    def _check_fact(self, fact: Fact) -> None:
        if not text.normal(fact.content):
            raise InvalidInput("content: there is no text")
        if len(fact.content) > _FACT:
            raise InvalidInput(f"content: {len(fact.content):,} characters; {_FACT:,} at most")
        if fact.category not in self._gate.categories:
            raise InvalidInput(f"category: {fact.category!r} is not known; the setting categories declares more")

    def _check_message(self, message: Message) -> None:
        if message.scope.session:
            raise InvalidInput("scope: a message's names no session; that is a field of its own")
        Scope(session=message.session)
        if not message.session:
            raise InvalidInput("session: a message belongs to a conversation")
        if len(message.content) > self._gate.max_chars:
            raise InvalidInput(f"content: {len(message.content):,} characters; {self._gate.max_chars:,} at most")

    def _trusted(self, record: Kept) -> Kept:
        """No more trust than who it comes from deserves; and nobody speaks as an operator but an operator."""
        if isinstance(record, Message | Fact) and record.origin == "operator" and not self._gate.operator:
            record = replace(record, origin="import")
        if isinstance(record, Fact):
            return replace(record, trust=min(record.trust, TRUST[record.origin]))
        return record


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return text.clean(value)
    if isinstance(value, Mapping):
        return {text.clean(str(name)): _cleaned(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_cleaned(inner) for inner in value]
    return value


def _has_controls(name: str) -> bool:
    return any(ord(c) < 32 or ord(c) == 127 for c in name)  # noqa: PLR2004 (C0 and DEL)


def _told_kind(line: bytes) -> str:
    """What kind a faulty line says it is of."""
    try:
        return named(line)
    except InvalidInput:
        return "unknown"


def _is_operators(record: Kept) -> bool:
    """What only an operator may bring: the audit trail, and calls that would be made in another's name."""
    return kind_of(record) in {"entry", "extraction"} or (isinstance(record, Proposal) and record.kind == "call")


def _indexed(record: Kept) -> Indexed | None:
    if isinstance(record, Fact):
        return Indexed(terms=text.terms(record.content))
    if isinstance(record, Message):
        caption = str(record.metadata.get("caption", ""))
        said = lexical_text(record.content, speaker=record.speaker, created_at=record.created_at, caption=caption)
        return Indexed(terms=text.terms(said))
    return None


# ------------------------------------------------------------------------------------------------ which record it is


def _name(record: Any) -> str:
    inner = record.record if isinstance(record, Earlier) else record
    return str(getattr(inner, "id", "") or getattr(inner, "path", "") or inner.scope)


def _key(kind: str, record: Any) -> tuple[str, ...]:
    """What tells records of one file apart, as the tables do."""
    if isinstance(record, Earlier):
        return (*_owner(record), str(record.record.version))
    name: str = getattr(record, "id", "") or getattr(record, "path", "")
    if isinstance(record, Message):
        return (kind, *record.scope.parts, record.session, record.id)
    if isinstance(record, Fact | Proposal) or kind in {"entry", "extraction"}:
        return (kind, record.scope.org, name)
    return (kind, *record.scope.parts, name)


def _owner(earlier: Earlier) -> tuple[str, ...]:
    """The key of the record whose past this is."""
    return _key(kind_of(earlier.record), earlier.record)


def _same(kept: Any, record: Any) -> bool:
    """Whether both say the same. A conversation is one by its name; uses are counted and positions given where they
    are kept."""
    if isinstance(record, Session):
        return True
    if isinstance(record, Fact):
        kept = replace(kept, uses=record.uses, last_used_at=record.last_used_at)
    elif isinstance(record, Message):
        kept = replace(kept, position=record.position)
    return bool(kept == record)


def _has_session(tx: Transaction, course: _Course, message: Message) -> bool:
    """Whether the conversation is in the file before this, or kept."""
    where = replace(message.scope, session=message.session)
    if where not in course.sessions and tx.sessions.get(where):
        course.sessions.add(where)
    return where in course.sessions


def _overtaken(tx: Transaction, earlier: Earlier) -> bool:
    """Whether the record is kept and is not younger than this version of it."""
    present: Any = tx.copies.find(kind_of(earlier.record), earlier.record)
    return present is not None and (present.scope != earlier.record.scope or present.version <= earlier.record.version)
