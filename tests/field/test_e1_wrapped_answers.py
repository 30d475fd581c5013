"""E1: answers wrapped in fences, prose, thoughts or nearly JSON: mem0ai/mem0#4026, #4526, #1854, #1848,
HKUDS/DeepTutor#646, bytedance/deer-flow#3252, #3124."""

import json

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.testing.fakes import FakeClock, ScriptedChatModel
from everlong.write.answer import parse

SAID = {
    "en": ("My dog is called Mochi", 'The user\'s dog is called "Mochi" {a good dog}'),
    "zh": ("我家的狗叫麻薯", "用户家的狗叫“麻薯” {好狗}"),
}
WRAPPINGS = {
    "fence": "```json\n{J}\n```\nExplanation: one fact.",
    "fence without a name": "```\n{J}\n```",
    "fence never closed": "```json\n{J}",
    "fence in the middle": "好的，结果如下：\n```JSON\n{J}\n```\n请查收。",
    "prose before": "Here are the facts:\n{J}",
    "prose before with brackets": "I read the message [m1] and {thought}.\n{J}",
    "noise after": "{J}\ntrailing {note} and }",
    "thoughts": '<think>short {"newFacts": []} note</think>{J}',
    "thoughts of two kinds": "<think>一</think>\n<thinking>[1, 2</thinking>\n{J}",
    "byte order mark": "\ufeff{J}",
    "twice": "{J}\n{J}",
    "in a list": "[{J}]",
    "in another object": '{"result": {J}}',
    "as text of JSON": "AS_TEXT",
    "trailing comma": "TRAILING",
    "python quotes": "PYTHON",
    "comments": "COMMENTS",
    "line breaks": "INDENTED",
    "full width marks": "FULL",
}  # fmt: skip


def update(language, **more):
    said, content = SAID[language]
    fact = {"content": content, "category": "context", "confidence": 0.9, "message": "m1", "quote": said}
    return {"user": {}, "history": {}, "newFacts": [fact], "factsToRemove": [], **more}


def wrapped(kind, language):
    made = json.dumps(update(language), ensure_ascii=False)
    match WRAPPINGS[kind]:
        case "AS_TEXT":
            return json.dumps(made)
        case "TRAILING":
            return made.replace("}]", ",}, ]")[:-1] + ",}"
        case "PYTHON":
            return repr(update(language)).replace("[]", "None")
        case "COMMENTS":
            return made.replace('"newFacts"', '// what is new\n"newFacts"') + "\n# done"
        case "INDENTED":
            return json.dumps(update(language), indent=4, ensure_ascii=True)
        case "FULL":
            return made.replace('"newFacts": [', '"newFacts"：[').replace('"user": {},', '"user": {}，')
        case form:
            return form.replace("{J}", made)


def blocks(text):
    return [{"type": "thinking", "thinking": "{}"}, {"type": "text", "text": text}, {"type": "tool_use", "input": 1}, 7]


@pytest.mark.parametrize("language", SAID)
@pytest.mark.parametrize("kind", WRAPPINGS)
def test_each_wrapping_yields_exactly_its_fact(kind, language):
    answer = wrapped(kind, language)
    for form in (answer, blocks(answer)):
        assert [fact.content for fact in parse(form).facts] == [SAID[language][1]]


@pytest.mark.parametrize("language", SAID)
def test_prose_is_a_counted_failure_that_changes_nothing_and_can_be_read_later(language):
    prose = {"en": "There is nothing in here.", "zh": "这里没有什么可记的。"}[language]
    chosen = Settings(url="sqlite://", embedder="none", worker="none", extractor="llm")
    model, clock = ScriptedChatModel([prose, wrapped("fence", language)]), FakeClock()
    with build(chosen, chat_model=model, clock=clock) as memory:
        ann = memory.at(Scope(user="ann", session="s"))
        ann.add([("user", SAID[language][0])])
        memory.drain()
        (record,) = ann.extractions().items
        assert record.error.startswith("UnusableExtraction") and record.raw == prose
        assert not ann.facts().items and ann.jobs()[0].attempts == 1
        clock.advance(3600)
        memory.drain()
        assert [f.content for f in ann.facts().items] == [SAID[language][1]] and not ann.jobs()
