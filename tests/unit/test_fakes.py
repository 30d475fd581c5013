"""The fakes keep to their protocols, so that a test that uses them proves something."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import numpy as np
import pytest

from everlong.errors import ModelError
from everlong.protocols import ChatTurn
from everlong.testing import CountingIds, FakeClock, ScriptedChatModel, TableEmbedder

if TYPE_CHECKING:
    from everlong.protocols import ChatModel, Clock, Embedder, NewId

ASK = [ChatTurn(role="user", content="what does Ann drink")]


def test_they_are_what_the_protocols_say() -> None:
    clock: Clock = FakeClock()
    new_id: NewId = CountingIds()
    embedder: Embedder = TableEmbedder({}, 4)
    model: ChatModel = ScriptedChatModel()
    assert all((clock(), new_id("x"), embedder.model, model.name))


def test_the_clock_moves_only_when_told() -> None:
    clock = FakeClock(datetime(2026, 1, 1, 8, tzinfo=timezone(timedelta(hours=8))))
    start = datetime(2026, 1, 1, tzinfo=UTC)
    assert (clock(), clock(), clock().tzinfo) == (start, start, UTC)
    assert clock.advance(90) == clock() == start + timedelta(seconds=90)
    clock.set(start)
    assert clock() == start


def test_a_ticking_clock_never_shows_one_time_twice() -> None:
    clock = FakeClock(tick=0.5)
    assert clock() + timedelta(seconds=0.5) == clock()


def test_ids_sort_by_creation_over_all_prefixes() -> None:
    new_id = CountingIds()
    assert [new_id("fact"), new_id("job"), new_id("fact")] == ["fact_000001", "job_000002", "fact_000003"]
    assert CountingIds("a")("fact") == "fact_a000001"


def test_table_vectors_have_the_chosen_cosine_and_others_are_drawn_from_the_text() -> None:
    embedder = TableEmbedder({"tea": [1, 0, 0, 0], "茶": [3, 4, 0, 0]}, 4)
    tea, cha, other = embedder.embed(["tea", "茶", "rain"])
    assert float(tea @ cha) == pytest.approx(0.6)
    assert float(other @ other) == pytest.approx(1.0)
    assert np.array_equal(TableEmbedder({}, 4).embed(["rain"])[0], other)
    assert embedder.embed([]).shape == (0, 4)
    assert embedder.embed(["x"]).dtype == np.float32


def test_a_table_row_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match="4 numbers"):
        TableEmbedder({"tea": [1, 0]}, 4)


def test_the_model_says_its_script_and_then_fails() -> None:
    model = ScriptedChatModel(["tea, always", ModelError("time-out")])
    reply = model.complete(ASK, schema={"type": "object"})
    assert (reply.text, reply.usage.input_tokens, reply.usage.output_tokens) == ("tea, always", 4, 2)
    with pytest.raises(ModelError, match="time-out"):
        model.complete(ASK)
    with pytest.raises(ModelError, match="no answer left"):
        model.complete(ASK)
    assert model.prompts == [tuple(ASK)] * 3
    assert model.schemas == [{"type": "object"}, None, None]
    model.say("green  tea")
    assert "".join(model.stream(ASK)) == "green  tea"


def test_a_held_model_answers_when_released() -> None:
    model = ScriptedChatModel(["tea"], held=True)
    got: list[str] = []
    caller = threading.Thread(target=lambda: got.append(model.complete(ASK).text))
    caller.start()
    assert model.asked.wait(5)
    assert got == []
    model.release()
    caller.join(5)
    assert got == ["tea"]
