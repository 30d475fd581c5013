"""What text functions promise for any text at all."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from everlong.text import (
    clauses,
    clean,
    estimate_tokens,
    from_safe_name,
    normal,
    pack_terms,
    pieces,
    safe_name,
    sentences,
    terms,
    unpack_terms,
)

ANY = st.text(st.characters(exclude_categories=()), max_size=120)
PROSE = st.lists(
    st.sampled_from(
        ["Ann", "likes", "tea", ". ", "? ", ", ", "用户", "喜欢", "。", "，", "\n", "3.5", " ", "e.g. ", "x" * 50]
    )
).map("".join)
quick = settings(max_examples=150, deadline=None)


@quick
@given(ANY)
def test_no_text_breaks_anything(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode("utf-8")
    assert clean(cleaned) == cleaned
    assert "\x00" not in cleaned
    assert estimate_tokens(text) >= bool(text.strip())
    normal(text)
    assert len(unpack_terms(pack_terms(terms(text)))) == len(terms(text))
    clauses(text)


@quick
@given(ANY)
def test_terms_do_not_see_case_or_spacing(text: str) -> None:
    assert terms(f" \n{text} ") == terms(text)
    assert terms(text.upper()) == terms(text.upper().lower()) or not text.isascii()


@quick
@given(st.one_of(ANY, PROSE))
def test_sentences_and_clauses_lose_nothing_but_blanks_and_commas(text: str) -> None:
    for spans, lost in ((sentences(text), ""), (clauses(text), "，,；;")):
        assert all(start < end for start, end in spans)
        assert all(before[1] <= after[0] for before, after in pairwise(spans))
        covered = {place for start, end in spans for place in range(start, end)}
        assert all(c.isspace() or c in lost for place, c in enumerate(text) if place not in covered)


@quick
@given(PROSE.map(lambda text: text * 9), st.integers(20, 80))
def test_pieces_hold_the_whole_text_in_order(text: str, size: int) -> None:
    found = pieces(text, limit=size + 20, size=size)
    assert "".join("".join(found).split()) == "".join(text.split())
    assert all(len(piece) <= size + 20 for piece in found)


@quick
@given(st.lists(ANY, min_size=2, max_size=8, unique=True))
def test_safe_names_are_one_to_one(identifiers: list[str]) -> None:
    names = [safe_name(identifier) for identifier in identifiers]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 255 for name in names)
    assert all("%-" in name or from_safe_name(name) == each for name, each in zip(names, identifiers, strict=True))
