"""What reading with rights promises: what is hidden is neither given nor counted, and nothing else is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from everlong.errors import NotFound
from everlong.protocols import Rights, reading_with
from everlong.records import ALL_KINDS, Scope
from everlong.testing.samples import ANN, TALK, add_fact, at, file, indexed, message, profile

if TYPE_CHECKING:
    from everlong.protocols import Store

WIDE = Scope(org="acme")
NAMES = {"fact": "health", "file": "/secret.md"}
HIDDEN_PLACE = Rights(key="place", named=frozenset(), judge=lambda _, scope, __: scope != WIDE)
HIDDEN_NAMES = Rights(key="names", named=frozenset(NAMES), judge=lambda kind, _, name: NAMES.get(kind) != name)


def fill(store: Store) -> None:
    """In a wide place and in a narrow one a turn, a profile, and a fact and a file of each of two names."""
    with store.write() as tx:
        for scope, tag in ((WIDE, "wide"), (ANN, "ann")):
            for category in ("context", "health"):
                made = add_fact(tx, f"{tag}-{category}", scope, category=category)
                tx.facts.revise(replace(made, confidence=1.0, updated_at=at(9)), expected=1)
            said = message(f"{tag}-m", replace(scope, session="talk"))
            tx.messages.append(replace(scope, session="talk"), [said], [indexed(said.content)])
            tx.profiles.put(profile(scope), expected=0)
            for path in ("/open.md", "/secret.md"):
                tx.files.put(file(path, scope, tag.encode()), expected=0)


class RightsTests:
    """Read with rights that hide a place, and with rights that hide a category and a path."""

    def test_a_hidden_place_is_not_read(self, store: Store) -> None:
        fill(store)
        with reading_with(HIDDEN_PLACE), store.read() as tx:
            assert tx.facts.list(TALK).total == len(tx.facts.list(TALK).items) == 2
            assert {one.id for one in tx.facts.as_of(TALK, at(99))} == {"ann-context", "ann-health"}
            assert set(tx.facts.many(TALK, ["wide-context", "ann-context"])) == {"ann-context"}
            assert [one.id for one in tx.messages.recent(TALK, limit=9)] == ["ann-m"]
            assert tx.messages.tail(replace(WIDE, session="talk"), limit=9) == ()
            assert tx.messages.after(replace(WIDE, session="talk"), 0) == ()
            assert tx.messages.around(TALK, "wide-m", before=1, after=1) == ()
            assert set(tx.messages.many(TALK, ["wide-m", "ann-m"])) == {"ann-m"}
            assert tx.sessions.list(TALK).total == len(tx.sessions.list(TALK).items) == 1
            assert tx.sessions.get(replace(WIDE, session="talk")) is None
            assert [one.scope for one in tx.profiles.visible(TALK)] == [ANN]
            assert tx.profiles.get(WIDE).version == tx.profiles.as_of(WIDE, at(99)).version == 0
            assert (tx.files.list(WIDE), tx.files.history(WIDE, "/open.md")) == ((), ())
            assert {bucket.home for bucket, _ in tx.index.revisions(TALK, ALL_KINDS)} == {ANN}
            for read in (tx.facts.get, tx.facts.history):
                with pytest.raises(NotFound):
                    read(TALK, "wide-context")
        with store.read() as tx:
            assert tx.facts.list(TALK).total == 4

    def test_a_hidden_name_is_not_read(self, store: Store) -> None:
        fill(store)
        with reading_with(HIDDEN_NAMES), store.read() as tx:
            page = tx.facts.list(TALK, limit=1)
            rest = tx.facts.list(TALK, limit=9, cursor=page.next)
            assert (page.total, rest.total, len(rest.items), rest.next) == (2, 2, 1, "")
            assert {one.category for one in (*page.items, *rest.items)} == {"context"}
            assert tx.facts.list(TALK, categories=["health"]).total == 0
            assert {one.category for one in tx.facts.as_of(TALK, at(99))} == {"context"}
            assert [one.path for one in tx.files.list(TALK)] == ["/open.md"]
            assert set(tx.passages.many(TALK, ["/open.md#0", "/secret.md#0"])) == {"/open.md#0"}
            with pytest.raises(NotFound):
                tx.files.get(TALK, "/secret.md")
            with pytest.raises(NotFound):
                tx.files.version(ANN, "/secret.md", 1)
            with pytest.raises(NotFound):
                tx.facts.get(TALK, "ann-health")

    def test_a_hidden_file_hides_no_wider_one(self, store: Store) -> None:
        fill(store)
        own = Rights(key="own", named=frozenset(), judge=lambda kind, scope, _: kind != "file" or scope == WIDE)
        with reading_with(own), store.read() as tx:
            assert tx.files.get(TALK, "/open.md").content == b"wide"
            assert {one.scope for one in tx.files.list(TALK)} == {WIDE}
            assert tx.passages.many(TALK, ["/open.md#0"])["/open.md#0"].content == "wide"

    def test_writing_is_not_narrowed(self, store: Store) -> None:
        fill(store)
        with reading_with(HIDDEN_NAMES), store.write() as tx:
            assert tx.facts.get(TALK, "ann-health").version == 2
