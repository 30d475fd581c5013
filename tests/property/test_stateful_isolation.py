"""Whatever is done, by whomever and wherever: nobody sees a record of another place, no write is lost, no row stays behind.

Random operations by random principals on every store, against a model that is three dictionaries."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from sqlalchemy import and_, exists, select

from everlong import Principal, Scope
from everlong.config import Settings, build
from everlong.errors import AccessDenied, ApprovalRequired, NotFound
from everlong.memory import Memory, ScopedMemory
from everlong.policy import Rule
from everlong.records import Batch, Candidate, Evidence, Extraction
from everlong.store import schema
from everlong.testing import TableEmbedder

OPERATOR = Principal(id="ops", role="operator")
ASKERS = st.sampled_from(
    [Principal(id="ann"), Principal(id="安"), Principal(id="coder", role="agent"), OPERATOR, Principal(id="")]
)
HOMES = [Scope(org=o, agent=a, user=u) for o, a, u in product(("", "acme"), ("", "coder"), ("", "ann", "安"))]
SCOPES = st.builds(
    lambda home, session: replace(home, session=session), st.sampled_from(HOMES), st.sampled_from(("", "s", "S"))
)
PATHS = st.sampled_from(["/memories/a.md", "/agent/a.md", "/policies/a.md", "/a.md"])
ASK = Rule(effect="ask", reason="a person's", roles=("agent",), actions=("remember",), categories=("health",))


class Echo:
    """Every message of a user becomes one fact."""

    name = "echo"

    def extract(self, batch: Batch) -> Extraction:
        said = [(m.content, Evidence(message_id=m.id, quote=m.content, session=m.session)) for m in batch.messages]
        return Extraction(candidates=tuple(Candidate(content=c, confidence=0.9, evidence=(e,)) for c, e in said))


@dataclass
class Kept:
    """A fact or a turn as the model has it."""

    scope: Scope
    session: str
    content: str
    status: str = "active"
    pending: bool = False


class Isolation(RuleBasedStateMachine):
    """``open_at`` gives the URL of an empty database."""

    def __init__(self, url: str) -> None:
        super().__init__()
        chosen = Settings(url=url, embedder="none", worker="none", redact="none", rules=(ASK,), categories=("health",))
        self.memory: Memory = build(chosen, extractor=Echo(), embedder=TableEmbedder({}, 64))
        self.facts: dict[str, Kept] = {}
        self.turns: dict[str, Kept] = {}
        self.files: dict[tuple[Scope, str], bytes] = {}
        self.waiting: dict[str, tuple[Scope, str]] = {}
        self.number = 0

    def teardown(self) -> None:
        self.check_all()
        self.memory.close()

    def at(self, scope: Scope, by: Principal = OPERATOR) -> ScopedMemory:
        return self.memory.at(scope, by=by)

    def words(self) -> str:
        self.number += 1
        return f"box {self.number} holds tea 第{self.number}盒是茶"

    def fact_of(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.facts)))

    # ------------------------------------------------------------------------------------------------- operations

    @rule(scope=SCOPES, by=ASKERS, health=st.booleans())
    def remember(self, scope: Scope, by: Principal, health: bool) -> None:
        words = self.words()
        try:
            fact = self.at(scope, by).remember(words, category="health" if health else "context").fact
        except ApprovalRequired as refused:
            self.waiting[refused.proposal_id] = (scope, words)
            return
        except AccessDenied:
            return
        assert fact is not None and fact.scope == scope.home
        self.facts[fact.id] = Kept(fact.scope, scope.session, words)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), by=ASKERS)
    def approve(self, data: st.DataObject, by: Principal) -> None:
        name = data.draw(st.sampled_from(sorted(self.waiting)))
        scope, words = self.waiting[name]
        try:
            fact = self.at(scope, by).inbox.approve(name).fact
        except AccessDenied:
            return
        del self.waiting[name]
        self.facts[fact.id] = Kept(scope.home, scope.session, words)

    @rule(scope=SCOPES.filter(lambda scope: scope.session), by=ASKERS)
    def add(self, scope: Scope, by: Principal) -> None:
        words = self.words()
        with suppress(AccessDenied):
            (name,) = self.at(scope, by).add([("user", words)]).message_ids
            self.turns[name] = Kept(scope.home, scope.session, words, pending=True)

    @rule()
    def drain(self) -> None:
        self.memory.drain()
        told = {f.content: f.id for f in self.every_fact()}
        for turn in self.turns.values():
            if turn.pending:
                self.facts[told[turn.content]] = Kept(turn.scope, turn.session, turn.content)
                turn.pending = False

    def every_fact(self) -> list[Any]:
        return [fact for home in HOMES for fact in self.at(home).facts(status=None, limit=999).items]

    @precondition(lambda self: self.facts)
    @rule(data=st.data(), by=ASKERS, action=st.sampled_from(["revise", "forget", "restore"]))
    def change(self, data: st.DataObject, by: Principal, action: str) -> None:
        name, words = self.fact_of(data), self.words()
        scope = data.draw(st.one_of(SCOPES, st.just(self.facts[name].scope)))
        known, memory = self.facts[name], self.at(scope, by)
        if action == "restore" and known.status == "active":
            return
        calls: dict[str, Callable[[], Any]] = {
            "revise": partial(memory.revise, name, content=words),
            "forget": partial(memory.forget, name),
            "restore": partial(memory.restore, name),
        }
        try:
            calls[action]()
        except NotFound:
            assert not known.scope.covers(scope)
            return
        except AccessDenied:
            return
        assert known.scope.covers(scope)
        known.status = {"forget": "retired", "restore": "active"}.get(action, known.status)
        known.content = words if action == "revise" else known.content

    @rule(scope=SCOPES, by=ASKERS, path=PATHS)
    def write(self, scope: Scope, by: Principal, path: str) -> None:
        memory, words = self.at(scope, by), self.words()
        here = [info for info in self.at(scope).files.list() if info.path == path]
        try:
            file = memory.files.write(path, words, expected=here[0].version if here and self.own(scope, here[0]) else 0)
        except AccessDenied:
            return
        assert file.scope.covers(scope)
        self.files[file.scope, path] = words.encode()

    def own(self, scope: Scope, info: Any) -> bool:
        """Whether a visible file is kept at the very place where a write from ``scope`` goes."""
        kept = {"/memories/": Scope(org=scope.org, user=scope.user), "/agent/": Scope(org=scope.org, agent=scope.agent)}
        kept["/policies/"] = Scope(org=scope.org)
        return bool(info.scope == next((at for root, at in kept.items() if info.path.startswith(root)), scope.home))

    @rule(data=st.data(), by=ASKERS)
    def erase(self, data: st.DataObject, by: Principal) -> None:
        held = [replace(kept.scope, session=s) for kept in self.facts.values() for s in {"", kept.session}]
        scope = data.draw(st.one_of(SCOPES, st.sampled_from(held)) if held else SCOPES)
        try:
            self.at(scope, by).erase()
        except AccessDenied:
            return

        def gone(kept: Kept) -> bool:
            talk = replace(kept.scope, session=kept.session) if scope.session else kept.scope
            return scope.contains(talk)

        self.facts = {name: kept for name, kept in self.facts.items() if not gone(kept)}
        self.turns = {name: kept for name, kept in self.turns.items() if not gone(kept)}
        self.files = {key: data for key, data in self.files.items() if not scope.contains(key[0])}
        self.waiting = {name: each for name, each in self.waiting.items() if not scope.contains(each[0])}

    @rule(scope=SCOPES, by=ASKERS)
    def clear(self, scope: Scope, by: Principal) -> None:
        with suppress(AccessDenied):
            self.at(scope, by).clear()
            for turn in self.turns.values():
                turn.pending &= not scope.contains(replace(turn.scope, session=turn.session))

    # -------------------------------------------------------------------------------------------------- invariants

    @invariant()
    def what_one_place_sees_is_what_the_model_says(self) -> None:
        self.check_place(HOMES[self.number % len(HOMES)])

    def check_all(self) -> None:
        for home in HOMES:
            self.check_place(home)
        with self.memory.parts.store.read() as tx:
            for what, statement in ORPHANS.items():
                assert tx._work.rows(statement) == [], what  # type: ignore[attr-defined]

    def check_place(self, home: Scope) -> None:
        here = self.at(home)
        seen = {f.id: (f.scope, f.content, f.status) for f in here.facts(status=None, limit=999).items}
        wanted = {n: (k.scope, k.content, k.status) for n, k in self.facts.items() if k.scope.covers(home)}
        assert seen == wanted
        turns = {m.id: (m.scope, m.session, m.content) for m in here.messages(limit=999)}
        assert turns == {n: (k.scope, k.session, k.content) for n, k in self.turns.items() if k.scope.covers(home)}
        files = sorted((key for key in self.files if key[0].covers(home)), key=lambda key: [*map(bool, key[0].parts)])
        narrowest = {path: self.files[scope, path] for scope, path in files}
        assert {info.path: here.files.read(info.path).content for info in here.files.list()} == narrowest
        hits = here.recall(
            "tea 茶", min_score=0.0, limit=999, kinds=["fact", "message", "file"], before=0, after=0
        ).hits
        assert {hit.id for hit in hits if hit.kind == "fact"} == {n for n, k in wanted.items() if k[2] == "active"}
        assert {hit.id for hit in hits if hit.kind == "message"} == set(turns)
        assert {hit.record.path for hit in hits if hit.kind == "file"} == set(narrowest)
        waiting = {proposal.id for proposal in here.inbox.list().items}
        assert waiting == {name for name, (scope, _) in self.waiting.items() if home.contains(scope.home)}


def _without(table: Any, parent: Any, *pairs: tuple[str, str], where: Any = None) -> Any:
    """Rows of ``table`` without a row of ``parent``."""
    same = and_(*(table.c[one] == parent.c[other] for one, other in pairs))
    found = select(table).where(~exists().where(same))
    return found if where is None else found.where(where)


_PLACE = [(name, name) for name in schema.PLACE]
_TALK = [(name, name) for name in schema.PLACE]
ORPHANS = {
    "turns without a conversation": _without(schema.messages, schema.sessions, *_TALK),
    "work without a conversation": _without(
        schema.jobs, schema.sessions, *_TALK, where=schema.jobs.c.kind == "extract"
    ),
    "passages without a file": _without(schema.passages, schema.files, *_PLACE, ("path", "path")),
    "files without passages": _without(schema.files, schema.passages, *_PLACE, ("path", "path")),
    "versions without a fact": _without(
        schema.revisions, schema.facts, *_PLACE, ("id", "id"), where=schema.revisions.c.kind == "fact"
    ),
    "versions without a file": _without(
        schema.revisions, schema.files, *_PLACE, ("id", "path"), where=schema.revisions.c.kind == "file"
    ),
    "vectors without a fact": _without(
        schema.vectors, schema.facts, *_PLACE, ("id", "id"), where=schema.vectors.c.kind == "fact"
    ),
    "facts without a bucket": _without(schema.facts, schema.buckets, *_PLACE),
}


@pytest.mark.parametrize("engine", ["memory", "file", "postgres"])
def test_nothing_foreign_is_seen_nothing_is_lost_and_nothing_stays(
    engine: str, request: pytest.FixtureRequest, tmp_path: Any
) -> None:
    numbers = iter(range(10**6))
    urls: list[str] = []

    def fresh() -> Isolation:
        if engine == "memory":
            return Isolation("sqlite://")
        if engine == "file":
            return Isolation(f"sqlite:///{tmp_path / f'{next(numbers)}.db'}")
        postgres = request.getfixturevalue("postgres")
        while urls:
            postgres.release(urls.pop())
        urls.append(postgres.fresh())
        return Isolation(urls[-1])

    run_state_machine_as_test(
        fresh,
        settings=settings(
            max_examples={"memory": 10, "file": 2, "postgres": 2}[engine],
            stateful_step_count=25,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=[*HealthCheck],
        ),
    )
    for url in urls:
        request.getfixturevalue("postgres").release(url)
