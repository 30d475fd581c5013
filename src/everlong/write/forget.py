"""Forgetting a topic wherever it is told, and finding what else tells of a fact."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from everlong import text
from everlong.errors import InvalidInput
from everlong.protocols import present_rights
from everlong.records import Fact, Mention, Message, Query, Scope, Section, Topic, TopicForgotten
from everlong.write.topic import about, cut, lines, telling

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from everlong.protocols import Clock, Embedder, Index, Store, Transaction
    from everlong.records import Hit, MemoryFile, MentionKind, Principal, Profile, Proposal, Recall
    from everlong.write.apply import Applier

__all__ = ["THRESHOLD", "Forgetter"]

THRESHOLD: Final = 0.6
"""Score, 0 to 1, from which a record counts as near a topic although it does not name it; well above the 0.3 or so from
which recall shows something, for what is shown here may go."""
_NEAR: Final = 50
"""Records of a kind that are looked at by meaning."""


class Forgetter:
    """Finds what tells of something among all that a scope sees of its own user, and takes it out.

    ``recall`` answers a question by meaning, ``index`` finds turns by their words.
    """

    def __init__(
        self,
        *,
        store: Store,
        applier: Applier,
        index: Index,
        embedder: Embedder | None,
        recall: Callable[[Scope, Query], Recall],
        clock: Clock,
    ) -> None:
        self._store, self._applier, self._index, self._embedder = store, applier, index, embedder
        self._recall, self._clock = recall, clock

    def mentions(self, scope: Scope, fact: Fact) -> tuple[Mention, ...]:
        """What else tells of ``fact``: what it was learned from, and whatever uses its names or half of its words."""
        sources = {each.message_id for each in fact.evidence}
        with self._store.read() as tx:
            found = tuple(_Told(tx, self._index, scope).all(telling(fact.content), fact.content, also=sources))
        return tuple(each for each in found if each.id != fact.id)

    def preview(self, scope: Scope, topic: str, *, threshold: float) -> Topic:
        """See :meth:`everlong.memory.ScopedMemory.forget_preview`."""
        if isinstance(threshold, bool) or not 0 < threshold <= 1:
            raise InvalidInput(f"threshold is {threshold!r}; it must be above 0 and 1 at most")
        named = about(topic)
        near = self._near(scope, topic, threshold)
        with self._store.read() as tx:
            found = {each.ref: each for each in _Told(tx, self._index, scope).all(named, topic)}
        return Topic(topic=topic, threshold=threshold, mentions=tuple((near | found).values()))

    def _near(self, scope: Scope, topic: str, threshold: float) -> dict[str, Mention]:
        query = Query(text=topic, limit=_NEAR, min_score=threshold, before=0, after=0)
        if self._embedder is None or not text.terms(topic):
            return {}
        hits = [hit for hit in self._recall(scope.home, query).hits if _own(scope, hit.record.scope)]
        found = [replace(_mention(hit.record), score=min(hit.score, _own_score(hit), 0.99)) for hit in hits]
        return {each.ref: each for each in found if each.score >= threshold}

    def apply(
        self,
        scope: Scope,
        topic: str,
        *,
        refs: Collection[str],
        threshold: float,
        erase: bool,
        reason: str,
        by: Principal,
    ) -> TopicForgotten:
        """See :meth:`everlong.memory.ScopedMemory.forget_topic`."""
        found = self.preview(scope, topic, threshold=threshold).mentions
        gone = [each for each in found if each.ref in set(refs)]
        named = about(topic)
        contents = [each.text for each in gone if each.kind in {"fact", "message"}]

        def tells(told: str) -> bool:
            return named(told) or any(content in told for content in contents)

        with self._store.write() as tx:
            work = _Removal(tx, self._applier, scope, by, self._clock, reason)
            counts = work.remove(gone, named, erase=erase)
            erased = work.facts if erase else ()
            swept = tx.forget(scope, facts=erased, messages=work.messages, about=tells if erase else lambda _: False)
            counts |= {kind: number for kind, number in swept.items() if number and kind not in counts}
            self._applier.journal(tx, scope, by, "forget_topic", reason=reason, payload={"counts": counts})
        self._store.notify()
        with self._store.read() as tx:
            left = tuple(_Told(tx, self._index, scope).all(named, topic))
        if not erase:
            retired = {each.ref for each in gone if each.kind == "fact"}
            left = tuple(each for each in left if each.ref not in retired)
        return TopicForgotten(topic=topic, gone=tuple(gone), left=left, counts=counts)


def _own(scope: Scope, kept: Scope) -> bool:
    """Whether what is kept there is this user's own, and not the agent's or the organisation's."""
    return kept.user == scope.user and kept.home.covers(scope.home)


