"""A year with one user: does memory stay small, and does it keep what is true and let go of what is not?

    python bench/lifecycle.py [--days 365] [--keep] [--json]

Two users, one who talks English and one who talks Chinese, have a conversation every day: small talk, things that pass
(what they cooked, what they like this week), and now and then another home, employer, number of cats, weight or
favourite colour. What lasts (an allergy, a name, a sister, where they were born) is said once, in the first week. Text
comes from templates with seeded random words, the clock is the simulation's, facts are found by the built-in rules and
the built-in embedder; no model is asked. Upkeep runs by its schedule, as a worker would run it. Retention is set to what
a careful application might: messages for 60 days, the journal, retired facts and earlier versions for 90; ``--keep``
leaves the defaults, which keep those for good.

After months 1, 3, 6, 9 and 12, each user is asked for everything that is true then. ``true`` is the share of questions
for which one of the first five facts says it; ``old`` the share of changing things for which one of them still states an
earlier value. ``block`` is the mean size of a prompt block in tokens, of 2,000 at most. ``rows`` and ``MB`` are what the
database holds for both users, after a checkpoint.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from everlong import Scope
from everlong.config import Settings, build
from everlong.memory import Memory, ScopedMemory
from everlong.testing.fakes import FakeClock

START: Final = datetime(2026, 1, 1, 8, tzinfo=UTC)
MONTHS: Final = (1, 3, 6, 9, 12)
TABLES: Final = ("messages", "facts", "revisions", "vectors", "journal", "extractions", "proposals", "sessions")
CAREFUL: Final[dict[str, Any]] = {"message_days": 60, "journal_days": 90, "retired_days": 90, "version_days": 90}


@dataclass(frozen=True)
class Tongue:
    """What a user says in one language: ``lasting`` and ``changing`` are (question, statement), small talk the rest."""

    lasting: tuple[tuple[str, str, str], ...]
    changing: dict[str, tuple[str, str, tuple[str, ...]]]
    passing: tuple[str, ...]
    things: tuple[str, ...]
    answer: str


ENGLISH: Final = Tongue(
    lasting=(
        ("What is the user allergic to?", "I'm allergic to peanuts.", "peanuts"),
        ("What is the user's name?", "My name is Miriam.", "miriam"),
        ("What is the name of the user's sister?", "My sister's name is Ruth.", "ruth"),
        ("Where was the user born?", "I was born in Trieste.", "trieste"),
    ),
    changing={
        "home": (
            "Where does the user live?",
            "I live in {}.",
            ("Berlin", "Oslo", "Lisbon", "Prague", "Turin", "Ghent"),
        ),
        "employer": ("Where does the user work?", "I work at {}.", ("Acme", "Globex", "Initech", "Umbra", "Hooli")),
        "cats": ("How many cats does the user have?", "I have {} cats.", ("2", "3", "4", "5", "6")),
        "weight": ("How much does the user weigh?", "I weigh {} kg.", ("70", "72", "68", "66", "74", "71")),
        "colour": ("What is the user's favorite color?", "My favorite color is {}.", ("blue", "green", "red", "grey")),
    },
    passing=(
        "The train was {n} minutes late again, so I read about {thing}.",
        "Could you explain how {thing} is made, in {n} words?",
        "I love {thing} this week.",
        "Tonight I cook {thing} for {n} people.",
        "Tomorrow I need to buy {thing}.",
        "Summarise the meeting on {thing} for me, please.",
    ),
    things=tuple(
        f"{a} {b}"
        for a in ("roast", "fresh", "smoked", "sweet", "sour", "frozen", "wild", "spiced", "salted", "dried")
        for b in ("pumpkin", "trout", "barley", "fennel", "quince", "lentils", "rhubarb", "walnuts", "cabbage", "figs")
    ),
    answer="Understood, that sounds good.",
)
CHINESE: Final = Tongue(
    lasting=(
        ("用户对什么过敏？", "我对花生过敏。", "花生"),
        ("用户叫什么名字？", "我叫林小雨。", "林小雨"),
        ("用户的姐姐叫什么？", "我的姐姐叫林大雪。", "林大雪"),
        ("用户出生在哪里？", "我出生在成都。", "成都"),
    ),
    changing={
        "home": ("用户住在哪里？", "我住在{}。", ("北京", "上海", "广州", "杭州", "西安", "南京")),
        "employer": ("用户在哪里工作？", "我在{}工作。", ("华光", "星河", "远航", "青松", "白鹭")),
        "cats": ("用户有几只猫？", "我有{}只猫。", ("2", "3", "4", "5", "6")),
        "weight": ("用户的体重是多少？", "我的体重是{}公斤。", ("70", "72", "68", "66", "74", "71")),
        "colour": ("用户最喜欢的颜色是什么？", "我最喜欢的颜色是{}。", ("蓝色", "绿色", "红色", "灰色")),
    },
    passing=(
        "地铁又晚了{n}分钟，路上看了一篇讲{thing}的文章。",
        "能用{n}个字讲讲{thing}是怎么做的吗？",
        "我这周喜欢吃{thing}。",
        "今晚给{n}个人做{thing}。",
        "明天我要去买{thing}。",
        "请帮我总结一下关于{thing}的会议。",
    ),
    things=tuple(
        f"{a}{b}"
        for a in ("烤", "鲜", "熏", "甜", "酸", "冻", "野", "麻辣", "盐渍", "干")
        for b in ("南瓜", "鳟鱼", "大麦", "茴香", "木瓜", "扁豆", "大黄", "核桃", "白菜", "无花果")
    ),
    answer="好的，听起来不错。",
)


@dataclass
class User:
    """One simulated user: what is true of them now, and what was once."""

    name: str
    tongue: Tongue
    draw: random.Random
    now: dict[str, str] = field(default_factory=dict)
    earlier: dict[str, set[str]] = field(default_factory=dict)

    def day(self, number: int) -> list[tuple[str, str]]:
        """What is said on a day, and what is answered."""
        said = [
            self.draw.choice(self.tongue.passing).format(
                n=self.draw.randint(3, 40), thing=self.draw.choice(self.tongue.things)
            )
            for _ in range(4)
        ]
        if number < len(self.tongue.lasting):
            said.append(self.tongue.lasting[number][1])
        for slot, (_, statement, values) in self.tongue.changing.items():
            if number == 4 or (number > 4 and self.draw.random() < 1 / 60):
                self._change(slot, values)
                said.append(statement.format(self.now[slot]))
            elif slot in self.now and self.draw.random() < 1 / 30:
                said.append(statement.format(self.now[slot]))
        return [turn for text in said for turn in (("user", text), ("assistant", self.tongue.answer))]

    def _change(self, slot: str, values: tuple[str, ...]) -> None:
        old = self.now.get(slot)
        self.now[slot] = self.draw.choice([value for value in values if value != old])
        past = self.earlier.setdefault(slot, set())
        past |= {old} if old else set()
        past.discard(self.now[slot])


def asked(user: User, scoped: ScopedMemory) -> dict[str, Any]:
    """How memory answers for what is true of a user now."""
    true, old, tokens, missed = [], [], [], []
    questions = [(question, value, "") for question, _, value in user.tongue.lasting]
    questions += [(user.tongue.changing[slot][0], value, slot) for slot, value in user.now.items()]
    for question, value, slot in questions:
        found = " | ".join(hit.text.lower() for hit in scoped.recall(question, kinds=("fact",)).hits)
        statement = user.tongue.changing[slot][1] if slot else "{}"

        def states(known: str, *, statement: str = statement, found: str = found) -> bool:
            return statement.format(known).lower().rstrip(".。") in found

        true.append(states(value))
        if not true[-1]:
            missed.append(slot or value)
        if slot:
            old.append(any(map(states, user.earlier.get(slot, ()))))
        tokens.append(scoped.context(question).tokens)
    return {"true": true, "old": old, "tokens": tokens, "missed": missed}


def mean(values: list[Any]) -> float:
    return sum(values) / len(values) if values else 0.0


def weighed(path: Path) -> tuple[dict[str, int], float]:
    """Rows of each table and the size of the database in MB."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        counts = {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in TABLES}
        pages, size, free = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size", "freelist_count")
        )
    return counts, (pages - free) * size / 1e6


