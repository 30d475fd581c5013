"""Clock, ids and models that do what the test says; each keeps to its protocol in :mod:`everlong.protocols`."""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from everlong.errors import ModelError
from everlong.protocols import Calibration, ChatReply, ChatTurn
from everlong.records import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from everlong.protocols import Vectors

__all__ = ["CountingIds", "FakeClock", "ScriptedChatModel", "TableEmbedder"]

_START: Final = datetime(2026, 1, 1, tzinfo=UTC)


class FakeClock:
    """A clock that stands still until it is moved.

    Args:
        start: what it shows at first; aware.
        tick: seconds by which it moves on after each look, for tests that need distinct times.
    """

    def __init__(self, start: datetime = _START, *, tick: float = 0.0) -> None:
        self._lock = threading.Lock()
        self._now = start.astimezone(UTC)
        self._tick = timedelta(seconds=tick)

    def __call__(self) -> datetime:
        with self._lock:
            now = self._now
            self._now += self._tick
            return now

    def advance(self, seconds: float) -> datetime:
        """Moves on by ``seconds`` and returns the new time."""
        with self._lock:
            self._now += timedelta(seconds=seconds)
            return self._now

    def set(self, now: datetime) -> None:
        """Shows ``now`` from here on."""
        with self._lock:
            self._now = now.astimezone(UTC)


class CountingIds:
    """``fact_000001``, ``fact_000002``, ``job_000003``: one count over all prefixes, so ids sort by creation.

    Args:
        label: stands before the count, to keep the ids of several processes apart.
    """

    def __init__(self, label: str = "") -> None:
        self._lock = threading.Lock()
        self._label = label
        self._made = 0

    def __call__(self, prefix: str, /) -> str:
        with self._lock:
            self._made += 1
            return f"{prefix}_{self._label}{self._made:06d}"


class TableEmbedder:
    """Vectors from a table, so that a test chooses every cosine.

    A text that is not in the table gets a unit vector drawn with the text as seed: the same in every process, and
    near cosine 0 to all others when ``dimensions`` is large. Table rows are scaled to length 1.

    Args:
        table: vector by exact text.
        dimensions: length of every vector.
        model: name of the vector space.
        calibration: what the cosines mean; by default 0 is unrelated, 1 related, 0.95 a duplicate.
    """

    def __init__(
        self,
        table: Mapping[str, Sequence[float]],
        dimensions: int,
        *,
        model: str = "table",
        calibration: Calibration | None = None,
    ) -> None:
        self._table = {text: _unit(np.asarray(vector, dtype=np.float32), dimensions) for text, vector in table.items()}
        self.dimensions = dimensions
        self.model = model
        self.calibration = calibration or Calibration(unrelated=0.0, related=1.0, duplicate=0.95)
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:  # noqa: ARG002 (same for questions)
        """Unit vectors of ``texts``; what was asked is kept in ``embedded``."""
        self.embedded.extend(texts)
        rows = [self._table[text] if text in self._table else self._seeded(text) for text in texts]
        return np.stack(rows) if rows else np.empty((0, self.dimensions), dtype=np.float32)

    def _seeded(self, text: str) -> Vectors:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        drawn = np.random.default_rng(seed).standard_normal(self.dimensions)
        return _unit(drawn.astype(np.float32), self.dimensions)


def _unit(vector: Vectors, dimensions: int) -> Vectors:
    length = float(np.linalg.norm(vector))
    if vector.shape != (dimensions,) or length == 0.0:
        msg = f"a vector must have {dimensions} numbers and not be zero"
        raise ValueError(msg)
    return vector / np.float32(length)


class ScriptedChatModel:
    """A chat model that says what it was told to, in order, and remembers what it was asked.

    Args:
        answers: texts to give or exceptions to raise, one a call; after the last, every call raises ModelError.
        held: start held, so that calls wait until :meth:`release`.
        name: which model it claims to be.

    ``prompts`` and ``schemas`` hold the arguments of every call so far; ``asked`` is set while one has begun.
    """

    def __init__(self, answers: Iterable[str | Exception] = (), *, held: bool = False, name: str = "scripted") -> None:
        self.name = name
        self.prompts: list[tuple[ChatTurn, ...]] = []
        self.schemas: list[Mapping[str, Any] | None] = []
        self.asked = threading.Event()
        self._answers = deque(answers)
        self._lock = threading.Lock()
        self._gate = threading.Event()
        if not held:
            self._gate.set()

    def say(self, *answers: str | Exception) -> None:
        """Adds to what it will say."""
        with self._lock:
            self._answers.extend(answers)

    def hold(self) -> None:
        """Lets calls wait from now on."""
        self._gate.clear()
        self.asked.clear()

    def release(self) -> None:
        """Lets waiting calls go on."""
        self._gate.set()

    def complete(self, turns: Sequence[ChatTurn], *, schema: Mapping[str, Any] | None = None) -> ChatReply:
        """The next answer, at the cost of a token for each word."""
        with self._lock:
            self.prompts.append(tuple(turns))
            self.schemas.append(schema)
            answer = self._answers.popleft() if self._answers else ModelError("the script has no answer left")
        self.asked.set()
        self._gate.wait()
        if isinstance(answer, Exception):
            raise answer
        asked = sum(len(turn.content.split()) for turn in turns)
        usage = Usage(calls=1, input_tokens=asked, output_tokens=len(answer.split()))
        return ChatReply(text=answer, usage=usage, model=self.name)

    def stream(self, turns: Sequence[ChatTurn]) -> Iterator[str]:
        """The next answer, word by word."""
        for number, word in enumerate(self.complete(turns).text.split(" ")):
            yield f" {word}" if number else word
