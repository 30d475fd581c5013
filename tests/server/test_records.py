"""What goes over the wire: versions, pages, batches, sizes, ids of requests, files byte for byte, every shape of error."""

from __future__ import annotations

import io
import json
import logging

import httpx
import pytest

from everlong import errors
from everlong.client import Client
from everlong.errors import AccessDenied, Conflict, EverlongError, InvalidInput, NotFound, StoreUnavailable
from everlong.records import Scope

from .conftest import Served


@pytest.fixture
def http(served: Served, request: pytest.FixtureRequest) -> httpx.Client:
    with served.http(served.key(user=request.node.name)) as client:
        yield client


def problem(answer: httpx.Response, status: int, name: str) -> dict[str, object]:
    told = answer.json()
    assert (answer.status_code, told["status"]) == (status, status)
    assert answer.headers["content-type"] == "application/problem+json"
    assert told["type"] == f"urn:everlong:problem:{name}"
    assert told["instance"] == f"urn:request:{answer.headers['x-request-id']}"
    assert "Traceback" not in answer.text
    return told


def test_versions_by_tag_and_by_body(http: httpx.Client) -> None:
    fact = http.post("/v1/facts", json={"content": "Ann plays chess"}).json()["fact"]
    where = f"/v1/facts/{fact['id']}"
    tag = http.get(where).headers["etag"]
    assert tag == '"1"'
    assert http.get(where, headers={"If-None-Match": tag}).status_code == 304
    changed = http.patch(where, json={"content": "Ann plays go"}, headers={"If-Match": tag})
    assert changed.headers["etag"] == '"2"'
    told = problem(http.patch(where, json={"content": "no"}, headers={"If-Match": tag}), 409, "Conflict")
    assert (told["expected"], told["actual"]) == (1, 2)
    problem(http.patch(where, json={"content": "no", "expected_version": 1}), 409, "Conflict")
    both = http.patch(where, json={"content": "no", "expected_version": 1}, headers={"If-Match": '"2"'})
    problem(both, 400, "InvalidInput")
    assert http.patch(where, json={"importance": 1, "expected_version": 2}).json()["content"] == "Ann plays go"
    assert len(http.get(f"{where}/history").json()["items"]) == 3


def test_pages_have_totals_and_go_on(http: httpx.Client) -> None:
    facts = [{"content": f"Number {n} is {n * 7919}"} for n in range(25)]
    results = http.post("/v1/batch/facts", json={"facts": facts}).json()["results"]
    assert [each["result"]["outcome"] for each in results] == ["add"] * 25
    seen, cursor = [], ""
    while True:
        page = http.get("/v1/facts", params={"limit": 10, "cursor": cursor}).json()
        assert page["total"] == 25
        seen += [fact["id"] for fact in page["items"]]
        cursor = page["next"]
        if not cursor:
            break
    assert len(set(seen)) == 25
    problem(http.get("/v1/facts", params={"cursor": "made up"}), 400, "InvalidInput")


def test_each_of_a_batch_stands_for_itself(http: httpx.Client) -> None:
    facts = [{"content": "Ann likes tea"}, {"content": " "}, {"content": "安娜喜欢茶", "category": "nope"}]
    results = http.post("/v1/batch/facts", json={"facts": facts}).json()["results"]
    assert results[0]["result"]["outcome"] == "add"
    assert [r["problem"]["type"].rpartition(":")[2] for r in results[1:]] == ["EmptyText", "UnknownCategory"]
    talk = [
        {"session": "a", "messages": [{"role": "user", "content": "I have a dog."}], "idempotency_key": "k"},
        {"session": "b", "messages": [{"role": "wizard", "content": "hi"}]},
    ]
    first, second = http.post("/v1/batch/messages", json={"conversations": talk}).json()["results"]
    assert (first["session"], first["result"]["status"]) == ("a", "queued")
    assert second["problem"]["type"].endswith("InvalidInput")
    assert http.post("/v1/batch/messages", json={"conversations": []}).status_code == 422