def _own_score(hit: Hit) -> float:
    """How near a record is by its own meaning and words. Recall also lends to what stands beside a good answer or was said
    on a day that the question names: right for what is shown, not for what goes."""
    return 1 - (1 - hit.parts.get("meaning", 0.0)) * (1 - hit.parts.get("words", 0.0))


def _mention(record: Any) -> Mention:
    session = record.session if isinstance(record, Message) else ""
    kind: MentionKind = "fact" if isinstance(record, Fact) else "message"
    return Mention(kind=kind, id=record.id, text=record.content, scope=record.scope, session=session)


class _Told:
    """What a scope sees of its own user, asked for what tells of something."""

    def __init__(self, tx: Transaction, index: Index, scope: Scope) -> None:
        self._tx, self._index, self._scope = tx, index, scope

    def all(self, named: Callable[[str], bool], words: str, also: Collection[str] = ()) -> Iterator[Mention]:
        """Every mention; of turns those that hold a term of ``words``, and those of the ids ``also``."""
        yield from self._facts(named)
        yield from self._messages(named, words, also)
        for profile in self._tx.profiles.visible(self._scope.home):
            if _own(self._scope, profile.scope):
                yield from _of_profile(profile, named)
        rights = present_rights()
        for proposal in (
            _pages(self._tx.proposals.list, self._scope) if rights is None else ()
        ):  # may quote what is hidden
            if proposal.kind in {"section", "call"} and any(map(named, _strings(proposal.payload))):
                yield Mention(kind="proposal", id=proposal.id, text=_shown(proposal), scope=proposal.scope)
        yield from self._lines(named)

    def _facts(self, named: Callable[[str], bool]) -> Iterator[Mention]:
        for fact in _pages(self._tx.facts.list, self._scope, status=None):
            if _own(self._scope, fact.scope) and named(fact.content):
                yield _mention(fact)

    def _messages(self, named: Callable[[str], bool], words: str, also: Collection[str]) -> Iterator[Mention]:
        corpus = self._index.corpus(self._tx, self._scope.home, "message")
        rows = {int(row) for found in corpus.rows(text.terms(words)) for row in found}
        ids = {corpus.ids[row] for row in rows} | {each for each in also if each}
        turns = self._tx.messages.many(self._scope, sorted(ids))
        for message in sorted(turns.values(), key=lambda turn: turn.position):
            if _own(self._scope, message.scope) and (message.id in also or named(message.content)):
                yield _mention(message)

    def _lines(self, named: Callable[[str], bool]) -> Iterator[Mention]:
        for info in self._tx.files.list(self._scope):
            if not _own(self._scope, info.scope):
                continue
            for number, line in lines(_text_of(self._tx.files.get(self._scope, info.path)), named):
                yield Mention(kind="file", id=f"{info.path}:{number}", text=line, scope=info.scope)


def _of_profile(profile: Profile, named: Callable[[str], bool]) -> Iterator[Mention]:
    for name, section in profile.sections.items():
        clauses = [section.summary[start:end] for start, end in text.clauses(section.summary)]
        told = [clause for clause in clauses if named(clause)]
        if told:
            yield Mention(kind="section", id=name, text=" … ".join(told), scope=profile.scope)
    for name, value in profile.attributes.items():
        if any(map(named, _strings(value))):
            yield Mention(kind="attribute", id=name, text=str(value), scope=profile.scope)


