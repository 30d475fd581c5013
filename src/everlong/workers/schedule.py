"""When upkeep is due of a memory that changed, and what it does there, as settings say."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cronsim import CronSim, CronSimError
from pydantic import Field, field_validator
from pydantic_settings import BaseSettings

from everlong.errors import ConfigError
from everlong.write.consolidate import Consolidation
from everlong.write.retention import Retention
from everlong.write.review_stale import Review
from everlong.write.upkeep import Rules

__all__ = ["Schedule", "UpkeepSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Upkeep of a memory that was changed is due after a pause of ``idle``, and at the latest when ``cron`` (five
    fields, in UTC) next fires. Without ``cron`` only the pause counts, without ``idle`` only the times of ``cron``;
    with neither there is none.

    Raises:
        ConfigError: ``cron`` is no such expression, or never fires.
    """

    cron: str = "0 */6 * * *"
    idle: timedelta = timedelta(minutes=30)

    def __post_init__(self) -> None:
        self.next(datetime(2000, 1, 1, tzinfo=UTC))

    def next(self, now: datetime) -> datetime | None:
        """When upkeep is due of what changes ``now``, or ``None`` for never."""
        times = [now + self.idle] if self.idle else []
        if self.cron:
            try:
                times.append(next(CronSim(self.cron, now)))
            except (CronSimError, StopIteration):
                msg = f"upkeep_cron is {self.cron!r}; five fields such as 0 */6 * * * are needed, that ever come true"
                raise ConfigError(msg) from None
        return min(times, default=None)


class UpkeepSettings(BaseSettings):
    """The settings of upkeep. Numbers of days: 0 is for good, or never."""

    upkeep_cron: str = Field(
        default="0 */6 * * *", description="upkeep of a memory that changed is due at these times (UTC) at the latest"
    )
    upkeep_idle_minutes: float = Field(
        default=30, ge=0, description="and before, once it was left alone for so long; both empty and 0: no upkeep"
    )
    message_days: int = Field(default=0, ge=0, description="days that messages are kept once extracted; 0: for good")
    max_messages: int = Field(default=0, ge=0, description="messages of one user that are kept; 0: all")
    extraction_days: int = Field(default=90, ge=0, description="days that records of extractions are kept")
    trace_days: int = Field(default=30, ge=0, description="days that stored traces of questions are kept")
    journal_days: int = Field(default=0, ge=0, description="days that all of the journal is kept; 0: for good")
    retired_days: int = Field(default=0, ge=0, description="days that retired facts can be restored; 0: for good")
    version_days: int = Field(default=0, ge=0, description="days that earlier versions are kept; 0: for good")
    ended_days: int = Field(default=30, ge=0, description="days after its end that a fact is retired; 0: never")
    category_days: dict[str, int] = Field(
        default={}, description="days without a sign of life after which facts of a category are retired"
    )
    stale_days: int = Field(default=90, ge=0, le=365, description="facts silent for so long are reviewed; 0: none are")
    stale_removals: int = Field(default=10, ge=1, le=100, description="facts that one review removes at most")
    consolidate: bool = Field(default=True, description="with extractor llm: many facts of a category become few")
    consolidate_facts: int = Field(default=8, ge=3, le=30, description="facts of a category that are many")

    @field_validator("upkeep_cron")
    @classmethod
    def _ever(cls, cron: str) -> str:
        try:
            Schedule(cron=cron)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return cron

    def schedule(self) -> Schedule:
        """When upkeep is due. Raises :class:`~everlong.errors.ConfigError`."""
        return Schedule(cron=self.upkeep_cron, idle=timedelta(minutes=self.upkeep_idle_minutes))

    def upkeep_rules(self, duplicate: float, *, daily_tokens: int) -> Rules:
        """What upkeep does; ``duplicate`` is the cosine from which two facts say the same."""
        retention = Retention(
            messages=self.message_days,
            max_messages=self.max_messages,
            extractions=self.extraction_days,
            traces=self.trace_days,
            journal=self.journal_days,
            retired=self.retired_days,
            versions=self.version_days,
            ended=self.ended_days,
            categories=self.category_days,
        )
        return Rules(
            retention=retention,
            review=Review(enabled=self.stale_days > 0, days=self.stale_days, most=self.stale_removals),
            consolidation=Consolidation(enabled=self.consolidate, least=self.consolidate_facts),
            duplicate=duplicate,
            daily_tokens=daily_tokens,
        )