def test_a_repeated_call_adds_nothing(http: httpx.Client) -> None:
    said = {"messages": [{"role": "user", "content": "OK"}, {"role": "user", "content": "我养了一只猫。"}]}
    where, key = {"session": "s"}, {"Idempotency-Key": "call-1"}
    assert http.post("/v1/messages", params=where, json=said, headers=key).status_code == 202
    again = http.post("/v1/messages", params=where, json=said, headers=key).json()
    assert (again["status"], again["message_ids"]) == ("duplicate", [])
    other = http.post("/v1/messages", params=where, json=said, headers={"Idempotency-Key": "call-2"}).json()
    assert other["status"] == "queued"


@pytest.mark.parametrize("sized", [True, False])
def test_a_body_that_is_too_large_is_refused(serve, sized: bool) -> None:
    body = json.dumps({"content": "x" * 5000}).encode()

    def pieces():
        for at in range(0, len(body), 100):
            yield body[at : at + 100]

    with serve(max_body_bytes=2000) as running, running.http(running.key(user="a")) as http:
        headers = {"Content-Type": "application/json"}
        answer = http.post("/v1/facts", content=body if sized else pieces(), headers=headers)
        told = problem(answer, 413, "TooLarge")
        assert "max_body_bytes" in str(told["detail"])
        assert http.post("/v1/facts", json={"content": "short enough"}).status_code == 201


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "name"),
    [
        ("GET", "/v1/facts/none", None, 404, "NotFound"),
        ("GET", "/v1/nowhere", None, 404, "NotFound"),
        ("GET", "/elsewhere", None, 404, "NotFound"),
        ("POST", "/v1/facts", b"{not json", 422, "InvalidInput"),
        ("POST", "/v1/facts", b"[]", 422, "InvalidInput"),
        ("POST", "/v1/facts", b'{"content": 7}', 422, "InvalidInput"),
        ("POST", "/v1/facts", b'{"content": "x", "pinned": "yes"}', 422, "InvalidInput"),
        ("POST", "/v1/facts", b'{"content": "x", "confidence": NaN}', 422, "InvalidInput"),
        ("POST", "/v1/recall", b'{"question": " "}', 400, "EmptyText"),
        ("POST", "/v1/recall", b'{"question": "x", "since": "2026-01-01T00:00:00"}', 422, "InvalidInput"),
        ("GET", "/v1/facts?limit=0", None, 422, "InvalidInput"),
        ("GET", "/v1/files/content?path=../etc/passwd", None, 400, "InvalidPath"),
        ("PUT", "/v1/files/content", b'{"path": "/policies/a.md", "text": "x"}', 403, "AccessDenied"),
        ("POST", "/v1/messages", b'{"messages": [{"role": "user", "content": "x"}]}', 400, "InvalidScope"),
        ("POST", "/v1/erase", b"{}", 422, "InvalidInput"),
        ("POST", "/v1/erase", b'{"confirm": false}', 422, "InvalidInput"),
    ],
)
def test_every_error_is_a_problem(
    http: httpx.Client, method: str, path: str, body: bytes | None, status: int, name: str
) -> None:
    answer = http.request(method, path, content=body, headers={"Content-Type": "application/json"} if body else {})
    problem(answer, status, name)


def test_what_was_wrong_is_named_and_not_repeated(http: httpx.Client) -> None:
    answer = http.post("/v1/facts", json={"content": ["my private words"]})
    told = problem(answer, 422, "InvalidInput")
    assert told["errors"][0]["at"] == "body.content"
    assert "private words" not in answer.text


def test_a_wrong_method_says_which_are_right(http: httpx.Client) -> None:
    answer = http.put("/v1/facts", json={})
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, POST"
    assert answer.headers["content-type"] == "application/problem+json"


