"""A document as text for a prompt, and what messages signal, by DeerFlow's names."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from everlong.integrations.deerflow.document import checked, facts_of, sections_of
from everlong.read.compose import Material, compose
from everlong.read.formats import format_of
from everlong.records import Profile, Scope
from everlong.text import estimate_tokens
from everlong.write.capture import capture

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from everlong.protocols import TokenCounter

__all__ = ["BODY", "detect_correction", "detect_reinforcement", "format_memory_for_injection"]

BODY: Final = replace(format_of("deerflow"), name="deerflow-body", open="", close="")
"""DeerFlow's look without the frame, which the host puts round it."""
_LATEST: Final = 6


def format_memory_for_injection(
    memory_data: Mapping[str, Any], max_tokens: int = 2000, *, counter: TokenCounter = estimate_tokens
) -> str:
    """A document as the body of a prompt block: user, history, then facts, corrections first and the surest next, as far as
    ``max_tokens`` reach; whole sentences and whole facts only. Empty when there is nothing to say.

    Raises:
        InvalidInput: it is no document.
    """
    data, now = checked(memory_data), datetime.now(UTC)
    profile = Profile(scope=Scope(), sections=sections_of(data, now))
    facts = sorted(facts_of(data, Scope(), now), key=lambda fact: -fact.confidence)
    return compose(Material(profiles=[profile], facts=facts), budget=max_tokens, counter=counter, look=BODY).text


def detect_correction(messages: Iterable[Any]) -> bool:
    """Whether the user corrects something in one of the last six messages; English and Chinese, and plain phrases of others."""
    return _signalled("correction", messages)


def detect_reinforcement(messages: Iterable[Any]) -> bool:
    """Whether the user confirms that something was right in one of the last six messages."""
    return _signalled("reinforcement", messages)


def _signalled(signal: str, messages: Iterable[Any]) -> bool:
    here = Scope(user="any", session="any")
    latest = list(messages)[-_LATEST:]
    said = capture(
        latest, session=here, tail=(), now=datetime.now(UTC), new_id=lambda prefix: f"{prefix}_{id(object())}"
    )
    return any(signal in message.signals for message in said.messages if message.role == "user")
