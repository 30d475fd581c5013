"""Whatever a model answers, through parsing, reconciling and storing: nothing known is lost without a recorded reason,
no junk is stored, and nothing is raised but that the answer cannot be used.

``EVERLONG_EXAMPLES=10000`` runs as many examples as it says.
"""

import json
import math
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everlong import Scope
from everlong.config import Settings, build
from everlong.errors import UnusableExtraction
from everlong.records import SECTIONS
from everlong.testing.fakes import CountingIds, FakeClock, ScriptedChatModel, TableEmbedder
from everlong.write.answer import parse
from everlong.write.compare import junk

EXAMPLES = int(os.environ.get("EVERLONG_EXAMPLES", "150"))
SAID = ["I moved to Zadar and I hate fennel now", "我搬到杭州了，忘掉我养蜂这件事", "My name is Ann <b>&", "ok"]
KNOWN = ["User lives in Kiruna", "用户养蜂", "User likes fennel", "Always answer in Portuguese", "安娜住在北京"]
JUNK = [
    "None",
    "N/A",
    "没有新的事实",
    "I'm sorry, I can't assist with that.",
    "<think>",
    '{"newFacts": []}',
    "string",
    "...",
    "",
]
NAMES = ["f1", "f2", "f3", "f4", "f5", "f9", "fact_zzzz", "m1", "m2", "m9", "", "12"]

ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.just([]), st.just({}), st.just([None]),
    st.just({"text": "x"}), st.just("\x00\ud800"), st.just("x" * 3000), st.just("1e999"), st.just("2026-02-30"),
)  # fmt: skip


def maybe(good):
    return st.one_of(good, good, good, ODD)


