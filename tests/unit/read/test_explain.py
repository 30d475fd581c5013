"""Explanations, replays, and the page, which holds hostile memory as text."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from html.parser import HTMLParser

import pytest

from everlong import Scope, open_memory
from everlong.errors import InvalidInput, NotFound
from everlong.read.explain import explained
from everlong.read.page import page
from everlong.records import Query
from tests.unit.read.desk import ANN, NOW, Desk

HOSTILE = [
    "<img src=x onerror=alert(1)> bees",
    "</td></table></body><script>alert(1)</script> bees",
    '"><svg onload=alert(1)> bees',
    "&lt;script&gt; stays as written, bees",
    "$question ${rows} $$ bees",
    "<!-- bees --!> <style>*{display:none}</style>",
    "蜜蜂 bees <b>粗</b>",
    "\u202ebees backwards\u2066",
    "<a href=javascript:alert(1)>bees</a> ]]> {{bees}}",
]


class Seen(HTMLParser):
    """What a parser makes of a page: its elements, their attributes, the text in table cells and in the block."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str | None]] = []
        self.text = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


def _told(desk: Desk, question: str, **options: int):
    trace = desk.reader.context(ANN, Query(text=question, limit=30), **options).trace
    assert trace is not None
    with desk.store.read() as tx:
        return explained(tx, ANN, trace)


def test_hostile_memory_is_text_on_the_page() -> None:
    desk, plain = Desk(), Desk()
    for number, text in enumerate(HOSTILE):
        desk.know(text)
        plain.know(f"bees {number}")
    told = _told(desk, "bees <script>alert(2)</script>", budget=4000)
    seen = Seen(page(told))
    usual = Seen(page(_told(plain, "bees", budget=4000)))
    for tag in ("script", "img", "a", "b", "iframe", "link", "base", "form"):
        assert not seen.tags[tag], tag
    for tag in ("table", "body", "html", "style", "meta", "pre", "h1"):
        assert seen.tags[tag] == usual.tags[tag], tag
    assert seen.tags["tr"] == 2 + len(told.rows) + len(told.stages)
    for text in HOSTILE:
        assert text.replace("\u202e", "\\u202e").replace("\u2066", "\\u2066") in seen.text
    assert not [name for _, name, _ in seen.attributes if name.startswith("on") or name in {"src", "href", "style"}]


def test_the_page_asks_for_nothing() -> None:
    source = page(_told(Desk(), "bees"))
    assert "default-src 'none'" in source
    for address in ("http:", "https:", "//", "url(", "@import", "src="):
        assert address not in source, address


@pytest.mark.parametrize(("question", "word"), [("garden bees", "garden bees"), ("花园 蜜蜂", "花园里有蜜蜂")])
def test_what_the_block_had_no_room_for_is_dropped_with_its_reason(question: str, word: str) -> None:
    desk = Desk()
    for number in range(20):
        desk.know(f"{word} {number} " + "and so on " * 10)
    told = _told(desk, question, budget=300)
    fates = Counter(row.reason for row in told.rows)
    assert fates["left out of the block: over budget"] > 5
    for row in told.rows:
        assert row.shown == (row.text in told.trace.block)
    assert told.trace.tokens <= told.trace.budget == 300
    assert "left out of the block" in page(told)


def test_stages_follow_each_other() -> None:
    told = _told(Desk(), "bees")
    assert [each.name for each in told.stages] == ["embed", "fact", "message", "compose"]
    assert [each.begins for each in told.stages] == sorted(each.begins for each in told.stages)
    assert told.milliseconds == pytest.approx(sum(told.trace.milliseconds.values()))
    assert told.trace.searched == {"fact": 0, "message": 0}


def test_what_was_erased_since_has_no_text() -> None:
    desk = Desk()
    desk.know("Ann keeps bees")
    trace = desk.ask("bees").trace
    with desk.store.write() as tx:
        tx.erase(ANN)
    with desk.store.read() as tx:
        assert [row.text for row in explained(tx, ANN, trace).rows] == ["(no longer there)"]


# -------------------------------------------------------------------------------------------------------- replay


@pytest.mark.parametrize("word", ["beehive", "蜂箱"])
def test_a_replay_puts_both_answers_side_by_side(word: str) -> None:
    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        ann = memory.at(Scope(user="ann"))
        for what in ("is green", "faces south", "came from Lyon", "needs a new roof"):
            ann.remember(f"{word} {what}")
        trace = ann.recall(word, limit=2).trace
        more, fewer = ann.replay(trace.id, limit=4), ann.replay(trace.id, limit=1)
        assert Counter(row.verdict for row in more.rows) == {"both": 2, "in": 2}
        assert Counter(row.verdict for row in fewer.rows) == {"both": 1, "out": 1, "neither": 2}
        assert more.after.query.limit == 4
        assert more.after.at == trace.at
        strict = ann.replay(trace.id, min_score=1.0)
        assert {row.after.reason for row in strict.rows if row.after} == {"below the threshold of 1.00"}
        with pytest.raises(InvalidInput, match="limit"):
            ann.replay(trace.id, most=3)
        with pytest.raises(NotFound):
            memory.at(Scope(user="bob")).replay(trace.id, limit=4)


def test_a_replay_is_asked_at_the_time_of_the_trace() -> None:
    desk = Desk()
    desk.know("Ann sails", valid_until=NOW + timedelta(days=2))
    trace = desk.ask("sails").trace
    from everlong.read.explain import varied

    desk.clock.advance(5 * 86_400)
    assert [each.reason for each in desk.ask("sails").trace.considered] == ["expired"]
    again = desk.reader.recall(ANN, varied(trace, {}))
    assert [each.reason for each in again.trace.considered] == ["relevant"]
