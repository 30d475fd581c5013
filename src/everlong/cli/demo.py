"""``everlong demo``: one user, two conversations three days apart, everything shown as it really happened."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.panel import Panel
from rich.text import Text

from everlong.cli import render
from everlong.config import Settings, build
from everlong.errors import InvalidInput
from everlong.records import Scope

if TYPE_CHECKING:
    from everlong.memory import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """A first conversation, a question three days later that leans on it, and one that does not."""

    user: str
    first: tuple[tuple[str, str], ...]
    question: str
    unrelated: str


PLAYS: Final = {
    "zh": Play(
        user="小林",
        first=(
            ("user", "我在用 ESP32 做一个智能浇花系统，土壤湿度传感器读出来的值波动很大。"),
            ("assistant", "多半是电源噪声，或者采样太密。可以加滤波电容，再对多次采样取平均。"),
            ("user", "好的，我用的是电容式传感器，采样间隔设成 1 秒。"),
            ("assistant", "1 秒没问题，配合滑动平均会更稳。"),
        ),
        question="我那套浇花系统现在想加个远程查看功能用什么方案好",
        unrelated="今天天气怎么样",
    ),
    "en": Play(
        user="robin",
        first=(
            (
                "user",
                (
                    "I'm building an automatic plant watering system with an ESP32, "
                    "and the soil moisture readings jump around a lot."
                ),
            ),
            ("assistant", "Likely supply noise or too little averaging: add a filter capacitor and average samples."),
            ("user", "Okay, I'm using a capacitive sensor and I set the sampling interval to 1 second."),
            ("assistant", "One second works well together with a moving average."),
        ),
        question="I want to add remote monitoring to my watering system, what should I use?",
        unrelated="What's the weather like today?",
    ),
}


class _StageClock:
    """The play's own time."""

    def __init__(self, start: datetime) -> None:
        self.time = start

    def __call__(self) -> datetime:
        return self.time


def play(languages: list[str], *, as_json: bool) -> None:
    """Plays each language on a fresh store in a temporary folder and shows every step."""
    unknown = [language for language in languages if language not in PLAYS]
    if unknown:
        msg = f"unknown language {unknown[0]!r}; there are {' and '.join(PLAYS)}"
        raise InvalidInput(msg)
    with tempfile.TemporaryDirectory(prefix="everlong-demo-") as folder:
        results = {}
        for language in languages:
            clock = _StageClock(datetime(2026, 5, 4, 9, 0, tzinfo=UTC))
            url = f"sqlite:///{Path(folder, f'{language}.db')}"
            with build(Settings(url=url, embedder="use", extractor="builtin", worker="none"), clock=clock) as memory:
                results[language] = _perform(memory, clock, PLAYS[language])
    if as_json:
        render.document(results)
        return
    for language in languages:
        _show(PLAYS[language], results[language])


def _perform(memory: Memory, clock: _StageClock, script: Play) -> dict[str, Any]:
    monday = memory.at(Scope(user=script.user, session="monday"))
    added = monday.add(script.first)
    memory.drain()
    learned = _learned(memory, script)
    clock.time += timedelta(days=3)
    thursday = memory.at(Scope(user=script.user, session="thursday"))
    return {
        "captured": {"status": added.status, "messages": monday.messages()},
        **learned,
        "recalled": thursday.recall(script.question, kinds=("fact",)).hits,
        "unrelated": thursday.recall(script.unrelated).hits,
        "block": thursday.context(script.question).text,
    }


def _learned(memory: Memory, script: Play) -> dict[str, Any]:
    scoped = memory.at(Scope(user=script.user))
    entries = scoped.journal(limit=100).items
    records = scoped.extractions(limit=100).items
    skipped = [{"reason": each.reason, "text": each.raw} for record in records for each in record.skipped]
    decisions = [
        {"action": e.action, "reason": e.reason, "fact": scoped.fact(e.target)}
        for e in reversed(entries)
        if e.kind == "fact" and e.target
    ]
    return {"learned": decisions, "left_out": skipped}


def _show(script: Play, result: dict[str, Any]) -> None:
    out = render.console()
    out.rule(f"Monday · {script.user}")
    for message in result["captured"]["messages"]:
        out.print(Text(f"{message.role:>9}  {message.content}"))
    out.print()
    out.print(Text("Stored at once, then learned in the background, word for word, by rules (no model):", style="bold"))
    for decision in result["learned"]:
        fact = decision["fact"]
        out.print(Text(f"  + {fact.content}", style="green"))
        out.print(Text(f"      {fact.category}, confidence {fact.confidence:.2f}: {decision['reason']}", style="dim"))
    for skipped in result["left_out"]:
        out.print(Text(f"  - {skipped['text']}"))
        out.print(Text(f"      left out: {skipped['reason']}", style="dim"))
    out.rule("Thursday, a new conversation")
    out.print(Text(f"     user  {script.question}"))
    out.print(render.hits_table(result["recalled"]))
    out.print()
    out.print(Text(f"     user  {script.unrelated}"))
    out.print(Text("nothing is remembered about that" if not result["unrelated"] else "", style="dim"))
    if result["unrelated"]:
        out.print(render.hits_table(result["unrelated"]))
    out.print()
    out.print(Panel(Text(result["block"]), title="the block the agent's prompt gets", expand=False))