FACT = st.fixed_dictionaries(
    {
        "content": maybe(
            st.sampled_from([*SAID, *KNOWN, *JUNK, "User lives in Zadar", "用户住在杭州", "User owns a yacht"])
        )
    },
    optional={
        "quote": maybe(st.sampled_from([*SAID, "I moved to Zadar", "never said"])),
        "message": maybe(st.sampled_from(NAMES)),
        "category": maybe(st.sampled_from(["preference", "correction", "made up", "背景"])),
        "confidence": maybe(st.sampled_from([0.9, 0.2, "high", "0.8", math.nan, -math.inf, 7])),
        "valid_from": maybe(st.sampled_from(["2026-01-01", "0001-01-01", "9999-12-31T23:59:59+00:00", "tomorrow"])),
        "valid_until": maybe(st.sampled_from(["2025-01-01", "9999-12-31", "0001-01-01T00:00:00+14:00"])),
        "scope": maybe(st.sampled_from(["user", "agent", "conversation"])),
        "durability": maybe(st.sampled_from(["lasting", "brief"])),
        "replaces": maybe(st.lists(maybe(st.sampled_from(NAMES)), max_size=4)),
    },
)
PART = maybe(
    st.fixed_dictionaries({"shouldUpdate": maybe(st.booleans()), "summary": maybe(st.sampled_from([*SAID, *JUNK]))})
)
SECTION = maybe(st.dictionaries(st.sampled_from([*SECTIONS, "made up"]), PART, max_size=3))
UPDATE = st.fixed_dictionaries(
    {},
    optional={
        "newFacts": maybe(st.lists(maybe(FACT), max_size=6)),
        "factsToRemove": maybe(st.lists(maybe(st.sampled_from(NAMES)), max_size=6)),
        "user": SECTION,
        "history": SECTION,
    },
)
NESTED = st.recursive(
    ODD,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
WRAPPED = st.sampled_from([
    "{}", "```json\n{}\n```", "<think>{{ [ </think>{}", "Sure!\n{}\nDone }}", '{{"result": {}}}', "[{}]", "{}\n{}", "\ufeff{}", "{}}}]",
])  # fmt: skip


@st.composite
def answers(draw):
    """One answer of a model: an update in some wrapping, cut off, with a character changed, a refusal or noise."""
    value = draw(st.one_of(UPDATE, UPDATE, UPDATE, NESTED))
    plain = draw(st.sampled_from([json.dumps, repr]))(value)
    said = draw(WRAPPED).replace("{{", "{").replace("}}", "}").replace("{}", plain)
    match draw(st.sampled_from(["whole", "whole", "whole", "cut", "changed", "refusal", "noise", "escaped"])):
        case "cut":
            return said[: draw(st.integers(0, len(said)))]
        case "changed":
            place = draw(st.integers(0, max(len(said) - 1, 0)))
            return (
                said[:place]
                + draw(st.sampled_from(['"', "}", "{", "[", ",", "\\", "'", "\x00", "…"]))
                + said[place + 1 :]
            )
        case "refusal":
            return draw(st.sampled_from([*JUNK, "As an AI model I cannot", "很抱歉，我无法协助"]))
        case "noise":
            return draw(st.text(max_size=200) | st.text("{}[]\"':,\\ \n1n<", max_size=80) | st.just("[" * 5000))
        case "escaped":
            return json.dumps(said)
        case _:
            return said


def blocks(answer):
    return [{"type": "thinking", "thinking": answer}, answer[:3], {"type": "text", "text": answer[3:]}, None, 4]


@settings(max_examples=EXAMPLES, deadline=None)
@given(answers())
def test_parsing_raises_nothing_but_that_it_cannot_be_used(answer):
    for form in (answer, blocks(answer)):
        try:
            found = parse(form, zone="Asia/Shanghai")
        except UnusableExtraction:
            continue
        else:
            assert all(fact.content.strip() and 0 <= fact.confidence <= 1 for fact in found.facts)
            assert all(summary.strip() for summary in found.sections.values())


@pytest.fixture(scope="module")
def parts():
    model, clock = ScriptedChatModel(), FakeClock(tick=0.001)
    made = {}
    for strategy in ("single", "split"):
        chosen = Settings(
            url="sqlite://",
            worker="none",
            extractor="llm",
            extraction_strategy=strategy,
            job_attempts=1,
            zone="Asia/Shanghai",
        )
        made[strategy] = build(
            chosen, chat_model=model, embedder=TableEmbedder({}, 16), clock=clock, new_id=CountingIds()
        )
    yield made, model
    for memory in made.values():
        memory.close()


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(answers(), min_size=1, max_size=6), st.sampled_from(["single", "single", "split"]))
def test_no_answer_loses_a_fact_without_reason_or_stores_junk(parts, said, strategy):
    memory, model = parts[0][strategy], parts[1]
    ann = memory.at(Scope(user="ann", session="s"))
    try:
        for content in KNOWN:
            ann.remember(content, pinned="Portuguese" in content)
        ann.update_profile(sections={"topOfMind": "Bees and boats."})
        before = {fact.id: fact for fact in ann.facts().items}
        model.say(*said)
        added = ann.add([("user", text) for text in SAID])
        memory.drain()
        records = ann.extractions().items
        after = {fact.id: fact for fact in ann.facts(status=None).items}
        assert before.keys() <= after.keys() and len(records) == 1 and records[0].messages == added.message_ids
        failed = bool(records[0].error)
        assert not failed or records[0].error.split(":")[0] in {"UnusableExtraction", "ModelError"}
        assert failed == bool([job for job in ann.jobs() if job.kind == "extract"])
        if failed:
            assert before == after and ann.profile().sections["topOfMind"].summary == "Bees and boats."
        journal = {
            (entry.action, entry.target): entry for entry in memory.at(Scope(user="ann")).journal(limit=1000).items
        }
        for fact_id, fact in before.items():
            now = after[fact_id]
            assert now.content == fact.content
            if now.status != "active":
                assert now.reason and now.retired_at is not None
                gone = journal.get(("retire", fact_id)) or journal.get(("supersede", now.superseded_by))
                assert gone is not None and gone.reason
                assert any(o.reason and o.fact_id in {fact_id, now.superseded_by} for o in records[0].decisions)
        for fact_id in after.keys() - before.keys():
            new = after[fact_id]
            assert not junk(new.content) and 0 <= new.confidence <= 1 and new.reason is not None
            assert any(o.fact_id == fact_id for o in records[0].decisions)
        assert all(section.summary.strip() for section in ann.profile().sections.values())
    finally:
        model._answers.clear()
        memory.at(Scope(user="ann")).erase()
