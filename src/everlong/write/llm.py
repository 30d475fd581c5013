"""Extraction by a chat model in one call: aliases instead of ids, everything from outside as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from everlong.errors import UnusableExtraction
from everlong.records import CATEGORIES, SECTIONS, Batch, Candidate, Evidence, Extraction, Removal, Skipped
from everlong.write.answer import parse
from everlong.write.prompt import block, escaped, fitting, line, load

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from everlong.protocols import ChatModel
    from everlong.records import Fact, Message, Profile
    from everlong.write.answer import Answer, Statement

__all__ = ["WINDOW", "LLMExtractor", "candidate", "shown_facts"]

WINDOW: Final = 8_000
"""Tokens of new messages in one call; a message alone takes half of it at most."""
_IN_CONTEXT: Final = 100
_IN_FACT: Final = 150
_IN_SECTION: Final = 600
_IN_ATTRIBUTE: Final = 50
_IMPORTANCE: Final[Mapping[str, float]] = {"lasting": 0.7, "current": 0.5, "brief": 0.3}
_HINTS: Final = {
    "correction": "corrects something: prefer category correction, with what was wrong and what is right",
    "reinforcement": "confirms that something was right: it may be a preference or behavior",
    "remember": "asks for something to be remembered",
    "forget": "asks for something to be forgotten: name the facts it is about in factsToRemove, and make no new fact of it",
    "finished": "says that something is done: a todo or goal in <facts> that it was is replaced by what is true now",
}


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_DATE: Final = {"type": ["string", "null"]}
_NAMES: Final = {"type": "array", "items": {"type": "string"}}
_PART: Final = _object(shouldUpdate={"type": "boolean"}, summary={"type": "string"})


def _schema(categories: Sequence[str]) -> Mapping[str, Any]:
    """JSON Schema of an answer. Models fill it in this order: evidence before facts, facts before summaries."""
    fact = _object(
        message={"type": "string"},
        quote={"type": "string"},
        content={"type": "string"},
        category={"type": "string", "enum": list(categories)},
        confidence={"type": "number"},
        valid_from=_DATE,
        valid_until=_DATE,
        scope={"type": "string", "enum": ["user", "agent", "conversation"]},
        durability={"type": "string", "enum": list(_IMPORTANCE)},
        replaces=_NAMES,
    )
    groups = {
        group: _object(**{name: _PART for name, holder in SECTIONS.items() if holder == group})
        for group in ("user", "history")
    }
    return _object(newFacts={"type": "array", "items": fact}, factsToRemove=_NAMES, **groups)


class LLMExtractor:
    """Asks a chat model what to remember, one call a batch; for models that can write the whole update at once.

    Args:
        model: answers.
        prompts: a folder whose ``update.md`` replaces the built-in rules.
        window_tokens: budget of the new messages, in estimated tokens; what does not fit is left for the next call.
        categories: what the model may choose from.

    Raises:
        ConfigError: the rules cannot be read.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        prompts: Path | None = None,
        window_tokens: int = WINDOW,
        categories: Sequence[str] = CATEGORIES,
    ) -> None:
        self._prompt = load("update", prompts)
        own = [c for c in categories if c not in CATEGORIES]
        self._extra = f"\n\nFurther categories: {', '.join(own)}." if own else ""
        self._model, self._window, self._schema = model, window_tokens, _schema(categories)

    @property
    def name(self) -> str:
        """``llm:`` and the model's name."""
        return f"llm:{self._model.name}"

    def extract(self, batch: Batch) -> Extraction:
        """Raises ModelError when the model fails, UnusableExtraction when its answer holds no safe update."""
        lines = fitting(batch.messages, batch.zone, self._window)
        reply = self._model.complete(self._prompt.turns(_asked(batch, lines), extra=self._extra), schema=self._schema)
        try:
            answer = parse(reply.text, zone=batch.zone)
        except UnusableExtraction as error:
            error.usage = reply.usage
            raise
        messages = {f"m{n}": message for n, message in enumerate(batch.messages[: len(lines)], 1)}
        facts = {f"f{n}": fact.id for n, fact in enumerate(batch.facts, 1)}
        said = [s for s in answer.facts if not self._echoes(s, messages)]
        echoes = [Skipped(reason="an echo of the prompt", raw=s.content) for s in answer.facts if s not in said]
        unknown = [Skipped(reason="it names an unknown fact", raw=n) for n in _named(answer) if n not in facts]
        return Extraction(
            candidates=tuple(candidate(s, messages.get(s.message), facts) for s in said),
            sections=answer.sections,
            removals=tuple(Removal(fact_id=facts[name]) for name in answer.removals if name in facts),
            skipped=(*answer.skipped, *echoes, *unknown),
            extractor=self.name,
            prompt=self._prompt.label,
            taken=len(lines),
            raw=answer.raw,
            usage=reply.usage,
        )

    def _echoes(self, said: Statement, messages: Mapping[str, Message]) -> bool:
        """Whether a statement only repeats the prompt: its words stand there, its quote in no message."""
        quoted = bool(said.quote) and any(said.quote in m.content for m in messages.values())
        return not quoted and self._prompt.repeats(said.content)


def candidate(said: Statement, message: Message | None, facts: Mapping[str, str]) -> Candidate:
    """A statement of a model as a candidate; ``facts`` maps aliases to ids."""
    quoted = Evidence(
        message_id=message.id if message else "", quote=said.quote, session=message.session if message else ""
    )
    metadata = {"durability": said.durability} if said.durability in _IMPORTANCE else {}
    if said.scope == "agent":
        metadata["about"] = "agent"
    return Candidate(
        content=said.content,
        category=said.category,
        confidence=said.confidence,
        importance=_IMPORTANCE.get(said.durability, 0.5),
        evidence=(quoted,) if said.quote else (),
        valid_from=said.valid_from,
        valid_until=said.valid_until,
        session_only=said.scope == "conversation",
        removes=tuple(facts[name] for name in said.replaces if name in facts),
        metadata=metadata,
    )


def _named(answer: Answer) -> Iterator[str]:
    yield from answer.removals
    for said in answer.facts:
        yield from said.replaces


def _asked(batch: Batch, lines: Sequence[str]) -> str:
    now = f"{batch.now.astimezone(ZoneInfo(batch.zone)):%Y-%m-%d %H:%M %A}"
    blocks = [
        f"Now: {now} ({batch.zone})",
        block("profile", _profile(batch.profile)),
        block("facts", shown_facts(batch.facts)),
        block("known", (line("-", message, batch.zone, _IN_CONTEXT) for message in batch.context)),
        block("conversation", lines),
    ]
    return "\n".join([*blocks, *_hints(batch.messages[: len(lines)])])


def _profile(profile: Profile) -> Iterator[str]:
    for name, value in profile.attributes.items():
        yield f"{escaped(str(name), _IN_ATTRIBUTE)}: {escaped(str(value), _IN_ATTRIBUTE)}"
    for name, section in profile.sections.items():
        yield f"{name}: {escaped(section.summary, _IN_SECTION)}"


def shown_facts(facts: Sequence[Fact]) -> list[str]:
    """A line for each fact, named by its place: ``f1``, ``f2`` and so on."""
    return [f"f{n} [{fact.category}] {escaped(fact.content, _IN_FACT)}" for n, fact in enumerate(facts, 1)]


def _hints(messages: Sequence[Message]) -> Iterator[str]:
    for signal, meaning in _HINTS.items():
        named = [f"m{n}" for n, message in enumerate(messages, 1) if signal in message.signals]
        if named:
            yield f"Hint: the user {meaning} ({', '.join(named)})."
