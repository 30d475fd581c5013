"""K1: a threshold keeps the worst and drops the best, or a word in common beats every meaning: mem0ai/mem0#4453,
mem0ai/mem0#6883, agiresearch/A-mem#23, CortexReach/memory-lancedb-pro#978."""

from __future__ import annotations

import pytest

from everlong.testing.fakes import TableEmbedder
from tests.unit.read.desk import Desk

COSINES = {"the same": 1.0, "close by": 0.8, "far off": 0.3, "the reverse": -0.5}


@pytest.mark.parametrize("question", ["question", "问题"])
def test_a_threshold_keeps_the_nearest_in_order(question: str) -> None:
    table = {name: [cosine, (1 - cosine**2) ** 0.5] for name, cosine in COSINES.items()}
    desk = Desk(TableEmbedder({question: [1.0, 0.0], **table}, 2))
    for name in reversed(COSINES):
        desk.know(name)
    assert desk.found(question, min_score=0.65) == ["the same", "close by"]
    scores = [hit.score for hit in desk.ask(question, min_score=0.0).hits]
    assert len(scores) == len(COSINES)
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert scores[-1] == 0


@pytest.mark.parametrize(
    ("question", "words", "meaning"),
    [
        ("zebra crossing paint", "zebra crossing paint " * 30, "white stripes on the road"),
        ("斑马线油漆", "斑马线油漆" * 30, "路上的白色条纹"),
    ],
)
def test_a_row_of_words_alone_is_never_certain(question: str, words: str, meaning: str) -> None:
    table = {question: [1.0, 0.0], meaning: [0.95, 0.3122], words.strip(): [0.0, 1.0]}
    table |= {f"filler {number}": [0.01, 1.0] for number in range(60)}
    desk = Desk(TableEmbedder(table, 2))
    desk.know(words.strip())
    desk.know(meaning)
    for number in range(60):
        desk.know(f"filler {number}", days=3)
    scores = {hit.text: hit.score for hit in desk.ask(question, min_score=0.1).hits}
    assert list(scores) == [meaning, words.strip()]
    assert scores[meaning] > scores[words.strip()]
    assert scores[words.strip()] <= 0.7


@pytest.mark.parametrize("memory", [3, 300])
def test_a_score_means_the_same_in_a_small_and_in_a_large_memory(memory: int) -> None:
    desk = Desk(TableEmbedder({"question": [1.0, 0.0], "answer": [0.6, 0.8]}, 2))
    desk.know("answer")
    for number in range(memory):
        desk.know(f"filler {number}")
    scores = {hit.text: hit.score for hit in desk.ask("question", min_score=0.0, limit=memory + 1).hits}
    assert scores["answer"] == pytest.approx(0.6 * 0.85, abs=0.01)


def test_scores_never_rise_down_the_list() -> None:
    desk = Desk()
    for speaker in ("Ann", "Bob"):
        desk.say("the zebra crossing got new paint", speaker=speaker)
        desk.say("paint for the zebra, paint for the crossing, all new", speaker=speaker, session="t2")
        desk.say("new shoes", speaker=speaker, session="t2")
    scores = [hit.score for hit in desk.ask("what new paint did Bob see on the zebra crossing", min_score=0.0).hits]
    assert len(scores) > 3
    assert scores == sorted(scores, reverse=True)
