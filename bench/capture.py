"""What keeping one turn costs: ``add`` against one plain insert-and-commit, and beside a model that takes 20 seconds.

    python bench/capture.py [--turns 500] [--json]

A turn is a user's message and the assistant's answer, about 200 bytes, kept durably (``synchronous = FULL``). The plain
insert commits the same bytes into a bare table of a file of its own on the same disk with the same pragmas, in turns
with ``add``, so that both meet the same disk. Embedding and extraction are jobs and take no part in it. The second
figure is taken while the background worker waits for a chat model that answers after 20 seconds: what an agent's turn
takes longer because it is remembered. Targets: at most three plain inserts, and less than 5 ms for 95 of 100 turns.
"""

from __future__ import annotations

import argparse
import gc
import json
import tempfile
import threading
from pathlib import Path
from time import perf_counter, sleep
from typing import TYPE_CHECKING

import numpy as np

from everlong import Scope, open_memory
from everlong.config import Settings, build
from everlong.errors import ModelError
from everlong.store.sqlite import Sqlite

if TYPE_CHECKING:
    from collections.abc import Callable

    from everlong.memory import Memory

PRAGMAS = ("journal_mode", "synchronous", "secure_delete", "temp_store", "wal_autocheckpoint")
TALK = Scope(user="ann", session="talk")
WAIT, PACE = 20.0, 0.2
"""Seconds: what the model takes, and between two turns; embedding goes on meanwhile, as it would."""


def turn(number: int) -> list[tuple[str, str]]:
    """One turn in the language of its number: even ones English, odd ones Chinese."""
    if number % 2:
        return [
            ("user", f"我在第 {number} 号车间负责浇花系统的传感器，采样间隔是一秒。"),
            ("assistant", "好的，记下了。" * 6),
        ]
    asked = f"I work on the plant watering system in hall {number} and sample the sensor once a second."
    return [
        ("user", asked),
        ("assistant", "Understood. A moving average over ten samples will smooth the readings well."),
    ]


class Plain:
    """A bare table in a file of its own, with the driver and the pragmas of the store's connections."""

    def __init__(self, path: Path) -> None:
        self._connection = Sqlite(path)._connect()
        self.pragmas = {name: self._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in PRAGMAS}
        self._connection.execute("CREATE TABLE said (id INTEGER PRIMARY KEY, role TEXT, content TEXT)")

    def insert(self, number: int) -> None:
        """One turn as one row, committed."""
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute(
            "INSERT INTO said (role, content) VALUES (?, ?)", ("turn", json.dumps(turn(number), ensure_ascii=False))
        )
        self._connection.execute("COMMIT")


class Slow:
    """A chat model that answers after 20 seconds, or as soon as the measurement is over."""

    name = "slow"

    def __init__(self) -> None:
        self.asked, self.over = threading.Event(), threading.Event()

    def complete(self, *_: object, **__: object) -> None:
        """Waits, then fails: its answer plays no part."""
        self.asked.set()
        self.over.wait(WAIT)
        raise ModelError("slow")


def timed(work: Callable[[], object]) -> float:
    """Milliseconds that ``work`` took."""
    started = perf_counter()
    work()
    return (perf_counter() - started) * 1000


def shares(times: list[float]) -> dict[str, float]:
    """Median and 95th percentile, in milliseconds."""
    return {f"p{share}_ms": round(float(np.percentile(times, share)), 3) for share in (50, 95)}


def durable(folder: Path, turns: int) -> dict[str, object]:
    """``add`` and the plain insert in turns."""
    added, plainly = [], []
    with open_memory(f"sqlite:///{folder / 'memory.db'}", worker="none", max_waiting_messages=10_000_000) as memory:
        talk = memory.at(TALK)
        talk.add(turn(0))
        plain = Plain(folder / "plain.db")
        gc.disable()
        for number in range(1, turns + 1):
            plainly.append(timed(lambda n=number: plain.insert(n)))
            added.append(timed(lambda n=number: talk.add(turn(n))))
        gc.enable()
    ratio = round(float(np.median(added) / np.median(plainly)), 2)
    return {"add": shares(added), "plain": shares(plainly), "ratio_p50": ratio, "pragmas": plain.pragmas}


def beside(memory: Memory, model: Slow, plain: Plain, turns: int) -> dict[str, object]:
    """``add`` while the worker waits for the model, a turn every 0.2 s, with a plain insert before each."""
    talk = memory.at(TALK)
    talk.add([("user", "remember that I like tea")])
    if not model.asked.wait(10):
        raise SystemExit("the worker never asked the model")
    added, plainly = [], []
    for number in range(turns):
        sleep(PACE)
        plainly.append(timed(lambda n=number: plain.insert(n)))
        added.append(timed(lambda n=number: talk.add(turn(n))))
    return {"add": shares(added), "plain": shares(plainly)}


def measure(turns: int) -> dict[str, object]:
    """Both figures, each on a store of its own."""
    with tempfile.TemporaryDirectory() as folder:
        answer = durable(Path(folder), turns)
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(url=f"sqlite:///{folder}/memory.db", extractor="llm", max_waiting_messages=10_000_000)
        model = Slow()
        memory = build(settings, chat_model=model)
        try:
            answer["beside_a_slow_model"] = beside(
                memory, model, Plain(Path(folder) / "plain.db"), min(turns, int(0.9 * WAIT / PACE))
            )
        finally:
            model.over.set()
            memory.close(timeout=1)
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=500)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    answer = measure(given.turns)
    if given.json:
        print(json.dumps(answer, indent=1))
        return
    for name, figures in answer.items():
        print(f"{name:22}{figures}")


if __name__ == "__main__":
    main()
