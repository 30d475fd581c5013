"""H3: "delete everything" leaves the conversations: alibaizhanov/mengram#77."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from everlong import Principal, Scope, open_memory, verify_receipt
from everlong.errors import StoreError
from everlong.records import ALL_KINDS, Proposal
from everlong.store import erase as erasing

if TYPE_CHECKING:
    from pathlib import Path

    from everlong.memory import Memory

KEY = "operator's key"
WORDS = {"en": ("Zanzibar", "a Zanzibar holiday is planned"), "zh": ("桑给巴尔", "计划去桑给巴尔度假")}
"""A word that stands in every record of the user who goes, and a sentence with it."""


def opened(url: str, **settings: object) -> Memory:
    return open_memory(url, embedder="use", worker="none", signing_key=KEY, **settings)


def scope(user: str, session: str = "") -> Scope:
    return Scope(org="acme", user=user, session=session)


def fill(memory: Memory, user: str, told: str) -> None:
    """A record of every kind, through every door, with ``told`` in each."""
    home, talk = memory.at(scope(user)), memory.at(scope(user, "s1"))
    fact = home.remember(told).fact
    assert fact is not None
    home.revise(fact.id, content=f"{told} 2027")
    home.remember(f"{told}, and cats", category="goal", confidence=0.9)
    home.forget(fact.id, reason=told)
    home.update_profile(sections={"topOfMind": told}, attributes={"plan": told})
    home.update_profile(sections={"topOfMind": f"{told} soon"})
    home.files.write("/memories/notes.md", told)
    home.files.write("/memories/notes.md", f"{told} again", expected=1)
    home.skills.write("travel", description=told, body=told)
    talk.add([("user", f"I like {told}."), ("assistant", told)])
    memory.drain()
    home.recall(told, trace=True, kinds=ALL_KINDS)
    talk.context(told, trace=True)
    with memory.parts.store.write() as tx:
        tx.proposals.put(
            Proposal(
                id=f"prop_{user}",
                scope=scope(user),
                kind="section",
                target="topOfMind",
                reason=told,
                by="extractor",
                created_at=memory.parts.clock(),
                payload={"summary": told},
            )
        )
    talk.add([("user", f"Remember: {told}!")])  # a queued update


def left(memory: Memory, user: str) -> dict[str, int]:
    """How much of each kind can still be read, by kind."""
    home, talk = memory.at(scope(user)), memory.at(scope(user, "s1"))
    return {
        "facts": len(home.facts(status=None).items),
        "messages": len(talk.messages()) + len(home.messages()),
        "sessions": home.sessions().total,
        "profile": home.profile().version,
        "files": len(home.files.list()),
        "skills": len(home.skills.list().skills),
        "proposals": home.inbox.list().total,
        "extractions": home.extractions().total,
        "jobs": len(home.jobs()),
        "traces": len(home.traces()),
        "journal": sum(entry.action != "erase" for entry in home.journal(limit=500).items),
        "hits": len(home.recall("Zanzibar 桑给巴尔", kinds=ALL_KINDS, min_score=0.0).hits),
    }


@pytest.mark.parametrize("language", WORDS)
def test_nothing_is_left_in_any_door_or_any_byte(language: str, tmp_path: Path) -> None:
    word, told = WORDS[language]
    memory = opened(f"sqlite:///{tmp_path}/m.db")
    fill(memory, "u_b", told.replace(word, "Kyoto 京都"))
    fill(memory, "u_a", told)  # last, so that its last update is still queued
    before, kept = left(memory, "u_a"), left(memory, "u_b")
    assert all(before.values()), before
    receipt = memory.at(scope("u_a")).erase()
    assert not any(left(memory, "u_a").values())
    after = left(memory, "u_b")
    assert {k: v for k, v in after.items() if k not in {"traces", "hits"}} == {
        k: v for k, v in kept.items() if k not in {"traces", "hits"}
    }
    assert set(receipt.counts) >= {
        "facts",
        "messages",
        "profiles",
        "files",
        "jobs",
        "journal",
        "proposals",
        "extractions",
    }
    assert all(receipt.counts[kind] for kind in ("facts", "messages", "profiles", "files", "jobs", "extractions"))
    assert verify_receipt(receipt, KEY)
    memory.drain()
    assert memory.parts.uses._noted.keys() <= {key for key in memory.parts.uses._noted if key[0].user == "u_b"}
    again = left(memory, "u_a") | {"traces": 0}  # the look before asked a question, which has a trace of its own
    assert not any(again.values()), "what was queued does not bring it back"
    memory.close()
    assert not [path.name for path in tmp_path.iterdir() if word.encode() in path.read_bytes()]


def test_a_fault_half_way_rolls_everything_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    word, told = WORDS["en"]
    with opened(f"sqlite:///{tmp_path}/m.db") as memory:
        fill(memory, "u_a", told)
        before = left(memory, "u_a")
        real = erasing._delete

        def failing(name: str, named: tuple[str, ...]) -> object:
            if name == "messages":
                raise StoreError("the disk went away")
            return real(name, named)

        with monkeypatch.context() as patched:
            patched.setattr(erasing, "_delete", failing)
            with pytest.raises(StoreError):
                memory.at(scope("u_a")).erase()
        after = left(memory, "u_a")
        assert {k: v for k, v in after.items() if k != "traces"} == {k: v for k, v in before.items() if k != "traces"}
        assert word in memory.at(scope("u_a")).context(told).text
        memory.at(scope("u_a")).erase()
        assert not any(left(memory, "u_a").values())


def test_a_conversation_cascades_and_the_others_stay(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/m.db") as memory:
        memory.at(scope("u_a", "s1")).add([("user", "I am allergic to peanuts.")])
        memory.at(scope("u_a", "s2")).add([("user", "我对花生过敏。")])
        memory.drain()
        home = memory.at(scope("u_a"))
        receipt = memory.at(scope("u_a", "s1")).erase()
        assert receipt.scope.session == "s1"
        assert receipt.counts["messages"] == 1
        assert receipt.counts["facts"] == 1
        assert {fact.session for fact in home.facts().items} == {"s2"}
        assert {message.session for message in home.messages()} == {"s2"}
        assert {record.scope.session for record in home.extractions().items} == {"s2"}


def test_a_receipt_holds_for_its_key_and_its_fields_alone() -> None:
    with opened("sqlite://") as memory:
        memory.at(scope("u_a")).remember("User likes tea")
        receipt = memory.at(scope("u_a"), by=Principal(id="root", role="operator")).erase()
        assert receipt.signed
        assert receipt.by == "operator:root"
        assert verify_receipt(receipt, KEY)
        forged = [
            replace(receipt, counts={**receipt.counts, "facts": 0}),
            replace(receipt, by="operator:eve"),
            replace(receipt, scope=scope("u_b")),
            replace(receipt, at=receipt.at.replace(year=2001)),
            replace(receipt, digest="0" * 64),
            replace(receipt, signature=""),
            replace(receipt, signature="签名"),
        ]
        assert not any(verify_receipt(each, KEY) for each in forged)
        assert not verify_receipt(receipt, "another")
        assert not verify_receipt(receipt, "")
        entry = memory.at(scope("u_a")).journal(action="erase").items[0]
        assert (entry.target, entry.payload["digest"]) == (receipt.id, receipt.digest)
        assert "tea" not in str(entry) + str(receipt)
    with open_memory("sqlite://", embedder="none", worker="none") as unsigned:
        receipt = unsigned.at(scope("u_a")).erase()
        assert not receipt.signed
        assert receipt.digest
        assert not verify_receipt(receipt, KEY)


def test_the_log_keeps_no_word_of_what_was_erased(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), opened("sqlite://") as memory:
        memory.at(scope("u_a")).remember("User plans a Zanzibar holiday")
        memory.at(scope("u_a")).erase()
    assert "Zanzibar" not in caplog.text
