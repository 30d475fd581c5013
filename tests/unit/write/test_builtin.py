"""The extractor without a model: what it keeps, what it leaves out, and that it never rewrites."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from everlong.records import Batch, Candidate, Extraction, Message, MessageRole, Profile, Scope
from everlong.write.builtin import BuiltinExtractor
from everlong.write.builtin_dates import resolve

SCOPE = Scope(user="ann")
WEDNESDAY = datetime(2025, 11, 19, 12, tzinfo=UTC)
THRESHOLD = 0.7


def extract(*talk: tuple[MessageRole, str] | str) -> Extraction:
    turns = [("user", turn) if isinstance(turn, str) else turn for turn in talk]
    messages = tuple(
        Message(id=f"m{n}", scope=SCOPE, session="t1", role=role, content=content, created_at=WEDNESDAY)
        for n, (role, content) in enumerate(turns)
    )
    later = datetime(2025, 12, 5, tzinfo=UTC)
    return BuiltinExtractor().extract(Batch(scope=SCOPE, messages=messages, profile=Profile(scope=SCOPE), now=later))


def believed(*talk: tuple[MessageRole, str] | str) -> list[Candidate]:
    return [candidate for candidate in extract(*talk).candidates if candidate.confidence >= THRESHOLD]


WHOLE = {
    "我叫李雷": "knowledge",
    "我今年28岁": "knowledge",
    "我住在上海，在一家医院当护士": "knowledge",
    "我喜欢喝茶，尤其是龙井": "preference",
    "我对花生过敏": "knowledge",
    "我不吃香菜": "preference",
    "我养了一只猫，叫豆豆": "knowledge",
    "我女儿今年上小学": "knowledge",
    "我打算明年考研": "goal",
    "我们团队用 GitLab 做代码托管": "context",
    "我每天早上六点跑步": "behavior",
    "我平时用 Vim 写代码": "knowledge",
    "我决定用 PostgreSQL": "context",
    "去年我搬到了成都": "context",
    "以后回答尽量简短": "preference",
    "不要用表情符号": "preference",
    "请用中文回复我": "preference",
    "我妻子是医生": "knowledge",
    "我的目标是今年跑完一个马拉松": "goal",
    "我是素食主义者": "knowledge",
    "My name is Anna": "knowledge",
    "I work at Blue Screen Coffee as a barista": "context",
    "I live in Berlin, Germany": "knowledge",
    "I prefer dark mode": "preference",
    "I don't eat meat": "preference",
    "I have two cats named Tom and Jerry": "knowledge",
    "I'm allergic to peanuts": "knowledge",
    "My wife is a doctor": "knowledge",
    "My daughter Mia started school": "knowledge",
    "my friend Jack hates football": "knowledge",
    "I usually wake up at six": "behavior",
    "I'm learning Rust": "context",
    "I use Neovim on Arch": "knowledge",
    "Please keep your answers short": "preference",
    "Never use emojis": "preference",
    "From now on answer in Portuguese": "preference",
    "I plan to run a marathon in May": "goal",
    "I decided to use PostgreSQL": "context",
    "I was born in 1990": "knowledge",
    "Our team deploys on Fridays": "knowledge",
    "I'm a vegetarian": "knowledge",
    "We use GitLab for code hosting": "knowledge",
    "I moved to Berlin last month": "knowledge",
    "Last week I moved to Porto": "knowledge",
}
CUT = {
    "记住我的生日是5月12日": "我的生日是5月12日",
    "别忘了明天交房租": "明天交房租",
    "谢谢分享，以后都用中文回复我": "以后都用中文回复我",
    "不对，应该用 pnpm，不是 npm": "应该用 pnpm，不是 npm",
    "No, use pnpm, not npm": "use pnpm, not npm",
    "remember the validation marker is MARKER-7734": "the validation marker is MARKER-7734",
    "Can you remember that I like tea?": "I like tea",
    "Okay, I'm using a capacitive sensor.": "I'm using a capacitive sensor",
    "Don't forget to pay the rent tomorrow!": "pay the rent tomorrow",
}
NOTHING = """
你好 | 谢谢 | 今天天气怎么样？ | 帮我写一首诗 | 请翻译这段话 | 能不能解释一下闭包 | 我想知道怎么安装 Docker | 我今天有点累
程序报错了 | 电脑卡死了 | 我有个问题 | 这个真不错 | 好的，明白了 | 我觉得可以 | 我试试 | 把这个函数改成异步的 | 推荐几本书
为什么天是蓝的 | 我在路上 | 稍等一下 | 我不知道 | 我可能下周去北京 | 土壤湿度传感器读出来的值波动很大 | 记住这个
Hi there | Thanks a lot | What's the weather like? | Write me a poem | Can you explain closures? | I'd like you to fix this
I have a question | I need help with my homework | My build is failing right now | I'm tired today | The server is down
I don't understand | I'll try that | That's great | Sounds good | I like it | Please summarize this article | remember this
How do I install Docker | I just restarted it | If I use Vim, how do I quit? | Let me know | I want to know more
I got an error | I am looking for a good restaurant | Maybe I use Vim next week | I might move to Paris | Do you remember my name?
"""


@pytest.mark.parametrize(("text", "category"), WHOLE.items())
def test_a_lasting_statement_is_kept_word_for_word(text: str, category: str) -> None:
    assert [(found.content, found.category) for found in believed(text)] == [(text, category)]


@pytest.mark.parametrize(("text", "content"), CUT.items())
def test_only_what_leads_in_is_cut(text: str, content: str) -> None:
    assert [found.content for found in believed(text)] == [content]


@pytest.mark.parametrize(
    "text", [text.strip() for line in NOTHING.split("\n") for text in line.split("|") if text.strip()]
)
def test_talk_questions_requests_guesses_and_trouble_are_not_believed(text: str) -> None:
    assert believed(text) == []


def test_the_watering_system_gives_three_facts() -> None:
    found = believed(
        "我在用 ESP32 做一个智能浇花系统，土壤湿度传感器读出来的值波动很大。",
        ("assistant", "波动大可能是电源噪声，建议加电容滤波并做多次采样取平均。"),
        "好的，我用的是电容式传感器，采样间隔设成 1 秒。",
        ("assistant", "1 秒可以，配合滑动平均滤波效果更好。"),
    )
    assert [(one.content, one.confidence >= 0.9, one.evidence[0].message_id) for one in found] == [
        ("我在用 ESP32 做一个智能浇花系统", True, "m0"),
        ("我用的是电容式传感器", True, "m2"),
        ("采样间隔设成 1 秒", False, "m2"),
    ]


def test_the_watering_system_in_english() -> None:
    found = believed(
        "I'm building an automatic plant watering system with an ESP32, and the soil moisture readings jump around a lot.",
        ("assistant", "I suggest a capacitor and averaging."),
        "Okay, I'm using a capacitive sensor and I set the sampling interval to 1 second.",
    )
    assert [one.content for one in found] == [
        "I'm building an automatic plant watering system with an ESP32",
        "I'm using a capacitive sensor",
        "I set the sampling interval to 1 second",
    ]


def test_two_statements_of_one_sentence_stand_apart() -> None:
    assert [one.content for one in believed("我在蓝屏咖啡上班，老板叫王小波")] == ["我在蓝屏咖啡上班", "老板叫王小波"]


def test_trouble_is_skipped_with_its_reason() -> None:
    [skipped] = extract("土壤湿度传感器读出来的值波动很大。").skipped
    assert (skipped.reason, skipped.raw) == ("temporary", "土壤湿度传感器读出来的值波动很大")


def test_a_guess_stays_below_the_threshold() -> None:
    [guess] = extract("I think I prefer tea").candidates
    assert guess.confidence == 0.5
    assert "guess" in guess.reason


def test_only_users_are_heard() -> None:
    assert extract(("assistant", "I live in Lisbon"), ("tool", "我叫李雷"), ("system", "I prefer tea")).candidates == ()


@pytest.mark.parametrize(
    "secret",
    [
        "My password is hunter2",
        "记住我的密码是 123456",
        "remember my API key: sk-abcdefghijklmnop1234",
        "我的密钥是 abc",
    ],
)
def test_a_secret_is_neither_kept_nor_shown(secret: str) -> None:
    extraction = extract(secret)
    assert extraction.candidates == ()
    assert [(one.reason, one.raw) for one in extraction.skipped] == [("looks like a secret", "")]


def test_code_and_quotations_are_not_statements() -> None:
    assert extract("> I live in Rome\n```\nI prefer tea\n```").candidates == ()


def test_every_candidate_is_a_span_with_evidence_however_odd_the_text() -> None:
    text = "İİ İstanbul: I live in İzmir. " + "I use Vim. " * 40
    found = extract(text).candidates
    assert 1 <= len(found) <= 5
    assert all(one.content in text and one.evidence[0].quote == one.content for one in found)


@pytest.mark.parametrize(
    "unit", ["i ", "我", "i'm a ", "我们", "remember ", "and i ", "不对，", "my my ", "1 ", "a1", "好的，", "x,"]
)
def test_long_input_takes_no_time(unit: str) -> None:
    extract(unit * 3_000)


# -------------------------------------------------------------------------------------------------------- dates


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("meeting tomorrow at 3pm", "2025-11-20", "2025-11-21"),
        ("下周三交稿", "2025-11-26", "2025-11-27"),
        ("next Wednesday I fly", "2025-11-26", "2025-11-27"),
        ("last week I moved", "2025-11-10", None),
        ("我上周买的那台咖啡机", "2025-11-10", None),
        ("明天开会", "2025-11-20", "2025-11-21"),
        ("5月12日生日", "2026-05-12", "2026-05-13"),
        ("the exam is on May 12", "2026-05-12", "2026-05-13"),
        ("release on 2026-01-31", "2026-01-31", "2026-02-01"),
        ("from next month I work in Rome", "2025-12-01", None),
        ("下个月开始上班", "2025-12-01", None),
        ("I deliver by next Friday", None, "2025-11-29"),
        ("明年去日本", "2026-01-01", "2027-01-01"),
        ("两个月前搬家", "2025-09-19", None),
        ("in 3 days", "2025-11-22", "2025-11-23"),
        ("on 2026-02-31", None, None),
        ("I like tea", None, None),
    ],
)
def test_dates_are_read_from_when_it_was_said(text: str, start: str | None, end: str | None) -> None:
    found = resolve(text, WEDNESDAY)
    assert tuple(moment.date().isoformat() if moment else None for moment in found) == (start, end)


def test_days_are_those_of_the_zone() -> None:
    start, end = resolve("明天开会", datetime(2025, 11, 19, 20, tzinfo=UTC), "Asia/Shanghai")
    assert (start, end) == (datetime(2025, 11, 20, 16, tzinfo=UTC), datetime(2025, 11, 21, 16, tzinfo=UTC))


def test_a_candidate_holds_from_when_it_says() -> None:
    [moved] = believed("I moved to Berlin last month")
    assert (moved.valid_from, moved.valid_until) == (datetime(2025, 10, 1, tzinfo=UTC), None)


# ------------------------------------------------------------------------------------------------- others' words


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        ("我叫小周，很高兴认识你。\nAI: 你好，我是你的助手，我喜欢聊天。", ["我叫小周"]),
        (
            "I live in Oslo.\nAssistant: I like Oslo too, I work there.\nMe: I own a boat",
            ["I live in Oslo", "I own a boat"],
        ),
        ("我喜欢游泳\n助手：我没有身体\n我：我每天跑步", ["我喜欢游泳"]),
    ],
)
def test_the_assistants_lines_of_a_pasted_talk_are_no_words_of_the_user(text: str, contents: list[str]) -> None:
    found = [one.content for one in believed(text)]
    assert found[: len(contents)] == contents
    assert not any(word in content for content in found for word in ("助手", "聊天", "身体", "too"))


@pytest.mark.parametrize(
    "text",
    [
        "I love how you put it", "I also like holding them", "I'm a fan too", "I won't let you down", "Never say never",
        "Remember, believe in yourself", "I've got a funny story", "I'm a mix of excited and scared", "It's my favorite",
        "我也很想去看看了", "我也非常喜欢", "今天我想和你聊聊我的旅行计划", "今天我有一个小问题想要请教你", "我准备去吃晚饭了",
        "以后我可以请你帮我找找菜谱", "我还没有计划", "我需要学习你的方法",
    ],
)  # fmt: skip
def test_what_points_outside_itself_or_passes_is_no_fact(text: str) -> None:
    assert believed(text) == []
