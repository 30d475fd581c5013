"""Days that a question names, absolute or relative to when it is asked, in English and Chinese. Own rules, no model."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from everlong.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Span = tuple[datetime, datetime]
    Rule = Callable[[re.Match[str], datetime], Span | None]

__all__ = ["dates_in", "zone_of"]

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTH: Final = (
    r"(?P<month>january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\.?"
)
_DAY: Final = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR: Final = r"(?P<year>(?:19|20)\d\d)"
_NUMBERS: Final = {
    **dict(zip("一二三四五六七八九十", range(1, 11), strict=True)), "两": 2, "几": 3, "a": 1, "an": 1, "one": 1, "two": 2,
    "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "few": 3,
}  # fmt: skip


def dates_in(text: str, at: datetime, zone: str = "UTC", *, latest: datetime | None = None) -> list[Span]:
    """``(start, end)`` of each date that ``text`` names, end excluded, aware, as read in ``zone`` at ``at``.

    A day without a year is the last such day not after ``at``, nor after ``latest`` if that is earlier: who asks a
    memory that ends in May 2023 about "27 April" means that year, whenever they ask. "A few" counts as three.

    Raises:
        InvalidInput: ``zone`` is no time zone.
    """
    local = at.astimezone(zone_of(zone))
    last = local if latest is None else min(local, latest.astimezone(local.tzinfo))
    return list(dict.fromkeys(_found(text[:2000].lower(), local, last)))


def zone_of(zone: str) -> ZoneInfo:
    """The time zone called ``zone``, such as ``Asia/Shanghai``.

    Raises:
        InvalidInput: there is none.
    """
    try:
        return ZoneInfo(zone)
    except (KeyError, ValueError, TypeError, OSError) as broken:
        raise InvalidInput(f"{zone!r} is no time zone") from broken


def _found(text: str, at: datetime, last: datetime) -> Iterator[Span]:
    for pattern, rule in _RULES:
        for match in pattern.finditer(text):
            try:
                span = rule(match, last if rule is _named else at)
            except (ValueError, OverflowError):
                continue  # 31 February, a year before time began
            if span is not None:
                yield span
        text = pattern.sub(lambda match: " " * len(match[0]), text)


def _midnight(at: datetime) -> datetime:
    return at.replace(hour=0, minute=0, second=0, microsecond=0)


def _days(start: datetime, count: int = 1) -> Span:
    return start, start + timedelta(days=count)


def _month_of(start: datetime, months: int = 1) -> Span:
    index = start.year * 12 + start.month - 1 + months
    return start, start.replace(year=index // 12, month=index % 12 + 1)


def _named(match: re.Match[str], at: datetime) -> Span:
    """A month or a day, with or without its year."""
    groups = match.groupdict()
    name = groups["month"]
    month = int(name) if name.isdigit() else _MONTHS.index(name[:3]) + 1
    day = int(groups.get("day") or 0)
    year = int(groups.get("year") or at.year)
    start = _midnight(at).replace(year=year, month=month, day=day or 1)
    if not groups.get("year") and start > at:
        start = start.replace(year=year - 1)
    return _days(start) if day else _month_of(start)


def _year(match: re.Match[str], at: datetime) -> Span:
    return _month_of(_midnight(at).replace(year=int(match["year"]), month=1, day=1), 12)


def _count(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBERS[word]


def _ago(match: re.Match[str], at: datetime) -> Span:
    count, unit, today = _count(match["count"]), match["unit"], _midnight(at)
    if unit in {"day", "天"}:
        return _days(today - timedelta(days=count))
    if unit in {"week", "周", "星期", "礼拜"}:
        return _days(today - timedelta(days=7 * count + 3), 7)
    months = count if unit in {"month", "月"} else 12 * count
    first = today.replace(day=1)
    index = first.year * 12 + first.month - 1 - months
    return _month_of(first.replace(year=index // 12, month=index % 12 + 1))


def _offset(match: re.Match[str], at: datetime) -> Span:
    days = {"day before yesterday": 2, "yesterday": 1, "last night": 1, "前天": 2, "昨天": 1, "昨晚": 1, "大前天": 3}
    return _days(_midnight(at) - timedelta(days=days.get(match[0], 0)))


def _weekday(match: re.Match[str], at: datetime) -> Span:
    name, last = match["weekday"], match["which"] in {"last", "上", "上个"}
    wanted = _DAYS.index(name[:3]) if name[0].isascii() else min("一二三四五六日天".index(name), 6)
    today = _midnight(at)
    if name[0].isascii():  # the last such day before today
        return _days(today - timedelta(days=(today.weekday() - wanted - 1) % 7 + 1))
    return _days(today - timedelta(days=today.weekday() + 7 * last - wanted))


def _period(match: re.Match[str], at: datetime) -> Span:
    back = 0 if match["which"] in {"this", "这", "这个", "本", "今"} else 1
    unit, today = match["unit"], _midnight(at)
    if unit in {"week", "周", "星期", "礼拜"}:
        return _days(today - timedelta(days=today.weekday() + 7 * back), 7)
    if unit in {"weekend", "周末"}:
        return _days(today - timedelta(days=today.weekday() + 7 * back - 5), 2)
    if unit in {"month", "月"}:
        first = today.replace(day=1)
        return _month_of((first - timedelta(days=1)).replace(day=1) if back else first)
    return _month_of(today.replace(year=today.year - back, month=1, day=1), 12)


def _this_year(match: re.Match[str], at: datetime) -> Span:
    back = {"今年": 0, "去年": 1, "前年": 2}[match[0]]
    return _month_of(_midnight(at).replace(year=at.year - back, month=1, day=1), 12)


_COUNT: Final = r"(?P<count>\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|few)"
_RULES: Final[tuple[tuple[re.Pattern[str], Rule], ...]] = tuple(
    (re.compile(pattern), rule)
    for pattern, rule in (
        (rf"{_YEAR}[-/.](?P<month>[01]?\d)[-/.](?P<day>[0-3]?\d)(?!\d)", _named),
        (rf"{_YEAR}年(?P<month>[01]?\d)月(?:(?P<day>[0-3]?\d)[日号])?", _named),
        (r"(?<!\d)(?P<month>[01]?\d)月(?:(?P<day>[0-3]?\d)[日号])?(?!前)", _named),
        (rf"\b{_DAY}(?: of)? {_MONTH}(?:,? {_YEAR})?\b", _named),
        (rf"\b{_MONTH} {_DAY}\b(?:,? {_YEAR})?", _named),
        (rf"\b{_MONTH}(?: of|,)? {_YEAR}\b", _named),
        (rf"\b(?:in|during|since|last|of) {_MONTH}(?=\W|$)", _named),
        (rf"\b{_COUNT} (?P<unit>day|week|month|year)s? ago\b", _ago),
        (r"(?P<count>\d{1,3}|[一二三四五六七八九十两几])个?(?P<unit>天|周|星期|礼拜|月|年)(?:之前|以前|前)", _ago),
        (r"\bday before yesterday\b|\byesterday\b|\blast night\b|\btoday\b|大前天|前天|昨天|昨晚|今天", _offset),
        (r"(?P<which>上个|上|这个|这|本)?(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])", _weekday),
        (r"\b(?P<which>last|this|on) (?P<weekday>(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b", _weekday),
        (r"\b(?P<which>last|this) (?P<unit>weekend|week|month|year)\b", _period),
        (r"(?P<which>上个|上|这个|这|本)(?P<unit>周末|周|星期|礼拜|月)", _period),
        (r"今年|去年|前年", _this_year),
        (r"(?<![-/.\d])\b(?P<year>(?:19|20)\d\d)(?=\b|年)(?![-/.]\d)", _year),
    )
)
