"""What is proposed against what is known: one decision with a reason for every candidate, removal and section.

Pure: the same arguments give the same changes, but for the ids of new facts.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from everlong import text
from everlong.records import (
    CATEGORIES,
    SECTIONS,
    TRUST,
    Batch,
    Candidate,
    Change,
    ChangeSet,
    Evidence,
    Extraction,
    Fact,
    Message,
    Origin,
    Removal,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from everlong.protocols import NewId

__all__ = ["Gates", "junk", "reconcile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """What a candidate must pass.

    ``confidence_threshold``: 0 to 1, DeerFlow's default. ``below``: what happens to less certain candidates: kept
    for review, stored with less importance, or rejected. ``max_facts``: active facts at one scope.
    ``duplicate``: cosine from which two statements say the same, calibrated per embedding model (the default is
    the vector design's). ``protected`` categories are evicted last.
    """

    confidence_threshold: float = 0.7
    below: Literal["hold", "downweight", "drop"] = "hold"
    max_facts: int = 100
    duplicate: float = 0.92
    categories: tuple[str, ...] = CATEGORIES
    protected: tuple[str, ...] = ("correction",)


def reconcile(
    extraction: Extraction,
    batch: Batch,
    *,
    near: Sequence[Sequence[tuple[Fact, float]]],
    facts: Sequence[Fact],
    gates: Gates,
    new_id: NewId,
) -> ChangeSet:
    """Decides what becomes of an extraction; at most one change touches any existing fact.

    Args:
        extraction: what was proposed.
        batch: the messages it was made of; new facts are kept at ``batch.scope.home``, dated ``batch.now``.
        near: for each candidate, existing facts with their cosine to it; may be empty or shorter.
        facts: the facts kept at the home scope; no other fact is ever changed.
        gates: thresholds and limits.
        new_id: makes ids of new facts.
    """
    work = _Work(batch, facts, gates, new_id)
    removals = _paired(extraction, work)
    for index, candidate in enumerate(removals.candidates):
        work.consider(candidate, near[index] if index < len(near) else ())
    for removal in removals.left:
        work.remove(removal)
    for name, summary in extraction.sections.items():
        work.changes.append(_section(name, summary, batch))
    work.make_room()
    return ChangeSet(changes=tuple(work.changes))


# ----------------------------------------------------------------------------------------------------------- junk

_LONGEST: Final = 2_000
_JUNK: Final = re.compile(
    r"(?:none|n/?a|null|nil|nothing|undefined|string|unknown|empty|content|todo|无|没有|暂无|空)"
    r"|(?:there (?:are|is) )?no (?:new |relevant |additional )?(?:facts?|memor(?:y|ies)|information)\b.{0,40}"
    r"|(?:没有|无|未发现|暂无)(?:任何)?(?:新的?|相关的?)?(?:事实|记忆|信息|内容).{0,10}"
    r"|(?:i'?m |i am )?(?:sorry|afraid)\b.{0,20}\b(?:can(?:no|')t|unable|not able).*"
    r"|i (?:can(?:no|')t|am unable to|won't) (?:help|assist|comply|do that|provide|fulfil).*"
    r"|as an ai\b.*|(?:很抱歉|抱歉|对不起)[,，]?.{0,6}(?:无法|不能|没法).*|我(?:无法|不能)(?:协助|帮助|提供|回答).*"
    r"|</?[a-z_]+/?>|[\W_]*"
)
_JSON: Final = re.compile(r"\s*(?:```|[{\[]\s*(?:[\"'{\[]|[}\]]))", re.DOTALL)
_ECHO: Final = re.compile(
    r"\"?(?:newFacts|factsToRemove|shouldUpdate)\"?\s*:|a standalone sentence in the user's", re.IGNORECASE
)
_UPLOAD: Final = re.compile(
    r"/mnt/user-data/uploads/|<uploaded_files>"
    r"|\b(?:user|they|he|she|i)\b (?:has |have |had |just |recently )*(?:uploaded|attached)\b"
    r"|\b(?:files?|documents?|images?) (?:was|were|has been|have been) (?:uploaded|attached)\b"
    r"|(?:用户|我|他|她)(?:刚刚?|已经?|又)?上传了|上传了.{0,12}(?:文件|图片|文档)",
    re.IGNORECASE,
)


def junk(content: str) -> str:
    """Why a text is no statement worth keeping; empty when it may be one."""
    plain = text.normal(content)
    if not plain or not content.strip():
        return "empty"
    if len(content) > _LONGEST:
        return f"longer than {_LONGEST} characters"
    if _JSON.match(content) or _ECHO.search(content):
        return "raw JSON or an echo of the prompt, not a statement"
    if plain.startswith("<think") or content.strip().lower().startswith("<think"):
        return "a model's thinking, not a statement"
    if _JUNK.fullmatch(plain.replace("’", "'")):
        return "a placeholder or refusal, not a statement"
    if _UPLOAD.search(content):
        return "an upload is an event of one session, not a fact"
    return ""


# ---------------------------------------------------------------------------------------------------- comparison

_NEGATIONS: Final = re.compile(
    r"\b(?:no longer|not|no|never|cannot|without)\b|\b(?:do|does|did|is|are|was|were|ca|wo|would|could|should|has|have|had)n't\b"
    r"|不再|(?<!非)不(?![错同过仅但])|没有|没(?!关系)|(?<![特分区级性个类识告])别|无(?![线论])|未(?!来)"
)
_LIKES: Final = re.compile(r"\b(?:loves?|likes?|enjoys?|adores?)\b|喜欢|喜爱|热爱|爱(?![好人情])")
_DISLIKES: Final = re.compile(r"\b(?:hates?|dislikes?|detests?|loathes?)\b|讨厌|厌恶|憎恨|反感")
_ALLOWS: Final = re.compile(r"\b(?:allowed|permitted|enabled)\b|允许|启用")
_FORBIDS: Final = re.compile(r"\b(?:forbidden|prohibited|banned|disabled)\b|禁止|禁用")
_NUMBER: Final = re.compile(r"\d+(?:[.,:/-]\d+)*\s*(?:[a-z%°€$]+|[\u4e00-\u9fff])?|[一二两三四五六七八九十百千万]+")
_DATE: Final = re.compile(r"\d{4}-\d\d|\d+\s*[月日号点]|\d:\d\d|[ap]m\b|周[一二三四五六日天]|星期")
_NAME: Final = re.compile(r"(?<![^\W_])[A-Z][\w+#.-]*")
_NO_NAMES: Final = frozenset("user user's the i he she they a an".split())
_SINGLE: Final = (
    re.compile(r"(.{1,40}?) (?:now |currently )?(lives?|is living|is based|resides?) in (.+)"),
    re.compile(r"(.{1,40}?) (?:now |currently )?(works?) (?:at|for) (.+)"),
    re.compile(r"(.{1,40}?)(?:'s)? (name is|is named|is called) (.+)"),
    re.compile(r"(用户|我|他|她)(?:现在|目前|已经)?(住在|居住在|搬到了?)(.+)"),
    re.compile(r"(用户|我|他|她)(?:现在|目前)?(就职于|任职于|的名字是|名叫|叫)(.+)"),
)


@dataclass(frozen=True, slots=True)
class _Meaning:
    """A statement in parts that can be compared: its words without negation, and whether it affirms them."""

    plain: str
    words: Counter[str]
    affirms: bool
    numbers: frozenset[str]
    names: frozenset[str]
    slot: tuple[str, ...]

    def opposes(self, other: _Meaning) -> bool:
        """Says the same of the same with the opposite verdict."""
        return bool(self.words) and self.words == other.words and self.affirms != other.affirms

    def changes_value(self, other: _Meaning) -> bool:
        """Gives another value to what can have one at a time: a home, an employer, a name, an amount."""
        if self.slot and other.slot and self.affirms == other.affirms:
            return self.slot[:2] == other.slot[:2] and self.slot[2] != other.slot[2]
        if self.numbers == other.numbers or len(self.numbers) != len(other.numbers):
            return False
        return not _DATE.search(self.plain) and _without_numbers(self.plain) == _without_numbers(other.plain)

    def differs(self, other: _Meaning) -> bool:
        """A number, unit, name, negation or single word stands against another: never the same statement."""
        if self.affirms != other.affirms or self.numbers != other.numbers:
            return True
        mine, theirs = set(_words(self.plain)), set(_words(other.plain))
        if self.names - theirs or other.names - mine:
            return True
        return _swapped(self.plain, other.plain)

    def overlap(self, other: _Meaning) -> float:
        """Share of this statement's words, 0 to 1, that stand in the other."""
        words = set(self.words) - _SUBJECTS
        return len(words & set(other.words)) / len(words) if words else 0.0


_SUBJECTS: Final = frozenset({"user", "用户", "户", "用"})


def _meaning(content: str) -> _Meaning:
    plain = text.normal(content).replace("’", "'")
    verdict = _FORBIDS.sub(" allowed ", _DISLIKES.sub(" not like ", plain))
    negations = len(_NEGATIONS.findall(verdict)) + len(_FORBIDS.findall(plain))
    bare = _ALLOWS.sub("allowed", _LIKES.sub(" like ", _NEGATIONS.sub(" ", verdict)))
    names = frozenset(m[0].rstrip(".-").casefold() for m in _NAME.finditer(content) if m.start()) - _NO_NAMES
    return _Meaning(
        plain, Counter(text.terms(bare)), negations % 2 == 0, frozenset(_numbers(plain)), names, _slot(plain)
    )


def _numbers(plain: str) -> Iterable[str]:
    return ("".join(match[0].split()) for match in _NUMBER.finditer(plain))


def _without_numbers(plain: str) -> str:
    return _NUMBER.sub("#", plain)


def _words(plain: str) -> list[str]:
    return re.findall(r"[^\W_][\w+#.-]*[\w+#]|[^\W_]", plain)


def _slot(plain: str) -> tuple[str, ...]:
    for number, pattern in enumerate(_SINGLE):
        match = pattern.fullmatch(plain)
        if match:
            return (match[1], str(number), match[3].strip())
    return ()


def _swapped(one: str, other: str) -> bool:
    """Whether one word of one text stands where another word stands in the other: tea and coffee, 北京 and 上海."""
    a, b = (list(t) if not t.isascii() else t.split() for t in (one, other))
    head = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    rest = list(zip(reversed(a[head:]), reversed(b[head:]), strict=False))
    tail = next((i for i, (x, y) in enumerate(rest) if x != y), len(rest))
    most = 1 if one.isascii() and other.isascii() else 4
    return all(0 < len(t) - head - tail <= most for t in (a, b))


# --------------------------------------------------------------------------------------------------- what is known

_FORGET: Final = re.compile(
    r"(?<!don't )(?<!never )(?<!not )(?<!i )(?<!to )\bforget\b(?! to\b)"
    r"|\b(?:delete|erase|remove)\b.{0,40}\b(?:memor(?:y|ies)|facts?|that|this|about)\b"
    r"|\bstop remembering\b|(?<!别)(?<!不要)(?<!不会)忘(?:掉|了吧|记(?!了|带))|(?:删除|删掉|清除|抹掉).{0,20}"
)
_REPLACES: Final = 1 / 3
"""Share of words that a new statement has in common with the fact it replaces, for a removal to belong to it."""
_CORRECTS: Final = 0.1
"""How far below the duplicate threshold a correction still finds what it corrects."""


class _Work:
    """One run: the decisions so far, and the state of every fact they have touched."""

    def __init__(self, batch: Batch, facts: Sequence[Fact], gates: Gates, new_id: NewId) -> None:
        self.batch, self.gates, self._new_id = batch, gates, new_id
        self.changes: list[Change] = []
        self.facts = {fact.id: fact for fact in facts if fact.scope == batch.scope.home and fact.status != "retired"}
        self.meanings = {fact.id: _meaning(fact.content) for fact in self.facts.values()}
        self._order = {message.id: place for place, message in enumerate(batch.messages) if message.id}
        self._said = [m for m in batch.messages if m.role == "user"]
        self._quotable = {m: text.normal(m.content) for m in batch.messages}
        self._gone: dict[str, str] = {}
        """Existing facts that this run retires, each with what replaces it."""

    # ------------------------------------------------------------------------------------------ one candidate

    def consider(self, candidate: Candidate, near: Sequence[tuple[Fact, float]]) -> None:
        candidate = replace(candidate, content=text.clean(candidate.content).strip())
        problem = junk(candidate.content) or _bad_confidence(candidate.confidence)
        if problem:
            return self._reject(candidate, problem)
        candidate, doubt = self._grounded(self._categorised(candidate))
        meaning = _meaning(candidate.content)
        same = self._same(meaning, near)
        if same is not None:
            return self._again(candidate, same, doubt)
        unknown = [i for i in candidate.removes if i not in self.facts]
        if unknown:
            self._reject(candidate, f"facts it should replace are not known here: {', '.join(unknown)}")
            self.changes[-1] = replace(self.changes[-1], candidate=None)
        return self._new(candidate, meaning, near, doubt or self._unsure(candidate))

    def _categorised(self, candidate: Candidate) -> Candidate:
        category = candidate.category.strip().lower()
        if category in self.gates.categories:
            return replace(candidate, category=category)
        metadata = {**candidate.metadata, "proposed_category": candidate.category}
        return replace(candidate, category="context", metadata=metadata)

    def _unsure(self, candidate: Candidate) -> str:
        if candidate.confidence >= self.gates.confidence_threshold:
            return ""
        return f"confidence {candidate.confidence:.2f} is below {self.gates.confidence_threshold:.2f}"

    def _grounded(self, candidate: Candidate) -> tuple[Candidate, str]:
        """The candidate with the evidence that really stands in the batch, and why it cannot be believed yet."""
        if candidate.origin not in {"user", "assistant"}:
            return candidate, ""
        found = [
            (message, quote) for e in candidate.evidence if (quote := e.quote.strip()) for message in self._where(e)
        ]
        if not candidate.evidence:
            found = [
                (m, m.content[:500])
                for m in self._said
                if _meaning(candidate.content).overlap(_meaning(m.content)) >= 1 / 2
            ]
        by_user = [(m, quote) for m, quote in found if m.role == "user"]
        evidence = tuple(
            dict.fromkeys(Evidence(message_id=m.id, quote=q, session=m.session) for m, q in by_user or found)
        )
        origins: list[Origin] = [candidate.origin, *(m.origin for m, _ in by_user)]
        candidate = replace(candidate, evidence=evidence, origin=min(origins, key=lambda origin: TRUST[origin]))
        if by_user:
            return candidate, ""
        candidate = replace(candidate, origin="assistant")
        return candidate, "only the assistant said so" if found else "no user message of the conversation supports it"

    def _where(self, evidence: Evidence) -> list[Message]:
        """The message in which a quote stands: the one it names, else the first of the user's."""
        quote = text.normal(evidence.quote)
        standing = [m for m, content in self._quotable.items() if quote and quote in content]
        standing.sort(key=lambda m: (m.role != "user", m.id != evidence.message_id))
        return standing[:1]

    # ------------------------------------------------------------------------------------------- known already

    def _same(self, meaning: _Meaning, near: Sequence[tuple[Fact, float]]) -> Fact | None:
        for fact_id, known in self.meanings.items():
            if known.plain == meaning.plain:
                return self.facts[fact_id]
        for fact, cosine in near:
            if fact.id in self.facts and cosine >= self.gates.duplicate and fact.id not in self._gone:
                known = self.meanings[fact.id]
                if not known.differs(meaning) and not known.changes_value(meaning):
                    return self.facts[fact.id]
        return None

    def _again(self, candidate: Candidate, fact: Fact, doubt: str) -> None:
        place = self._place(fact)
        if doubt:
            return self._reject(candidate, f"known as {fact.id}, and {doubt}")
        if fact.id in self._gone:
            return self._reject(candidate, f"{fact.id} says the same and was replaced by {self._gone[fact.id]}")
        if fact.status == "held" and place is None:
            return self._reject(candidate, f"{fact.id} says the same and waits for review")
        fresh = tuple(e for e in candidate.evidence if not e.message_id or e.message_id not in _sources(fact))
        if candidate.evidence and not fresh:
            return self._reject(candidate, f"{fact.id} was learned from the same words")
        if place is not None and self.changes[place].expected is None:
            return self._reject(candidate, f"says the same as {fact.id} in this update")
        merged = self._confirmed(fact, candidate, fresh)
        change = Change(kind="confirm", reason=f"says the same as {fact.id}", fact=merged, candidate=candidate)
        if place is None:
            self.changes.append(replace(change, expected=fact.version))
        elif self.changes[place].kind == "confirm":
            self.changes[place] = replace(self.changes[place], fact=merged)
            self._reject(candidate, f"merged into the confirmation of {fact.id}")
        else:
            return self._reject(candidate, f"says the same as {fact.id} in this update")
        self.facts[fact.id] = merged
        return None

    def _confirmed(self, fact: Fact, candidate: Candidate, fresh: tuple[Evidence, ...]) -> Fact:
        said = bool(fresh) and candidate.origin in {"user", "operator"}
        return replace(
            fact,
            confirmations=fact.confirmations + 1,
            evidence=(*fact.evidence, *fresh),
            confidence=max(fact.confidence, candidate.confidence) if said else fact.confidence,
            last_used_at=self.batch.now,
            updated_at=self.batch.now,
        )

    # ----------------------------------------------------------------------------------------------------- new

    def _new(self, candidate: Candidate, meaning: _Meaning, near: Sequence[tuple[Fact, float]], doubt: str) -> None:
        fact = self._fact(candidate)
        if doubt:
            return self._doubted(candidate, fact, doubt)
        replaced = self._replaced(candidate, meaning, near)
        stronger = [old for old in replaced if old.trust > fact.trust]
        newer = [old for old in replaced if self._said_later(old, candidate)]
        if newer:
            return self._reject(candidate, f"{newer[0].id}, said later, says otherwise")
        if stronger:
            return self._hold(candidate, fact, f"it contradicts {stronger[0].id}, which is trusted more")
        return self._add(candidate, fact, replaced)

    def _doubted(self, candidate: Candidate, fact: Fact, doubt: str) -> None:
        if self.gates.below == "hold" or candidate.confidence >= self.gates.confidence_threshold:
            return self._hold(candidate, fact, doubt)
        if self.gates.below == "drop" or fact.origin == "assistant":
            return self._reject(candidate, doubt)
        weight = candidate.confidence / self.gates.confidence_threshold
        fact = replace(fact, importance=fact.importance * weight, reason=doubt)
        return self._keep(
            Change(kind="add", reason=f"{doubt}; stored with less weight", fact=fact, candidate=candidate)
        )

    def _fact(self, candidate: Candidate) -> Fact:
        scope = self.batch.scope if candidate.session_only else self.batch.scope.home
        importance = candidate.importance
        return Fact(
            id=self._new_id("fact"),
            scope=scope,
            content=candidate.content,
            created_at=self.batch.now,
            updated_at=self.batch.now,
            category=candidate.category,
            confidence=float(candidate.confidence),
            importance=min(max(importance, 0.0), 1.0) if math.isfinite(importance) else 0.5,
            origin=candidate.origin,
            trust=TRUST[candidate.origin],
            evidence=candidate.evidence,
            session=self.batch.scope.session,
            valid_from=candidate.valid_from,
            valid_until=candidate.valid_until,
            reason=candidate.reason,
            metadata=candidate.metadata,
        )

    def _replaced(self, candidate: Candidate, meaning: _Meaning, near: Sequence[tuple[Fact, float]]) -> list[Fact]:
        """The facts that stop being true with this candidate; the named ones first."""
        if candidate.session_only:
            return []
        found = [i for i in candidate.removes if i in self.facts]
        found += [i for i, known in self.meanings.items() if known.opposes(meaning) or known.changes_value(meaning)]
        if candidate.category == "correction":
            found += [f.id for f, cosine in near[:1] if self._corrects(f, cosine, meaning)]
        return [self.facts[i] for i in dict.fromkeys(found) if i not in self._gone and self.facts[i].status == "active"]

    def _corrects(self, fact: Fact, cosine: float, meaning: _Meaning) -> bool:
        known = self.meanings.get(fact.id)
        return known is not None and cosine >= self.gates.duplicate - _CORRECTS and known.overlap(meaning) >= 1 / 2

    def _said_later(self, old: Fact, candidate: Candidate) -> bool:
        """Whether ``old`` was learned from this very batch, from no earlier message than the candidate's."""
        if self._place(old) is not None and self.changes[self._place(old) or 0].expected is None:
            return False
        known = [self._order[i] for i in _sources(old) if i in self._order]
        mine = [self._order[e.message_id] for e in candidate.evidence if e.message_id in self._order]
        return bool(known and mine) and max(mine) <= max(known)

    def _add(self, candidate: Candidate, fact: Fact, replaced: list[Fact]) -> None:
        if not replaced:
            return self._keep(Change(kind="add", reason=fact.reason or "new", fact=fact, candidate=candidate))
        olds = [old for r in replaced if (old := self._released(r, fact)) is not None]
        fact = replace(fact, pinned=any(r.pinned for r in replaced), supersedes=olds[0].id if olds else "")
        if not olds:
            return self._keep(Change(kind="add", reason="said last in this update", fact=fact, candidate=candidate))
        retired = [self._retired(old, f"replaced by {fact.id}", fact.id) for old in olds]
        first = retired[0]
        reason = f"replaces {first.id}: {candidate.reason or 'it says otherwise'}"
        self._keep(
            Change(kind="supersede", reason=reason, fact=fact, old=first, expected=olds[0].version, candidate=candidate)
        )
        for old in retired[1:]:
            self.changes.append(Change(kind="retire", reason=f"replaced by {fact.id}", fact=old, expected=old.version))
        return None

    def _released(self, fact: Fact, successor: Fact) -> Fact | None:
        """The existing fact to retire for ``successor``: ``fact`` itself, or what it was to replace when it is new."""
        place = self._place(fact)
        if place is None:
            return fact
        change = self.changes[place]
        reason = f"taken back later in the same update by {successor.id}"
        self.changes[place] = Change(kind="reject", reason=reason, candidate=change.candidate)
        if change.expected is not None and change.kind == "confirm":
            return self.facts[fact.id]
        del self.facts[fact.id], self.meanings[fact.id]
        return self.facts[change.old.id] if change.old is not None else None

    def _retired(self, fact: Fact, reason: str, successor: str = "") -> Fact:
        self._gone[fact.id] = successor or "nothing"
        now = self.batch.now
        return replace(fact, status="retired", retired_at=now, updated_at=now, reason=reason, superseded_by=successor)

    # ------------------------------------------------------------------------------------------------ removals

    def remove(self, removal: Removal) -> None:
        fact = self.facts.get(removal.fact_id)
        if fact is None:
            reason = f"cannot remove {removal.fact_id!r}: no such fact is kept here"
            self.changes.append(Change(kind="reject", reason=reason))
        elif fact.id in self._gone:
            reason = f"{fact.id} is retired already by this update"
            self.changes.append(Change(kind="reject", reason=reason))
        elif self._place(fact) is None and self.asked_to_forget(fact):
            retired = self._retired(fact, f"the user asked to forget it: {removal.reason}".rstrip(": "))
            self.changes.append(Change(kind="retire", reason=retired.reason, fact=retired, expected=fact.version))
        else:
            flagged = Candidate(content=fact.content, category=fact.category, reason=removal.reason)
            reason = f"removal of {fact.id} without a replacement needs a person: {removal.reason or 'no reason given'}"
            self.changes.append(Change(kind="reject", reason=reason, candidate=flagged))

    def asked_to_forget(self, fact: Fact) -> bool:
        """Whether a user message of the batch asks to forget something, and this fact has to do with it."""
        known = self.meanings[fact.id]
        asking = [m.content for m in self._said if _FORGET.search(self._quotable[m])]
        return any(known.overlap(_meaning(content)) > 0 or len(_words(content)) <= 4 for content in asking)  # noqa: PLR2004

    # ------------------------------------------------------------------------------------------------ the limit

    def make_room(self) -> None:
        """Retires the least valuable facts beyond the limit; what is new stays, or is held when nothing may go."""
        home = self.batch.scope.home
        alive = [f for f in self.facts.values() if f.id not in self._gone and f.status == "active" and f.scope == home]
        excess = len(alive) - self.gates.max_facts
        if excess <= 0:
            return
        untouched = [f for f in alive if self._place(f) is None and not f.pinned]
        untouched.sort(key=lambda f: (f.category in self.gates.protected, self._value(f), f.created_at, f.id))
        for fact in untouched[:excess]:
            reason = f"evicted: {self.gates.max_facts} facts are kept and its value {self._value(fact):.2f} was least"
            retired = self._retired(fact, reason)
            self.changes.append(Change(kind="retire", reason=reason, fact=retired, expected=fact.version))
        self._hold_last(excess - len(untouched))

    def _hold_last(self, count: int) -> None:
        for place in reversed(range(len(self.changes))):
            change = self.changes[place]
            if count > 0 and change.kind == "add" and change.fact and not change.fact.scope.session:
                held = replace(change.fact, status="held")
                self.changes[place] = replace(change, kind="hold", fact=held, reason="no room: what is kept is pinned")
                count -= 1

    def _value(self, fact: Fact) -> float:
        """0 to 1: confidence .65, confirmations .25 (full at four), use or age .10 (halved each 90 days)."""
        days: float = max((self.batch.now - (fact.last_used_at or fact.created_at)).total_seconds() / 86_400, 0.0)
        return 0.65 * fact.confidence + 0.25 * min(fact.confirmations, 4) / 4 + 0.10 * 0.5 ** (days / 90)

    # ------------------------------------------------------------------------------------------------- bookkeeping

    def _place(self, fact: Fact) -> int | None:
        """Where among the changes one touches this fact."""
        return next((n for n, c in enumerate(self.changes) if c.fact is not None and c.fact.id == fact.id), None)

    def _keep(self, change: Change) -> None:
        self.changes.append(change)
        if change.fact is not None:
            self.facts[change.fact.id] = change.fact
            self.meanings[change.fact.id] = _meaning(change.fact.content)

    def _hold(self, candidate: Candidate, fact: Fact, reason: str) -> None:
        self._keep(
            Change(kind="hold", reason=reason, fact=replace(fact, status="held", reason=reason), candidate=candidate)
        )

    def _reject(self, candidate: Candidate, reason: str) -> None:
        self.changes.append(Change(kind="reject", reason=reason, candidate=candidate))


def _sources(fact: Fact) -> set[str]:
    return {e.message_id for e in fact.evidence if e.message_id}


def _bad_confidence(confidence: float) -> str:
    fine = math.isfinite(confidence) and 0 <= confidence <= 1
    return "" if fine else f"confidence {confidence!r} is not between 0 and 1"


# ------------------------------------------------------------------------------------------- removals and sections


@dataclass(frozen=True, slots=True)
class _Paired:
    candidates: list[Candidate]
    left: list[Removal]


def _paired(extraction: Extraction, work: _Work) -> _Paired:
    """Each removal given to the candidate that speaks of the same, so that nothing goes without its successor."""
    candidates, left = list(extraction.candidates), []
    spoken = [_meaning(candidate.content) for candidate in candidates]
    for removal in {r.fact_id: r for r in extraction.removals}.values():
        known = work.meanings.get(removal.fact_id)
        likeness = [known.overlap(other) if known else 0.0 for other in spoken]
        best = max(range(len(spoken)), key=likeness.__getitem__, default=-1)
        if best >= 0 and likeness[best] >= _REPLACES and spoken[best].plain != (known.plain if known else ""):
            candidates[best] = replace(candidates[best], removes=(*candidates[best].removes, removal.fact_id))
        else:
            left.append(removal)
    return _Paired(candidates, left)


def _section(name: str, summary: str, batch: Batch) -> Change:
    cleaned = text.clean(summary).strip()
    kept = cleaned
    if _UPLOAD.search(cleaned):
        spans = [cleaned[start:end] for start, end in text.sentences(cleaned)]
        kept = " ".join(span for span in spans if not _UPLOAD.search(span))
    present = batch.profile.sections.get(name)
    if name not in SECTIONS:
        problem = "no such section"
    elif not kept:
        problem = "an empty summary replaces nothing"
    elif present is not None and present.summary == kept:
        problem = "unchanged"
    else:
        problem = "" if len(kept) > _LONGEST else junk(kept)
    if problem:
        return Change(kind="reject", reason=f"section {name}: {problem}", section=name, summary=kept)
    return Change(kind="section", reason="the summary changed", section=name, summary=kept)
