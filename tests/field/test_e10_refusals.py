"""E10: refusals, placeholders and raw JSON stored as facts: tomcounsell/ai#2040, mnemosyne-oss/mnemosyne#722."""

import json

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.testing.fakes import FakeClock, ScriptedChatModel
from everlong.write.prompt import load

JUNK = {
    "en": [
        "None", "none.", "N/A", "null", "No new facts found.", "There are no new facts.", "I'm sorry, I can't assist with that.",
        "I cannot help with that", "As an AI language model, I do not store data", "<think>", "<think>the user says", "string",
        "...", "…", "-", '{"newFacts": []}', '[{"content": "x"}]', "```json", '"shouldUpdate": true', "undefined", "  ",
    ],
    "zh": [
        "没有新的事实", "无", "暂无", "没有", "没有任何新信息", "很抱歉，我无法协助处理", "我无法回答这个问题", "对不起，不能提供",
        "。。。", "——", "空", "无相关信息",
    ],
}  # fmt: skip
REAL = {
    "en": ['User\'s favourite snippet is <b>hi</b> & {"a":1}', "User is named None Smith", "User's dog is called Null"],
    "zh": ['用户最喜欢的代码是 <b>你好</b> & {"a":1}', "用户姓无名，叫无名氏", "用户的猫叫“没有”"],
}  # fmt: skip
SAID = {
    "en": 'My favourite snippet is <b>hi</b> & {"a":1}. I am named None Smith. My dog is called Null',
    "zh": '我最喜欢的代码是 <b>你好</b> & {"a":1}。我姓无名，叫无名氏。我的猫叫“没有”',
}


def known(language, contents):
    facts = [
        {"content": c, "confidence": 0.95, "message": "m1", "quote": SAID[language], "category": "context"}
        for c in contents
    ]
    chosen = Settings(url="sqlite://", embedder="none", worker="none", extractor="llm", max_facts=100)
    model = ScriptedChatModel([json.dumps({"newFacts": facts})])
    with build(chosen, chat_model=model, clock=FakeClock()) as memory:
        ann = memory.at(Scope(user="ann", session="s"))
        ann.add([("user", SAID[language])])
        memory.drain()
        (record,) = ann.extractions().items
        return [f.content for f in ann.facts(status=None).items], record


@pytest.mark.parametrize("language", JUNK)
def test_none_of_it_becomes_a_fact_and_each_is_counted(language):
    contents, record = known(language, JUNK[language])
    assert not contents and not record.error
    turned_down = [o for o in record.decisions if o.kind == "reject" and o.reason]
    assert len(turned_down) + len(record.skipped) == len(JUNK[language])


@pytest.mark.parametrize("language", REAL)
def test_what_only_looks_like_it_is_kept_as_it_was_said(language):
    contents, _ = known(language, [*REAL[language], *JUNK[language]])
    assert sorted(contents) == sorted(REAL[language])


@pytest.mark.parametrize("strategy", ["single", "split"])
def test_the_prompts_own_words_are_no_facts(strategy):
    """Examples and rules that the model gives back, with the quotes that stand beside them in the prompt."""
    name = {"single": "update", "split": "facts"}[strategy]
    prompt = load(name)
    shown = [f for t in prompt.examples if t.role == "assistant" for f in json.loads(t.content)["facts"]]
    shown += [{"content": line[2:90], "quote": ""} for line in prompt.rules.splitlines() if line.startswith("- ")]
    chosen = Settings(url="sqlite://", embedder="none", worker="none", extractor="llm", extraction_strategy=strategy)
    facts = [{**f, "confidence": 0.95, "category": "context", "message": "m1"} for f in shown]
    model = ScriptedChatModel([json.dumps({"newFacts": facts}), *['{"relation": "both"}'] * 9])
    with build(chosen, chat_model=model, clock=FakeClock()) as memory:
        ann = memory.at(Scope(user="ann", session="s"))
        ann.add([("user", "My sister Noor paints boats, 我妹妹画船")])
        memory.drain()
        assert not ann.facts(status=None).items
        assert len(ann.extractions().items[0].skipped) == len(shown)
