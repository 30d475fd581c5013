"""B5: parallel edits of one memory file (langchain-ai/deepagents#6297, anthropics/anthropic-sdk-typescript#1181,
NousResearch/hermes-agent#26045).

Two edits in one turn both reported success and one was lost; a tool's stale copy overwrote what a person had written.
Here every edit that reports success is in the file, and one that cannot be is an error that names the conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from everlong import Memory, Scope, open_memory
from everlong.errors import Conflict
from everlong.memory import Files

PATH = "/memories/AGENTS.md"
ANN = Scope(org="acme", agent="coder", user="ann")
TEXTS = [("- a", "- a2", "- b", "- b2", "- c"), ("- 甲", "- 甲二", "- 乙", "- 乙二", "- 丙")]


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def twice(request: pytest.FixtureRequest) -> Iterator[tuple[Files, Files]]:
    """Two processes' worth of memory over one database."""
    url = request.getfixturevalue(request.param)

    def opened() -> Memory:
        return open_memory(url, embedder="none", worker="none")

    with opened() as one, opened() as other:
        yield one.at(ANN).files, other.at(ANN).files


def at_once(*calls: Callable[[], object]) -> list[object]:
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


@pytest.mark.parametrize(("a", "a2", "b", "b2", "c"), TEXTS)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_edits_at_once_and_a_person_between(twice: tuple[Files, Files], a, a2, b, b2, c, ending: str) -> None:
    one, other = twice
    one.write(PATH, f"{a}{ending}{b}{ending}")
    at_once(lambda: one.edit(PATH, a, a2), lambda: other.edit(PATH, b, b2))
    assert one.read(PATH).content.decode() == f"{a2}{ending}{b2}{ending}"

    seen = one.lines(PATH)
    person = other.read(PATH)
    other.write(PATH, person.content + f"{c}{ending}".encode(), expected=person.version)
    one.edit(PATH, a2, f"{a2}!", expected=seen.version)
    assert one.read(PATH).content.decode() == f"{a2}!{ending}{b2}{ending}{c}{ending}"


@pytest.mark.parametrize(("a", "a2", "b", "b2", "c"), TEXTS)
def test_edits_of_one_version_are_merged_or_refused(twice: tuple[Files, Files], a, a2, b, b2, c) -> None:
    one, other = twice
    version = one.write(PATH, f"{a}\n{b}\n").version
    one.edit(PATH, a, a2, expected=version)
    other.edit(PATH, b, b2, expected=version)
    assert one.read(PATH).content.decode() == f"{a2}\n{b2}\n"
    with pytest.raises(Conflict, match=r"lines? 1"):
        other.edit(PATH, a, c, expected=version)
    with pytest.raises(Conflict):
        other.write(PATH, f"{c}\n{b}\n", expected=version)
    with pytest.raises(Conflict):
        other.write(PATH, f"{c}\n")
    assert one.read(PATH).content.decode() == f"{a2}\n{b2}\n"


def test_no_success_is_a_lost_edit(twice: tuple[Files, Files]) -> None:
    """Many writers race with whole-file writes of what they read; each success is there in the end."""
    one, other = twice
    one.write(PATH, "".join(f"- {n}\n" for n in range(10)))

    def write(files: Files, number: int) -> bool:
        seen = files.read(PATH)
        text = seen.content.decode().replace(f"- {number}\n", f"- {number} 好\n")
        try:
            files.write(PATH, text, expected=seen.version)
        except Conflict:
            return False
        return True

    results = at_once(*(lambda n=n: write((one, other)[n % 2], n) for n in range(10)))
    kept = one.read(PATH).content.decode()
    assert [f"- {n} 好\n" in kept for n in range(10)] == results
    assert any(results)
    history = one.history(PATH, limit=100)
    assert [f.version for f in history] == list(range(len(history), 0, -1))


def test_a_crowd_of_edits_is_kept_whole(twice: tuple[Files, Files]) -> None:
    one, other = twice
    one.write(PATH, "".join(f"- {n}.\n" for n in range(16)))

    def edit(number: int) -> None:
        for _ in range(4):
            (one, other)[number % 2].edit(PATH, f"- {number}.", f"- {number}. 好")

    at_once(*(lambda n=n: edit(n) for n in range(16)))
    assert one.read(PATH).content.decode() == "".join(f"- {n}.{' 好' * 4}\n" for n in range(16))


def test_appending_at_one_place_is_no_silent_loss(twice: tuple[Files, Files]) -> None:
    one, other = twice
    version = one.write(PATH, "- a\n").version
    one.write(PATH, "- a\n- 乙\n", expected=version)
    with pytest.raises(Conflict):
        other.write(PATH, "- a\n- c\n", expected=version)
