"""DeerFlow's memory document as a view over our store: the same JSON comes out as went in, and no file lies beside it.

A document is what is kept exactly at one home scope: (user, agent), the user alone, or the agent alone. Facts keep
their ids. What the document says and a record has no field for stays with the record, as it was written; it shows again
as long as the record says the same.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from everlong import text
from everlong.errors import Conflict, InvalidInput, NotFound, TooLarge
from everlong.integrations.deerflow.config import CORE_CATEGORIES
from everlong.protocols import present_rights
from everlong.records import (
    CATEGORIES,
    SECTIONS,
    TRUST,
    Entry,
    Fact,
    Job,
    MemoryFile,
    Profile,
    Scope,
    Section,
)
from everlong.write.apply import index_fact, job_key, name_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everlong.memory import ScopedMemory
    from everlong.protocols import Transaction

__all__ = ["apply_document", "checked", "create_empty_memory", "document", "revision"]

KEY: Final = "deerflow"
"""Key in a fact's metadata under which the rest of its entry stands as it came."""
REST: Final = "/imports/deerflow.json"
"""Memory file with what a document says beside its facts and sections; only there after an import."""
_NOWHERE: Final = frozenset({"", "unknown", "manual", "import", "consolidation"})
"""Values of ``source`` that name no conversation."""
_CATEGORIES: Final = frozenset({*CATEGORIES, *CORE_CATEGORIES})
_MOST: Final = 10_000
_LONGEST: Final = 2000
_LONGEST_ID: Final = 512


def create_empty_memory(now: datetime | None = None) -> dict[str, Any]:
    """An empty document: version 1.0, six empty sections, no facts. ``now`` (default: the present) is its time."""
    return _empty(_iso(now or datetime.now(UTC)))


def _empty(at: str) -> dict[str, Any]:
    made: dict[str, Any] = {"version": "1.0", "lastUpdated": at, "user": {}, "history": {}, "facts": []}
    for name, group in SECTIONS.items():
        made[group][name] = {"summary": "", "updatedAt": ""}
    return made


def revision(data: Mapping[str, Any]) -> str:
    """What tells whether two documents say the same: a SHA-256 of their content."""
    return sha256(json.dumps(data, ensure_ascii=False, sort_keys=True).encode()).hexdigest()


def document(scoped: ScopedMemory) -> dict[str, Any]:
    """The document of this scope less its session: sections, and the active facts kept exactly here.

    Raises:
        AccessDenied: the principal may not read here.
    """

    def read() -> dict[str, Any]:
        with scoped._memory.parts.store.read() as tx:
            return _State.read(tx, scoped.scope.home).shown()

    return scoped._run("facts", read)


def fact_named(scoped: ScopedMemory, name: str) -> Fact:
    """The active fact that the document of this scope calls ``name``.

    Raises:
        NotFound: it has none of that id.
    """

    def read() -> Fact:
        with scoped._memory.parts.store.read() as tx:
            active = _State.read(tx, scoped.scope.home).active
        found = next((fact for fact in active if entry_of(fact)["id"] == name), None)
        if found is None:
            raise NotFound(f"the document has no fact {name!r}")
        return found

    return scoped._run("facts", read)


def apply_document(scoped: ScopedMemory, data: Mapping[str, Any], *, expected: str | None = None) -> dict[str, Any]:
    """Makes memory say what ``data`` says, in one transaction: facts are added, changed, or retired when they are not in
    it; sections too. Returns the document as it is then. Applying what is there already changes nothing.

    Args:
        scoped: memory of the user, the agent, or both.
        data: a whole document, see :func:`checked`.
        expected: :func:`revision` of the document that ``data`` was made from.

    Raises:
        InvalidInput: it is no document. TooLarge: more than 10,000 facts, or one over 2,000 characters.
        Conflict: the document is not the ``expected`` one any more.
    """

    def write(*, data: Any) -> dict[str, Any]:
        parts = scoped._memory.parts
        with parts.store.write() as tx:
            landed = _Landing(scoped, tx, parts.clock()).land(data, expected)
        parts.store.notify()
        scoped._memory.wake()
        return landed

    return scoped._run("import", write, at=scoped.scope.home, data=checked(data))


