"""Extraction in small steps, for small models: facts of one message, then one pair of facts, then one paragraph."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from everlong import text
from everlong.errors import ModelError, UnusableExtraction
from everlong.records import CATEGORIES, Batch, Candidate, Extraction, Skipped, Usage
from everlong.write.answer import parse, read_object
from everlong.write.builtin_dates import resolve
from everlong.write.llm import WINDOW, candidate
from everlong.write.prompt import Prompt, escaped, load, moment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from everlong.protocols import ChatModel
    from everlong.records import Fact, Message

__all__ = ["SplitExtractor"]

_MOST_FACTS: Final = 5
_LONGEST: Final = 300
"""Facts in one message, and characters in each: a small model that is not held to an end repeats itself for ever."""
_MOST_PAIRS: Final = 3
"""Known facts that one new fact is compared with."""
_IN_FACT: Final = 150
_IN_SECTION: Final = 600
_SURE: Final = 0.7
"""Confidence from which a fact may enter a paragraph."""
_SHRINKS: Final = 0.5
"""A new paragraph shorter than this share of the present one has lost what was known, and is left out."""
_SECTION_OF: Final = {
    "knowledge": "workContext",
    "preference": "personalContext",
    "behavior": "personalContext",
    "context": "topOfMind",
    "goal": "topOfMind",
    "todo": "topOfMind",
    "conclusion": "topOfMind",
}
_RELATION: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"relation": {"type": "string", "enum": ["replaces", "same", "both"]}},
    "required": ["relation"],
    "additionalProperties": False,
}
_SUMMARY: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"summary": {"type": "string", "maxLength": 1000}},
    "required": ["summary"],
    "additionalProperties": False,
}


def _facts_schema(categories: Sequence[str]) -> Mapping[str, Any]:
    fact = {
        "quote": {"type": "string", "maxLength": _LONGEST},
        "content": {"type": "string", "maxLength": _LONGEST},
        "category": {"type": "string", "enum": list(categories)},
        "confidence": {"type": "number"},
    }
    item = {"type": "object", "properties": fact, "required": list(fact), "additionalProperties": False}
    return {
        "type": "object",
        "properties": {"facts": {"type": "array", "items": item, "maxItems": _MOST_FACTS}},
        "required": ["facts"],
        "additionalProperties": False,
    }


@dataclass(slots=True)
class _Run:
    """What one extraction has asked, got and spent so far."""

    candidates: list[Candidate] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    usable: int = 0


class SplitExtractor:
    """Asks a small chat model in small steps: one call for each message of the user, one for each pair of a new and a
    known fact that share words, one for each paragraph of the profile that new facts belong to.

    Takes the arguments of :class:`~everlong.write.llm.LLMExtractor`; ``prompts`` may hold ``facts.md``,
    ``contradiction.md`` and ``summary.md``. When a fact holds is read from its quote by rules, as small models cannot.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        prompts: Path | None = None,
        window_tokens: int = WINDOW,
        categories: Sequence[str] = CATEGORIES,
    ) -> None:
        self._model, self._window, self._schema = model, window_tokens, _facts_schema(categories)
        self._facts, self._pair, self._paragraph = (load(n, prompts) for n in ("facts", "contradiction", "summary"))

    @property
    def name(self) -> str:
        """``split:`` and the model's name."""
        return f"split:{self._model.name}"

    def extract(self, batch: Batch) -> Extraction:
        """Raises ModelError when the model fails, UnusableExtraction when none of its answers holds facts."""
        run = _Run()
        said = [m for m in batch.messages if m.role == "user" and "trivial" not in m.signals]
        try:
            for message in said:
                self._read(run, message, batch.zone)
            if said and not run.usable:
                raise UnusableExtraction("none of its answers holds facts", "\n".join(run.raw))
            found = [replace(c, removes=self._replaced(run, c, batch.facts)) for c in run.candidates]
            sections = self._sections(run, batch, found)
        except ModelError as error:
            error.usage = run.usage + (error.usage or Usage())
            raise
        return Extraction(
            candidates=tuple(found),
            sections=sections,
            skipped=tuple(run.skipped),
            extractor=self.name,
            prompt=" ".join(prompt.label for prompt in (self._facts, self._pair, self._paragraph)),
            raw="\n".join(run.raw),
            usage=run.usage,
        )

    def _ask(self, run: _Run, prompt: Prompt, asked: str, schema: Mapping[str, Any]) -> str:
        reply = self._model.complete(prompt.turns(asked), schema=schema)
        run.usage += reply.usage
        run.raw.append(text.clean(reply.text))
        return run.raw[-1]

    def _read(self, run: _Run, message: Message, zone: str) -> None:
        shown = escaped(message.content, self._window, self._window // 2)
        try:
            answer = self._ask(run, self._facts, f"[{moment(message.created_at, zone)}] {shown}", self._schema)
            found = parse(answer, zone=zone)
        except UnusableExtraction as error:
            run.skipped.append(Skipped(reason=f"{message.id}: {error.reason}", raw=error.raw[:200]))
            return
        except ModelError as error:
            # The endpoint did answer, but refused or was cut off: that would happen again, and costs this message only.
            if error.usage is None:
                raise
            run.usage += error.usage
            run.skipped.append(Skipped(reason=f"{message.id}: {error}"))
            return
        run.usable += 1
        run.skipped.extend(found.skipped)
        for said in found.facts:
            standing = bool(said.quote.strip()) and text.normal(said.quote) in text.normal(message.content)
            if not standing and self._facts.repeats(said.content):
                run.skipped.append(Skipped(reason="an echo of the prompt", raw=said.content))
                continue
            # A quote that is not there is no evidence; the words of the fact itself may still be found.
            quoted = said if standing else replace(said, quote="")
            since, until = resolve(quoted.quote, message.created_at, zone)
            run.candidates.append(
                replace(candidate(quoted, message, {}), valid_from=since, valid_until=until),
            )

    def _replaced(self, run: _Run, new: Candidate, known: Sequence[Fact]) -> tuple[str, ...]:
        """The known facts that cannot be true beside the new one, of those that share the most words with it."""
        words = set(text.terms(new.content))
        shared = {fact.id: len(words & set(text.terms(fact.content))) for fact in known}
        near = sorted((f for f in known if shared[f.id]), key=lambda fact: -shared[fact.id])[:_MOST_PAIRS]
        return tuple(fact.id for fact in near if self._contradicts(run, fact, new))

    def _contradicts(self, run: _Run, fact: Fact, new: Candidate) -> bool:
        asked = f"old: {escaped(fact.content, _IN_FACT)}\nnew: {escaped(new.content, _IN_FACT)}"
        relation: object = read_object(self._ask(run, self._pair, asked, _RELATION), "relation")
        return relation == "replaces"

    def _sections(self, run: _Run, batch: Batch, found: Sequence[Candidate]) -> dict[str, str]:
        grouped: dict[str, list[str]] = {}
        for each in found:
            if each.evidence and each.confidence >= _SURE and each.category in _SECTION_OF:
                grouped.setdefault(_SECTION_OF[each.category], []).append(each.content)
        written = {}
        for name, facts in grouped.items():
            section = batch.profile.sections.get(name)
            present = section.summary if section else ""
            lines = [f"present: {escaped(present, _IN_SECTION)}", *(f"new: {escaped(f, _IN_FACT)}" for f in facts)]
            summary = read_object(self._ask(run, self._paragraph, "\n".join(lines), _SUMMARY), "summary")
            if isinstance(summary, str) and summary.strip() and len(summary) >= _SHRINKS * len(present):
                written[name] = summary
            else:
                run.skipped.append(Skipped(reason=f"section {name} would lose what was known", raw=repr(summary)[:200]))
        return written
