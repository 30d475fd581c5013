"""The search cache: exact scores, fresh at every question, never out of scope, within its budget."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from math import log, log1p
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everlong.errors import SchemaMismatch
from everlong.records import Scope
from everlong.search import BucketIndex
from everlong.search.postings import Postings
from everlong.store import open_store
from everlong.testing import CountingIds, FakeClock
from everlong.testing.samples import indexed, message
from everlong.text import terms

if TYPE_CHECKING:
    from everlong.protocols import Corpus, Index

ANN = Scope(user="ann")
CODER = Scope(user="ann", agent="coder")
BOB = Scope(user="bob")
MODEL = "m1"
DIMENSIONS = 8
NAMED = ("session", "speaker", "role", "category")
NAMES = ("sessions", "speakers", "roles", "categories")
TEXTS = [
    "Ann prefers tea over coffee",
    "Ann's cat is called Miso, and the cat likes tea",
    "用户喜欢喝绿茶，不喜欢咖啡",
    "她养了一只猫",
    "The deployment failed with E-4021 in CLAUDE.md",
    "Running every morning by the river",
    "她在北京工作",
    "tea tea tea tea",
]


def unit(seed: int, *, pieces: int = 1) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Unit vectors that depend on the seed alone."""
    found = np.random.default_rng(seed).standard_normal((pieces, DIMENSIONS)).astype(np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def vectors(seed: int, *, pieces: int = 1, model: str = MODEL) -> dict[str, bytes]:
    """Stored vectors of one row."""
    return {model: unit(seed, pieces=pieces).tobytes()}


@pytest.fixture
def index() -> BucketIndex:
    """An empty cache."""
    return BucketIndex(model=MODEL, dimensions=DIMENSIONS)


def fill(shelf: Any, scope: Scope = ANN) -> None:
    """Every text as a fact."""
    for number, text in enumerate(TEXTS):
        shelf.put(scope, f"f{number}", text, vectors=vectors(number, pieces=1 + number % 3))


def plain_bm25(texts: list[str], question: str) -> list[float]:
    """BM25 as the books have it, slowly."""
    bags = [Counter(terms(text)) for text in texts]
    typical = sum(sum(bag.values()) for bag in bags) / len(bags)
    scores = []
    for bag in bags:
        score = 0.0
        for term in set(terms(question)):
            df = sum(term in other for other in bags)
            idf = log(1 + (len(bags) - df + 0.5) / (df + 0.5))
            score += idf * bag[term] * 2.2 / (bag[term] + 1.2 * (0.25 + 0.75 * sum(bag.values()) / typical))
        scores.append(score)
    return scores


def same(left: Corpus, right: Corpus) -> None:
    """Two corpora answer everything alike."""
    assert list(left.ids) == list(right.ids)
    for ordinals, names in zip(NAMED, NAMES, strict=True):
        assert [getattr(left, names)[o] for o in getattr(left, ordinals)] == [
            getattr(right, names)[o] for o in getattr(right, ordinals)
        ]
    for name in ("created", "length", "question", "confidence"):
        assert np.array_equal(getattr(left, name), getattr(right, name)), name
    for text in TEXTS:
        np.testing.assert_allclose(left.bm25(terms(text)), right.bm25(terms(text)), rtol=1e-5)
        np.testing.assert_allclose(left.coverage(terms(text)), right.coverage(terms(text)), rtol=1e-5)
    np.testing.assert_allclose(left.cosine(unit(1)[0]), right.cosine(unit(1)[0]), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("question", ["tea", "cat tea", "猫", "喜欢咖啡吗", "E-4021", "running", "absent words only"])
def test_bm25_is_exact(shelf: Any, index: Index, question: str) -> None:
    """Scores equal the formula's, in English and Chinese."""
    fill(shelf)
    got = index.corpus(shelf, ANN, "fact").bm25(terms(question))
    np.testing.assert_allclose(got, plain_bm25(TEXTS, question), rtol=1e-5)


def test_bm25_over_several_buckets_uses_the_frequencies_of_all(shelf: Any, index: Index) -> None:
    """A union scores like one bucket that holds everything."""
    for number, text in enumerate(TEXTS):
        shelf.put(ANN if number % 2 else CODER, f"f{number}", text)
    corpus = index.corpus(shelf, CODER, "fact")
    expected = dict(zip((f"f{n}" for n in range(len(TEXTS))), plain_bm25(TEXTS, "cat tea 猫"), strict=True))
    np.testing.assert_allclose(corpus.bm25(terms("cat tea 猫")), [expected[i] for i in corpus.ids], rtol=1e-5)
    assert list(corpus.ids) == ["f1", "f3", "f5", "f7", "f0", "f2", "f4", "f6"], "widest bucket first"


def test_coverage_is_the_idf_share_of_terms_found(shelf: Any, index: Index) -> None:
    """Rare terms weigh more; words that no row has count against every row; repeats count once. Fifty blank rows are
    imagined beside the real ones."""
    for number, text in enumerate(["apple pear", "apple", "plum"]):
        shelf.put(ANN, f"f{number}", text)
    corpus = index.corpus(shelf, ANN, "fact")
    apple, pear, absent = (log1p((53 - df + 0.5) / (df + 0.5)) for df in (2, 1, 0))
    got = corpus.coverage(terms("apple apple pear zebra"))
    total = apple + pear + absent
    np.testing.assert_allclose(got, [(apple + pear) / total, apple / total, 0], rtol=1e-5)
    assert corpus.coverage(terms("apple pear"))[0] == pytest.approx(1)


def test_cosine_takes_the_best_piece_and_nan_without_vectors(shelf: Any, index: Index) -> None:
    """Rows have none, one or several pieces; other models' vectors are as good as none."""
    shelf.put(ANN, "one", "one", vectors=vectors(1))
    shelf.put(ANN, "none", "none")
    shelf.put(ANN, "many", "many", vectors=vectors(2, pieces=4))
    shelf.put(ANN, "other", "other model", vectors=vectors(3, model="m2"))
    question = unit(9)[0]
    got = index.corpus(shelf, ANN, "fact").cosine(question)
    assert got[0] == pytest.approx(float(unit(1)[0] @ question), abs=1e-6)
    assert got[2] == pytest.approx(float((unit(2, pieces=4) @ question).max()), abs=1e-6)
    assert np.isnan(got[[1, 3]]).all()


def test_cosine_over_many_rows_equals_a_plain_product(shelf: Any, index: Index) -> None:
    """Computing in blocks changes no score, whatever remains after the last whole block."""
    for number in range(1500):
        shelf.put(ANN, f"f{number:04}", "x", vectors=vectors(number))
    matrix = np.concatenate([unit(number) for number in range(1500)])
    got = index.corpus(shelf, ANN, "fact").cosine(unit(7)[0])
    np.testing.assert_allclose(got, matrix @ unit(7)[0], atol=1e-6)


def test_vectors_that_are_not_unit_are_normalised(shelf: Any, index: Index) -> None:
    """What is called cosine is one."""
    shelf.put(ANN, "long", "x", vectors={MODEL: (unit(1) * 5).tobytes()})
    assert index.corpus(shelf, ANN, "fact").cosine(unit(1)[0])[0] == pytest.approx(1, abs=1e-5)


def test_vectors_of_another_width_are_refused(shelf: Any, index: Index) -> None:
    """The same model name with other dimensions is an error, not garbage."""
    shelf.put(ANN, "bad", "x", vectors={MODEL: b"\x00" * 20})
    with pytest.raises(SchemaMismatch, match="8 dimensions"):
        index.corpus(shelf, ANN, "fact")


def test_without_an_embedder_words_still_find(shelf: Any) -> None:
    """No dimensions: no cosine, also where rows hold vectors of some model."""
    fill(shelf)
    corpus = BucketIndex(model="", dimensions=0).corpus(shelf, ANN, "fact")
    assert np.isnan(corpus.cosine(unit(1)[0])).all()
    assert corpus.bm25(terms("猫"))[3] > 0


def test_nothing_stored_gives_an_empty_corpus(shelf: Any, index: Index) -> None:
    """Every array has no rows and every question an empty answer."""
    corpus = index.corpus(shelf, ANN, "fact")
    assert (corpus.size, list(corpus.ids), list(corpus.sessions)) == (0, [], [])
    assert corpus.cosine(unit(1)[0]).shape == corpus.bm25(["tea"]).shape == corpus.coverage([]).shape == (0,)
    assert corpus.created.shape == (0,)


def test_changes_are_seen_by_the_next_question_through_deltas(shelf: Any, index: BucketIndex) -> None:
    """A new, a rewritten and a retired row; only what changed is read, and the result is as if loaded anew."""
    fill(shelf)
    index.corpus(shelf, ANN, "fact")
    shelf.put(ANN, "new", "a new fact about tea", vectors=vectors(50))
    shelf.put(ANN, "f1", "rewritten: 喜欢红茶", vectors=vectors(51, pieces=2), category="goal")
    shelf.put(ANN, "f2", TEXTS[2], live=False)
    after = index.corpus(shelf, ANN, "fact")
    assert shelf.loads == [(ANN, 0), (ANN, len(TEXTS))]
    assert "f2" not in after.ids
    assert "new" in after.ids
    same(after, BucketIndex(model=MODEL, dimensions=DIMENSIONS).corpus(shelf, ANN, "fact"))


def test_an_unchanged_bucket_is_not_read_again(shelf: Any, index: Index) -> None:
    """Warm questions share one snapshot without copying."""
    fill(shelf)
    first = index.corpus(shelf, ANN, "fact")
    second = index.corpus(shelf, ANN, "fact")
    assert first.created is second.created
    assert first.ids is second.ids
    assert len(shelf.loads) == 1


def test_a_search_keeps_its_snapshot_and_cannot_harm_others(shelf: Any, index: Index) -> None:
    """Later writes do not move a corpus in use, and its arrays refuse writing."""
    fill(shelf)
    before = index.corpus(shelf, ANN, "fact")
    ids, scores = list(before.ids), before.bm25(["tea"]).copy()
    shelf.put(ANN, "f0", "nothing", live=False)
    index.corpus(shelf, ANN, "fact")
    assert (list(before.ids), before.bm25(["tea"]).tolist()) == (ids, scores.tolist())
    with pytest.raises(ValueError, match="read-only"):
        before.created[0] = 0


def test_erased_rows_are_gone(shelf: Any, index: BucketIndex) -> None:
    """A new epoch loads anew; a bucket that vanished leaves the memory too."""
    fill(shelf)
    index.corpus(shelf, ANN, "fact")
    shelf.erase(ANN, "f3")
    assert "f3" not in index.corpus(shelf, ANN, "fact").ids
    assert shelf.loads[-1] == (ANN, 0)
    del shelf.states[ANN, "fact"]
    assert index.corpus(shelf, ANN, "fact").size == 0
    assert index.nbytes == 0


def test_a_shrunk_revision_loads_anew(shelf: Any, index: Index) -> None:
    """As after a restored backup: what the store says now is what is searched."""
    shelf.put(ANN, "kept", "tea")
    older = dict(shelf.states)
    shelf.put(ANN, "lost", "tea")
    index.corpus(shelf, ANN, "fact")
    shelf.states = older
    del shelf.kept[ANN, "fact"]["lost"]
    assert list(index.corpus(shelf, ANN, "fact").ids) == ["kept"]


def test_forget_drops_buckets_within_a_scope(shelf: Any, index: BucketIndex) -> None:
    """All of a user's, whatever the agent; nobody else's."""
    for scope in (ANN, CODER, BOB):
        fill(shelf, scope)
        index.corpus(shelf, scope, "fact")
    whole = index.nbytes
    index.forget(ANN)
    assert 0 < index.nbytes < whole / 2
    shelf.loads.clear()
    index.corpus(shelf, BOB, "fact")
    assert shelf.loads == []


def test_the_budget_evicts_the_least_recently_used(shelf: Any) -> None:
    """Memory stays within the budget, and answers stay right."""
    scopes = [Scope(user=f"u{number}") for number in range(10)]
    for scope in scopes:
        fill(shelf, scope)
    probe = BucketIndex(model=MODEL, dimensions=DIMENSIONS)
    probe.corpus(shelf, scopes[0], "fact")
    index = BucketIndex(model=MODEL, dimensions=DIMENSIONS, budget_bytes=probe.nbytes * 3)
    for scope in scopes:
        index.corpus(shelf, scopes[0], "fact")
        assert index.corpus(shelf, scope, "fact").size == len(TEXTS)
        assert index.nbytes <= index.budget_bytes
    shelf.loads.clear()
    index.corpus(shelf, scopes[0], "fact")
    assert shelf.loads == []
    index.corpus(shelf, scopes[1], "fact")
    assert shelf.loads == [(scopes[1], 0)]


def test_what_a_question_looks_at_is_kept_even_beyond_the_budget(shelf: Any, caplog: Any) -> None:
    """All kinds of it, until somebody else asks; the log says once what to set."""
    for kind in ("fact", "message"):
        shelf.put(ANN, f"茶 {kind}", "茶 tea", kind, session="talk")
        shelf.put(BOB, f"b {kind}", "tea", kind, session="talk")
    tiny = BucketIndex(model=MODEL, dimensions=DIMENSIONS, budget_bytes=1)
    for _ in range(3):
        for kind in ("fact", "message"):
            assert tiny.corpus(shelf, ANN, kind).size == 1
    assert shelf.loads == [(ANN, 0), (ANN, 0)]
    assert tiny.corpus(shelf, BOB, "fact").size == 1
    assert tiny.corpus(shelf, ANN, "fact").size == 1
    assert shelf.loads[2:] == [(BOB, 0), (ANN, 0)]
    warned = [each.getMessage() for each in caplog.records]
    assert len(warned) == 1
    assert f"set index_bytes to {2 * 1024 * 1024}" in warned[0]


def test_messages_of_one_id_in_two_conversations_are_two(tmp_path: Any) -> None:
    """Also when one of them changes: vectors that come later, and another message beside."""
    store = open_store(f"sqlite:///{tmp_path / 'a.db'}", clock=FakeClock(), new_id=CountingIds())
    index = BucketIndex(model="m", dimensions=3)
    talk, walk = (Scope(user="ann", session=name) for name in ("talk", "走"))

    def found() -> list[tuple[str, str, bool]]:
        with store.read() as tx:
            corpus = index.corpus(tx, ANN, "message")
            known = ~np.isnan(corpus.cosine(np.array([1, 0, 0], np.float32)))
            named = [corpus.sessions[each] for each in corpus.session.tolist()]
            return sorted(zip(named, corpus.ids, known.tolist(), strict=True))

    with store.write() as tx:
        for place in (talk, walk):
            tx.messages.append(place, [message("same", place)], [indexed("茶 tea")])
    assert found() == [("talk", "same", False), ("走", "same", False)]
    with store.write() as tx:
        assert tx.messages.set_vectors(walk, "same", indexed("茶 tea", model="m", vectors=[[1, 0, 0]]))
    assert found() == [("talk", "same", False), ("走", "same", True)]
    store.close()


def test_order_is_position_then_creation_then_id(shelf: Any, index: Index) -> None:
    """Whatever the order of writing."""
    at = datetime(2026, 5, 1, tzinfo=UTC)
    shelf.put(ANN, "b", "x", created_at=at, position=2)
    shelf.put(ANN, "late", "x", created_at=at + timedelta(days=1), position=1)
    index.corpus(shelf, ANN, "fact")
    shelf.put(ANN, "a", "x", created_at=at, position=2)
    shelf.put(ANN, "early", "x", created_at=at, position=1)
    assert list(index.corpus(shelf, ANN, "fact").ids) == ["early", "late", "a", "b"]
    shelf.put(ANN, "late", "changed", created_at=at, position=2)
    shelf.put(ANN, "c", "x", created_at=at, position=2, live=False)
    assert list(index.corpus(shelf, ANN, "fact").ids) == ["early", "a", "b", "late"]


def test_kinds_are_kept_apart(shelf: Any, index: Index) -> None:
    """Messages are not facts."""
    shelf.put(ANN, "f", "tea")
    shelf.put(ANN, "m", "tea", kind="message", session="s1", speaker="Ann", position=1)
    corpus = index.corpus(shelf, ANN, "message")
    assert list(corpus.ids) == ["m"]
    assert (corpus.sessions[corpus.session[0]], corpus.speakers[corpus.speaker[0]]) == ("s1", "Ann")


def test_many_threads_ask_while_one_writes(shelf: Any, index: Index) -> None:
    """Every answer is a state that was true: rows f0…fn without a hole."""
    wrong: list[list[str]] = []

    def ask() -> None:
        for _ in range(150):
            ids = list(index.corpus(shelf, ANN, "fact").ids)
            if ids != [f"f{number:04}" for number in range(len(ids))]:
                wrong.append(ids)

    threads = [Thread(target=ask) for _ in range(4)]
    for number in range(200):
        shelf.put(ANN, f"f{number:04}", "tea", vectors=vectors(number), position=number)
        if number == 20:
            [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert wrong == []
    assert index.corpus(shelf, ANN, "fact").size == 200


PART = st.sampled_from(["", "a", "b", "ab", "*", "%", "用户"])
SCOPE = st.builds(Scope, org=PART, agent=PART, user=PART, session=PART)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kept=st.lists(SCOPE, max_size=8), asked=SCOPE)
def test_nothing_leaves_its_scope(shelf: Any, kept: list[Scope], asked: Scope) -> None:
    """Even from a store that answers with every bucket it has, a question sees those that cover it and no more."""
    shelf = type(shelf)(leaky=True)
    for number, scope in enumerate(kept):
        shelf.put(scope, f"f{number}", "tea")
    fresh = BucketIndex(model=MODEL, dimensions=DIMENSIONS)
    for asking in (*kept, asked):
        seen = set(fresh.corpus(shelf, asking, "fact").ids)
        assert seen == {f"f{number}" for number, scope in enumerate(kept) if scope.covers(asking)}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10_000))
