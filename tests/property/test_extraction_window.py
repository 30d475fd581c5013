"""No word that was accepted is lost on the way to the model: every message stands in exactly one prompt."""

import json
import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everlong import Scope
from everlong.config import Settings, build
from everlong.protocols import ChatReply
from everlong.records import Usage
from everlong.testing.fakes import CountingIds, FakeClock
from everlong.write.llm import LLMExtractor

TURNS = st.lists(
    st.tuples(
        st.sampled_from(["user", "assistant"]),
        st.sampled_from(["我喜欢爬山", "word ", "A", "<x> & ", "😀", "line\n"]),
        st.integers(1, 400),
    ),
    min_size=1,
    max_size=50,
)
SESSION = Scope(user="ann", session="s1")


class Reader:
    """A model that notes what it was shown as new."""

    name = "reader"

    def __init__(self):
        self.shown = []

    def complete(self, turns, *, schema=None):
        part = re.search(r"<conversation>\n(.*)\n</conversation>", turns[-1].content, re.DOTALL)
        self.shown += re.findall(r"№(\d+)№", part[1])
        return ChatReply(text='{"newFacts": []}', usage=Usage(calls=1))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TURNS, st.integers(60, 2_000), st.integers(1, 50))
def test_every_accepted_message_stands_in_exactly_one_prompt(turns, window, at_once):
    reader = Reader()
    extractor = LLMExtractor(reader, window_tokens=window)
    chosen = Settings(url="sqlite://", embedder="none", worker="none")
    with build(chosen, extractor=extractor, clock=FakeClock(tick=0.001), new_id=CountingIds()) as memory:
        ann = memory.at(SESSION)
        said = [(role, f"№{n}№ {word * times}") for n, (role, word, times) in enumerate(turns)]
        said.append(("user", f"№{len(turns)}№ and I live in 杭州"))
        for start in range(0, len(said), at_once):
            ann.add(said[start : start + at_once])
            memory.drain()
        accepted = [re.match(r"№(\d+)№", m.content)[1] for m in ann.messages(limit=100)]
        records = ann.extractions(limit=1000).items
    asked = [i for record in records if record.usage.calls for i in record.messages]
    unread = [i for record in records if not record.usage.calls for i in record.messages]
    assert len(asked) + len(unread) == len(accepted) == len(set(asked + unread))
    assert sorted(reader.shown, key=int) == [n for n in accepted if n in set(reader.shown)]
    assert len(reader.shown) == len(asked)
    by_users = {n for n, (role, _) in zip(map(str, range(len(said))), said, strict=True) if role == "user"}
    assert by_users & set(accepted) <= set(reader.shown)
    assert json.dumps(reader.shown) == json.dumps(sorted(reader.shown, key=int))
