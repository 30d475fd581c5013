"""Dates in a sentence, read from the time at which it was said; English and Chinese, the plain ones only."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from collections.abc import Callable

_WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_HAN_DAYS: Final = "一二三四五六日"
_DAYS: Final = {"今天": 0, "明天": 1, "后天": 2, "大后天": 3, "昨天": -1, "前天": -2, "today": 0, "tomorrow": 1} | {
    "tonight": 0,
    "yesterday": -1,
    "the day after tomorrow": 2,
    "the day before yesterday": -2,
}
_WEEKDAY: Final = r"(?P<day>mon|tues?|wednes|wed|thurs?|thu|fri|satur|sat|sun)(?:day)?"
_MONTH: Final = r"(?P<month>jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\.?"
_UNITS: Final = {"day": "day", "week": "week", "month": "month", "year": "year", "天": "day", "周": "week"} | {
    "星期": "week",
    "月": "month",
    "年": "year",
}
_NUMBERS: Final = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "一": 1,
    "两": 2,
    "二": 2,
    "三": 3,
    "四": 4,
    "半": 0,
}
_OPEN: Final = re.compile(r"\b(?:from|since|starting|moved|started|joined|bought|switched)\b|从|起|开始|搬")
_BY: Final = re.compile(r"\b(?:by|until|till|before|due|deadline)\b|之前|以前|截止|直到")

Span = tuple[datetime, datetime]


def resolve(sentence: str, said_at: datetime, zone: str = "UTC") -> tuple[datetime | None, datetime | None]:
    """From when to when the sentence holds, in UTC; ``None`` where it does not say.

    A coming day, week or month gives both ends; a past one, and "from …", only the start; "by …" only the end.
    Days are days of ``zone``. Weeks begin on Monday; "next Wednesday" and 下周三 are Wednesday of next week.
    """
    local = said_at.astimezone(ZoneInfo(zone))
    today = local.replace(hour=0, minute=0, second=0, microsecond=0)
    lowered = sentence.lower()
    span = next((found for rule, read in _RULES if (m := rule.search(lowered)) and (found := read(m, today))), None)
    if span is None:
        return None, None
    start, end = span[0].astimezone(UTC), span[1].astimezone(UTC)
    if span[1] <= today or (_OPEN.search(lowered) and not _BY.search(lowered)):
        return start, None
    return (None, end) if _BY.search(lowered) else (start, end)


def _date(match: re.Match[str], today: datetime) -> Span | None:
    """A calendar date; without a year the coming one, at most half a year back."""
    named = match.groupdict()
    month = named["month"]
    number = int(month) if month.isdigit() else _MONTHS.index(month[:3]) + 1
    year, day = named.get("year"), named.get("mday")
    try:
        start = today.replace(year=int(year) if year else today.year, month=number, day=int(day or 1))
        if not year and start < today - timedelta(days=183):
            start = start.replace(year=start.year + 1)
    except ValueError:
        return None
    return start, start + timedelta(days=1) if day else _shift(start, "month", 1)


def _named_day(match: re.Match[str], today: datetime) -> Span:
    start = today + timedelta(days=_DAYS[match[0]])
    return start, start + timedelta(days=1)


def _weekday(match: re.Match[str], today: datetime) -> Span:
    named = match.groupdict()
    day = named["day"].replace("天", "日")
    number = _HAN_DAYS.index(day) if day in _HAN_DAYS else _WEEKDAYS.index(day[:3])
    weeks = _weeks(named["which"] or "")
    start = today + timedelta(days=number - today.weekday() + 7 * weeks)
    if not named["which"] and start < today:
        start += timedelta(days=7)
    return start, start + timedelta(days=1)


def _weeks(which: str) -> int:
    if which.startswith(("next", "下")):
        return which.count("下") or 1
    return -1 if which.startswith(("last", "上")) else 0


def _unit(match: re.Match[str], today: datetime) -> Span:
    """This, next or last week, month or year."""
    which, unit = match["which"], _UNITS[match["unit"]]
    step = {"明": 1, "去": -1, "今": 0}.get(which, _weeks(which))
    start = _shift(_begin(today, unit), unit, step)
    return start, _shift(start, unit, 1)


def _distance(match: re.Match[str], today: datetime) -> Span:
    named = match.groupdict()
    count = int(named["n"]) if named["n"].isdigit() else _NUMBERS[named["n"]]
    start = _shift(today, _UNITS[named["unit"]], -count if match.lastgroup == "ago" else count)
    return start, start + timedelta(days=1)


def _begin(day: datetime, unit: str) -> datetime:
    if unit == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if unit == "month" else day.replace(month=1, day=1)


def _shift(day: datetime, unit: str, count: int) -> datetime:
    if unit in ("day", "week"):
        return day + timedelta(days=count * (7 if unit == "week" else 1))
    months = day.year * 12 + day.month - 1 + count * (12 if unit == "year" else 1)
    return day.replace(year=months // 12, month=months % 12 + 1, day=min(day.day, 28))


_N: Final = r"(?P<n>\d{1,3}|an?|one|two|three)"
_RULES: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str], datetime], Span | None]], ...]] = (
    (re.compile(r"\b(?P<year>20\d\d)-(?P<month>\d\d?)-(?P<mday>\d\d?)\b"), _date),
    (re.compile(r"(?:(?P<year>20\d\d)年)?(?<!\d)(?P<month>\d\d?)月(?P<mday>\d\d?)[日号]"), _date),
    (re.compile(r"(?P<year>20\d\d)年(?P<month>\d\d?)月"), _date),
    (re.compile(rf"\b{_MONTH} (?P<mday>\d\d?)(?:st|nd|rd|th)?\b(?:,? (?P<year>20\d\d))?"), _date),
    (re.compile(rf"\b(?P<mday>\d\d?)(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? (?P<year>20\d\d))?\b"), _date),
    (
        re.compile(r"\bthe day (?:after tomorrow|before yesterday)\b|\b(?:today|tonight|tomorrow|yesterday)\b"),
        _named_day,
    ),
    (re.compile("大后天|今天|明天|后天|昨天|前天"), _named_day),
    (re.compile(rf"\b(?P<which>next|last|this)(?: week)? (?:on )?{_WEEKDAY}\b"), _weekday),
    (re.compile("(?P<which>下下|下|上|这|本)个?(?:周|星期|礼拜)(?P<day>[一二三四五六日天])"), _weekday),
    (re.compile(rf"\b(?P<which>)on {_WEEKDAY}\b"), _weekday),
    (re.compile("(?P<which>)(?<![每个])(?:周|星期|礼拜)(?P<day>[一二三四五六日天])"), _weekday),
    (re.compile(r"\b(?P<which>next|last|this) (?P<unit>week|month|year)\b"), _unit),
    (re.compile("(?P<which>下下|下|上|这|本)个?(?P<unit>周|星期|月)"), _unit),
    (re.compile("(?P<which>明|去|今)(?P<unit>年)"), _unit),
    (re.compile(rf"\b{_N} (?P<unit>day|week|month|year)s?(?P<ago> ago)\b"), _distance),
    (re.compile(rf"\bin {_N} (?P<unit>day|week|month|year)s?\b"), _distance),
    (re.compile("(?P<n>\\d{1,3}|[一两二三四])个?(?P<unit>天|周|星期|月|年)(?P<ago>前)"), _distance),
    (re.compile("(?P<n>\\d{1,3}|[一两二三四])个?(?P<unit>天|周|星期|月|年)[之以]?后"), _distance),
    (re.compile(rf"\b(?:in|by|since|until) {_MONTH}(?: (?P<year>20\d\d))?\b"), _date),
)
