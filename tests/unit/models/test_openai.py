import json

import numpy as np
import pytest

from everlong.errors import ConfigError, ModelError
from everlong.models import open_chat_model, open_embedder
from everlong.models.openai import CAUTIOUS, OpenAIChat, OpenAIEmbedder
from everlong.protocols import ChatTurn
from everlong.testing.model_server import Fault, ModelServer, minimal

TURNS = (ChatTurn(role="system", content="Answer in JSON."), ChatTurn(role="user", content="我住在杭州"))
SCHEMA = {
    "type": "object",
    "properties": {
        "facts": {"type": "array", "items": {"$ref": "#/$defs/Fact"}},
        "pattern": {"type": "string", "pattern": "^a", "minLength": 2},
    },
    "required": ["facts", "pattern"],
    "$defs": {"Fact": {"type": "object", "properties": {"on": {"type": "string", "format": "date"}}}},
}


@pytest.fixture
def server():
    with ModelServer() as running:
        yield running


def chat(server, **options):
    return OpenAIChat("small", base_url=server.url, api_key="k", **{"max_retries": 0, "timeout": 5.0, **options})


def embedder(server, **options):
    return OpenAIEmbedder("emb", base_url=server.url, api_key="k", max_retries=0, **options)


def test_answers_and_counts_what_it_cost(server):
    server.say("你好")
    reply = chat(server, temperature=0.0, max_tokens=9).complete(TURNS)
    assert reply.text == "你好"
    assert reply.model == "small"
    assert (reply.usage.calls, reply.usage.input_tokens, reply.usage.output_tokens) == (1, 4, 1)
    path, body = server.requests[0]
    assert path == "/v1/chat/completions"
    assert body["temperature"] == 0.0 and body["max_tokens"] == 9
    assert "response_format" not in body


def test_chinese_is_sent_as_chinese(server):
    chat(server).complete(TURNS)
    assert "我住在杭州".encode() in server.raw[0]


def test_a_lone_surrogate_is_sent_as_something_else(server):
    chat(server).complete([ChatTurn(role="user", content="a\ud800b")])
    assert server.requests[0][1]["messages"][0]["content"] == "a?b"


def test_a_schema_is_sent_without_what_servers_refuse(server):
    reply = chat(server).complete(TURNS, schema=SCHEMA)
    assert json.loads(reply.text) == {"facts": [], "pattern": "xx"}
    sent = server.requests[0][1]["response_format"]["json_schema"]["schema"]
    assert sent["properties"]["pattern"] == {"type": "string", "minLength": 2}
    assert sent["$defs"]["Fact"]["properties"]["on"] == {"type": "string"}
    assert SCHEMA["properties"]["pattern"]["pattern"] == "^a"


@pytest.mark.parametrize(
    ("refuses", "first", "later"),
    [
        (("json_schema",), ["json_schema", "json_object"], "json_object"),
        (("json_schema", "json_object"), ["json_schema", "json_object", None], None),
    ],
)
def test_a_refused_form_is_replaced_and_not_tried_again(refuses, first, later):
    def forms(server):
        return [body.get("response_format", {}).get("type") for _, body in server.requests]

    with ModelServer(refuses=refuses) as server:
        model = chat(server)
        model.complete(TURNS, schema=SCHEMA)
        assert forms(server) == first
        model.complete(TURNS, schema=SCHEMA)
        assert forms(server) == [*first, later]


@pytest.mark.parametrize("status", [422, 500])
def test_other_refusals_of_a_form_count_too(server, status):
    server.fail(Fault(status=status))
    server.say("{}")
    assert chat(server).complete(TURNS, schema=SCHEMA).text == "{}"
    assert server.requests[1][1]["response_format"] == {"type": "json_object"}


def test_a_server_that_fails_in_every_form_is_asked_with_the_schema_next_time(server):
    server.fail(Fault(status=500), Fault(status=500), Fault(status=500))
    model = chat(server)
    with pytest.raises(ModelError, match="status 500"):
        model.complete(TURNS, schema=SCHEMA)
    model.complete(TURNS, schema=SCHEMA)
    assert server.requests[-1][1]["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (Fault(truncate=True), "cut off"),
        (Fault(refuse="I will not"), "refuses.*I will not"),
        (Fault(drop=True), "cannot be reached"),
        (Fault(status=429), "rate or quota"),
        (Fault(status=401), "does not accept the key"),
        (Fault(status=404), "unknown to the endpoint"),
        (Fault(status=503), "status 503"),
        (Fault(delay=0.6), "did not answer in time"),
    ],
)
def test_what_goes_wrong_is_a_model_error_that_says_what_to_do(server, fault, says):
    server.fail(fault)
    server.say("a long answer")
    with pytest.raises(ModelError, match=says):
        chat(server, timeout=0.2).complete(TURNS)


