"""A7: a store full of certain facts evicts every new one: bytedance/deer-flow#4641, #4122."""

from datetime import UTC, datetime

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.records import Candidate, Evidence, Extraction
from everlong.testing.fakes import FakeClock

HOME = Scope(user="ann")
FULL = {
    "en": ([f"User owns a garden in {name}" for name in "Oslo Bern Rome Cork Lyon Kyiv Riga Graz Bonn Faro".split()],
           "User is allergic to penicillin", "User plays the oboe"),
    "zh": ([f"用户在{name}有一座花园" for name in "北京 上海 广州 深圳 杭州 成都 武汉 西安 南京 重庆".split()],
           "用户对青霉素过敏", "用户会吹双簧管"),
}  # fmt: skip


class Learned:
    """An extractor that takes each message for a fact of one category."""

    name = "learned"

    def extract(self, batch):
        return Extraction(
            extractor=self.name,
            candidates=tuple(
                Candidate(
                    content=m.content,
                    category="correction",
                    confidence=0.9,
                    evidence=(Evidence(message_id=m.id, quote=m.content),),
                )
                for m in batch.messages
            ),
        )


def filled(language, *, pinned=False, **settings):
    clock = FakeClock(datetime(2024, 1, 1, tzinfo=UTC), tick=1.0)
    chosen = Settings(url="sqlite://", embedder="none", worker="none", max_facts=10, **settings)
    memory = build(chosen, extractor=Learned(), clock=clock)
    for content in FULL[language][0]:
        assert memory.at(HOME).remember(content, confidence=0.95, pinned=pinned).outcome == "add"
    clock.set(datetime(2026, 1, 1, tzinfo=UTC))
    return memory


@pytest.mark.parametrize("language", FULL)
def test_a_full_store_learns_and_names_what_went(language):
    with filled(language) as memory:
        ann = memory.at(Scope(user="ann", session="s"))
        ann.add([("user", FULL[language][1])])
        memory.drain()
        by_hand = memory.at(HOME).remember(FULL[language][2])
        assert by_hand.outcome == "add" and by_hand.fact.status == "active"
        active = {fact.content for fact in memory.at(HOME).facts().items}
        assert len(active) == 10 and set(FULL[language][1:]) <= active
        gone = {fact.id for fact in memory.at(HOME).facts(status="retired").items}
        told = [e for e in memory.at(HOME).journal(action="retire").items if e.reason.startswith("evicted")]
        assert {e.target for e in told} == gone and len(gone) == 2
        # What went can come back: it is said again, and its history is there.
        assert all(memory.at(HOME).history(fact_id)[0].status == "active" for fact_id in gone)
        back = memory.at(HOME).fact(min(gone)).content
        assert memory.at(HOME).remember(back).fact.status == "active"


@pytest.mark.parametrize("language", FULL)
def test_what_is_pinned_stays_and_what_finds_no_room_waits(language):
    with filled(language, pinned=True) as memory:
        by_hand = memory.at(HOME).remember(FULL[language][2])
        assert by_hand.outcome == "hold" and "no room" in by_hand.reason
        assert len(memory.at(HOME).facts().items) == 10
        assert [p.target for p in memory.at(HOME).inbox.list().items] == [by_hand.fact.id]


@pytest.mark.parametrize("language", FULL)
def test_by_confidence_alone_the_most_certain_stay_as_in_deerflow(language):
    with filled(language, eviction="confidence") as memory:
        assert memory.at(HOME).remember(FULL[language][2], confidence=0.9).outcome == "hold"
        assert memory.at(HOME).remember(FULL[language][1], confidence=0.99).outcome == "add"
        active = {fact.content for fact in memory.at(HOME).facts().items}
        assert active == {*FULL[language][0][:-1], FULL[language][1]}