def test_an_unforeseen_error_shows_nothing(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    """The store is gone in the middle: what the caller sees names no table, no path and no line."""
    from everlong.config import build, load_settings
    from everlong.server.app import create_app

    from .conftest import listening

    settings = load_settings(url="sqlite://", embedder="none", worker="none")
    memory = build(settings)
    app = create_app(memory, settings, auth=False)

    def broken() -> None:
        raise RuntimeError("the secret is in /home/ann/secret.db")

    app.add_api_route("/v1/broken", broken)
    server, thread, url = listening(app)
    try:
        with caplog.at_level(logging.ERROR), httpx.Client(base_url=url) as http:
            answer = http.get("/v1/broken", headers={"X-Request-ID": "find-me"})
            assert answer.status_code == 500
            assert answer.headers["x-request-id"] == "find-me"
            assert answer.json()["instance"] == "urn:request:find-me"
            assert "secret" not in answer.text
            assert "find-me" in {getattr(record, "request_id", "") for record in caplog.records}
            memory.close()
            assert http.get("/v1/health").status_code == 200
            gone = http.get("/v1/ready")
            assert gone.status_code in {500, 503}
            assert "Traceback" not in gone.text
    finally:
        server.should_exit = True
        thread.join(20)


@pytest.mark.parametrize("given", ["", "two words", "x" * 200, "line\tbreak", "<script>"])
def test_an_odd_request_id_is_replaced(http: httpx.Client, given: str) -> None:
    got = http.get("/v1/health", headers={"X-Request-ID": given}).headers["x-request-id"]
    assert got.startswith("req_")
    assert http.get("/v1/health", headers={"X-Request-ID": "a.b:c-1"}).headers["x-request-id"] == "a.b:c-1"


def test_files_keep_their_bytes(served: Served) -> None:
    with Client(served.url, served.key(user="filer")) as client:
        files = client.at(Scope(user="filer")).files
        for number, content in enumerate([b"", b"\x00\xff\xfe", "喜欢茶\r\n".encode(), b"a" * 100_000]):
            path = f"/memories/文件 {number}.bin"
            assert files.write(path, content).content == content
            assert files.read(path).content == content
        files.write("/memories/a.md", "one\ntwo\n")
        assert files.edit("/memories/a.md", "two", "三").version == 2
        assert [m.text for m in files.grep("三").matches] == ["三"]
        assert "+三" in files.diff("/memories/a.md", 1)
        assert files.restore("/memories/a.md", 1).content == b"one\ntwo\n"
        assert len(files.history("/memories/a.md")) == 3
        with pytest.raises(Conflict) as caught:
            files.delete("/memories/a.md", expected=1)
        assert str(caught.value.expected) == "1"
        files.delete("/memories/a.md", expected=3)
        with pytest.raises(NotFound):
            files.read("/memories/a.md")
        assert {info.path for info in files.glob("**/*.bin")} == {f"/memories/文件 {n}.bin" for n in range(4)}


def test_skills_review_and_upkeep(serve) -> None:
    with serve(review_categories=["goal"]) as running, Client(running.url, running.key(user="ann")) as client:
        ann = client.at(Scope(user="ann", session="s"))
        skill = ann.skills.write("tea", description="How to make tea", body="Boil water.")
        assert ann.skills.load("tea") == skill
        assert "tea" in ann.skills.block()
        held = ann.remember("Ann wants to learn Go", category="goal")
        assert held.outcome == "hold"
        waiting = ann.inbox.list().items
        assert [p.target for p in waiting] == [held.fact.id]
        assert ann.inbox.approve(waiting[0].id).status == "active"
        again = ann.remember("Ann wants to see Rome", category="goal")
        ann.inbox.reject(ann.inbox.list().items[0].id, reason="no")
        assert ann.fact(again.fact.id).status == "retired"
        assert ann.upkeep.preview().preview
        assert ann.upkeep.report().facts == 1
        assert ann.usage().calls == 0
        found = ann.recall("Go", trace=True)
        assert ann.explanation(found.trace.id).trace.id == found.trace.id
        assert ann.replay(found.trace.id, limit=1).after.query.limit == 1
        assert ann.traces()[0].id == found.trace.id
        refs = [m.ref for m in ann.forget_preview("learn Go").mentions]
        assert refs
        ann.forget_topic("learn Go", refs)
        assert ann.facts().total == 0


def test_records_are_the_same_on_both_sides(served: Served) -> None:
    scope = Scope(user="林", agent="", session="会话 1")
    with Client(served.url, served.key(user="林")) as client:
        there, here = client.at(scope), served.memory.at(scope)
        there.add([("user", "我对花生过敏。"), ("assistant", "记住了。")])
        there.update_profile(
            sections={"workContext": "烤面包"}, attributes={"生日": "5-1", "n": [1, None, {"a": True}]}
        )
        served.memory.drain()
        assert there.facts() == here.facts()
        assert there.messages() == here.messages()
        assert there.sessions() == here.sessions()
        assert there.profile() == here.profile()
        assert there.journal() == here.journal()
        assert there.extractions() == here.extractions()
        assert there.jobs() == here.jobs()
        fact = there.facts().items[0]
        assert there.fact(fact.id) == fact
        assert there.history(fact.id) == here.history(fact.id)
        mine, theirs = here.recall("花生"), there.recall("花生")
        assert theirs.hits == mine.hits
        assert there.context("花生").text == here.context("花生").text
        assert there.explain(theirs.trace.id) == theirs.trace


def test_an_export_goes_in_elsewhere(served: Served) -> None:
    with (
        served.http(served.key(role="operator", org="from"), **{"X-Everlong-User": "ann"}) as one,
        served.http(served.key(role="operator", org="to"), **{"X-Everlong-User": "ann"}) as other,
    ):
        one.post("/v1/facts", json={"content": "Ann likes tea"})
        lines = one.get("/v1/export")
        assert lines.headers["content-type"].startswith("application/x-ndjson")
        counted = json.loads(lines.headers["x-everlong-export"])
        assert counted["records"]["fact"] == 1
        sent = {"content": lines.content, "headers": {"Content-Type": "application/x-ndjson"}}
        looked = one.post("/v1/import/preview", **sent).json()
        assert looked["tallies"]["fact"]["same"] == 1
        assert other.post("/v1/import/preview", content=b"no export", headers=sent["headers"]).status_code == 400
    assert io.BytesIO(lines.content).readline()


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_comes_back_as_itself(name: str) -> None:
    """What the server says of an error is made into that error again, for each there is."""
    from everlong.server.problems import problem_of

    kind = getattr(errors, name)
    given = {
        "AccessDenied": ("erase", Scope(user="a"), "not yours"),
        "ApprovalRequired": ("erase", Scope(user="a"), "ask", "prop_1"),
        "MissingExtra": ("x", "y"),
        "UnusableExtraction": ("odd", "raw"),
    }.get(name, ("what happened",))
    made = Conflict("it", expected=1, actual=2) if name == "Conflict" else kind(*given)
    told = problem_of(made)

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(told["status"], json=told)

    with Client("http://x", transport=httpx.MockTransport(answer)) as client, pytest.raises(EverlongError) as caught:
        client.whoami()
    assert type(caught.value) is kind
    if kind.status != 500:
        assert str(caught.value) == str(made)
    if isinstance(made, AccessDenied):
        assert (caught.value.action, caught.value.reason) == (made.action, made.reason)
    if name == "ApprovalRequired":
        assert caught.value.proposal_id == "prop_1"


def test_a_server_that_is_away_is_a_store_that_is_away() -> None:
    with Client("http://127.0.0.1:9", "k", timeout=2) as client, pytest.raises(StoreUnavailable):
        client.at(Scope(user="a")).facts()


def test_the_client_lets_nobody_say_who_they_are(served: Served) -> None:
    from everlong.records import Principal

    for odd in ("elk_…", "钥匙", "a\nb"):
        with pytest.raises(InvalidInput):
            Client(served.url, odd)
    with Client(served.url, "elk_0_0") as client:
        with pytest.raises(InvalidInput):
            client.at(Scope(user="a"), by=Principal(id="root", role="operator"))
        with pytest.raises(AccessDenied):
            client.at(Scope(user="a")).facts()
