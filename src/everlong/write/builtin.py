"""An extractor that needs no model: it keeps, word for word, what a user states about lasting things.

The rules are data (``builtin.toml``). Nothing is rewritten: every candidate is a span of the user's own message.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from everlong import text
from everlong.records import Candidate, Evidence, Extraction, Removal, Skipped
from everlong.write.builtin_dates import resolve
from everlong.write.wish import Wish

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from everlong.records import Batch, Message

_MOST: Final = 5
"""Candidates of one message at most: who states more in one breath is pasting a document."""

_LONGEST: Final = 400
_HEDGED: Final = 0.5
_ASKED: Final = 0.95
_SHORT: Final = 40
_FEW: Final = 3
"""Words of a clause that cannot stand alone: "Germany", "and cake", "two old cats"."""

_FENCED: Final = re.compile(
    r"```.*?(?:```|\Z)|^>[^\n]*$|"
    r"^(?:ai|assistant|bot|chatgpt|claude|gemini|deepseek|助手|机器人|客服)\s?[:：].*?(?=^(?:user|human|me|you|我|用户)\s?[:：]|\Z)",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
"""What a user's message holds of others' words: code, quotations, an assistant's lines of a pasted conversation."""
_JOINED: Final = re.compile(r"\s+(?:and|but|so)\s+(?=(?:i|we|my|our)(?:'\w+)?\s)", re.IGNORECASE)
_ENDS: Final = " \t\r\n.!。！…,，;；"
_ADVICE: Final = re.compile(
    r"\byou(?:r|rself|'re|'ll|'ve)?\b|^(?:just|stay|staying|believe|keep|be|don't|never|always)\b"
)
"""What follows "remember, …" when it is said to comfort: believe in yourself."""
_POINTING: Final = re.compile(r"(?:this|that|it|these|me|一下|这个|这些|这点|那个|它|我)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    name: str
    category: str
    confidence: float
    pattern: re.Pattern[str]
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """The patterns of ``builtin.toml``, compiled."""

    lists: Mapping[str, re.Pattern[str]]
    drops: Mapping[str, re.Pattern[str]]
    unless: Mapping[str, re.Pattern[str]]
    rules: tuple[_Rule, ...]

    def first(self, said: str, *, whole: bool) -> _Rule | None:
        said = self.lists["lead"].sub("", said)
        return next((rule for rule in self.rules if rule.whole == whole and rule.pattern.search(said)), None)

    def dropped(self, said: str) -> str:
        """Why a clause is not kept, or nothing."""
        for reason, pattern in self.drops.items():
            if pattern.search(said) and not (reason in self.unless and self.unless[reason].search(said)):
                return reason
        return "conditional" if self.lists["conditional"].search(said) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Find:
    """A span of a message that a rule keeps, or ``rule`` empty and the ``reason`` why it is left out."""

    start: int
    end: int
    rule: str = ""
    category: str = ""
    confidence: float = 0.0
    reason: str = ""


class BuiltinExtractor:
    """Proposes facts by rules, without any model; for English and Chinese.

    Only user messages are read, sentence by sentence. Confidence: 0.9 and more for what the first person states or
    asks to be remembered, 0.75 for a statement without a subject, 0.5 for a guess. Questions, requests, small talk,
    passing trouble and whatever looks like a secret are left out and listed in ``skipped``.
    """

    name = "builtin"

    def extract(self, batch: Batch) -> Extraction:
        """At most five candidates a message, each a span of it; the same batch always gives the same answer."""
        candidates: list[Candidate] = []
        removals: list[Removal] = []
        skipped: list[Skipped] = []
        for message in batch.messages:
            if message.role != "user":
                continue
            if "forget" in message.signals:
                chosen, unclear = Wish(message.content).chosen(batch.facts)
                removals += [Removal(fact_id=fact.id, reason=_shortened(message.content)) for fact in chosen]
                if unclear:
                    skipped.append(Skipped(reason="which fact shall be forgotten is unclear", raw=message.content))
                continue
            kept, dropped = _read(message, batch.zone)
            candidates.extend(kept)
            skipped.extend(dropped)
        return Extraction(
            candidates=tuple(candidates), removals=tuple(removals), skipped=tuple(skipped), extractor=self.name
        )


def _shortened(said: str) -> str:
    line = " ".join(said.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _read(message: Message, zone: str) -> tuple[list[Candidate], list[Skipped]]:
    content = message.content
    plain = _FENCED.sub(_blank, content)
    lowered = _lowered(plain)
    finds = [find for span in text.sentences(plain) for find in _sentence(lowered, *span)]
    kept = [_candidate(message, find, zone) for find in finds if find.rule][:_MOST]
    dropped = [Skipped(reason=find.reason, raw=_shown(content, find)) for find in finds if find.reason]
    return kept, dropped


def _lowered(plain: str) -> str:
    """In lower case with every character in its place (a few letters would become two)."""
    lowered = plain.lower()
    if len(lowered) != len(plain):
        lowered = "".join(low if len(low := letter.lower()) == 1 else letter for letter in plain)
    return lowered.replace("’", "'")


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _shown(content: str, find: _Find) -> str:
    """What was left out, for diagnosis; never a secret."""
    return "" if find.reason == "looks like a secret" else content[find.start : find.end][:200]


def _candidate(message: Message, find: _Find, zone: str) -> Candidate:
    content = message.content[find.start : find.end]
    valid_from, valid_until = resolve(content, message.created_at, zone)
    return Candidate(
        content=content,
        category=find.category,
        confidence=find.confidence,
        origin=message.origin,
        evidence=(Evidence(message_id=message.id, quote=content, session=message.session),),
        valid_from=valid_from,
        valid_until=valid_until,
        reason=f"built-in rule: {find.rule}",
    )


# ----------------------------------------------------------------------------------------------- one sentence


def _sentence(said: str, start: int, end: int) -> list[_Find]:
    """What a sentence gives: a whole when it commands or corrects, else clause by clause."""
    rules = _load()
    start = _skip(rules.lists["cut"], said, start, end)
    if rules.lists["secret"].search(said, start, end):
        return _clauses(rules, said, start, end)
    find = _commanded(rules, said, start, end) or _corrected(rules, said, start, end)
    if find is None and not rules.drops["question"].search(said[start:end]):
        find = _kept(rules.first(said[start:end], whole=True), said, start, end)
    return [find] if find else _clauses(rules, said, start, end)


def _commanded(rules: _Rules, said: str, start: int, end: int) -> _Find | None:
    """What follows "remember that …"."""
    match = rules.lists["command"].match(said, start, end)
    if not match:
        return None
    body = said[match.end() : end].rstrip(_ENDS + "?？")
    if match[0].startswith(("can", "could", "will", "would")) or not rules.drops["question"].search(said[start:end]):
        if match[0].rstrip().endswith(",") and _ADVICE.search(body):
            return _Find(start=start, end=end, reason="advice, not a thing to remember")
        if _POINTING.fullmatch(body):
            return _Find(start=start, end=end, reason="nothing said to remember")
        rule = rules.first(body, whole=True) or rules.first(body, whole=False)
        task = bool(re.search(r"forget to |remember to |忘了|忘记|记得", match[0])) and rule is None
        category = rule.category if rule else "todo" if task else "context"
        return _Find(
            start=match.end(),
            end=match.end() + len(body),
            rule="asked to remember",
            category=category,
            confidence=_ASKED,
        )
    return None


def _corrected(rules: _Rules, said: str, start: int, end: int) -> _Find | None:
    """A correction without its "no, …" in front."""
    begin = _skip(rules.lists["wrong"], said, start, end)
    body = said[begin:end].rstrip(_ENDS)
    if not body or rules.drops["question"].search(said[start:end]):
        return None
    statement = rules.first(body, whole=False) or rules.lists["contrast"].search(body)
    if begin == start and not rules.lists["contrast"].search(body):
        return None
    if not statement and not re.match(r"use |it |应该|是|要|用", body):
        return None
    return _Find(start=begin, end=begin + len(body), rule="correction", category="correction", confidence=_ASKED)


def _clauses(rules: _Rules, said: str, start: int, end: int) -> list[_Find]:
    finds: list[_Find] = []
    for first, last in _parts(said, start, end):
        begin = _skip(rules.lists["cut"], said, first, last)
        find = _clause(rules, said, begin, last)
        if finds and finds[-1].rule and not (find and find.rule) and _continues(rules, said[begin:last], find):
            finds[-1] = _longer(finds[-1], said, last)
        elif find:
            finds.append(find)
    return finds


def _parts(said: str, start: int, end: int) -> list[tuple[int, int]]:
    parts = []
    for first, last in text.clauses(said[start:end]):
        begin = start + first
        for match in _JOINED.finditer(said, begin, start + last):
            parts.append((begin, match.start()))
            begin = match.end()
        parts.append((begin, start + last))
    return parts


def _clause(rules: _Rules, said: str, start: int, end: int) -> _Find | None:
    body = said[start:end].rstrip(_ENDS)
    end = start + len(body)
    if not body:
        return None
    if rules.lists["secret"].search(body):
        return _Find(start=start, end=end, reason="looks like a secret")
    whole = rules.first(body, whole=True)
    reason = "" if whole else rules.dropped(body)
    if reason:
        return _Find(start=start, end=end, reason=reason)
    return _kept(whole or rules.first(body, whole=False), said, start, end)


def _kept(rule: _Rule | None, said: str, start: int, end: int) -> _Find | None:
    if rule is None:
        return None
    body = said[start:end].rstrip(_ENDS)
    if len(body) > _LONGEST:
        return _Find(start=start, end=end, reason="too long for one statement")
    hedged = _load().lists["hedge"].search(body)
    return _Find(
        start=start,
        end=start + len(body),
        rule=f"{rule.name}, a guess" if hedged else rule.name,
        category=rule.category,
        confidence=_HEDGED if hedged else rule.confidence,
    )


def _continues(rules: _Rules, body: str, find: _Find | None) -> bool:
    """Whether a clause only completes the one before: it says so itself, or has hardly a word."""
    if find is not None or len(body) > _SHORT:
        return False
    bare = body.isascii() and len(body.split()) <= _FEW
    return bare or bool(rules.lists["continuation"].search(body))


def _longer(find: _Find, said: str, end: int) -> _Find:
    body = said[find.start : end].rstrip(_ENDS)
    return _Find(
        start=find.start,
        end=find.start + len(body),
        rule=find.rule,
        category=find.category,
        confidence=find.confidence,
    )


def _skip(pattern: re.Pattern[str], said: str, start: int, end: int) -> int:
    """Where the text begins once everything that ``pattern`` finds at its start is passed over."""
    while (match := pattern.match(said, start, end)) and match.end() > start:
        start = match.end()
    return start


# ------------------------------------------------------------------------------------------------------ rules


@cache
def _load() -> _Rules:
    data = tomllib.loads(resources.files("everlong.write").joinpath("builtin.toml").read_text("utf-8"))
    lists = ("cut", "lead", "command", "wrong", "contrast", "hedge", "conditional", "continuation", "secret")
    return _Rules(
        lists={name: _compiled(data[name]) for name in lists},
        drops={reason: _compiled(languages) for reason, languages in data["drop"].items()},
        unless={reason: _compiled(languages) for reason, languages in data["unless"].items()},
        rules=tuple(_rule(entry) for entry in data["rule"]),
    )


def _rule(entry: dict[str, Any]) -> _Rule:
    return _Rule(
        name=entry["name"],
        category=entry["category"],
        confidence=entry["confidence"],
        pattern=_compiled({key: value for key, value in entry.items() if isinstance(value, list)}),
        whole=entry.get("whole", False),
    )


def _compiled(languages: Mapping[str, Sequence[str]]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for patterns in languages.values() for pattern in patterns))
