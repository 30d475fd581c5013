"""Time, ids, counting and models: what comes from outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    import numpy as np
    from numpy.typing import NDArray

    from everlong.records import Batch, Extraction, Usage

    Vectors = NDArray[np.float32]


class Clock(Protocol):
    """Where the time comes from: returns now, aware, in UTC."""

    def __call__(self) -> datetime: ...


class NewId(Protocol):
    """Makes an opaque id that was never made before, such as ``fact_0k3…``; sorts by creation time."""

    def __call__(self, prefix: str, /) -> str: ...


class TokenCounter(Protocol):
    """Counts the tokens a model would see in a text; never touches the network."""

    def __call__(self, text: str, /) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What one model's cosines mean. ``unrelated`` is a cosine at which texts have nothing to do with each other
    (maps to score 0), ``related`` one at which they surely do (maps to 1), ``duplicate`` one above which two
    statements say the same unless they differ in a number, date, name or negation."""

    unrelated: float
    related: float
    duplicate: float


class Embedder(Protocol):
    """Turns texts into unit vectors. ``model`` names the vector space: rows of another model are never compared."""

    @property
    def model(self) -> str: ...
    @property
    def dimensions(self) -> int: ...
    @property
    def calibration(self) -> Calibration: ...

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Unit vectors, shape ``(len(texts), dimensions)``, float32. ``query`` marks questions, for models that
        treat them differently.

        Raises:
            ModelError: the model failed or gave an unusable answer (wrong shape, NaN).
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTurn:
    """One message for a chat model."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """A chat model's answer, complete (a truncated one raises), and what it cost."""

    text: str
    usage: Usage
    model: str = ""


class ChatModel(Protocol):
    """Answers a list of messages. ``name`` says which model it is, for records and traces."""

    @property
    def name(self) -> str: ...

    def complete(self, turns: Sequence[ChatTurn], *, schema: Mapping[str, Any] | None = None) -> ChatReply:
        """The whole answer. ``schema`` (JSON Schema) asks for JSON of that shape where the endpoint can do it;
        the caller validates all the same.

        Raises:
            ModelError: no answer, a refusal, a truncated answer (``finish_reason`` length) or a time-out.
        """
        ...

    def stream(self, turns: Sequence[ChatTurn]) -> Any:
        """An iterator over pieces of the answer's text."""
        ...


class Extractor(Protocol):
    """Proposes what to remember from new messages. Pure but for its model; stores nothing."""

    @property
    def name(self) -> str: ...

    def extract(self, batch: Batch) -> Extraction:
        """Raises :class:`~everlong.errors.ModelError` when the work should be tried again later."""
        ...
