"""Extraction by a chat model: one call for a batch, names instead of ids, everything from outside as data."""

from __future__ import annotations

import re
from importlib import resources
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from everlong import text
from everlong.protocols import ChatTurn
from everlong.records import CATEGORIES, SECTIONS, Batch, Candidate, Evidence, Extraction, Message, Removal, Skipped
from everlong.write.answer import Answer, Proposal, parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from everlong.protocols import ChatModel

__all__ = ["SCHEMA", "LLMExtractor"]

_WINDOW: Final = 8_000
_EDGE: Final = 500
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{512,}={0,2}")
_VERSION: Final = re.compile(r"\s*<!-- version: (\S+) -->\s*")


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
SCHEMA: Final[Mapping[str, Any]] = _object(
    newFacts={
        "type": "array",
        "items": _object(
            message={"type": "string"},
            quote={"type": "string"},
            content={"type": "string"},
            category={"type": "string"},
            confidence={"type": "number"},
            valid_from=_DATE,
            valid_until=_DATE,
            session_only={"type": "boolean"},
            replaces=_NAMES,
        ),
    },
    factsToRemove=_NAMES,
    user=_object(**{name: _PART for name, group in SECTIONS.items() if group == "user"}),
    history=_object(**{name: _PART for name, group in SECTIONS.items() if group == "history"}),
)
"""JSON Schema of an answer. Models fill it in this order: evidence before facts, facts before summaries."""


class LLMExtractor:
    """Asks a chat model what to remember.

    Args:
        model: answers one call a batch.
        prompt: the rules, in place of the built-in ones; its version is then ``custom``.
        window_tokens: budget of the messages, in estimated tokens; the newest are kept.
        categories: what the model may choose from.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        prompt: str | None = None,
        window_tokens: int = _WINDOW,
        categories: tuple[str, ...] = CATEGORIES,
    ) -> None:
        built_in = resources.files("everlong.write").joinpath("prompts/update.md").read_text(encoding="utf-8")
        source = built_in if prompt is None else prompt
        header = _VERSION.match(source)
        self._version = header[1] if header else "custom"
        own = [c for c in categories if c not in CATEGORIES]
        extra = f"\nFurther categories: {', '.join(own)}." if own else ""
        self._rules = _VERSION.sub("", source, count=1) + extra
        self._model, self._window = model, window_tokens

    @property
    def name(self) -> str:
        return f"llm:{self._model.name}"

    def extract(self, batch: Batch) -> Extraction:
        """Raises ModelError when the model fails, UnusableExtraction when its answer holds no safe update."""
        turns = (ChatTurn(role="system", content=self._rules), ChatTurn(role="user", content=self._shown(batch)))
        reply = self._model.complete(turns, schema=SCHEMA)
        answer = parse(reply.text)
        messages = {f"m{n}": message for n, message in enumerate(batch.messages, 1)}
        facts = {f"f{n}": fact.id for n, fact in enumerate(batch.facts, 1)}
        unknown = [name for name in _named(answer) if name not in facts]
        return Extraction(
            candidates=tuple(_candidate(fact, messages, facts) for fact in answer.facts),
            sections=answer.sections,
            removals=tuple(Removal(fact_id=facts[name]) for name in answer.removals if name in facts),
            skipped=(*answer.skipped, *(Skipped(reason="it names an unknown fact", raw=name) for name in unknown)),
            extractor=f"{self.name}@{self._version}",
            raw=answer.raw,
            usage=reply.usage,
        )

    def _shown(self, batch: Batch) -> str:
        sections = (f"{name}: {_escaped(s.summary)}" for name, s in batch.profile.sections.items())
        facts = (f"f{n} [{f.category}] {_escaped(f.content)}" for n, f in enumerate(batch.facts, 1))
        context = (_line("-", message, batch.zone) for message in batch.context)
        blocks = [
            f"Now: {batch.now.astimezone(ZoneInfo(batch.zone)):%Y-%m-%d %H:%M %A} ({_escaped(batch.zone)})",
            _block("profile", sections),
            _block("facts", facts),
            _block("known", context),
            _block("conversation", self._newest(batch)),
        ]
        return "\n".join([*blocks, *_hints(batch)])

    def _newest(self, batch: Batch) -> list[str]:
        lines: list[str] = []
        left = self._window
        for n, message in reversed(list(enumerate(batch.messages, 1))):
            line = _line(f"m{n}", message, batch.zone)
            left -= text.estimate_tokens(line)
            if left < 0 and lines:
                break
            lines.append(line)
        return lines[::-1]


def _named(answer: Answer) -> Iterator[str]:
    yield from answer.removals
    for fact in answer.facts:
        yield from fact.replaces


def _candidate(fact: Proposal, messages: Mapping[str, Message], facts: Mapping[str, str]) -> Candidate:
    message = messages.get(fact.message)
    quoted = Evidence(
        message_id=message.id if message else "", quote=fact.quote, session=message.session if message else ""
    )
    return Candidate(
        content=fact.content,
        category=fact.category,
        confidence=fact.confidence,
        evidence=(quoted,) if fact.quote else (),
        valid_from=fact.valid_from,
        valid_until=fact.valid_until,
        session_only=fact.session_only,
        removes=tuple(facts[name] for name in fact.replaces if name in facts),
    )


def _block(tag: str, lines: Iterator[str] | list[str]) -> str:
    return "\n".join([f"<{tag}>", *lines, f"</{tag}>"])


def _line(alias: str, message: Message, zone: str) -> str:
    when = f"{message.created_at.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M %a}"
    role = message.role if message.role == "user" else f"{message.role}, not evidence"
    return f"{alias} [{role}, {when}] {_escaped(_cut(message.content))}"


def _cut(content: str) -> str:
    content = _BASE64.sub("[binary data left out]", content)
    if len(content) <= 4 * _EDGE:
        return content
    return f"{content[:_EDGE]} […{len(content) - 2 * _EDGE} characters left out…] {content[-_EDGE:]}"


def _escaped(content: str) -> str:
    """Readable, on one line, and unable to open or close a block."""
    visible = re.sub("[\u200b-\u200f\u2060\ufeff]", "", content)
    return " ⏎ ".join(visible.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").splitlines())


def _hints(batch: Batch) -> Iterator[str]:
    meanings = {
        "correction": "corrects something: prefer category correction, with what was wrong and what is right",
        "reinforcement": "confirms that something was right: it may be a preference or behavior",
        "remember": "asks for something to be remembered",
    }
    for signal, meaning in meanings.items():
        named = [f"m{n}" for n, message in enumerate(batch.messages, 1) if signal in message.signals]
        if named:
            yield f"Hint: the user {meaning} ({', '.join(named)})."
