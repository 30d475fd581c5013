"""B7, getzep/graphiti#1795, #1842: a write for one scope turns another scope's reads on the same client."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from everlong import Scope, open_memory

WORDS = {"ann": ("Ann plays the cello", "cello"), "李雷": ("李雷在学小提琴", "小提琴")}


def test_a_write_for_one_user_does_not_turn_anothers_reads() -> None:
    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        ann, li = (memory.at(Scope(user=user)) for user in WORDS)
        ann.remember(WORDS["ann"][0])
        assert [hit.text for hit in ann.recall("cello", min_score=0).hits] == ["Ann plays the cello"]
        li.remember(WORDS["李雷"][0])
        assert [hit.text for hit in ann.recall("cello", min_score=0).hits] == ["Ann plays the cello"]
        assert [hit.text for hit in li.recall("小提琴", min_score=0).hits] == ["李雷在学小提琴"]
        assert [hit.text for hit in ann.recall("小提琴", min_score=0).hits] in ([], ["Ann plays the cello"])


def test_fifty_threads_that_write_and_read_by_turns_each_see_their_own(sqlite_url: str) -> None:
    with open_memory(sqlite_url, embedder="none", worker="none") as memory:

        def use(number: int) -> list[str]:
            mine = memory.at(Scope(user=f"user-{number}"))
            seen = []
            for turn in range(3):
                mine.remember(f"暗号 secret{number}x{turn}")
                seen += [hit.text for hit in mine.recall("暗号 secret", min_score=0, limit=50).hits]
            return seen

        with ThreadPoolExecutor(50) as pool:
            for number, seen in enumerate(pool.map(use, range(50))):
                assert len(seen) >= 3
                assert all(f"secret{number}x" in text for text in seen)
