"""How a budget is divided between the layers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from everlong.read.compose import Material, Shares, compose
from everlong.read.formats import FORMATS
from everlong.records import SECTIONS, Context, Fact, Hit, MemoryFile, Message, Profile, Scope, Section
from everlong.text import estimate_tokens

NOW = datetime(2026, 5, 4, 20, tzinfo=UTC)
ANN = Scope(user="ann")
LONG = "Ann talked at length about the tidy and steady progress of her work. " * 34


def facts(count: int, text: str = "Ann likes the colour of package {}", category: str = "preference") -> list[Fact]:
    return [
        Fact(id=f"{category}{n}", scope=ANN, content=text.format(n), created_at=NOW, updated_at=NOW, category=category)
        for n in range(count)
    ]


def turns(count: int, text: str = "We spoke of package {} for a while", prefix: str = "m") -> list[Message]:
    return [
        Message(
            id=f"{prefix}{n}",
            scope=ANN,
            session="s",
            role="user",
            content=text.format(n),
            created_at=NOW + timedelta(n),
        )
        for n in range(count)
    ]


def hits(count: int) -> list[Hit]:
    return [Hit(kind="message", id=m.id, score=0.5, record=m) for m in turns(count, "Once, package {} came", "h")]


def a_file(path: str, text: str) -> MemoryFile:
    return MemoryFile(scope=ANN, path=path, content=text.encode(), created_at=NOW, updated_at=NOW)


PROFILE = Profile(scope=ANN, sections={name: Section(summary=LONG, updated_at=NOW) for name in SECTIONS})


def block(material: Material, budget: int = 2000, look: str = "deerflow", **options: object) -> Context:
    return compose(material, budget=budget, counter=estimate_tokens, look=look, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("look", [*FORMATS])
@pytest.mark.parametrize("budget", [600, 2000, 8000])
def test_every_layer_has_its_share_when_all_are_long(look: str, budget: int) -> None:
    everything = Material(
        profiles=[PROFILE], files=[a_file("/AGENTS.md", "be kind to everyone\n" * 500)], facts=facts(400),
        turns=hits(400), recent=turns(400),
    )  # fmt: skip
    made = block(everything, budget, look)
    assert budget * 0.85 <= made.tokens <= budget
    tokens = {name: estimate_tokens("\n".join(lines)) / budget for name, lines in made.layers.items()}
    assert 0.3 < tokens["static_facts"] < 0.51
    assert 0.15 < tokens["extracted_facts"] < 0.4
    assert 0.1 < tokens["conversation_history"] < 0.35
    assert "be kind" in made.stable
    assert "Once, package 0 came" in made.text
    assert "package 399 for" in made.text


@pytest.mark.parametrize("look", [*FORMATS])
def test_corrections_are_sure_of_their_tokens_and_take_no_more(look: str) -> None:
    rules = facts(200, "Call package {} by its own name, never by another", "correction")
    made = block(Material(facts=[*facts(50), *rules], recent=turns(50)), 2000, look)
    shown = [line for line in made.layers["extracted_facts"] if "by its own name" in line]
    assert 300 < estimate_tokens("\n".join(shown)) <= 500
    assert any("likes the colour" in line for line in made.layers["extracted_facts"])
    narrow = block(Material(facts=[*facts(50), *rules], recent=turns(50)), 2000, look, shares=Shares(corrections=100))
    assert sum("by its own name" in line for line in narrow.layers["extracted_facts"]) < len(shown)


def test_what_one_layer_leaves_another_takes() -> None:
    only_facts = block(Material(facts=facts(400)), 1000)
    assert only_facts.tokens > 900
    few = block(Material(facts=facts(400), recent=turns(1)), 1000)
    assert few.tokens > 900
    assert few.layers["conversation_history"]


def test_files_come_whole_or_as_their_first_lines_and_it_is_said() -> None:
    lines = "\n".join(f"rule {n}: be kind" for n in range(300))
    made = block(Material(files=[a_file("/a.md", lines), a_file("/b.md", "short")]), 500)
    shown = [line for line in made.text.splitlines() if line.startswith("|")]
    assert shown[:2] == ["| rule 0: be kind", "| rule 1: be kind"]
    assert shown[-1] == "| short"
    assert all(line.endswith("be kind") for line in shown[:-1])
    assert [(each.what, each.reason) for each in made.omitted] == [
        ("file /a.md", "shortened to its share of the budget")
    ]


@pytest.mark.parametrize("content", [b"\xff\xfe\x00bad", b"x" * 3_000_000, ("长" * 900_000).encode()])
def test_no_file_breaks_a_block(content: bytes) -> None:
    odd = MemoryFile(scope=ANN, path="/odd", content=content, created_at=NOW, updated_at=NOW)
    made = block(Material(files=[odd], facts=facts(2)), 500)
    assert made.tokens <= 500
    assert "package 1" in made.text


def test_narrower_profiles_have_the_last_word() -> None:
    wide = Profile(scope=Scope(), attributes={"tone": "formal", "lang": "en"})
    narrow = Profile(scope=ANN, attributes={"tone": "warm", "allergies": ["nuts", "贝类"], "vip": True})
    made = block(Material(profiles=[wide, narrow]))
    assert made.layers["static_facts"] == (
        "- allergies: nuts, 贝类",
        "- lang: en",
        "- tone: warm",
        "- vip: true",
    )


def test_summaries_are_cut_at_sentences() -> None:
    made = block(Material(profiles=[PROFILE]), 400)
    assert all(line.endswith("her work.") for line in made.layers["static_facts"])
    assert {each.what for each in made.omitted} == {f"section {name}" for name in SECTIONS}