class _Removal:
    """Takes confirmed mentions out, in one transaction; ``facts`` and ``messages`` are those that went."""

    def __init__(
        self, tx: Transaction, applier: Applier, scope: Scope, by: Principal, clock: Clock, reason: str
    ) -> None:
        self._tx, self._applier, self._scope, self._by = tx, applier, scope, by
        self._now, self._reason = clock(), reason
        self.facts: list[Fact] = []
        self.messages: list[Message] = []

    def remove(self, gone: Sequence[Mention], named: Callable[[str], bool], *, erase: bool) -> dict[str, int]:
        """Does it; counts by kind."""
        of = {kind: [each for each in gone if each.kind == kind] for kind in {each.kind for each in gone}}
        self._facts([each.id for each in of.get("fact", ())])
        turns = self._tx.messages.many(self._scope, [each.id for each in of.get("message", ())])
        self.messages = sorted(turns.values(), key=lambda turn: turn.position)
        touched = (*of.get("section", ()), *of.get("attribute", ()))
        for place in {each.scope for each in touched}:
            self._profile(place, {each.ref for each in touched if each.scope == place}, named)
        for each in of.get("proposal", ()):
            self._tx.proposals.delete(self._tx.proposals.get(each.scope, each.id))
        for path in {each.id.rpartition(":")[0] for each in of.get("file", ())}:
            self._file(path, [each for each in of["file"] if each.id.rpartition(":")[0] == path], erase=erase)
        return {f"{kind}s": len(each) for kind, each in sorted(of.items())}

    def _facts(self, ids: Sequence[str]) -> None:
        for fact in self._tx.facts.many(self._scope, ids).values():
            self.facts.append(fact)
            if fact.status == "retired":
                continue
            gone = replace(fact, status="retired", retired_at=self._now, updated_at=self._now, reason=self._reason)
            stored = self._tx.facts.revise(gone, expected=fact.version)
            told: dict[str, Any] = {"kind": "fact", "target": fact.id, "reason": self._reason}
            told |= {"before": fact.version, "after": stored.version}
            self._applier.journal(self._tx, fact.scope, self._by, "forget", **told)

    def _profile(self, place: Scope, refs: Collection[str], named: Callable[[str], bool]) -> None:
        profile = self._tx.profiles.get(place)
        sections = dict(profile.sections)
        for name, section in profile.sections.items():
            if f"section {name}" in refs:
                sections[name] = Section(summary=cut(section.summary, named), updated_at=self._now)
        kept = {name: value for name, value in profile.attributes.items() if f"attribute {name}" not in refs}
        changed = replace(profile, sections=sections, attributes=kept, updated_at=self._now)
        stored = self._tx.profiles.put(changed, expected=profile.version)
        told = {"reason": self._reason, "before": profile.version, "after": stored.version}
        self._applier.journal(self._tx, place, self._by, "update_profile", kind="profile", **told)

    def _file(self, path: str, found: Sequence[Mention], *, erase: bool) -> None:
        file = self._tx.files.get(self._scope, path)
        if file.read_only and self._by.role not in {"operator", "system"}:
            raise InvalidInput(f"{path} is read-only; leave its lines out, or have an operator forget them")
        told = {each.text for each in found}
        kept = "".join(line for line in _text_of(file).splitlines(keepends=True) if line.rstrip("\r\n") not in told)
        stored = self._tx.files.put(replace(file, content=kept.encode(), updated_at=self._now), expected=file.version)
        if erase:
            self._tx.files.trim(file.scope, path, keep=0)
        told_too = {"reason": self._reason, "before": file.version, "after": stored.version}
        self._applier.journal(self._tx, file.scope, self._by, "write_file", kind="file", target=path, **told_too)
        self._applier.enqueue_embedding(self._tx, file.scope)


def _text_of(file: MemoryFile) -> str:
    try:
        return file.content.decode()
    except UnicodeDecodeError:
        return ""


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _strings(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _strings(inner)


def _shown(proposal: Proposal) -> str:
    return f"{proposal.target}: {'; '.join(_strings(proposal.payload))}"


def _pages(listing: Callable[..., Any], scope: Scope, **options: Any) -> Iterator[Any]:
    cursor = ""
    while True:
        page = listing(scope, cursor=cursor, limit=500, **options)
        yield from page.items
        cursor = page.next
        if not cursor:
            return