# ------------------------------------------------------------------------------------------------------- checking


def checked(data: object) -> dict[str, Any]:
    """A document that can be stored, less characters that no store can keep.

    Needed is a mapping; ``user`` and ``history`` hold sections with a text ``summary``, ``facts`` entries with a distinct
    text ``id``, a text ``content`` and, if given, a ``confidence`` from 0 to 1. Everything else is free.

    Raises:
        InvalidInput: it is no such document; the message names the place. TooLarge: it is over a limit.
    """
    try:
        json.dumps(data, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"a memory document must be JSON: {error}") from None
    cleaned = _cleaned(data)
    if not isinstance(cleaned, dict) or not cleaned.keys() & {"user", "history", "facts"}:
        raise InvalidInput("a memory document is an object with user, history and facts")
    for name, group in SECTIONS.items():
        _check_section(cleaned, group, name)
    facts = cleaned.setdefault("facts", [])
    if not isinstance(facts, list):
        raise InvalidInput("facts must be a list")
    if len(facts) > _MOST:
        raise TooLarge(f"the document has {len(facts):,} facts; {_MOST:,} at most")
    seen: set[str] = set()
    for place, fact in enumerate(facts):
        _check_fact(place, fact, seen)
    return cleaned


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return text.clean(value)
    if isinstance(value, (list, tuple)):
        return [_cleaned(each) for each in value]
    if isinstance(value, dict):
        return {text.clean(str(name)): _cleaned(each) for name, each in value.items()}
    return value


def _check_section(data: dict[str, Any], group: str, name: str) -> None:
    holder = data.get(group, {})
    if not isinstance(holder, dict):
        raise InvalidInput(f"{group} must be an object")
    section = holder.get(name, {})
    if not isinstance(section, dict) or not isinstance(section.get("summary", ""), str):
        raise InvalidInput(f"{group}.{name} must be an object with a text summary")


def _check_fact(place: int, fact: object, seen: set[str]) -> None:
    where = f"facts[{place}]"
    if not isinstance(fact, dict):
        raise InvalidInput(f"{where} must be an object")
    name, content, sure = fact.get("id"), fact.get("content"), fact.get("confidence", 0.5)
    if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST_ID:
        raise InvalidInput(f"{where}.id must be text of 1 to {_LONGEST_ID} characters")
    if name in seen:
        raise InvalidInput(f"{where}.id {name!r} stands twice in the document")
    seen.add(name)
    if not isinstance(content, str) or not text.normal(content):
        raise InvalidInput(f"{where}.content must be text that is not empty")
    if len(content) > _LONGEST:
        raise TooLarge(f"{where}.content has {len(content):,} characters; {_LONGEST:,} at most")
    number = isinstance(sure, (int, float)) and not isinstance(sure, bool)
    if not number or not math.isfinite(sure) or not 0 <= sure <= 1:
        raise InvalidInput(f"{where}.confidence must be a number from 0 to 1")


# ------------------------------------------------------------------------------------------- between entry and fact


