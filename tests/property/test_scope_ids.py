"""Ids of any form map one to one to what is stored: two that differ in a byte are two, and each finds its own again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import astuple
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from everlong import Principal, Scope, open_memory
from everlong.errors import InvalidScope
from everlong.memory import Memory
from everlong.testing.samples import ODD_NAMES

OPERATOR = Principal(id="ops", role="operator")
FORMS = [
    *ODD_NAMES,
    *(
        "Ann@Example.com",
        "ann@example.com ",
        "用户甲",
        "用户",
        "ｕｓｅｒ",
        "user",
        "USER",
        "Straße",
        "STRASSE",
        "İ",
        "i̇",
    ),
    *(normalize(form, "Å한글é") for form in ("NFC", "NFD", "NFKC")),
    *(
        "a.b",
        "a..b",
        "../a",
        "..",
        ".",
        "/",
        "//",
        "a//b",
        "\\",
        "C:\\x",
        "%2e%2e",
        "a b",
        "a  b",
        " a",
        "a\t",
        "\u00a0a",
    ),
    *(
        "a*",
        "a?",
        "[a]",
        "_a",
        "%a",
        "a!%",
        "--",
        "#",
        "a#0",
        "a:b",
        "a|b",
        "null",
        "None",
        "''",
        '"',
        "{id}",
        "*",
        "0",
        "00",
    ),
    *("👩\u200d👧", "👩👧", "a\u200b", "a\ufeff", "\u202ea", "😀" * 300, "长" * 512),
]
IDS = st.one_of(
    st.sampled_from(FORMS),
    st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=40).filter(str.strip),
)
Fresh = tuple[Callable[[], AbstractContextManager[Memory]], int]


@pytest.fixture(params=["memory", "postgres"])
def fresh(request: pytest.FixtureRequest) -> Fresh:
    """What opens an empty memory, and how many examples that engine has time for."""
    options: dict[str, Any] = {"embedder": "none", "worker": "none"}
    if request.param == "memory":
        return (lambda: open_memory("sqlite://", **options)), 8
    postgres = request.getfixturevalue("postgres")

    @contextmanager
    def on_postgres() -> Iterator[Memory]:
        url = postgres.fresh()
        try:
            with open_memory(url, **options) as memory:
                yield memory
        finally:
            postgres.release(url)

    return on_postgres, 3


def check_own(memory: Memory, scope: Scope, words: str) -> None:
    """That a scope finds just what was said there."""
    here = memory.at(scope, by=OPERATOR)
    assert [fact.content for fact in here.facts().items] == [words]
    assert {hit.text for hit in here.recall("tea", min_score=0.0, limit=99, kinds=["fact", "file"]).hits} == {words}
    assert [message.content for message in here.messages()] == [words]
    assert [one.scope for one in here.sessions().items] == [scope]
    assert here.files.read("/memories/tea.md").content.decode() == words
    assert here.profile().attributes == {"name": words}
    assert {entry.scope.home for entry in here.journal(limit=99).items} == {scope.home}
    assert {job.scope for job in here.jobs()} == {scope}


def test_ids_of_any_form_are_told_apart_and_found_again(fresh: Fresh) -> None:
    @settings(
        max_examples=fresh[1],
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @example(ids=FORMS[:24], part=2)
    @example(ids=FORMS[24:60], part=2)
    @example(ids=FORMS[24:60], part=0)
    @example(ids=FORMS[60:], part=2)
    @given(ids=st.lists(IDS, min_size=2, max_size=8), part=st.sampled_from([0, 2]))
    def run(ids: list[str], part: int) -> None:
        scopes = []
        for name in dict.fromkeys(ids):
            parts = ["acme", "coder", "ann", "talk"]
            parts[part] = name
            scopes.append(Scope(org=parts[0], agent=parts[1], user=parts[2], session=parts[3]))
        with fresh[0]() as memory:
            words = {scope: f"tea number {number} 茶" for number, scope in enumerate(scopes)}
            for scope, said in words.items():
                here = memory.at(scope, by=OPERATOR)
                here.remember(said)
                here.add([("user", said)])
                here.files.write("/memories/tea.md", said)
                here.update_profile(attributes={"name": said})
            for scope, said in words.items():
                check_own(memory, scope, said)
            gone, *left = scopes
            memory.at(gone.home, by=OPERATOR).erase()
            assert memory.at(gone, by=OPERATOR).facts().total == 0
            for scope in left:
                check_own(memory, scope, words[scope])

    run()


@given(parts=st.tuples(IDS, IDS, IDS, IDS))
@settings(deadline=None, derandomize=True, database=None)
def test_a_scope_keeps_its_ids_to_the_byte(parts: tuple[str, str, str, str]) -> None:
    scope = Scope(**dict(zip(("org", "agent", "user", "session"), parts, strict=True)))
    assert astuple(scope) == scope.parts == parts
    assert len(set(scope.covering())) == 16
    assert all(one.covers(scope) for one in scope.covering())


@pytest.mark.parametrize("bad", [" ", "\t\n", "\u3000", "a\x00", "\ud800", "x" * 513, None, 7, b"ann", ["ann"]])
@pytest.mark.parametrize("name", ["org", "agent", "user", "session"])
def test_what_no_store_can_keep_is_refused(name: str, bad: Any) -> None:
    with pytest.raises(InvalidScope) as refusal:
        Scope(**{name: bad})
    assert name in str(refusal.value)
