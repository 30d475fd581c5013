from dataclasses import replace
from datetime import UTC, datetime

import pytest

from everlong.records import Batch, Candidate, Evidence, Extraction, Fact, Message, Profile, Removal, Scope, Section
from everlong.testing.fakes import CountingIds
from everlong.write.reconcile import Gates, reconcile
from everlong.write.signals import detect

HOME = Scope(user="ann")
NOW = datetime(2026, 1, 2, tzinfo=UTC)
OLD = datetime(2024, 1, 2, tzinfo=UTC)


def said(content, number=1, role="user"):
    return Message(
        id=f"msg_{number}",
        scope=HOME,
        session="s",
        role=role,
        content=content,
        created_at=NOW,
        signals=detect(content) if role == "user" else (),
    )


def kept(content, number=1, **fields):
    fields = {"confidence": 0.9, **fields}
    return Fact(id=f"old_{number}", scope=HOME, content=content, created_at=OLD, updated_at=OLD, version=3, **fields)


def claim(content, quote=None, number=1, **fields):
    evidence = (Evidence(message_id=f"msg_{number}", quote=quote or content),)
    return Candidate(content=content, evidence=evidence, **{"confidence": 0.9, **fields})


def run(*candidates, messages=None, facts=(), near=(), gates=None, profile=None, **extraction):
    messages = messages or [said(c.content, n) for n, c in enumerate(candidates, 1)]
    batch = Batch(
        scope=replace(HOME, session="s"), messages=tuple(messages), profile=profile or Profile(scope=HOME), now=NOW
    )
    proposed = Extraction(candidates=candidates, **extraction)
    return reconcile(proposed, batch, near=near, facts=facts, gates=gates or Gates(), new_id=CountingIds()).changes


JUNK = ["None", "N/A", "No new facts found.", "没有新的事实", "I'm sorry, I can't assist with that.", "<think>", "",
        '{"newFacts": []}', "string", "...", "x" * 2001, "User uploaded a file report.pdf", "用户上传了一个文件",
        "The file is at /mnt/user-data/uploads/a.csv"]  # fmt: skip
FINE = ["User is named None Smith", "User's favourite snippet is <b>hi</b> & {\"a\":1}", "User works with CSV files",
        "用户负责文件上传服务的开发"]  # fmt: skip


@pytest.mark.parametrize("content", JUNK)
def test_junk_is_rejected_with_a_reason(content):
    (change,) = run(claim(content, "words"), messages=[said("words")])
    assert change.kind == "reject" and change.reason


@pytest.mark.parametrize("content", FINE)
def test_what_only_looks_like_junk_is_kept(content):
    (change,) = run(claim(content))
    assert change.kind == "add" and change.fact.content == content


@pytest.mark.parametrize(("below", "kind"), [("hold", "hold"), ("downweight", "add"), ("drop", "reject")])
def test_unsure_candidates_are_never_dropped_silently(below, kind):
    (change,) = run(claim("User may move to Beijing", confidence=0.5), gates=Gates(below=below))
    assert change.kind == kind and "0.50" in change.reason


def test_the_assistants_words_are_no_evidence():
    messages = [said("plan my day"), said("Since you live in Lisbon and love fado, start there.", 2, "assistant")]
    lisbon, fado = run(
        claim("User lives in Lisbon", "you live in Lisbon", 2),
        claim("User loves fado", "love fado", 2),
        messages=messages,
        facts=[kept("User lives in Lisbon", confidence=0.75)],
    )
    assert lisbon.kind == "reject"
    assert fado.kind == "hold" and fado.fact.origin == "assistant"


def test_variants_in_one_batch_become_one_fact():
    changes = run(
        *(claim(c) for c in ["User prefers Vim", " user prefers vim ", "User prefers Vim.", "Ｕｓｅｒ prefers Vim"])
    )
    assert [c.kind for c in changes] == ["add", "reject", "reject", "reject"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Production deployment is allowed", "Production deployment is not allowed"),
        ("用户吃辣", "用户不吃辣"),
        ("User loves Chinese food", "User hates Chinese food"),
        ("用户喜欢咖啡", "用户讨厌咖啡"),
        ("User lives in Berlin", "User lives in Paris"),
        ("用户住在北京", "用户住在上海"),
        ("User is 30 years old", "User is 31 years old"),
    ],
)
def test_the_later_statement_replaces_what_it_contradicts(old, new):
    fact = kept(old)
    (change,) = run(claim(new), facts=[fact], near=[[(fact, 0.99)]])
    assert change.kind == "supersede" and change.expected == 3
    assert change.fact.supersedes == change.old.id == "old_1" and change.old.superseded_by == change.fact.id
    assert change.old.status == "retired"


def test_a_near_paraphrase_confirms():
    fact = kept("User prefers short answers")
    (change,) = run(claim("User prefers answers that are short"), facts=[fact], near=[[(fact, 0.97)]])
    assert change.kind == "confirm" and change.fact.confirmations == 1 and change.fact.last_used_at == NOW


@pytest.mark.parametrize(("old", "new"), [("User likes tea", "User likes coffee"), ("用户会说法语", "用户会说德语")])
def test_another_value_is_no_duplicate(old, new):
    fact = kept(old)
    (change,) = run(claim(new), facts=[fact], near=[[(fact, 0.99)]])
    assert change.kind == "add"


def test_a_removal_alone_is_flagged_and_unknown_ids_are_named():
    changes = run(
        messages=[said("hello")], facts=[kept("User loves jazz")],
        removals=(Removal(fact_id="old_1"), Removal(fact_id="fact_bbbb")),
    )  # fmt: skip
    assert [c.kind for c in changes] == ["hold", "reject"] and "fact_bbbb" in changes[1].reason
    assert changes[0].fact is None and changes[0].old.id == "old_1" and changes[0].old.status == "active"