def live(memory: Memory, clock: FakeClock, users: list[User], days: int, path: Path) -> list[dict[str, Any]]:
    """Plays the days; one row for each month looked at."""
    report, begun = [], perf_counter()
    for number in range(days):
        clock.set(START + timedelta(days=number))
        for user in users:
            memory.at(Scope(user=user.name, session=f"day {number}")).add(user.day(number))
        memory.drain()
        clock.advance(12 * 3600)
        memory.parts.worker.run_due()  # upkeep, which has become due
        month, rest = divmod(number + 1, 30)
        if rest == 0 and month in MONTHS:
            report.append({"month": month, "seconds": perf_counter() - begun, **measured(memory, users, path)})
    return report


def measured(memory: Memory, users: list[User], path: Path) -> dict[str, Any]:
    answers = [asked(user, memory.at(Scope(user=user.name, session="asking"))) for user in users]
    rows, size = weighed(path)
    return {
        "true": mean([each for answer in answers for each in answer["true"]]),
        "old": mean([each for answer in answers for each in answer["old"]]),
        "block": mean([each for answer in answers for each in answer["tokens"]]),
        "active": sum(memory.at(Scope(user=user.name)).facts().total for user in users),
        "rows": rows,
        "MB": size,
        "missed": {user.name: answer["missed"] for user, answer in zip(users, answers, strict=True)},
    }


def printed(report: list[dict[str, Any]]) -> None:
    print(f"{'month':>5} {'true':>6} {'old':>6} {'block':>6} {'active':>6} {'MB':>6}  {'s':>5}  rows")
    for row in report:
        rows = ", ".join(f"{name} {count}" for name, count in row["rows"].items())
        print(
            f"{row['month']:>5} {row['true']:>6.0%} {row['old']:>6.0%} {row['block']:>6.0f} {row['active']:>6} "
            f"{row['MB']:>6.1f}  {row['seconds']:>5.0f}  {rows}"
        )
        print(f"      missed: {row['missed']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--keep", action="store_true", help="leave retention at its defaults")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    users = [User("miriam", ENGLISH, random.Random(1)), User("xiaoyu", CHINESE, random.Random(2))]
    with tempfile.TemporaryDirectory() as folder:
        path, clock = Path(folder) / "year.db", FakeClock(START)
        chosen = Settings(url=f"sqlite:///{path}", worker="none", **({} if given.keep else CAREFUL))
        with build(chosen, clock=clock) as memory:
            report = live(memory, clock, users, given.days, path)
    if given.json:
        print(json.dumps(report, ensure_ascii=False))
    else:
        printed(report)


if __name__ == "__main__":
    main()
