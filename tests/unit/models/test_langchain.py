import numpy as np
import pytest

from everlong.errors import ConfigError, ModelError
from everlong.models.langchain import as_chat_model, as_embedder
from everlong.models.use import UniversalSentenceEncoder
from everlong.protocols import Calibration, ChatTurn
from everlong.testing import ScriptedChatModel

fakes = pytest.importorskip("langchain_core.language_models.fake_chat_models")
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.messages import AIMessage

TURNS = (ChatTurn(role="system", content="Be brief."), ChatTurn(role="user", content="你好"))


def saying(*messages):
    return fakes.GenericFakeChatModel(messages=iter(messages))


def test_ours_stay_as_they_are():
    model, embedder = ScriptedChatModel(), UniversalSentenceEncoder()
    assert as_chat_model(model) is model
    assert as_embedder(embedder) is embedder


def test_a_langchain_chat_model_answers():
    answer = AIMessage("好的", usage_metadata={"input_tokens": 7, "output_tokens": 2, "total_tokens": 9})
    reply = as_chat_model(saying(answer)).complete(TURNS)
    assert reply.text == "好的"
    assert (reply.usage.calls, reply.usage.input_tokens, reply.usage.output_tokens) == (1, 7, 2)


def test_it_is_asked_with_the_right_roles():
    seen = []

    class Spy(fakes.GenericFakeChatModel):
        def _generate(self, messages, *args, **kwargs):
            seen.extend((message.type, message.content) for message in messages)
            return super()._generate(messages, *args, **kwargs)

    as_chat_model(Spy(messages=iter([AIMessage("x")]))).complete([*TURNS, ChatTurn(role="assistant", content="嗯")])
    assert seen == [("system", "Be brief."), ("human", "你好"), ("ai", "嗯")]


def test_text_blocks_are_joined_and_others_left_out():
    blocks = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "one "}, "two"]
    assert as_chat_model(saying(AIMessage(blocks))).complete(TURNS).text == "one two"


@pytest.mark.parametrize("told", [{"finish_reason": "length"}, {"stop_reason": "max_tokens"}])
def test_a_truncated_answer_is_an_error(told):
    with pytest.raises(ModelError, match="cut off"):
        as_chat_model(saying(AIMessage("half", response_metadata=told))).complete(TURNS)


def test_a_refusal_and_an_empty_answer_are_errors():
    with pytest.raises(ModelError, match="refuses"):
        as_chat_model(saying(AIMessage("", additional_kwargs={"refusal": "no"}))).complete(TURNS)
    with pytest.raises(ModelError, match="no text"):
        as_chat_model(saying(AIMessage([{"type": "tool_use", "id": "1"}]))).complete(TURNS)


def test_a_failure_is_a_model_error_with_its_cause():
    model = as_chat_model(fakes.GenericFakeChatModel(messages=iter([])))
    with pytest.raises(ModelError) as caught:
        model.complete(TURNS)
    assert caught.value.__cause__ is not None


def test_it_streams():
    pieces = list(as_chat_model(saying(AIMessage("one two three"))).stream(TURNS))
    assert "".join(pieces) == "one two three"
    assert len(pieces) > 1


def test_a_function_is_a_chat_model():
    def parrot(messages):
        return f"{len(messages)}: {messages[-1]['role']} {messages[-1]['content']}"

    model = as_chat_model(parrot)
    assert model.name == "parrot"
    assert model.complete(TURNS).text == "2: user 你好"
    assert list(model.stream(TURNS)) == ["2: user 你好"]


def test_a_function_that_fails_or_gives_no_text_is_a_model_error():
    with pytest.raises(ModelError, match="ZeroDivisionError"):
        as_chat_model(lambda messages: 1 / 0).complete(TURNS)
    with pytest.raises(ModelError, match="NoneType"):
        as_chat_model(lambda messages: None).complete(TURNS)


def test_langchain_embeddings():
    embedder = as_embedder(DeterministicFakeEmbedding(size=16), model="fake-16")
    vectors = embedder.embed(["a", "b", "a"])
    assert (embedder.model, embedder.dimensions, vectors.shape) == ("fake-16", 16, (3, 16))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    np.testing.assert_array_equal(vectors[0], vectors[2])
    assert embedder.embed([]).shape == (0, 16)


def test_questions_go_the_way_of_questions():
    class Two(Embeddings):
        def embed_documents(self, texts):
            return [[2.0, 0.0] for _ in texts]

        def embed_query(self, text):
            return [0.0, 3.0]

    embedder = as_embedder(Two(), calibration=Calibration(unrelated=0.1, related=0.5, duplicate=0.9))
    assert embedder.embed(["x"]).tolist() == [[1.0, 0.0]]
    assert embedder.embed(["x"], query=True).tolist() == [[0.0, 1.0]]
    assert embedder.model == "Two"
    assert embedder.calibration.duplicate == 0.9


@pytest.mark.parametrize("rows", [[[0.0, 0.0]], [[float("nan"), 1.0]], [[1.0, 2.0], [1.0]], [[1.0, 2.0]] * 3, None])
def test_unusable_vectors_are_a_model_error(rows):
    with pytest.raises(ModelError):
        as_embedder(lambda texts: rows, dimensions=2).embed(["a", "b"])


def test_what_is_no_model_is_refused():
    with pytest.raises(ConfigError, match="no chat model"):
        as_chat_model(7)
    with pytest.raises(ConfigError, match="no embedder"):
        as_embedder("use")