@pytest.mark.parametrize("words", ["Please forget that I love jazz", "忘掉 jazz 这件事"])
def test_what_the_user_asks_to_forget_is_retired(words):
    (change,) = run(messages=[said(words)], facts=[kept("User loves jazz")], removals=(Removal(fact_id="old_1"),))
    assert change.kind == "retire" and change.expected == 3


def test_a_full_store_still_learns():
    facts = [kept(f"User knows language {chr(65 + n)}", n, confidence=0.95) for n in range(10)]
    add, retire = run(
        claim("User is allergic to penicillin", category="correction"), facts=facts, gates=Gates(max_facts=10)
    )
    assert add.kind == "add" and retire.kind == "retire" and retire.reason.startswith("evicted")


def test_sections_change_only_for_good():
    profile = Profile(scope=HOME, sections={"workContext": Section(summary="Leads DataOps", updated_at=OLD)})
    for summary, kind in [("", "reject"), ("Leads DataOps", "reject"), ("Leads. User uploaded a file.", "section")]:
        (change,) = run(messages=[said("x")], profile=profile, sections={"workContext": summary})
        assert change.kind == kind


@pytest.mark.parametrize("below", ["hold", "downweight", "drop"])
def test_some_categories_always_need_a_person(below):
    gates = Gates(below=below, review_categories=frozenset({"goal"}))
    goal, other = run(
        claim("User wants to run a marathon", category="goal", confidence=1.0), claim("用户喜欢茶"), gates=gates
    )
    assert goal.kind == "hold" and goal.fact.status == "held" and "goal" in goal.reason
    assert other.kind == "add"


def test_a_less_trusted_source_neither_confirms_nor_lowers_what_is_known():
    fact = kept("User lives in Lisbon", confidence=0.8)
    (change,) = run(claim("User lives in Lisbon", origin="tool", confidence=1.0), facts=[fact])
    assert change.kind == "reject" and "trusted more" in change.reason


def test_a_confirmation_by_the_user_leaves_the_least_trust():
    fact = kept("User lives in Lisbon", confidence=0.8, origin="document", trust=0.2)
    (change,) = run(claim("User lives in Lisbon"), facts=[fact])
    assert change.kind == "confirm" and change.fact.trust == 0.2 and change.fact.origin == "document"


def test_a_held_twin_is_lifted_by_a_sure_statement_and_not_by_another_doubt():
    held = kept("User lives in Lisbon", status="held", confidence=0.5)
    (doubt,) = run(claim("user lives in lisbon.", confidence=0.5), facts=[held])
    assert doubt.kind == "reject" and held.id in doubt.reason
    (lifted,) = run(claim("User lives in Lisbon"), facts=[held])
    assert lifted.kind == "supersede" and lifted.fact.status == "active" and lifted.old.id == held.id


def test_what_was_said_for_one_conversation_becomes_known_everywhere():
    here = kept("User speaks French")
    here = replace(here, scope=replace(HOME, session="s"))
    (again,) = run(claim("User speaks French", session_only=True), facts=[here])
    assert again.kind == "confirm"
    (wider,) = run(claim("User speaks French"), facts=[here])
    assert wider.kind == "supersede" and wider.fact.scope == HOME and wider.old.id == here.id


LONG = (
    "Leads the DataOps team of nine people in Lyon, owns the nightly billing pipeline on Airflow and Postgres, "
    "moves it to Kubernetes before summer, reports to Marta, reviews releases every Thursday morning"
)


@pytest.mark.parametrize(
    ("summary", "kind"), [("Likes tea", "hold"), (LONG.replace("nine", "ten"), "section"), (LONG[:80], "section")]
)
def test_a_summary_that_loses_most_is_held(summary, kind):
    profile = Profile(scope=HOME, sections={"workContext": Section(summary=LONG, updated_at=OLD)})
    (change,) = run(messages=[said("x")], profile=profile, sections={"workContext": summary})
    assert change.kind == kind and change.summary == summary


CHANGED = [
    ("I eat meat again", "User is vegetarian", "User eats meat again"),
    ("我又开始吃肉了", "用户吃素", "用户又吃肉了"),
]


@pytest.mark.parametrize(("words", "old", "new"), CHANGED)
def test_a_removal_and_a_correction_in_other_words_belong_together(words, old, new):
    message = replace(said(words), signals=("correction",))
    gone = (Removal(fact_id="old_1"),)
    (change,) = run(claim(new, words), messages=[message], facts=[kept(old)], removals=gone)
    assert change.kind == "supersede" and change.old.id == "old_1"
    (marked,) = run(claim(new, words, category="correction"), messages=[said(words)], facts=[kept(old)], removals=gone)
    assert marked.kind == "supersede"


@pytest.mark.parametrize(("words", "old", "new"), CHANGED)
def test_a_removal_in_other_words_waits_when_nothing_was_corrected_or_it_could_be_another(words, old, new):
    gone = (Removal(fact_id="old_1"),)
    changes = run(claim(new, words), messages=[said(words)], facts=[kept(old)], removals=gone)
    assert [c.kind for c in changes] == ["add", "hold"]
    message = replace(said(words), signals=("correction",))
    two = (*gone, Removal(fact_id="old_2"))
    changes = run(claim(new, words), messages=[message], facts=[kept(old), kept("User has a bike", 2)], removals=two)
    assert [c.kind for c in changes] == ["add", "hold", "hold"]
