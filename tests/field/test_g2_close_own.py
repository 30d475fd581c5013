"""G2, bytedance/deer-flow#4180, the other side: one host that ends does its own waiting work, not everybody's."""

import pytest

from everlong import Scope
from everlong.config import Settings, build

ANN, BOB = Scope(user="ann", session="s"), Scope(user="bob", session="s")


@pytest.mark.parametrize("words", ["I live in Lisbon.", "我住在里斯本。"])
def test_closing_does_what_this_memory_took_in_and_leaves_the_rest(sqlite_url: str, words: str) -> None:
    with build(Settings(url=sqlite_url, embedder="none", worker="none")) as other:
        other.at(BOB).add([("user", words)])
        other.at(Scope(org="acme", user="ann", session="s")).add([("user", words)])
        with build(Settings(url=sqlite_url, embedder="none")) as mine:
            mine.at(ANN).add([("user", words)])
        assert len(other.at(ANN).facts().items) == 1
        assert [job.scope for job in other.at(BOB).jobs()] == [BOB]
        assert not other.at(BOB).facts().items
        assert len(other.at(Scope(org="acme", user="ann", session="s")).jobs()) == 1
