"""A5: variants pile up while opposites are thrown away: mnemon-dev/mnemon#133, bytedance/deer-flow#1193,
doobidoo/mcp-memory-service#391."""

import unicodedata

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.records import Candidate, Evidence, Extraction
from everlong.testing.fakes import FakeClock, TableEmbedder

ONE = [
    ["User prefers Vim", " user prefers vim ", "User prefers Vim.", "Ｕｓｅｒ prefers Vim"],
    [unicodedata.normalize(form, "User owns a café") for form in ("NFC", "NFD", "NFKC")],
    ["用户喜欢喝茶", " 用户喜欢喝茶。", "用户喜欢喝茶！"],
]
APART = [
    ("Production deployment is allowed", "Production deployment is not allowed", "supersede"),
    ("用户吃辣", "用户不吃辣", "supersede"),
    ("User lives in Berlin", "User lives in Paris", "supersede"),
    ("User runs 5 km a day", "User runs 6 km a day", "supersede"),
    # Another unit may be another way to say it: both stay, since a lost fact is worse than one too many.
    ("User runs 5 km a day", "User runs 5 miles a day", "add"),
    ("用户住在北京", "用户住在上海", "supersede"),
    ("The release is on 2026-03-01", "The release is on 2026-03-02", "add"),
    ("评审在3月1日", "评审在3月2日", "add"),
    ("User drinks tea", "User drinks coffee", "add"),
    ("Tom manages Ann", "Ann manages Tom", "add"),
    ("User works with Alice Chen", "User works with Bob Chen", "add"),
]


class Said:
    """An extractor that takes every user message for a fact."""

    name = "said"

    def extract(self, batch):
        return Extraction(
            extractor=self.name,
            candidates=tuple(
                Candidate(content=m.content, confidence=0.9, evidence=(Evidence(message_id=m.id, quote=m.content),))
                for m in batch.messages
            ),
        )


def opened(*contents):
    """All texts have the cosine 1: whether they say the same is for the words to tell."""
    alike = TableEmbedder({content: (1.0, 0.0) for group in contents for content in (group, group.strip())}, 2)
    chosen = Settings(url="sqlite://", worker="none")
    return build(chosen, embedder=alike, extractor=Said(), clock=FakeClock(tick=1.0))


@pytest.mark.parametrize("apart", [False, True], ids=["one batch", "one after the other"])
@pytest.mark.parametrize("variants", ONE)
def test_variants_become_one_and_each_is_accounted_for(variants, apart):
    with opened(*variants) as memory:
        ann = memory.at(Scope(user="ann", session="s"))
        for group in [[v] for v in variants] if apart else [variants]:
            ann.add([("user", v) for v in group])
            memory.drain()
        assert len(ann.facts().items) == 1
        decided = [o for record in ann.extractions().items for o in record.decisions]
        stored = len(ann.messages())
        assert len(decided) == stored and sum(o.kind == "add" for o in decided) == 1
        assert all(o.kind in {"add", "confirm", "reject"} and o.reason for o in decided)
        assert not apart or ann.facts().items[0].confirmations == stored - 1


@pytest.mark.parametrize("apart", [False, True], ids=["one batch", "one after the other"])
@pytest.mark.parametrize(("first", "second", "kind"), APART)
def test_what_differs_in_one_thing_that_counts_stays_apart(first, second, kind, apart):
    with opened(first, second) as memory:
        ann = memory.at(Scope(user="ann", session="s"))
        for group in [[first], [second]] if apart else [[first, second]]:
            ann.add([("user", v) for v in group])
            memory.drain()
        active = {fact.content for fact in ann.facts().items}
        assert active == ({second} if kind == "supersede" else {first, second})
        if apart and kind == "supersede":
            (new,) = ann.facts().items
            (old,) = ann.facts(status="retired").items
            assert new.supersedes == old.id and old.superseded_by == new.id and old.content == first


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ("User may want short answers", "User may want answers that are short"),
        ("用户可能希望回答尽量简短", "用户可能希望尽量简短地回答"),
    ],
)
def test_what_waits_for_review_does_not_pile_up_in_other_words(first, again):
    class Unsure(Said):
        def extract(self, batch):
            return Extraction(
                candidates=tuple(
                    Candidate(content=m.content, confidence=0.5, evidence=(Evidence(message_id=m.id, quote=m.content),))
                    for m in batch.messages
                )
            )

    alike = TableEmbedder({first: (1.0, 0.0), again: (1.0, 0.01)}, 2)
    with build(
        Settings(url="sqlite://", worker="none"), embedder=alike, extractor=Unsure(), clock=FakeClock()
    ) as memory:
        for session, words in (("s1", first), ("s2", again), ("s3", first)):
            ann = memory.at(Scope(user="ann", session=session))
            ann.add([("user", words)])
            memory.drain()
        assert len(ann.facts(status="held").items) == len(ann.inbox.list().items) == 1
