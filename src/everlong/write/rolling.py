"""Summaries that move with time: top of mind becomes recent months, then earlier, then background. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from everlong import text
from everlong.records import Change

if TYPE_CHECKING:
    from datetime import datetime

    from everlong.records import Profile

__all__ = ["Rolling", "rolled"]

_ORDER: Final = ("topOfMind", "recentMonths", "earlierContext", "longTermBackground")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rolling:
    """After how many days without a change a section moves on (0: never), and how many characters one may hold: the
    oldest sentences over that move on at once, and out of the last section altogether. The days are what the names of
    the sections say (a month, about four months, a year); an eighth of a prompt block of 2,000 tokens is 1,000
    characters of English."""

    top: int = 30
    recent: int = 120
    earlier: int = 365
    characters: int = 1000


def rolled(profile: Profile, now: datetime, rules: Rolling) -> list[Change]:
    """One change for each section that gives or takes sentences, whole and unchanged, a section's first being its
    oldest. Earlier states stay in the profile's history."""
    days = dict(zip(_ORDER, (rules.top, rules.recent, rules.earlier, 0), strict=True))
    before = {name: _sentences(profile.sections[name].summary if name in profile.sections else "") for name in _ORDER}
    after = {name: list(sentences) for name, sentences in before.items()}
    reasons: dict[str, str] = {}
    for place, name in enumerate(_ORDER):
        section = profile.sections.get(name)
        old = section is not None and days[name] and now - section.updated_at >= timedelta(days=days[name])
        # What has just arrived from the section before is new here: only what stood here before moves on by age.
        aged = before[name] if old else []
        leaving = [*aged, *_over([s for s in after[name] if s not in aged], rules.characters)]
        if not leaving:
            continue
        after[name] = [sentence for sentence in after[name] if sentence not in leaving]
        target = _ORDER[place + 1] if place + 1 < len(_ORDER) else ""
        why = f"unchanged for {days[name]} days" if old else f"over {rules.characters} characters"
        reasons[name] = f"{why}: {len(leaving)} sentences move to {target or 'history'}"
        if target:
            after[target] += [sentence for sentence in leaving if sentence not in after[target]]
            reasons.setdefault(target, f"{len(leaving)} sentences come from {name}")
    return [
        Change(kind="section", section=name, summary=_joined(after[name]), reason=reasons[name])
        for name in _ORDER
        if after[name] != before[name]
    ]


def _sentences(summary: str) -> list[str]:
    return list(dict.fromkeys(s for start, end in text.sentences(summary) if (s := summary[start:end].strip())))


def _over(sentences: list[str], most: int) -> list[str]:
    """The oldest sentences beyond ``most`` characters; the latest one always stays."""
    leaving, size = [], len(_joined(sentences))
    for sentence in sentences[:-1]:
        if size <= most:
            break
        leaving.append(sentence)
        size -= len(sentence)
    return leaving


def _joined(sentences: list[str]) -> str:
    """Sentences as one paragraph: with a space between them, but none after a Chinese full stop."""
    paragraph = ""
    for sentence in sentences:
        gap = "" if not paragraph or paragraph[-1] in "。！？；" else " "
        paragraph += gap + sentence
    return paragraph
