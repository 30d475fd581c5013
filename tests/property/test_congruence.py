"""One random script, two engines, equal answers at every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, is_dataclass, replace
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from everlong.errors import EverlongError
from everlong.protocols import Store, Transaction
from everlong.records import ALL_KINDS, Scope
from everlong.store import open_store
from everlong.testing import CountingIds, FakeClock
from everlong.testing.samples import (
    ANN,
    BOB,
    TALK,
    at,
    entry,
    extraction,
    fact,
    file,
    indexed,
    job,
    message,
    profile,
    proposal,
)

SCOPES = (ANN, BOB, Scope(org="acme"), Scope(), TALK, Scope(org="acme", agent="coder", user="ann"))
TALKS = (TALK, replace(TALK, session="walk"), replace(BOB, session="talk"))
TEXTS = ("tea", "安娜喜欢喝茶。", "100% a_b", "👩‍👩‍👧?", 'It\'s "odd" \\', "ß ẞ É é e\u0301")
KINDS = ("extract", "embed")


@dataclass
class Step:
    """One operation: which, and the numbers from which its arguments are taken."""

    name: str
    a: int
    b: int
    text: str


STEPS = st.builds(
    Step,
    name=st.sampled_from(
        "add add revise retire touch vectors say say again list talk advance fence profile file unfile files "
        "put put claim done retry postpone park release hurry jobs journal entries index erase "
        "propose propose inbox decide record records purge".split()
    ),
    a=st.integers(0, 7),
    b=st.integers(0, 7),
    text=st.sampled_from(TEXTS),
)


class Player:
    """Plays a script on one store; all it knows comes from the script and the store's own answers."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.numbers = count()
        self.facts: list[Any] = []
        self.messages: list[str] = []
        self.claimed: list[Any] = []

    def play(self, step: Step) -> Any:
        action: Callable[[Transaction, Step], Any] = getattr(self, f"do_{step.name}")
        try:
            with self.store.write() as tx:
                return plain(action(tx, step))
        except EverlongError as error:
            return type(error).__name__, str(error)

    def new(self, prefix: str) -> str:
        return f"{prefix}{next(self.numbers):03d}"

    def a_fact(self, step: Step) -> Any:
        return self.facts[step.a % len(self.facts)] if self.facts else fact("none")

    def a_claim(self, step: Step) -> Any:
        return self.claimed[step.a % len(self.claimed)] if self.claimed else job("none")

    def do_add(self, tx: Transaction, step: Step) -> Any:
        vectors = [[step.a, 1.0], [1.0, step.b]][: step.b % 3]
        session = ("", "talk")[step.a % 2]
        made = fact(self.new("f"), SCOPES[step.a % 6], seconds=step.b, content=step.text, session=session)
        self.facts.append(tx.facts.add(made, indexed(step.text, model="m", vectors=vectors or None)))
        return self.facts[-1]

    def do_revise(self, tx: Transaction, step: Step) -> Any:
        old = self.a_fact(step)
        changed = replace(old, content=step.text, confidence=step.b / 8, metadata={"t": step.text})
        return tx.facts.revise(changed, expected=1 + step.b % 2, indexed=indexed(step.text))

    def do_retire(self, tx: Transaction, step: Step) -> Any:
        old = self.a_fact(step)
        now = tx.facts.get(old.scope, old.id)
        return tx.facts.revise(replace(now, status="retired", retired_at=at(step.b)), expected=now.version)

    def do_touch(self, tx: Transaction, step: Step) -> Any:
        return tx.facts.touch(SCOPES[step.b % 6], [one.id for one in self.facts], at(step.a))

    def do_vectors(self, tx: Transaction, step: Step) -> Any:
        old = self.a_fact(step)
        return tx.facts.set_vectors(old.scope, old.id, indexed(step.text, model="m", vectors=[[1, step.b]]))

    def do_say(self, tx: Transaction, step: Step) -> Any:
        talk = TALKS[step.a % 3]
        said = [message(self.new("m"), talk, seconds=step.b, content=step.text) for _ in range(1 + step.b % 2)]
        self.messages += [one.id for one in said]
        return tx.messages.append(talk, said, [indexed(step.text)] * len(said))

    def do_again(self, tx: Transaction, step: Step) -> Any:
        talk = TALKS[step.a % 3]
        said = [message(name, talk, content=step.text) for name in self.messages[: step.b]]
        return tx.messages.append(talk, said, [indexed(step.text)] * len(said))

    def do_list(self, tx: Transaction, step: Step) -> Any:
        scope = SCOPES[step.a % 6]
        page = tx.facts.list(scope, status=(None, "active", "retired")[step.b % 3], limit=1 + step.b % 3)
        more = tx.facts.list(scope, cursor=page.next, limit=2, status=(None, "active", "retired")[step.b % 3])
        old = self.a_fact(step)
        return page, more, tx.facts.many(scope, [one.id for one in self.facts]), tx.facts.history(old.scope, old.id)

    def do_talk(self, tx: Transaction, step: Step) -> Any:
        talk, scope, shelf = TALKS[step.a % 3], SCOPES[step.b % 6], tx.messages
        some = self.messages[step.a % len(self.messages)] if self.messages else "none"
        return (
            shelf.tail(talk, limit=1 + step.b, before=step.b or None),
            shelf.after(talk, step.b, limit=3),
            shelf.recent(scope, limit=3, since=at(step.a)),
            shelf.many(scope, self.messages),
            shelf.unembedded(talk, "m", limit=3),
            tx.sessions.list(scope, limit=2),
            shelf.around(talk, some, before=1, after=2) if shelf.many(talk, [some]) else None,
        )

    def do_advance(self, tx: Transaction, step: Step) -> Any:
        session = tx.sessions.get(TALKS[step.a % 3])
        return session and tx.sessions.advance(replace(session, extracted=step.b % 2 * step.b), extracted=step.b)

    def do_fence(self, tx: Transaction, step: Step) -> Any:
        return tx.sessions.fence((*SCOPES, *TALKS)[step.a])

    def do_profile(self, tx: Transaction, step: Step) -> Any:
        stored = tx.profiles.put(profile(SCOPES[step.a % 6], attributes={"x": step.text}), expected=step.b % 3)
        return stored, tx.profiles.visible(SCOPES[step.b % 6])

    def do_file(self, tx: Transaction, step: Step) -> Any:
        given = file(f"/{step.text}/{step.b % 2}", SCOPES[step.a % 6], step.text.encode())
        return tx.files.put(given, expected=step.b % 3)

    def do_unfile(self, tx: Transaction, step: Step) -> Any:
        return tx.files.delete(SCOPES[step.a % 6], f"/{step.text}/{step.b % 2}", expected=1 + step.b % 2)

    def do_files(self, tx: Transaction, step: Step) -> Any:
        scope = SCOPES[step.a % 6]
        return tx.files.list(scope), tx.files.list(scope, prefix=f"/{step.text}/")

    def do_put(self, tx: Transaction, step: Step) -> Any:
        asked = job(self.new("j"), TALKS[step.a % 3], kind=KINDS[step.b % 2], key=f"k{step.a % 2}", seconds=step.b)
        return tx.jobs.put(replace(asked, payload={"t": step.text}), latest=at(5))

    def do_claim(self, tx: Transaction, step: Step) -> Any:
        got = tx.jobs.claim(KINDS, worker=f"w{step.a}", now=at(step.b), lease_until=at(step.b + 2))
        self.claimed += [got] if got else []
        return got

    def do_done(self, tx: Transaction, step: Step) -> Any:
        return tx.jobs.done(self.a_claim(step))

    def do_retry(self, tx: Transaction, step: Step) -> Any:
        return tx.jobs.retry(self.a_claim(step), run_after=at(step.b), error=step.text)

    def do_postpone(self, tx: Transaction, step: Step) -> Any:
        return tx.jobs.postpone(self.a_claim(step), run_after=at(step.b), reason=step.text)

    def do_park(self, tx: Transaction, step: Step) -> Any:
        return tx.jobs.park(self.a_claim(step), error=step.text)

    def do_release(self, tx: Transaction, step: Step) -> Any:
        return tx.jobs.release(SCOPES[step.b % 6], self.a_claim(step).id, now=at(step.b))

    def do_hurry(self, tx: Transaction, step: Step) -> Any:
        return tx.jobs.hurry(SCOPES[step.a % 6], now=at(step.b))

    def do_jobs(self, tx: Transaction, step: Step) -> Any:
        state = (None, "waiting", "running", "parked")[step.b % 4]
        return tx.jobs.list(SCOPES[step.a % 6], state=state), tx.jobs.count(state=state), tx.jobs.next_due(KINDS)

    def do_journal(self, tx: Transaction, step: Step) -> Any:
        made = entry(self.new("e"), SCOPES[step.a % 6], seconds=step.b, target=f"t{step.b % 2}", reason=step.text)
        return tx.journal.append(made)

    def do_entries(self, tx: Transaction, step: Step) -> Any:
        scope = SCOPES[step.a % 6]
        page = tx.journal.list(scope, limit=2, target=("", "t0")[step.b % 2])
        return page, tx.journal.list(scope, limit=2, cursor=page.next, target=("", "t0")[step.b % 2])

    def do_propose(self, tx: Transaction, step: Step) -> Any:
        kind = ("fact", "removal", "section", "call")[step.b % 4]
        made = proposal(self.new("p"), SCOPES[step.a % 6], kind=kind, target=f"f{step.b:03d}", reason=step.text)
        return tx.proposals.put(made)

    def do_inbox(self, tx: Transaction, step: Step) -> Any:
        scope = SCOPES[step.a % 6]
        page = tx.proposals.list(scope, limit=2, kind=(None, "call")[step.b % 2])
        return page, tx.proposals.list(scope, limit=2, cursor=page.next, kind=(None, "call")[step.b % 2])

    def do_decide(self, tx: Transaction, step: Step) -> Any:
        waiting = tx.proposals.list(SCOPES[step.a % 6]).items
        one = waiting[step.b % len(waiting)] if waiting else proposal("none")
        return tx.proposals.delete(one), tx.proposals.delete(one)

    def do_record(self, tx: Transaction, step: Step) -> Any:
        return tx.extractions.append(
            extraction(self.new("x"), TALKS[step.a % 3], seconds=step.b, raw=step.text, milliseconds=step.b / 8)
        )

    def do_records(self, tx: Transaction, step: Step) -> Any:
        scope = (*SCOPES, *TALKS)[step.a]
        page = tx.extractions.list(scope, limit=2)
        more = tx.extractions.list(scope, limit=2, cursor=page.next)
        return page, more, tx.extractions.usage(scope, since=at(step.b))

    def do_purge(self, tx: Transaction, step: Step) -> Any:
        return tx.extractions.purge((*SCOPES, *TALKS)[step.a], before=at(step.b))

    def do_index(self, tx: Transaction, step: Step) -> Any:
        scope = SCOPES[step.a % 6]
        numbers = {str(key): state.number for key, state in tx.index.revisions(scope, ALL_KINDS).items()}
        return numbers, [tx.index.rows(scope, kind, model="m", after=step.b % 3) for kind in ALL_KINDS]

    def do_erase(self, tx: Transaction, step: Step) -> Any:
        return tx.erase((*TALKS, *SCOPES)[step.a]) if step.b % 2 else None


def plain(value: Any) -> Any:
    """Comparable data, without the epochs, which are names made by each store for itself."""
    if is_dataclass(value) and not isinstance(value, type):
        return {key: plain(one) for key, one in asdict(value).items() if key != "epoch"}
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value


def test_sqlite_and_postgres_answer_alike(postgres: Any) -> None:
    @settings(max_examples=30, deadline=None, derandomize=True, database=None)
    @given(script=st.lists(STEPS, min_size=10, max_size=50))
    def run(script: list[Step]) -> None:
        url = postgres.fresh()
        stores = [open_store(one, clock=FakeClock(tick=0.001), new_id=CountingIds()) for one in ("sqlite://", url)]
        players = [Player(store) for store in stores]
        try:
            for number, step in enumerate(script):
                here, there = (player.play(step) for player in players)
                assert here == there, f"step {number}: {step}"
        finally:
            for store in stores:
                store.close()
            postgres.release(url)

    run()
