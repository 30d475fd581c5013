"""H4: a deleted fact lives on in the summary, and comes back: semantica-agi/semantica#1018, lobehub/lobehub#15576."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from everlong import Principal, Scope, open_memory
from everlong.errors import EmptyText, InvalidInput
from everlong.records import ALL_KINDS, Candidate, Evidence, Extraction, Proposal, Section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.memory import Memory, ScopedMemory
    from everlong.records import Batch

HOME = Scope(org="o", user="u_a")
TALK = Scope(org="o", user="u_a", session="s1")
OTHER = Scope(org="o", user="u_b", session="s1")

CASES = [
    pytest.param(
        "Acme",
        "User works at Acme",
        "Engineer at Acme, likes Go",
        "likes Go",
        ("I work at Acme", "I like Go"),
        "User plays chess",
        id="en",
    ),
    pytest.param(
        "安科公司",
        "用户在安科公司工作",
        "安科公司的工程师，喜欢 Go 语言",
        "喜欢 Go 语言",
        ("我在安科公司上班", "我喜欢 Go 语言"),
        "用户下象棋",
        id="zh",
    ),
]


class Quoting:
    """An extractor that takes every user message for a fact, and answers with all that it was shown."""

    name = "quoting"

    def extract(self, batch: Batch) -> Extraction:
        said = [message for message in batch.messages if message.role == "user"]
        return Extraction(
            candidates=tuple(
                Candidate(
                    content=message.content,
                    confidence=0.95,
                    evidence=(Evidence(message_id=message.id, quote=message.content, session=message.session),),
                )
                for message in said
            ),
            extractor=self.name,
            raw=json.dumps([message.content for message in batch.messages], ensure_ascii=False),
        )


@pytest.fixture
def memory() -> Iterator[Memory]:
    from everlong.config import build, load_settings

    settings = load_settings(url="sqlite://", embedder="none", worker="none")
    with build(settings, extractor=Quoting()) as opened:
        yield opened


def fill(memory: Memory, scope: Scope, fact: str, summary: str, turns: tuple[str, ...], other: str) -> ScopedMemory:
    home = memory.at(scope.home)
    home.remember(fact)
    home.remember(other)
    home.update_profile(sections={"workContext": summary}, attributes={"employer": fact, "city": "Oslo"})
    home.files.write("/memories/notes.md", f"# notes\n{fact}\nkeeps this line\n")
    memory.at(scope).add([("user", turn) for turn in turns])
    with memory.parts.store.write() as tx:
        section = Proposal(
            id=f"prop_{scope.user}",
            scope=scope.home,
            kind="section",
            target="topOfMind",
            reason="unsure",
            by="extractor",
            created_at=memory.parts.clock(),
            payload={"summary": summary},
        )
        tx.proposals.put(section)
    memory.drain()
    home.recall(fact, trace=True)
    return home


def shown(memory: Memory, scope: Scope) -> str:
    """All that anybody can read of a user, by every door, as one text."""
    talk, home = memory.at(scope), memory.at(scope.home)
    facts = home.facts(status=None).items
    parts: list[object] = [
        *facts,
        *(version for fact in facts for version in home.history(fact.id)),
        home.profile(),
        *talk.messages(),
        *home.journal(limit=500).items,
        *home.extractions().items,
        *home.inbox.list().items,
        *home.traces(),
        *home.jobs(),
    ]
    blocks = [home.context("work, Go 工作", budget=2000).text, talk.context("work 工作").text]
    files = [home.files.read(info.path).content.decode() for info in home.files.list()]
    return "\n".join([*map(str, parts), *blocks, *files])


@pytest.mark.parametrize(("topic", "fact", "summary", "stays", "turns", "other"), CASES)
def test_forgetting_a_fact_reports_where_else_it_is_told(
    memory: Memory, topic: str, fact: str, summary: str, stays: str, turns: tuple[str, ...], other: str
) -> None:
    home = fill(memory, TALK, fact, summary, turns, other)
    known = next(each for each in home.facts().items if each.content == fact)
    forgotten = home.forget(known.id, reason="asked")
    assert forgotten.fact.status == "retired"
    assert forgotten.fact.reason == "asked"
    told = {mention.kind: mention.text for mention in forgotten.mentions}
    assert {"section", "attribute", "message", "file", "proposal"} <= set(told)
    assert topic in told["section"]
    assert stays not in told["section"]
    assert told["message"] == turns[0]
    assert known.id not in {mention.id for mention in forgotten.mentions}
    assert topic in home.profile().sections["workContext"].summary, "reported, not changed"


@pytest.mark.parametrize(("topic", "fact", "summary", "stays", "turns", "other"), CASES)
def test_a_topic_is_gone_everywhere_and_its_neighbours_stay(
    memory: Memory, topic: str, fact: str, summary: str, stays: str, turns: tuple[str, ...], other: str
) -> None:
    home = fill(memory, TALK, fact, summary, turns, other)
    fill(memory, OTHER, fact, summary, turns, other)
    before = shown(memory, TALK)
    assert before.count(topic) > 5
    found = home.forget_preview(topic)
    assert {mention.kind for mention in found.mentions} >= {
        "fact",
        "message",
        "section",
        "attribute",
        "file",
        "proposal",
    }
    assert shown(memory, TALK).count(topic) >= before.count(topic), "a preview changes nothing"
    lines = [mention.ref for mention in found.mentions if mention.kind == "file"]
    assert not set(lines) & set(found.refs), "files are changed only when told"

    gone = home.forget_topic(topic, (*found.refs, *lines), erase=True)
    assert topic not in shown(memory, TALK)
    assert gone.left == ()
    assert gone.counts["facts"] >= 1
    assert home.recall(topic, kinds=ALL_KINDS).hits == ()
    assert home.profile().sections["workContext"].summary == stays
    assert home.profile().attributes == {"city": "Oslo"}
    assert home.files.read("/memories/notes.md").content.decode() == "# notes\nkeeps this line\n"
    kept = {each.content for each in home.facts().items}
    assert other in kept
    assert turns[1] in {message.content for message in memory.at(TALK).messages()}
    assert topic in shown(memory, OTHER), "another user's memory is another's"


@pytest.mark.parametrize(("topic", "fact", "summary", "stays", "turns", "other"), CASES)
@pytest.mark.parametrize("ids", [True, False], ids=["ids", "no ids"])
def test_the_host_sends_the_conversation_again_and_nothing_comes_back(
    memory: Memory, topic: str, fact: str, summary: str, stays: str, turns: tuple[str, ...], other: str, ids: bool
) -> None:
    del summary, stays, other, fact
    talk, home = memory.at(TALK), memory.at(HOME)
    thread: list[dict[str, str]] = [{"role": "user", "content": turn} for turn in turns]
    if ids:
        thread = [{**turn, "id": f"m{n}"} for n, turn in enumerate(thread)]
    talk.add(thread)
    memory.drain()
    found = home.forget_preview(topic)
    home.forget_topic(topic, found.refs, erase=True)
    next_turn = {"role": "user", "content": "One more 再来一个", **({"id": "m9"} if ids else {})}
    talk.add([*thread, next_turn])
    memory.drain()
    assert topic not in shown(memory, TALK)
    assert next_turn["content"] in {each.content for each in home.facts().items}
    again = talk.add([{"role": "user", "content": turns[0], **({"id": "m10"} if ids else {})}])
    assert again.status == "queued", "said anew, it is learned anew"
    memory.drain()
    assert turns[0] in {each.content for each in home.facts().items}


def test_only_what_was_confirmed_goes_and_without_erase_the_history_stays(memory: Memory) -> None:
    home = memory.at(HOME)
    first = home.remember("User works at Acme").fact
    second = home.remember("Acme is based in Berlin").fact
    assert first is not None
    assert second is not None
    found = home.forget_preview("acme")
    assert {mention.id for mention in found.mentions} == {first.id, second.id}
    gone = home.forget_topic("acme", [f"fact {first.id}", "fact of_nobody"])
    assert [mention.id for mention in gone.gone] == [first.id]
    assert [mention.id for mention in gone.left] == [second.id]
    assert home.fact(first.id).status == "retired"
    assert home.restore(first.id).status == "active"


def test_words_inside_other_words_are_not_the_topic(memory: Memory) -> None:
    home = memory.at(HOME)
    home.remember("User wrote a concatenation library")
    home.remember("User owns two cats")
    assert [mention.text for mention in home.forget_preview("cat").mentions] == ["User owns two cats"]
    with pytest.raises(EmptyText):
        home.forget_preview(" … ")
    with pytest.raises(InvalidInput):
        home.forget_preview("cat", threshold=0)


def test_a_read_only_file_is_an_operators_to_change(memory: Memory) -> None:
    root = memory.at(HOME, by=Principal(id="root", role="operator"))
    root.files.write("/memories/rule.md", "Never name Acme.\n", read_only=True)
    refs = [mention.ref for mention in root.forget_preview("Acme").mentions]
    with pytest.raises(InvalidInput, match="read-only"):
        memory.at(HOME).forget_topic("Acme", refs)
    root.forget_topic("Acme", refs, erase=True)
    assert root.files.read("/memories/rule.md").content == b""


def test_what_is_near_in_meaning_is_shown_with_its_score() -> None:
    with open_memory("sqlite://", worker="none") as memory:
        home = memory.at(HOME)
        home.remember("User has a peanut allergy")
        home.remember("User lives in Oslo")
        memory.drain()
        found = home.forget_preview("allergic to peanuts", threshold=0.4)
        assert [mention.text for mention in found.mentions] == ["User has a peanut allergy"]
        assert 0.4 <= found.mentions[0].score < 1
        home.forget_topic("allergic to peanuts", found.refs, threshold=0.4, erase=True)
        assert "peanut" not in shown(memory, HOME)


@pytest.mark.parametrize(
    ("topic", "turns"),
    [
        (
            "peanuts",
            ("I'm allergic to peanuts and I live in Lisbon.", "My car is a blue Volvo.", "I work as a dentist."),
        ),
        ("Volvo", ("I'm allergic to peanuts.", "My car is a blue Volvo.", "I work as a dentist.")),
        ("花生", ("我对花生过敏。", "我的车是蓝色的沃尔沃。", "我是牙医。")),
        ("沃尔沃", ("我对花生过敏。", "我的车是蓝色的沃尔沃。", "我是牙医。")),
    ],
)
def test_a_turn_beside_the_topic_stays(topic: str, turns: tuple[str, ...]) -> None:
    """Recall lends to the turns around an answer what relevance they have; their words are not to go for that."""
    with open_memory("sqlite://", worker="none") as memory:
        talk = memory.at(TALK)
        for turn in turns:
            talk.add([("user", turn)])
        memory.drain()
        found = talk.forget_preview(topic)
        assert found.mentions
        assert all(topic in each.text for each in found.mentions)
        talk.forget_topic(topic, found.refs)
        assert [said.content for said in talk.messages() if topic not in said.content and said.content in turns] == [
            turn for turn in turns if topic not in turn
        ]


def test_a_profile_version_of_before_is_gone_too(memory: Memory) -> None:
    home = memory.at(HOME)
    home.update_profile(sections={"topOfMind": "Thinks about Acme."})
    then = memory.parts.clock()
    home.update_profile(sections={"topOfMind": "Thinks about Acme. Likes tea."})
    home.forget_topic("Acme", home.forget_preview("Acme").refs, erase=True)
    assert home.profile().sections["topOfMind"].summary == "Likes tea."
    assert "Acme" not in str(home.profile(as_of=then))
    assert isinstance(home.profile().sections["topOfMind"], Section)