def _fields(entry: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """What an entry says in a fact's fields."""
    category, source = entry.get("category"), entry.get("source")
    named = isinstance(source, str) and source.strip() not in _NOWHERE
    return {
        "category": category if category in _CATEGORIES else "context",
        "confidence": float(entry.get("confidence", 0.5)),
        "created_at": _time(entry.get("createdAt")) or now,
        "session": source if named else "",
    }


_NAMES: Final = {"category": "category", "confidence": "confidence", "created_at": "createdAt", "session": "source"}


def entry_of(fact: Fact) -> dict[str, Any]:
    """A fact as an entry of a document: as it came, but for what is different by now."""
    own = {
        "category": fact.category,
        "confidence": fact.confidence,
        "createdAt": _iso(fact.created_at),
        "source": fact.session or ("unknown" if any(e.message_id for e in fact.evidence) else "manual"),
    }
    came = fact.metadata.get(KEY)
    if not isinstance(came, dict):
        return {"id": fact.id, "content": fact.content, **own}
    said = _fields(came, fact.created_at)
    changed = {_NAMES[name]: own[_NAMES[name]] for name, value in said.items() if getattr(fact, name) != value}
    return {"id": fact.id, "content": fact.content, **came, **changed}


def facts_of(data: Mapping[str, Any], scope: Scope, now: datetime) -> list[Fact]:
    """The facts of a checked document, as new ones at ``scope``."""
    return [_new_fact(entry, scope, now) for entry in data["facts"]]


def _new_fact(entry: Mapping[str, Any], scope: Scope, now: datetime) -> Fact:
    return Fact(
        id=entry["id"],
        scope=scope,
        content=entry["content"],
        updated_at=now,
        origin="import",
        trust=TRUST["import"],
        reason="imported",
        metadata={KEY: _came(entry)},
        **_fields(entry, now),
    )


def sections_of(
    data: Mapping[str, Any], now: datetime, kept: Mapping[str, Section] | None = None
) -> dict[str, Section]:
    """The sections of a checked document that say something. One without a time has that of the same text in ``kept``, or
    ``now``."""
    sections = {}
    for name, group in SECTIONS.items():
        came = data.get(group, {}).get(name, {})
        if came.get("summary"):
            old = (kept or {}).get(name)
            since = old.updated_at if old and old.summary == came["summary"] else now
            sections[name] = Section(summary=came["summary"], updated_at=_time(came.get("updatedAt")) or since)
    return sections


def _came(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in {"id", "content"}}


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _time(value: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
        return at and (at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC))
    except (ValueError, OverflowError):
        return None


# ----------------------------------------------------------------------------------------------- what is kept here


@dataclass(frozen=True, slots=True)
class _State:
    """All that one document is made of."""

    scope: Scope
    profile: Profile
    facts: tuple[Fact, ...]
    """Of any status."""
    file: MemoryFile | None

    @classmethod
    def read(cls, tx: Transaction, home: Scope) -> _State:
        facts: list[Fact] = []
        cursor, rights = (
            "",
            present_rights(),
        )  # what is hidden is no part of the document: nothing of it is told or retired
        while True:
            page = tx.facts.list(home, status=None, cursor=cursor, limit=500)
            seen = page.items if rights is None else rights.facts(page.items)
            facts += [fact for fact in seen if fact.scope == home]
            cursor = page.next
            if not cursor:
                break
        try:
            file = tx.files.get(home, REST)
        except NotFound:
            file = None
        own = file if file is not None and file.scope == home else None
        return cls(home, tx.profiles.get(home), tuple(facts), own)

    @property
    def rest(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.file.content) if self.file else {}
        return found

    @property
    def changed_at(self) -> str:
        """When something here changed last; empty if nothing ever was here."""
        times = [fact.updated_at for fact in self.facts]
        times += [self.profile.updated_at] if self.profile.updated_at else []
        return _iso(max(times)) if times else ""

    def shown(self) -> dict[str, Any]:
        rest = self.rest
        at = self.changed_at
        data = rest.get("document") or _empty(at)
        if rest.get("at", at) != at:
            data["lastUpdated"] = at
        for name, group in SECTIONS.items():
            if name in self.profile.sections or name in data.get(group, {}):
                self._show_section(data.setdefault(group, {}), name)
        place = {name: number for number, name in enumerate(rest.get("order", ()))}
        active = sorted(self.active, key=lambda fact: (fact.created_at, fact.id))
        data["facts"] = sorted(map(entry_of, active), key=lambda entry: place.get(entry["id"], len(place)))
        return data

    @property
    def active(self) -> tuple[Fact, ...]:
        return tuple(fact for fact in self.facts if fact.status == "active")

    def _show_section(self, holder: dict[str, Any], name: str) -> None:
        kept, came = self.profile.sections.get(name), holder.get(name, {})
        if kept is None:
            same = not came.get("summary")
        else:
            same = came.get("summary") == kept.summary and _time(came.get("updatedAt")) in {None, kept.updated_at}
        if not same:
            now = (
                {"summary": kept.summary, "updatedAt": _iso(kept.updated_at)}
                if kept
                else {"summary": "", "updatedAt": ""}
            )
            holder[name] = {**came, **now}


class _Landing:
    """One import in one transaction."""

    def __init__(self, scoped: ScopedMemory, tx: Transaction, now: datetime) -> None:
        self._tx, self._now, self._home = tx, now, scoped.scope.home
        self._parts, self._by = scoped._memory.parts, scoped.by

    def land(self, data: dict[str, Any], expected: str | None) -> dict[str, Any]:
        self._tx.files.lock(self._home)
        state = _State.read(self._tx, self._home)
        before = state.shown()
        if expected is not None and revision(before) != expected:
            raise Conflict("the memory document", expected=expected, actual=revision(before))
        if before == data:
            return before
        known = {entry_of(fact)["id"]: fact for fact in sorted(state.facts, key=lambda f: f.status == "active")}
        for entry in data["facts"]:
            self._put_fact(entry, known.pop(entry["id"], None))
        for fact in known.values():
            if fact.status == "active":
                self._retire(fact)
        self._put_sections(state.profile, data)
        landed = _State.read(self._tx, self._home)
        self._put_rest(landed, data)
        self._journal(len(data["facts"]))
        if self._parts.embedder is not None:
            self._embed()
        return _State.read(self._tx, self._home).shown()

    def _put_fact(self, entry: dict[str, Any], old: Fact | None) -> None:
        if old is None:
            self._add(_new_fact(entry, self._home, self._now))
            return
        if old.status == "active" and entry_of(old) == entry:
            return
        fact = replace(
            old,
            content=entry["content"],
            updated_at=self._now,
            status="active",
            retired_at=None,
            reason="imported",
            metadata={**old.metadata, KEY: _came(entry) | ({"id": entry["id"]} if entry["id"] != old.id else {})},
            **_fields(entry, old.created_at),
        )
        self._tx.facts.revise(fact, expected=old.version, indexed=index_fact(fact))

    def _add(self, fact: Fact) -> None:
        """Under its own id, or one of ours where another place of the organisation has that id."""
        try:
            self._tx.facts.add(fact, index_fact(fact))
        except Conflict:
            metadata = {KEY: {**fact.metadata[KEY], "id": fact.id}}
            self._tx.facts.add(replace(fact, id=self._parts.new_id("fact"), metadata=metadata), index_fact(fact))

    def _retire(self, fact: Fact) -> None:
        gone = replace(fact, status="retired", retired_at=self._now, updated_at=self._now, reason="not in the import")
        self._tx.facts.revise(gone, expected=fact.version)

    def _put_sections(self, profile: Profile, data: dict[str, Any]) -> None:
        sections = sections_of(data, self._now, profile.sections)
        if sections != dict(profile.sections):
            made = replace(profile, sections=sections, updated_at=self._now)
            self._tx.profiles.put(made, expected=profile.version)

    def _put_rest(self, landed: _State, data: dict[str, Any]) -> None:
        rest = {
            "at": landed.changed_at,
            "order": [entry["id"] for entry in data["facts"]],
            "document": {name: value for name, value in data.items() if name != "facts"},
        }
        content = json.dumps(rest, ensure_ascii=False).encode()
        file = MemoryFile(
            scope=self._home, path=REST, content=content, created_at=self._now, updated_at=self._now, read_only=True
        )
        self._tx.files.put(file, expected=landed.file.version if landed.file else 0)
        self._tx.files.trim(self._home, REST, keep=1)

    def _journal(self, facts: int) -> None:
        entry = Entry(
            id=self._parts.new_id("log"),
            at=self._now,
            scope=self._home,
            by=name_of(self._by),
            action="import",
            kind="fact",
            reason=f"a DeerFlow document with {facts} facts",
        )
        self._tx.journal.append(entry)

    def _embed(self) -> None:
        name = self._parts.new_id("job")
        job = Job(
            id=name, kind="embed", key=job_key(self._home), scope=self._home, run_after=self._now, first_at=self._now
        )
        self._tx.jobs.put(job, latest=self._now)
