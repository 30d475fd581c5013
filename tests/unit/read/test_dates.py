"""Days that questions name, in English and Chinese, absolute and relative."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from everlong.errors import InvalidInput
from everlong.read.dates import dates_in

AT = datetime(2026, 5, 20, 12, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("What did I do on 2026-03-02?", "2026-03-02", "2026-03-03"),
        ("2026年3月2日我做了什么？", "2026-03-02", "2026-03-03"),
        ("3月2号我做了什么？", "2026-03-02", "2026-03-03"),
        ("Where was I on March 2nd, 2025?", "2025-03-02", "2025-03-03"),
        ("Where was I on 2 March 2025?", "2025-03-02", "2025-03-03"),
        ("What happened on June 3?", "2025-06-03", "2025-06-04"),
        ("6月3日发生了什么", "2025-06-03", "2025-06-04"),
        ("What did we plan in December?", "2025-12-01", "2026-01-01"),
        ("12月我们计划了什么", "2025-12-01", "2026-01-01"),
        ("Who did I meet yesterday?", "2026-05-19", "2026-05-20"),
        ("昨天我见了谁？", "2026-05-19", "2026-05-20"),
        ("前天我见了谁？", "2026-05-18", "2026-05-19"),
        ("大前天呢？", "2026-05-17", "2026-05-18"),
        ("What did I say three days ago?", "2026-05-17", "2026-05-18"),
        ("三天前我说了什么", "2026-05-17", "2026-05-18"),
        ("What did I eat two months ago?", "2026-03-01", "2026-04-01"),
        ("两个月前我吃了什么", "2026-03-01", "2026-04-01"),
        ("What did I do last week?", "2026-05-11", "2026-05-18"),
        ("上周我做了什么", "2026-05-11", "2026-05-18"),
        ("上周五我做了什么", "2026-05-15", "2026-05-16"),
        ("What did I do last Friday?", "2026-05-15", "2026-05-16"),
        ("Plans from last weekend?", "2026-05-16", "2026-05-18"),
        ("上个月的账单", "2026-04-01", "2026-05-01"),
        ("Where did we go last year?", "2025-01-01", "2026-01-01"),
        ("去年我们去了哪里", "2025-01-01", "2026-01-01"),
        ("前年我们去了哪里", "2024-01-01", "2025-01-01"),
    ],
)
def test_a_day_is_read(question: str, first: str, last: str) -> None:
    [(start, end)] = dates_in(question, AT)
    assert (f"{start:%Y-%m-%d}", f"{end:%Y-%m-%d}") == (first, last)


@pytest.mark.parametrize(
    "question",
    ["", "What may I eat?", "Version 3.11.2", "31 February 2026", "2026-13-45", "一天到晚", "I march on", "Room 2026a"],
)
def test_no_day_is_made_up(question: str) -> None:
    assert dates_in(question, AT) == []


def test_today_is_that_of_the_zone() -> None:
    late = datetime(2026, 5, 20, 20, tzinfo=UTC)
    [(start, _)] = dates_in("今天", late, "Asia/Shanghai")
    assert f"{start:%Y-%m-%d %z}" == "2026-05-21 +0800"
    with pytest.raises(InvalidInput):
        dates_in("today", late, "Nowhere/Land")


@pytest.mark.parametrize("question", ["What did I do on April 27?", "在4月27号这天我做了什么"])
def test_a_day_without_a_year_is_the_last_that_memory_reaches(question: str) -> None:
    assert dates_in(question, AT)[0][0].year == 2026
    assert dates_in(question, AT, latest=datetime(2023, 5, 9, tzinfo=UTC))[0][0].year == 2023
    assert dates_in("昨天", AT, latest=datetime(2023, 5, 9, tzinfo=UTC))[0][0].year == 2026
