"""The soak in small: 20 users, 20 turns, a kill each 0.7 s. ``EVERLONG_SOAK=1`` runs the full size."""

from __future__ import annotations

import os

import pytest

from tests.durability.soak import Plan, run


@pytest.mark.parametrize("kind", ["sqlite_url", "postgres_url"])
def test_every_turn_is_extracted_once_whatever_happens_to_workers(request: pytest.FixtureRequest, kind: str) -> None:
    full = bool(os.environ.get("EVERLONG_SOAK"))
    users, turns, every = (200, 100, 10.0) if full else (20, 20, 0.7)
    figures = run(Plan(url=request.getfixturevalue(kind), users=users, turns=turns, kill_every=every))
    print(figures)
    assert figures["kills"] > 0
    assert figures["failed_calls"] > 0