@pytest.mark.parametrize("fault", [Fault(truncate=True), Fault(refuse="I will not")], ids=["cut off", "refused"])
def test_a_failed_answer_says_what_it_cost(server, fault):
    server.fail(fault)
    server.say("a long answer")
    with pytest.raises(ModelError) as failed:
        chat(server).complete(TURNS)
    assert failed.value.usage.calls == 1
    assert failed.value.usage.input_tokens > 0


def test_a_lost_connection_is_tried_again(server):
    server.fail(Fault(drop=True))
    assert chat(server, max_retries=1).complete(TURNS).text == "ok"
    assert len(server.requests) == 2


def test_an_empty_answer_is_an_error(server):
    server.say("")
    with pytest.raises(ModelError, match="empty"):
        chat(server).complete(TURNS)


def test_an_endpoint_that_is_not_there():
    model = OpenAIChat("small", base_url="http://127.0.0.1:9/v1", max_retries=0, timeout=1.0)
    with pytest.raises(ModelError, match="cannot be reached"):
        model.complete(TURNS)


def test_streams_the_answer_in_pieces(server):
    server.rules.append(lambda body: "第一句。第二句。第三句。" if "杭州" in body["messages"][-1]["content"] else None)
    pieces = list(chat(server).stream(TURNS))
    assert len(pieces) > 1
    assert "".join(pieces) == "第一句。第二句。第三句。"


@pytest.mark.parametrize(
    ("fault", "says"), [(Fault(truncate=True), "cut off"), (Fault(status=500), "500"), (Fault(drop=True), "reached")]
)
def test_a_broken_stream_is_a_model_error(server, fault, says):
    server.fail(fault)
    with pytest.raises(ModelError, match=says):
        list(chat(server).stream(TURNS))


def test_embeds_in_batches_in_order_to_unit_length(server):
    model = embedder(server, batch=3)
    texts = [f"文本 {i}" for i in range(7)]
    vectors = model.embed(texts)
    assert [len(body["input"]) for _, body in server.requests] == [3, 3, 1]
    assert vectors.shape == (7, model.dimensions) == (7, 8)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    np.testing.assert_allclose(vectors[4], model.embed([texts[4]])[0], atol=1e-6)
    assert model.calibration == CAUTIOUS


def test_nothing_to_embed_asks_nothing_when_the_length_is_known(server):
    assert embedder(server, dimensions=8).embed([]).shape == (0, 8)
    assert server.requests == []


def test_questions_get_their_prefix(server):
    model = embedder(server, query_prefix="query: ", text_prefix="passage: ")
    model.embed(["a"], query=True)
    model.embed(["a"])
    assert [body["input"] for _, body in server.requests] == [["query: a"], ["passage: a"]]


@pytest.mark.parametrize(
    ("vector", "says"),
    [
        (lambda text: [0.0] * 8, "zero or not finite"),
        (lambda text: [float("nan")] * 8, "zero or not finite"),
        (lambda text: [1.0] * (3 + len(text)), "no usable answer"),
    ],
)
def test_unusable_vectors_are_a_model_error(vector, says):
    with ModelServer(vector=vector) as server, pytest.raises(ModelError, match=says):
        embedder(server).embed(["a", "bb"])


def test_vectors_of_another_length_than_before_are_refused():
    with ModelServer(vector=lambda text: [1.0] * len(text)) as server:
        model = embedder(server)
        model.embed(["abc"])
        with pytest.raises(ModelError, match="exchanged"):
            model.embed(["abcd"])


def test_a_failing_endpoint_is_a_model_error(server):
    server.fail(Fault(status=500))
    with pytest.raises(ModelError, match="status 500"):
        embedder(server).embed(["a"])


def test_models_open_by_name(server):
    assert open_chat_model("openai:small", base_url=server.url, max_retries=0).complete(TURNS).text == "ok"
    opened = open_embedder("openai:emb:v2", base_url=server.url)
    assert opened.model == "emb:v2"
    assert opened.dimensions == 8


def test_no_key_for_openai_itself_is_a_config_error(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        OpenAIChat("gpt")


@pytest.mark.parametrize("spec", ["", "openai", "openai:", "word2vec", "use:large"])
def test_an_unknown_name_lists_the_choices(spec):
    with pytest.raises(ConfigError, match="openai:MODEL"):
        open_embedder(spec)
    with pytest.raises(ConfigError, match="openai:MODEL"):
        open_chat_model(spec)


def test_the_smallest_value_of_a_schema():
    schema = {
        "type": "object",
        "required": ["kind", "n", "rows", "or", "yes", "nil"],
        "properties": {
            "kind": {"enum": ["a", "b"]},
            "n": {"type": "integer", "minimum": 2},
            "rows": {"type": "array", "minItems": 1, "items": {"const": 7}},
            "or": {"anyOf": [{"type": "number"}, {"type": "null"}]},
            "yes": {"type": "boolean"},
            "nil": {"type": ["null", "string"]},
        },
    }
    assert minimal(schema) == {"kind": "a", "n": 2, "rows": [7], "or": 0.0, "yes": False, "nil": None}
