"""When upkeep is due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from everlong.errors import ConfigError
from everlong.workers.schedule import Schedule


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 3, 29, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("cron", "idle", "now", "expected"),
    [
        ("0 */6 * * *", 30, at(1), at(1, 30)),
        ("0 */6 * * *", 30, at(5, 50), at(6)),
        ("0 */6 * * *", 0, at(1), at(6)),
        ("0 */6 * * *", 0, at(6), at(12)),
        ("", 30, at(5, 50), at(6, 20)),
        ("", 0, at(1), None),
    ],
)
def test_after_a_pause_and_at_the_fixed_time_at_the_latest(
    cron: str, idle: int, now: datetime, expected: datetime | None
) -> None:
    assert Schedule(cron=cron, idle=timedelta(minutes=idle)).next(now) == expected


@pytest.mark.parametrize("cron", ["now and then", "0 */6 * *", "61 * * * *", "0 0 30 2 *"])
def test_a_time_that_never_comes_is_refused_at_once(cron: str) -> None:
    with pytest.raises(ConfigError, match="upkeep_cron"):
        Schedule(cron=cron)
