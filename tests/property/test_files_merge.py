"""What a merge of three versions promises, for any texts; and that edits never touch what they do not name."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everlong.errors import InvalidInput
from everlong.files.merge import Overlap, merge, replaced, split

LINES = st.lists(st.sampled_from(["a", "b", "茶", "", "x\u2028y", "c\r"]), max_size=7)


@st.composite
def texts(draw: st.DrawFn) -> str:
    return "\n".join(draw(LINES)) + draw(st.sampled_from(["", "\n"]))


@st.composite
def changed_apart(draw: st.DrawFn) -> tuple[list[str], dict[int, list[str]], dict[int, list[str]]]:
    """Distinct lines, and for two writers the lines that each replaces, no line by both."""
    base = [f"{number}行\n" for number in range(draw(st.integers(1, 10)))]
    owner = draw(st.lists(st.sampled_from(["none", "one", "other"]), min_size=len(base), max_size=len(base)))
    new = {n: draw(st.lists(st.sampled_from([f"new {n}\n", f"新 {n}\n"]), max_size=2)) for n in range(len(base))}
    one = {n: new[n] for n in range(len(base)) if owner[n] == "one"}
    other = {n: new[n] for n in range(len(base)) if owner[n] == "other"}
    return base, one, other


def applied(base: list[str], *changes: dict[int, list[str]]) -> str:
    every = {n: lines for change in changes for n, lines in change.items()}
    return "".join("".join(every.get(n, [line])) for n, line in enumerate(base))


@given(texts())
def test_lines_joined_are_the_text(text: str) -> None:
    assert "".join(split(text)) == text


@given(texts(), texts())
def test_one_side_alone_wins(base: str, ours: str) -> None:
    assert merge(base, ours, base) == ours
    assert merge(base, base, ours) == ours
    assert merge(base, ours, ours) == ours


@settings(max_examples=200)
@given(texts(), texts(), texts())
def test_both_sides_give_one_result_or_none(base: str, ours: str, theirs: str) -> None:
    def tried(one: str, other: str) -> str | None:
        try:
            return merge(base, one, other)
        except Overlap:
            return None

    assert tried(ours, theirs) == tried(theirs, ours)


@settings(max_examples=200)
@given(changed_apart())
def test_changes_of_different_lines_are_both_kept(change: tuple) -> None:
    base, one, other = change
    try:
        merged = merge("".join(base), applied(base, one), applied(base, other))
    except Overlap:
        pytest.fail("they changed different lines")
    assert merged == applied(base, one, other)


@given(texts(), st.sampled_from(["a", "茶", "\n", "a\nb", "aa"]), st.sampled_from(["", "z", "茶茶"]))
def test_an_edit_changes_one_place_or_nothing(text: str, old: str, new: str) -> None:
    places = [i for i in range(len(text)) if text.startswith(old, i)]
    try:
        made = replaced(text, old, new, path="/a", every=False)
    except InvalidInput:
        assert len(places) != 1
    else:
        assert len(places) == 1
        assert made == text[: places[0]] + new + text[places[0] + len(old) :]
