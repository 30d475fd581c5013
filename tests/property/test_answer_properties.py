import json

from hypothesis import given, settings
from hypothesis import strategies as st

from everlong.errors import UnusableExtraction
from everlong.write.answer import parse

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from(["newFacts", "factsToRemove", "user", "history", "content", "confidence"]) | st.text(), inner, max_size=4
    ), max_leaves=15,
)  # fmt: skip
HOSTILE = st.text() | st.text("{}[]\"':,\\ \n1n<", max_size=80) | JSON.map(json.dumps) | JSON.map(repr) | JSON


@settings(max_examples=300, deadline=None)
@given(HOSTILE)
def test_hostile_answers_raise_nothing_else(answer):
    try:
        found = parse(answer)
    except UnusableExtraction:
        return
    assert all(fact.content.strip() and 0 <= fact.confidence <= 1 for fact in found.facts)
