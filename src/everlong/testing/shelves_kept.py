"""What the shelves of profiles, files and the journal promise."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from everlong.errors import Conflict, NotFound
from everlong.records import Profile, Scope
from everlong.testing.samples import ANN, BOB, ODD_TEXTS, START, TALK, at, entry, file, profile

if TYPE_CHECKING:
    from collections.abc import Callable

    from everlong.protocols import Store, Transaction


class ProfileTests:
    """Get, see, put with a version check."""

    def test_an_unknown_profile_is_empty_at_version_0(self, store: Store) -> None:
        with store.read() as tx:
            assert tx.profiles.get(ANN) == Profile(scope=ANN)
            assert tx.profiles.visible(TALK) == ()

    def test_a_profile_comes_back_as_it_was_given(self, store: Store) -> None:
        with store.write() as tx:
            stored = tx.profiles.put(profile(), expected=0)
        assert stored == replace(profile(), version=1)
        with store.read() as tx:
            assert tx.profiles.get(ANN) == stored

    def test_a_profile_is_kept_at_exactly_one_scope(self, store: Store) -> None:
        with store.write() as tx:
            tx.profiles.put(profile(), expected=0)
        with store.read() as tx:
            for other in (TALK, BOB, Scope(org="acme"), Scope(user="ann"), Scope()):
                assert tx.profiles.get(other).version == 0

    def test_visible_profiles_come_widest_first(self, store: Store) -> None:
        with store.write() as tx:
            for scope in (ANN, Scope(), BOB, Scope(org="acme"), replace(ANN, agent="coder"), Scope(org="umbrella")):
                tx.profiles.put(profile(scope), expected=0)
        with store.read() as tx:
            assert [one.scope for one in tx.profiles.visible(TALK)] == [Scope(), Scope(org="acme"), ANN]

    def test_putting_over_another_version_is_a_conflict(self, store: Store) -> None:
        with store.write() as tx:
            first = tx.profiles.put(profile(), expected=0)
            second = tx.profiles.put(replace(first, attributes={"name": "Anna"}), expected=1)
        assert second.version == 2
        for expected in (0, 1, 3):
            with store.write() as tx, pytest.raises(Conflict) as caught:
                tx.profiles.put(replace(first, attributes={"name": "X"}), expected=expected)
            assert (caught.value.expected, caught.value.actual) == (expected, 2)
        with store.write() as tx, pytest.raises(Conflict):
            tx.profiles.put(profile(BOB), expected=1)
        with store.read() as tx:
            assert tx.profiles.get(ANN) == second

    def test_sections_may_come_and_go(self, store: Store) -> None:
        with store.write() as tx:
            first = tx.profiles.put(profile(), expected=0)
            tx.profiles.put(replace(first, sections={}, attributes={}), expected=1)
        with store.read() as tx:
            assert tx.profiles.get(ANN) == Profile(scope=ANN, version=2, updated_at=START)


class FileTests:
    """Get the narrowest, put and delete with a version check, list below a prefix, every version kept."""

    def test_a_file_comes_back_byte_for_byte(self, store: Store) -> None:
        everything = bytes(range(256)) * 300
        given = file("/memories/安娜 notes.md", content=everything, read_only=True, metadata={"a": [1, None]})
        with store.write() as tx:
            assert tx.files.put(given, expected=0) == given
            tx.files.put(file("/empty", content=b""), expected=0)
        with store.read() as tx:
            assert tx.files.get(TALK, given.path) == given
            assert tx.files.get(ANN, "/empty").content == b""

    def test_an_unknown_file_is_not_found(self, store: Store) -> None:
        with store.write() as tx:
            tx.files.put(file("/a"), expected=0)
        with store.read() as tx:
            for scope, path in ((ANN, "/b"), (ANN, "/A"), (ANN, "/a/"), (BOB, "/a"), (Scope(org="acme"), "/a")):
                with pytest.raises(NotFound):
                    tx.files.get(scope, path)

    def test_the_narrowest_file_hides_the_wider_ones(self, store: Store) -> None:
        with store.write() as tx:
            tx.files.put(file("/a", Scope(), b"wide"), expected=0)
            tx.files.put(file("/a", ANN, b"narrow"), expected=0)
            tx.files.put(file("/b", Scope(org="acme"), b"middle"), expected=0)
        with store.read() as tx:
            assert tx.files.get(TALK, "/a").content == b"narrow"
            assert tx.files.get(BOB, "/a").content == b"wide"
            assert [(one.path, one.size) for one in tx.files.list(TALK)] == [("/a", 6), ("/b", 6)]
            assert [one.scope for one in tx.files.list(TALK)] == [ANN, Scope(org="acme")]
            assert [one.size for one in tx.files.list(Scope(org="umbrella"))] == [4]
            assert (tx.files.count(ANN), tx.files.count(TALK)) == (1, 0)

    def test_putting_over_another_version_is_a_conflict(self, store: Store) -> None:
        with store.write() as tx:
            tx.files.put(file("/a"), expected=0)
            second = tx.files.put(file("/a", content=b"two"), expected=1)
        assert second.version == 2
        for expected in (0, 1, 3):
            with store.write() as tx, pytest.raises(Conflict) as caught:
                tx.files.put(file("/a", content=b"other"), expected=expected)
            assert (caught.value.expected, caught.value.actual) == (expected, 2)
        with store.write() as tx, pytest.raises(Conflict):
            tx.files.put(file("/new"), expected=1)
        with store.read() as tx:
            assert tx.files.get(ANN, "/a").content == b"two"

    def test_deleting_checks_place_and_version(self, store: Store) -> None:
        with store.write() as tx:
            tx.files.put(file("/a"), expected=0)
            tx.files.put(file("/a", Scope(), b"wide"), expected=0)
        with store.write() as tx:
            with pytest.raises(NotFound):
                tx.files.delete(TALK, "/a", expected=1)
            with pytest.raises(Conflict):
                tx.files.delete(ANN, "/a", expected=2)
            tx.files.delete(ANN, "/a", expected=1)
            with pytest.raises(NotFound):
                tx.files.delete(ANN, "/a", expected=1)
        with store.read() as tx:
            assert tx.files.get(ANN, "/a").content == b"wide"

    def test_a_deleted_path_can_be_used_again(self, store: Store) -> None:
        with store.write() as tx:
            tx.files.put(file("/a"), expected=0)
            tx.files.delete(ANN, "/a", expected=1)
            tx.files.put(file("/a", content=b"again"), expected=0)
        with store.read() as tx:
            assert tx.files.get(ANN, "/a").content == b"again"

    def test_whoever_holds_the_lock_writes_alone(self, store: Store) -> None:
        failed: list[BaseException] = []

        def count() -> None:
            try:
                for _ in range(10):
                    with store.write() as tx:
                        tx.files.lock(ANN)
                        found = tx.files.history(ANN, "/n", limit=1)
                        number = int(found[0].content) if found else 0
                        tx.files.put(file("/n", content=b"%d" % (number + 1)), expected=number)
            except Exception as error:  # noqa: BLE001 (compared below, in the main thread)
                failed.append(error)

        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert failed == []
        with store.read() as tx:
            assert tx.files.get(ANN, "/n").content == b"40"

    def test_erasing_and_writing_files_at_once_leaves_whole_files(self, store: Store) -> None:
        failed: list[BaseException] = []

        def repeat(work: Callable[[Transaction], object]) -> None:
            try:
                for _ in range(12):
                    with suppress(Conflict), store.write() as tx:  # an erasure came between: nothing is written
                        work(tx)
            except Exception as error:  # noqa: BLE001 (compared below, in the main thread)
                failed.append(error)

        def put(tx: Transaction) -> None:
            tx.files.lock(ANN)
            found = tx.files.history(ANN, "/n", limit=1)
            tx.files.put(file("/n"), expected=found[0].version if found else 0)

        jobs: list[Callable[[Transaction], object]] = [put, put, lambda tx: tx.erase(ANN)]
        threads = [threading.Thread(target=repeat, args=(work,)) for work in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert failed == []
        with store.read() as tx:
            left = [one.version for one in tx.files.history(ANN, "/n", limit=100)]
        assert left == list(range(len(left), 0, -1))

    def test_numbers_go_on_after_a_deletion(self, store: Store) -> None:
        with store.write() as tx:
            tx.files.put(file("/a", content=b"one"), expected=0)
            tx.files.put(file("/a", content=b"two"), expected=1)
            tx.files.delete(ANN, "/a", expected=2)
            again = tx.files.put(file("/a", content=b"three"), expected=0)
            with pytest.raises(Conflict):
                tx.files.put(file("/a", content=b"stale"), expected=1)
        assert again.version == 3

    def test_every_version_is_kept(self, store: Store) -> None:
        with store.write() as tx:
            first = tx.files.put(file("/a", content=b"\xff\x00", read_only=True, metadata={"by": "安"}), expected=0)
            second = tx.files.put(file("/a", content=b"two"), expected=1)
            tx.files.put(file("/a", Scope(), b"wide"), expected=0)
        with store.read() as tx:
            assert tx.files.history(ANN, "/a") == (second, first)
            assert tx.files.history(ANN, "/a", limit=1) == (second,)
            assert (tx.files.version(ANN, "/a", 1), tx.files.version(ANN, "/a", 2)) == (first, second)
            for scope, number in ((ANN, 3), (ANN, 0), (TALK, 1), (BOB, 1)):
                with pytest.raises(NotFound):
                    tx.files.version(scope, "/a", number)
        with store.write() as tx:
            tx.files.delete(ANN, "/a", expected=2)
        with store.read() as tx:
            assert tx.files.history(ANN, "/a") == (second, first)
            assert tx.files.history(BOB, "/a") == ()

    def test_old_versions_can_be_dropped(self, store: Store) -> None:
        with store.write() as tx:
            for number in range(5):
                tx.files.put(file("/a", content=b"%d" % number), expected=number)
            assert tx.files.trim(ANN, "/a", keep=2) == 2
            assert [one.version for one in tx.files.history(ANN, "/a")] == [5, 4, 3]
            assert tx.files.trim(ANN, "/a", keep=2) == 0
            assert tx.files.trim(BOB, "/a", keep=0) == 0

    def test_a_prefix_is_text_and_no_pattern(self, store: Store) -> None:
        paths = ["/%/x", "/A_/x", "/a%/x", "/a_/x", "/a_/y", "/ab/x", "/安/x"]
        with store.write() as tx:
            for path in paths:
                tx.files.put(file(path), expected=0)
        with store.read() as tx:
            assert [one.path for one in tx.files.list(ANN)] == paths
            for prefix, found in {
                "/a_/": ["/a_/x", "/a_/y"],
                "/a%/": ["/a%/x"],
                "/%/": ["/%/x"],
                "/A_/": ["/A_/x"],
                "/安/": ["/安/x"],
                "/b/": [],
            }.items():
                assert [one.path for one in tx.files.list(ANN, prefix=prefix)] == found


class JournalTests:
    """Append, get, list newest first."""

    def test_an_entry_comes_back_as_it_was_given(self, store: Store) -> None:
        payload = {"x": ["安", 1.5, None]}
        given = entry("e1", TALK, kind="fact", target="f1", reason="说了", before=1, after=2, payload=payload)
        with store.write() as tx:
            tx.journal.append(given)
        with store.read() as tx:
            assert tx.journal.get(ANN, "e1") == given
            assert tx.journal.get(TALK, "e1") == given
            for far in (BOB, Scope(org="umbrella")):
                with pytest.raises(NotFound):
                    tx.journal.get(far, "e1")
            with pytest.raises(NotFound):
                tx.journal.get(ANN, "nothing")

    @pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
    def test_odd_text_is_kept_exactly(self, store: Store, text: str) -> None:
        with store.write() as tx:
            tx.journal.append(entry("e1", reason=text, payload={"odd": text}))
        with store.read() as tx:
            found = tx.journal.get(ANN, "e1")
        assert (found.reason, found.payload) == (text, {"odd": text})

    def test_entries_within_a_scope_come_newest_first_in_pages(self, store: Store) -> None:
        with store.write() as tx:
            tx.journal.append(*(entry(f"e{i}", (ANN, TALK)[i % 2], seconds=i // 2) for i in range(7)))
            tx.journal.append(entry("his", BOB, seconds=1), entry("wide", Scope(), seconds=2))
            tx.journal.append()
        with store.read() as tx:
            page = tx.journal.list(ANN, limit=3)
            assert page.total == 7
            seen = [one.id for one in page.items]
        with store.write() as tx:
            tx.journal.append(entry("newer", seconds=99))
        with store.read() as tx:
            while page.next:
                page = tx.journal.list(ANN, limit=3, cursor=page.next)
                seen += [one.id for one in page.items]
            assert len(seen) == 7
            assert [int(name[1:]) // 2 for name in seen] == [3, 2, 2, 1, 1, 0, 0]
            assert {one.id for one in tx.journal.list(TALK).items} == {"e1", "e3", "e5"}
            assert tx.journal.list(Scope()).total == 10

    def test_entries_are_filtered_by_target_and_action(self, store: Store) -> None:
        with store.write() as tx:
            tx.journal.append(
                entry("e1", target="f1", action="add", seconds=1),
                entry("e2", target="f1", action="retire", seconds=2),
                entry("e3", target="f2", action="add", seconds=3),
            )
        with store.read() as tx:
            assert [one.id for one in tx.journal.list(ANN, target="f1").items] == ["e2", "e1"]
            assert [one.id for one in tx.journal.list(ANN, action="add").items] == ["e3", "e1"]
            assert tx.journal.list(ANN, target="f1", action="add").total == 1
            assert tx.journal.list(ANN, target="f%").total == 0

    def test_times_of_the_journal_are_exact(self, store: Store) -> None:
        with store.write() as tx:
            tx.journal.append(entry("e1", seconds=0.000001))
        with store.read() as tx:
            assert tx.journal.get(ANN, "e1").at == at(0.000001)
