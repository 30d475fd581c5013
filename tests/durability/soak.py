"""Many users talk while workers are killed and their model fails: every accepted turn is extracted once in effect.

``python -m tests.durability.soak`` runs the full size (200 users × 100 turns, a kill every 10 s) and prints the figures;
``--url`` takes another store, ``--users``, ``--turns`` and ``--every`` another size.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from everlong import Principal, Scope
from everlong.config import Settings, build
from everlong.errors import ModelError
from everlong.records import Candidate, Evidence, Extraction

if TYPE_CHECKING:
    from everlong.memory import Memory, ScopedMemory
    from everlong.records import Batch

FORK = multiprocessing.get_context("fork")
OPERATOR = Principal(id="soak", role="operator")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much is said, and how roughly the workers are treated."""

    url: str
    users: int
    turns: int
    kill_every: float
    failing: float = 0.2
    call_seconds: float = 0.02
    limit: float = 1200


class Echo:
    """An extractor that takes its time, fails as often as it is told, and makes each user message one fact."""

    name = "echo"

    def __init__(self, plan: Plan, seed: int) -> None:
        self._plan, self._dice = plan, random.Random(seed)

    def extract(self, batch: Batch) -> Extraction:
        time.sleep(self._plan.call_seconds * 2 * self._dice.random())
        if self._dice.random() < self._plan.failing:
            raise ModelError("the stub was told to fail")
        facts = tuple(
            Candidate(content=m.content, confidence=0.9, evidence=(Evidence(message_id=m.id, quote=m.content),))
            for m in batch.messages
        )
        return Extraction(candidates=facts, extractor=self.name)


def opened(plan: Plan, seed: int = 0) -> Memory:
    settings = Settings(
        url=plan.url,
        embedder="none",
        worker="none",
        max_facts=500,
        debounce_seconds=1,
        max_wait_seconds=5,
        batch_messages=5,
        lease_seconds=2,
    )
    return build(settings, extractor=Echo(plan, seed))


def marker(user: int, turn: int) -> str:
    """What only this turn says: words that have nothing in common with any other's, so that none replaces another."""
    dice = random.Random(f"{user}/{turn}")
    first, last = (0x4E00, 0x9FA5) if user % 2 else (ord("a"), ord("z"))
    return " ".join("".join(chr(dice.randint(first, last)) for _ in range(8)) for _ in range(4))


def at(memory: Memory, user: int, session: str = "") -> ScopedMemory:
    return memory.at(Scope(user=f"user-{user}", session=session))


def talk(plan: Plan, users: range, accepted: Any) -> None:
    """One writer: its users say one thing after another, each in three conversations by turns."""
    memory = opened(plan)
    for turn in range(plan.turns):
        for user in users:
            added = at(memory, user, f"talk-{turn % 3}").add([("user", marker(user, turn))])
            assert added.status == "queued"
    memory.close()
    accepted.put(len(users) * plan.turns)


def work(plan: Plan, seed: int) -> None:
    opened(plan, seed).parts.worker.run_forever()


class Crew:
    """Two worker processes, of which one is killed now and then and replaced at once."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._hired, self.kills = plan, 0, 0
        self._dice = random.Random(7)
        self._workers = [self._hire(), self._hire()]
        self._next = time.monotonic() + plan.kill_every

    def _hire(self) -> Any:
        self._hired += 1
        worker = FORK.Process(target=work, args=(self._plan, self._hired), daemon=True)
        worker.start()
        return worker

    def look(self) -> None:
        if time.monotonic() < self._next:
            return
        self._next += self._plan.kill_every
        victim = self._dice.randrange(2)
        self._workers[victim].kill()
        self._workers[victim].join()
        self.kills += 1
        self._workers[victim] = self._hire()

    def dismiss(self) -> None:
        for worker in self._workers:
            worker.kill()
            worker.join()


def run(plan: Plan) -> dict[str, Any]:
    """Says everything, waits until nothing waits, and checks every turn; gives the figures."""
    opened(plan).close()
    began = time.monotonic()
    accepted = FORK.Queue()
    shares = [range(0, plan.users, 2), range(1, plan.users, 2)]
    writers = [FORK.Process(target=talk, args=(plan, share, accepted), daemon=True) for share in shares]
    crew = Crew(plan)
    try:
        for writer in writers:
            writer.start()
        while any(writer.is_alive() for writer in writers):
            crew.look()
            time.sleep(0.02)
        said = time.monotonic() - began
        with opened(plan) as memory:
            freed = finish(plan, memory, crew, began)
    finally:
        crew.dismiss()
    with opened(plan) as memory:
        figures = check(plan, memory)
    turns = sum(accepted.get(timeout=10) for _ in writers)
    assert turns == plan.users * plan.turns
    seconds = time.monotonic() - began
    return {"turns": turns, "said_s": said, "all_s": seconds, "kills": crew.kills, "unparked": freed, **figures}


def finish(plan: Plan, memory: Memory, crew: Crew, began: float) -> int:
    """Waits until no job is left; what was parked is looked at and let go again, as an operator would."""
    everything, freed = memory.at(Scope(), by=OPERATOR), 0
    while left := everything.jobs():
        assert time.monotonic() - began < plan.limit, left[:5]
        crew.look()
        for job in left:
            if job.state == "parked":
                with suppress(LookupError):  # done meanwhile through newer work of the same conversation
                    everything.retry(job.id)
                    freed += 1
        everything.flush()
        time.sleep(0.2)
    return freed


def check(plan: Plan, memory: Memory) -> dict[str, int]:
    failed = 0
    for user in range(plan.users):
        mine = at(memory, user)
        expected = {marker(user, turn): 1 for turn in range(plan.turns)}
        messages = mine.messages(limit=plan.turns * 2)
        assert Counter(m.content for m in messages) == expected
        facts = [*mine.facts(limit=1000, status=None).items]
        assert Counter(fact.content for fact in facts) == expected
        assert {(f.confirmations, f.version, f.status, len(f.evidence)) for f in facts} == {(0, 1, "active", 1)}
        records = mine.extractions(limit=1000).items
        failed += sum(bool(record.error) for record in records)
        read = Counter(name for record in records if not record.error for name in record.messages)
        assert read == {m.id: 1 for m in messages}
    return {"failed_calls": failed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="")
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--every", type=float, default=10)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = asked.url or f"sqlite:///{folder}/soak.db"
        print(run(Plan(url=url, users=asked.users, turns=asked.turns, kill_every=asked.every)))


if __name__ == "__main__":
    main()