def test_deltas_equal_a_load(shelf: Any, seed: int) -> None:
    """Any history of adding, rewriting, retiring and embedding gives what a cold start gives."""
    draw = random.Random(seed)
    shelf, index = type(shelf)(), BucketIndex(model=MODEL, dimensions=DIMENSIONS)
    for step in range(25):
        given_vectors = vectors(step, pieces=draw.randint(1, 3)) if draw.random() < 0.7 else None
        shelf.put(
            draw.choice((ANN, CODER)),
            f"f{draw.randint(0, 9)}",
            draw.choice(TEXTS),
            live=draw.random() < 0.8,
            vectors=given_vectors,
            position=draw.randint(0, 5),
            session=draw.choice(("s1", "s2")),
            speaker=draw.choice(("Ann", "李雷")),
        )
        if draw.random() < 0.4:
            index.corpus(shelf, CODER, "fact")
    cold = BucketIndex(model=MODEL, dimensions=DIMENSIONS)
    same(index.corpus(shelf, CODER, "fact"), cold.corpus(shelf, CODER, "fact"))


def test_a_bucket_that_grows_answers_like_one_loaded_whole(shelf: Any, index: BucketIndex) -> None:
    """The latest rows stand apart from the others until they are many; whatever changes in either part, the answers
    are those of one part."""
    said = 0
    for step, count in enumerate((1, 300, 3, 4000, 1, 1, 200, 300, 2)):
        for row in range(said, said + count):
            text = TEXTS[row % len(TEXTS)]
            shelf.put(ANN, f"m{row:05}", text, kind="message", session=f"s{row // 9}", position=row + 1)
        said += count
        index.corpus(shelf, ANN, "message")
        for changed in (said - 1, said // 2):
            where = {"session": f"s{changed // 9}", "position": changed + 1}
            shelf.put(ANN, f"m{changed:05}", "changed 猫", kind="message", vectors=vectors(changed), **where)
        gone = said // 3
        where = {"session": f"s{gone // 9}", "position": gone + 1}
        shelf.put(ANN, f"m{gone:05}", "", kind="message", live=step % 2 == 0, **where)
        fresh = BucketIndex(model=MODEL, dimensions=DIMENSIONS)
        same(index.corpus(shelf, ANN, "message"), fresh.corpus(shelf, ANN, "message"))


def test_two_terms_alike_in_all_but_their_last_bits_are_two() -> None:
    """Their postings do not flow together, in however many rows they stand."""
    near = [np.array([1 << 63, (1 << 63) + 1, 5], "<u8"), np.array([(1 << 63) + 1], "<u8")]
    made = Postings.build([each.tobytes() for each in near])
    found = [made.rows[place].tolist() for place in made.find(np.array([1 << 63, (1 << 63) + 1, 5, 6], np.uint64))]
    assert found == [[0], [0, 1], [0], []]
