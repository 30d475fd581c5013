"""G7, EasyMetaAu/helm-api#332: a lively user keeps resetting the timer, and nothing is saved for hours."""

from __future__ import annotations

from datetime import timedelta

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.testing.fakes import CountingIds, FakeClock
from tests.durability.gated import Echo, facts
from tests.durability.soak import marker

TALK = Scope(user="ann", session="t1")


@pytest.mark.parametrize(
    ("apart", "most_calls"),
    [(20, 20), (1, 12), (29.9, 25)],
    ids=["each 20 s", "each second", "just within the pause"],
)
def test_a_lively_user_is_learned_from_every_few_minutes(apart: float, most_calls: int) -> None:
    clock, echo = FakeClock(), Echo()
    settings = Settings(url="sqlite://", embedder="none", worker="none", max_facts=500)
    with build(settings, extractor=echo, clock=clock, new_id=CountingIds()) as memory:
        oldest = timedelta()
        for turn in range(200):
            memory.at(TALK).add([("user", marker(turn % 2, turn))])
            until = clock() + timedelta(seconds=apart)
            while clock() < until:
                memory.parts.worker.run_due()
                with memory.parts.store.read() as tx:
                    state = tx.sessions.get(TALK)
                    waiting = tx.messages.after(TALK, state.extracted if state else 0)
                if waiting:
                    oldest = max(oldest, clock() - waiting[0].created_at)
                clock.advance(min(10, (until - clock()).total_seconds()))
        assert oldest <= timedelta(seconds=310)
        clock.advance(31)
        memory.parts.worker.run_due()
        assert facts(memory, TALK) == sorted(marker(turn % 2, turn) for turn in range(200))
        assert 200 / 20 <= echo.calls <= most_calls
