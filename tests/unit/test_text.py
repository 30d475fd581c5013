"""What text functions promise, by example, in English and Chinese."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from everlong.errors import InvalidInput
from everlong.text import (
    clauses,
    clean,
    estimate_tokens,
    from_safe_name,
    hash_term,
    normal,
    pack_terms,
    pieces,
    safe_name,
    sentences,
    terms,
    unpack_terms,
)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a\x00b\x07c", "abc"),
        ("tab\tline\r\nend", "tab\tline\r\nend"),
        ("lone \ud800 high", "lone \ufffd high"),
        ("\udc00", "\ufffd"),
        ("pair \ud83d\udc4d", "pair 👍"),
        ("用户喜欢绿茶 👩‍👩‍👧", "用户喜欢绿茶 👩‍👩‍👧"),
    ],
)
def test_clean_leaves_what_any_store_can_keep(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@pytest.mark.parametrize(
    "variant",
    [
        " user prefers vim ",
        "User prefers Vim.",
        "\uff35\uff53\uff45\uff52 prefers Vim",
        '"User  prefers\nVim!"',
        "USER PREFERS VIM。",
    ],
)
def test_duplicates_have_one_normal_form(variant: str) -> None:
    assert normal(variant) == normal("User prefers Vim")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Deploying on Friday is allowed", "Deploying on Friday is not allowed"),
        ("User likes C", "User likes C++"),
        ("User likes C", "User likes C#"),
        ("It is -5 degrees", "It is 5 degrees"),
        ("用户喜欢咖啡", "用户不喜欢咖啡"),
        ("Budget is 3.5", "Budget is 35"),
    ],
)
def test_different_statements_keep_different_normal_forms(left: str, right: str) -> None:
    assert normal(left) != normal(right)


def test_normal_levels_encoding_and_never_empties_a_mark() -> None:
    assert normal("cafe\u0301") == normal("café")
    assert normal("「用户喜欢苹果」。") == normal("用户喜欢苹果")
    assert normal("?") != normal("!")


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("She was running along the rivers", "who runs by a river?"),
        ("The build fails with E-4021", "E-4021"),
        ("Written in C++ mostly", "c++"),
        ("Rules are in CLAUDE.md", "CLAUDE.md"),
        ("Rules are in CLAUDE.md", "claude"),
        ("A multi-agent system", "multi-agents"),
        ("She can't eat nuts", "can\u2019t"),
        ("Reads snake_case names", "snake_case"),
        ("Throughput is 5 GB/s", "GB/s"),
        ("Paid 4,000 dollars", "4000"),
        ("用ESP32做智能家居", "ESP32"),
        ("用ESP32做智能家居", "家居怎么做"),
        ("我养了一只猫", "猫"),
        ("她在北京工作", "在哪里工作"),
        ("Le café est fermé", "cafe"),
        ("\uff23\uff30\uff35 使用率", "cpu"),
        ("コーヒーが好き", "コーヒー"),
        ("고양이를 좋아해요", "고양이"),
        ("Он любит чай", "чай"),
    ],
)
def test_a_question_finds_its_text(text: str, question: str) -> None:
    assert set(terms(question)) & set(terms(text))


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Written in C mostly", "C++"),
        ("The cat is on the mat", "What is the weather in there?"),
        ("我的电脑坏了", "你的生日是什么"),
        ("мои", "мой"),
        ("我知道为什么", "为什么"),
    ],
)
def test_function_words_alone_find_nothing(text: str, question: str) -> None:
    assert not set(terms(question)) & set(terms(text))


def test_words_of_other_scripts_stay_whole() -> None:
    assert terms("हिन्दी भाषा العَربية") == ["हिन्दी", "भाषा", "العَربية"]


def test_terms_keep_every_occurrence_and_negations() -> None:
    assert terms("tea, tea and not coffee") == ["tea", "tea", "not", "coffe"]
    assert "不" in terms("不喜欢")
    assert terms("的了吗 the of") == []


def test_terms_are_the_same_from_many_threads() -> None:
    """A stemmer holds the word it works on; two threads must not meet in it."""
    words = [f"{stem}{end}" for stem in ("walk", "nation", "relat", "hop") for end in ("ing", "ed", "s", "ational")]
    texts = [f"{first} {second}{'x' * n}ing" for first in words for second in words for n in range(3)]
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(terms, texts))
    alone = (
        "import json, sys; from everlong.text import terms; print(json.dumps(list(map(terms, json.load(sys.stdin)))))"
    )
    command = [sys.executable, "-c", alone]
    ran = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout) == got


def test_packed_terms_are_portable() -> None:
    """The hash of a term is written into databases: it may never change."""
    assert hash_term("tea") == int.from_bytes(pack_terms(["tea"]), "little")
    assert pack_terms(["tea", "茶"]).hex() == PINNED
    assert unpack_terms(pack_terms(["tea", "茶", "tea"])).tolist() == [
        hash_term("tea"),
        hash_term("茶"),
        hash_term("tea"),
    ]
    assert unpack_terms(b"").dtype == np.uint64


PINNED = "ba6587c1bb84c49034cc03ce157b1863"


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("", 0, 0),
        ("你好世界" * 25, 60, 130),
        ("あいうえお" * 20, 60, 130),
        ("👍" * 50, 50, 150),
        ("a" * 400, 60, 140),
        ("The quick brown fox jumps over the lazy dog and then sleeps for ten hours. " * 10, 130, 230),
        ("3.14159 2026-12-01", 6, 16),
        (" " * 1000 + "\n" * 200, 1, 200),
        ("def f(x): return {'a': [1, 2]}", 10, 24),
    ],
)
def test_token_estimate_is_near(text: str, least: int, most: int) -> None:
    assert least <= estimate_tokens(text) <= most


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I like tea. You like coffee!", ["I like tea.", "You like coffee!"]),
        ("Dr. Smith paid $3.5 for it. He left.", ["Dr. Smith paid $3.5 for it.", "He left."]),
        ("See https://a.b/c?x=1.2 for e.g. this one. Done", ["See https://a.b/c?x=1.2 for e.g. this one.", "Done"]),
        ('"Really?" she asked. "Yes."', ['"Really?"', "she asked.", '"Yes."']),
        ("We met at 5 p.m. It rained.", ["We met at 5 p.m.", "It rained."]),
        (
            "Tea, nuts etc. are bad. It was I. Then J. Doe left.",
            ["Tea, nuts etc. are bad.", "It was I.", "Then J. Doe left."],
        ),
        ("No. Not room No. 5.", ["No.", "Not room No. 5."]),
        ("1. first\n2. second", ["1. first", "2. second"]),
        ("我喜欢猫。你呢？好吧！", ["我喜欢猫。", "你呢？", "好吧！"]),
        ("她说：“走吧。”然后走了", ["她说：“走吧。”", "然后走了"]),
        ("嗯……好的", ["嗯……好的"]),
        ("我用Python.它很好", ["我用Python.", "它很好"]),
        ("  \n ", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in sentences(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "I live in Rome, but work in Oslo; it is 1,000 km.",
            ["I live in Rome", "but work in Oslo", "it is 1,000 km."],
        ),
        ("我住北京，在上海工作；爱苹果、梨。", ["我住北京", "在上海工作", "爱苹果、梨。"]),
        ("One. Two, three", ["One.", "Two", "three"]),
    ],
)
def test_clauses(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in clauses(text)] == expected


def test_pieces_end_at_sentences_where_they_can() -> None:
    text = "This is one of many sentences. " * 40
    found = pieces(text)
    assert all(piece.endswith(".") and len(piece) <= 600 for piece in found)
    assert " ".join(found) == text.strip()
    assert pieces("short") == ["short"]
    assert pieces(" ") == []
    assert [len(piece) for piece in pieces("字" * 1500)] == [400, 400, 400, 300]


@pytest.mark.parametrize(
    "identifier", ["CON", "con.txt", "a.", ".hidden", "..", "", "A b/ü\\:*?", "用户", "x\ud800", "%41", "nul"]
)
def test_safe_names_are_valid_everywhere_and_read_back(identifier: str) -> None:
    name = safe_name(identifier)
    assert from_safe_name(name) == identifier
    assert name.isascii()
    assert name == name.lower()
    assert not set(name) & set('<>:"/\\|?* ')
    assert name.split(".")[0] not in {"con", "nul", "prn", "aux", ""}
    assert not name.endswith(".")


def test_long_names_are_shortened_apart() -> None:
    left, right = safe_name("用户" * 200 + "a"), safe_name("用户" * 200 + "b")
    assert left != right
    assert max(len(left), len(right)) <= 255
    for wrong in (left, "%zz", "UPPER", "a b", "%c3"):
        with pytest.raises(InvalidInput):
            from_safe_name(wrong)


def test_importing_text_loads_nothing_heavy() -> None:
    code = "import sys, everlong.text; print({'numpy', 'snowballstemmer'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
