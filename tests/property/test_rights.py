"""What rules hide is neither given nor counted by any way of reading, and nothing else is lost: random rules, scopes and
principals against what the rules say of each record by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everlong import Principal, Scope, open_memory
from everlong.errors import AccessDenied, NotFound
from everlong.memory import Memory, ScopedMemory
from everlong.policy import Rule, Rules
from everlong.protocols import Request
from everlong.records import Section
from everlong.testing.samples import START, add_fact, at, file, indexed, message, profile

CATEGORIES = ("context", "health", "health-allergy")
PATHS = ("/memories/open.md", "/memories/secret.md")
READS = ("recall", "context", "facts", "fact", "history", "messages", "sessions", "profile", "files", "file")
HOMES = [Scope(org=o, agent=a, user=u) for o, a, u in product(("", "acme"), ("", "coder"), ("", "ann"))]
PARTS = st.sampled_from([None, None, "", "*", "{id}", "ann", "acme", "coder"])
RULES = st.builds(
    Rule,
    effect=st.sampled_from(["allow", "deny", "deny", "ask"]),
    reason=st.just("drawn"),
    roles=st.sampled_from([(), ("user",), ("agent",)]),
    ids=st.sampled_from([(), (), ("ann",)]),
    actions=st.sampled_from([("read",), ("read",), (), *((name,) for name in READS)]),
    org=PARTS,
    agent=PARTS,
    user=PARTS,
    kinds=st.lists(st.sampled_from(["fact", "message", "profile", "file"]), max_size=2).map(tuple),
    categories=st.sampled_from([(), (), ("health",), ("health*",), ("context",)]),
    paths=st.sampled_from([(), (), ("/memories/secret.md",), ("/memories/*",)]),
)
ASKERS = st.sampled_from(
    [Principal(id="ann"), Principal(id="coder", role="agent"), Principal(id="ops", role="operator")]
)
Opened = Callable[[list[Rule]], Any]


@pytest.fixture(params=["memory", "postgres"])
def opened(request: pytest.FixtureRequest) -> tuple[Opened, int]:
    """What opens an empty memory with rules, and how many examples that engine has time for."""
    options: dict[str, Any] = {"embedder": "none", "worker": "none", "categories": CATEGORIES[1:]}
    if request.param == "memory":
        return (lambda rules: open_memory("sqlite://", rules=rules, **options)), 25
    postgres = request.getfixturevalue("postgres")

    @contextmanager
    def on_postgres(rules: list[Rule]) -> Iterator[Memory]:
        url = postgres.fresh()
        try:
            with open_memory(url, rules=rules, **options) as memory:
                yield memory
        finally:
            postgres.release(url)

    return on_postgres, 6


def mark(number: int, what: str) -> str:
    """A word that stands in one record only."""
    return f"mark{number}{what.replace('-', '').replace('/', '').replace('.', '')}"


def fill(memory: Memory) -> None:
    """At each home a fact of every category, with an earlier version, a turn, a profile and two files."""
    with memory.parts.store.write() as tx:
        for number, home in enumerate(HOMES):
            for category in CATEGORIES:
                told = {"category": category, "content": f"tea {mark(number, category)}"}
                made = add_fact(tx, mark(number, category), home, seconds=number, **told)
                tx.facts.revise(replace(made, confidence=0.9, updated_at=at(50)), expected=1)
            talk = replace(home, session="talk")
            said = message(mark(number, "said"), talk, content=f"tea {mark(number, 'said')}", seconds=number)
            tx.messages.append(talk, [said], [indexed(said.content)])
            sections = {"workContext": Section(summary=mark(number, "profile"), updated_at=START)}
            tx.profiles.put(profile(home, sections=sections, attributes={}), expected=0)
            for path in PATHS:
                tx.files.put(file(path, home, f"tea {mark(number, path)}".encode()), expected=0)


class Seen:
    """What one who asks may read with one action, said of each record by itself."""

    def __init__(self, rules: list[Rule], by: Principal, viewer: Scope, action: str) -> None:
        self._rules, self._by, self._viewer, self._action = rules, by, viewer, action

    def sees(self, kind: str, home: Scope, *, category: str = "", path: str = "") -> bool:
        asked = Request(by=self._by, action=self._action, scope=home, kind=kind, category=category, path=path)
        ruled = next((rule.effect == "allow" for rule in self._rules if rule.matches(asked)), True)
        return ruled and home.covers(self._viewer)

    def facts(self) -> set[str]:
        pairs = product(enumerate(HOMES), CATEGORIES)
        return {mark(number, c) for (number, home), c in pairs if self.sees("fact", home, category=c)}

    def turns(self) -> set[str]:
        return {mark(number, "said") for number, home in enumerate(HOMES) if self.sees("message", home)}

    def profiles(self) -> set[str]:
        return {mark(number, "profile") for number, home in enumerate(HOMES) if self.sees("profile", home)}

    def files(self) -> dict[str, str]:
        """The mark of the narrowest file of each path."""
        found: dict[str, str] = {}
        homes = sorted(enumerate(HOMES), key=lambda each: tuple(map(bool, each[1].parts)))
        for (number, home), path in product(homes, PATHS):
            if self.sees("file", home, path=path):
                found[path] = mark(number, path)
        return found


def allowed(ask: Callable[[], Any], decide: Callable[[], str]) -> Any:
    """What a call gives; nothing where the policy refuses it as a whole."""
    try:
        found = ask()
    except AccessDenied:
        assert decide() != "allow"
        return None
    assert decide() == "allow"
    return found


def check(memory: Memory, rules: list[Rule], by: Principal, viewer: Scope) -> None:
    scoped, judge = memory.at(viewer, by=by), Rules(rules)

    def reading(action: str, ask: Callable[[], Any], kind: str = "", path: str = "") -> tuple[Any, Seen]:
        asked = Request(by=by, action=action, scope=viewer, kind=kind, path=path)
        return allowed(ask, lambda: judge.decide(asked).effect), Seen(rules, by, viewer, action)

    check_answers(scoped, reading)
    check_facts(scoped, reading)
    found, seen = reading("messages", lambda: scoped.messages(limit=99), "message")
    if found is not None:
        assert {one.id for one in found} == seen.turns()
    found, seen = reading("sessions", scoped.sessions, "message")
    if found is not None:
        assert found.total == len(found.items) == len(seen.turns())
    found, seen = reading("profile", scoped.profile, "profile")
    if found is not None:
        assert {one.summary for one in found.sections.values()} == seen.profiles() & {
            mark(number, "profile") for number, home in enumerate(HOMES) if home == viewer
        }
    check_files(scoped, reading)


def check_answers(scoped: ScopedMemory, reading: Callable[..., tuple[Any, Seen]]) -> None:
    kinds = ("fact", "message", "file")
    for options in ({}, {"as_of": at(1000)}):
        found, seen = reading(
            "recall", lambda o=options: scoped.recall("tea", kinds=kinds, min_score=0.0, limit=99, **o)
        )
        if found is not None:
            by_kind = {kind: {hit.id for hit in found.hits if hit.kind == kind} for kind in kinds}
            assert by_kind["fact"] == seen.facts()
            assert by_kind["message"] == seen.turns()
            texts = {hit.record.content for hit in found.hits if hit.kind == "file"}
            assert texts == {f"tea {name}" for name in seen.files().values()}
            assert found.trace.searched == {kind: len(by_kind[kind]) for kind in kinds}
            assert {one.id for one in found.trace.considered} == set().union(*by_kind.values())
    found, seen = reading("context", lambda: scoped.context("tea", budget=8000, files=["/memories/"]))
    if found is not None:
        shown = {word for word in found.text.replace("·", " ").split() if word.startswith("mark")}
        assert shown <= seen.facts() | seen.turns() | seen.profiles() | set(seen.files().values())
        assert seen.profiles() | set(seen.files().values()) <= shown


def check_facts(scoped: ScopedMemory, reading: Callable[..., tuple[Any, Seen]]) -> None:
    for options in ({}, {"as_of": at(1000)}, {"limit": 2}, {"categories": ["health"]}):
        page, seen = reading("facts", lambda o=options: scoped.facts(**o), "fact")
        if page is None:
            continue
        wanted = {name for name in seen.facts() if not options.get("categories") or name.endswith("health")}
        items = list(page.items)
        while page.next:
            page = scoped.facts(cursor=page.next, **options)
            items += page.items
        assert page.total == len(items) == len(wanted)
        assert {one.id for one in items} == wanted
    for action, read in (("fact", scoped.fact), ("history", scoped.history)):
        for number, category in product(range(len(HOMES)), CATEGORIES):
            name = mark(number, category)
            found, seen = reading(action, lambda n=name, r=read: found_by(r, n), "fact")
            if found is not None:
                assert found is (name in seen.facts())


def check_files(scoped: ScopedMemory, reading: Callable[..., tuple[Any, Seen]]) -> None:
    found, seen = reading("files", lambda: scoped.files.list("/"), "file")
    if found is not None:
        assert {one.path for one in found} == set(seen.files())
    found, seen = reading("files", lambda: scoped.files.grep("tea"), "file")
    if found is not None:
        assert {one.text for one in found.matches} == {f"tea {name}" for name in seen.files().values()}
    for path in PATHS:
        found, seen = reading("file", lambda p=path: content_of(scoped, p), "file", path)
        if found is not None:
            assert found == (f"tea {seen.files()[path]}" if path in seen.files() else "")


def found_by(read: Callable[[str], Any], name: str) -> bool:
    try:
        return bool(read(name))
    except NotFound:
        return False


def content_of(scoped: ScopedMemory, path: str) -> str:
    try:
        return scoped.files.read(path).content.decode()
    except NotFound:
        return ""


def test_nothing_hidden_is_given_or_counted_and_nothing_else_is_lost(opened: tuple[Opened, int]) -> None:
    @settings(
        max_examples=opened[1],
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(rules=st.lists(RULES, min_size=1, max_size=4), askers=st.lists(ASKERS, min_size=1, max_size=2, unique=True))
    def run(rules: list[Rule], askers: list[Principal]) -> None:
        with opened[0](rules) as memory:
            fill(memory)
            for by, viewer in product(askers, (HOMES[-1], Scope(user="ann"), Scope(agent="coder", user="ann"))):
                check(memory, rules, by, viewer)
            check(memory, rules, askers[0], HOMES[-1])  # and again, now that answers and buckets are kept

    run()


def test_what_may_not_be_read_is_not_changed_quoted_or_told_from_what_is_not_there() -> None:
    health = Rule(effect="deny", reason="private", roles=("agent",), actions=("read",), categories=("health",))
    secret = Rule(effect="deny", reason="private", roles=("agent",), actions=("read",), paths=("/memories/s*",))
    with open_memory(
        "sqlite://", embedder="none", worker="none", rules=[health, secret], categories=["health"]
    ) as memory:
        ann = memory.at(Scope(user="ann"))
        agent = ann.as_seen_by(Principal(id="coder", role="agent"))
        kept = ann.remember("Ann has asthma 安有哮喘", category="health").fact
        ann.files.write("/memories/secret.md", "the code is 4711")
        for call in (agent.fact, agent.history, agent.forget, agent.restore, lambda i: agent.revise(i, pinned=True)):
            for name in (kept.id, "fact_none"):
                with pytest.raises(NotFound) as refusal:
                    call(name)
                assert "asthma" not in str(refusal.value)
        for call in (
            lambda: agent.files.edit("/memories/secret.md", "the", "a"),
            lambda: agent.files.write("/memories/secret.md", "a", expected=1),
            agent.journal,
            agent.extractions,
            agent.traces,
            agent.inbox.list,
        ):
            with pytest.raises(AccessDenied):
                call()
        assert ann.fact(kept.id).version == 1
        assert ann.journal().total >= 2


def test_an_own_rule_that_allows_first_hides_nothing() -> None:
    rules = [
        Rule(effect="allow", reason="the doctor", ids=("doctor",)),
        Rule(effect="deny", reason="private", actions=("read",), categories=("health",)),
    ]
    doctor, nurse = Principal(id="doctor", role="operator"), Principal(id="nurse", role="operator")
    assert Rules(rules).rights(doctor, "recall") is None
    assert not Rules(rules).hides_within(doctor, Scope(user="ann"), wider=True)
    assert Rules(rules).hides_within(nurse, Scope(user="ann"), wider=False)
    assert Rules().rights(nurse, "recall") is None
