"""Who gets in, and to what."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest

from everlong.errors import ConfigError, InvalidInput, NotFound
from everlong.records import Scope
from everlong.server.app import check_open
from everlong.server.keys import KEPT_AT

from .conftest import Served

PLACES = [
    ("GET", "/v1/facts"),
    ("POST", "/v1/facts"),
    ("POST", "/v1/recall"),
    ("GET", "/v1/profile"),
    ("POST", "/v1/erase"),
    ("GET", "/v1/metrics"),
    ("GET", "/v1/status"),
    ("GET", "/v1/whoami"),
    ("GET", "/api/memory"),
]


@pytest.mark.parametrize(("method", "path"), PLACES)
@pytest.mark.parametrize("credential", ["", "Bearer", "Bearer elk_x", "Bearer elk_00_00", "Basic YTpi", "Bearer a.b.c"])
def test_nothing_opens_without_a_credential(served: Served, method: str, path: str, credential: str) -> None:
    with served.http() as http:
        answer = http.request(method, path, headers={"Authorization": credential} if credential else {}, json={})
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.json()["type"] == "urn:everlong:problem:Unauthenticated"


def test_only_health_and_readiness_need_none(served: Served) -> None:
    with served.http() as http:
        assert http.get("/v1/health").json()["status"] == "ok"
        assert http.get("/v1/ready").json() == {"status": "ready"}


@pytest.mark.parametrize("user", ["bob", "ann ", "Ann", "an", "", "林", "*", "%", "ann/../bob"])
def test_a_users_key_opens_no_other_user(served: Served, user: str) -> None:
    key = served.key(user="ann-access")
    with served.http(key) as http:
        answer = http.get("/v1/facts", headers={"X-Everlong-User": quote(user)})
    assert answer.status_code == 403
    assert answer.json()["type"].endswith("AccessDenied")


def test_users_see_their_own_only(served: Served) -> None:
    ann, lin = served.key(user="ann1"), served.key(user="林小姐")
    with served.http(ann) as a, served.http(lin) as b:
        fact = a.post("/v1/facts", json={"content": "Ann likes tea"}).json()["fact"]
        b.post("/v1/facts", json={"content": "林小姐喜欢咖啡"})
        assert [f["content"] for f in b.get("/v1/facts").json()["items"]] == ["林小姐喜欢咖啡"]
        assert b.get(f"/v1/facts/{fact['id']}").status_code == 404
        assert b.delete(f"/v1/facts/{fact['id']}").status_code == 404
        assert not b.post("/v1/recall", json={"question": "tea"}).json()["hits"]


def test_identity_in_a_body_is_refused(served: Served) -> None:
    with served.http(served.key(user="ann2")) as http:
        for name in ("user", "user_id", "org", "scope", "by"):
            answer = http.post("/v1/facts", json={"content": "x y z", name: "bob"})
            assert answer.status_code == 422
        assert http.get("/v1/facts").json()["total"] == 0


def test_an_agent_names_the_user_it_serves(served: Served) -> None:
    key = served.key(role="agent", agent="coder")
    user = {"X-Everlong-User": quote("安娜")}
    with served.http(key) as http:
        assert http.get("/v1/facts").status_code == 403  # of no user
        made = http.post("/v1/facts", json={"content": "安娜用制表符"}, headers=user).json()["fact"]
        assert made["scope"] == {"org": "", "agent": "coder", "user": "安娜", "session": ""}
        shared = http.post("/v1/facts", json={"content": "安娜会说英语"}, headers={**user, "X-Everlong-Agent": ""})
        assert shared.json()["fact"]["scope"]["agent"] == ""
        assert http.get("/v1/facts", headers={**user, "X-Everlong-Agent": "writer"}).status_code == 403
        assert http.post("/v1/inbox/none/approve", json={}, headers=user).status_code == 403


def test_organisations_are_walls(served: Served) -> None:
    one = {"X-Everlong-User": "zoe"}
    with (
        served.http(served.key(role="operator", org="acme"), **one) as acme,
        served.http(served.key(role="operator", org="bolt"), **one) as bolt,
        served.http(served.key(role="operator"), **one) as root,
    ):
        acme.post("/v1/facts", json={"content": "Zoe runs acme"})
        assert acme.get("/v1/facts").json()["total"] == 1
        assert bolt.get("/v1/facts").json()["total"] == 0
        assert bolt.get("/v1/facts", headers={"X-Everlong-Org": "acme"}).status_code == 403
        assert bolt.get("/v1/facts", headers={"X-Everlong-Org": ""}).status_code == 403
        assert root.get("/v1/facts").json()["total"] == 0
        assert root.get("/v1/facts", headers={"X-Everlong-Org": "acme"}).json()["total"] == 1
        assert root.get("/v1/facts", headers={"X-Everlong-Org": KEPT_AT.org}).status_code == 403
        assert acme.get("/v1/metrics").status_code == 403
        assert root.get("/v1/metrics").status_code == 200


def test_keys_end_and_change(served: Served) -> None:
    key, text = served.keys.make("laptop", user="kim")
    with served.http(text) as http:
        assert http.get("/v1/whoami").json()["user"] == "kim"
        renewed, fresh = served.keys.rotate(key.id, grace=timedelta(hours=1))
        assert http.get("/v1/whoami").status_code == 200
        served.keys.revoke(key.id)
        assert http.get("/v1/whoami").status_code == 401
    with served.http(fresh) as http:
        assert http.get("/v1/whoami").json()["user"] == "kim"
    served.keys.rotate(renewed.id)
    with served.http(fresh) as http:
        assert http.get("/v1/whoami").status_code == 401
    with pytest.raises(NotFound):
        served.keys.revoke("none")


def test_a_key_expires(served: Served) -> None:
    from everlong.server.keys import Keys

    at = datetime(2026, 1, 1, tzinfo=UTC)
    now = [at]
    keys = Keys(served.memory.parts.store, clock=lambda: now[0])
    key, text = keys.make("short", user="ann", lasts=timedelta(days=1))
    assert keys.find(text) == key
    now[0] = at + timedelta(days=1)
    assert keys.find(text) is None


def test_no_part_of_a_key_is_kept(served: Served) -> None:
    key, text = served.keys.make("safe", user="ann")
    secret = text.rpartition("_")[2]
    assert len(secret) == 64
    with served.memory.parts.store.read() as tx:
        files = [tx.files.get(KEPT_AT, info.path) for info in tx.files.list(KEPT_AT)]
    assert files
    assert not any(secret.encode() in file.content for file in files)
    assert served.keys.find(text[:-1] + ("0" if text[-1] != "0" else "1")) is None
    assert served.keys.find(f"elk_{key.id}_") is None


def test_keys_are_seen_from_no_scope(served: Served) -> None:
    with served.http(served.key(role="operator")) as http:
        for folder in ("/", "/keys/"):
            assert http.get("/v1/files", params={"prefix": folder}).json()["items"] == []
        assert http.post("/v1/recall", json={"question": "hash key name", "kinds": ["file"]}).json()["hits"] == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"role": "user"},
        {"role": "agent"},
        {"role": "system", "user": "x"},
        {"user": "x", "org": KEPT_AT.org},
        {"user": "x", "lasts": timedelta(0)},
        {"user": " "},
    ],
)
def test_a_key_for_nobody_is_refused(served: Served, wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        served.keys.make("x", **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", ""])
def test_everyone_is_let_in_on_this_machine_only(host: str) -> None:
    with pytest.raises(ConfigError):
        check_open(host, auth=False)
    check_open(host, auth=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.8.8.8"])
def test_this_machine_may_do_without(host: str) -> None:
    check_open(host, auth=False)


def test_without_credentials_everyone_is_the_operator(serve) -> None:
    with serve(auth=False) as running, running.http() as http:
        assert http.get("/v1/whoami").json()["role"] == "operator"
        http.post("/v1/facts", json={"content": "Ann likes tea"}, headers={"X-Everlong-User": "ann"})
        assert running.memory.at(Scope(user="ann")).facts().total == 1


def test_requests_are_counted_by_credential(serve) -> None:
    with serve(rate_limit="3/minute") as running:
        ann, bob = running.key(user="ann"), running.key(user="bob")
        with running.http(ann) as http:
            assert [http.get("/v1/whoami").status_code for _ in range(4)] == [200, 200, 200, 429]
            last = http.get("/v1/whoami")
            assert 1 <= int(last.headers["retry-after"]) <= 60
            assert last.json()["type"].endswith(":Overloaded")
        with running.http(bob) as http:
            assert http.get("/v1/whoami").status_code == 200
        with running.http("elk_0_0") as http:
            assert [http.get("/v1/whoami").status_code for _ in range(5)] == [401, 401, 401, 429, 429]
        with running.http(bob) as http:
            assert http.get("/v1/whoami").status_code == 200, "the failures of others at the same address are not his"


def test_the_log_names_routes_and_no_secrets(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    key = served.key(user="logged")
    with caplog.at_level(logging.INFO, "everlong.server"), served.http(key) as http:
        http.get("/v1/facts/fact_private", headers={"X-Request-ID": "r-1"})
        http.post("/v1/recall", json={"question": "my deepest secret"})
    told = "\n".join(json.dumps(record.__dict__, default=str) for record in caplog.records if "server" in record.name)
    assert "r-1" in told
    assert "/facts/{fact_id}" in told
    assert key not in told
    assert key.rpartition("_")[2] not in told
    assert "deepest" not in told
    assert "fact_private" not in told


def test_cors_is_closed_unless_set(serve, served: Served) -> None:
    origin = {"Origin": "https://app.example", "Access-Control-Request-Method": "GET"}
    with served.http() as http:
        assert "access-control-allow-origin" not in http.options("/v1/facts", headers=origin).headers
        assert "access-control-allow-origin" not in http.get("/v1/health", headers=origin).headers
    with serve(cors_origins=("https://app.example",)) as running, running.http() as http:
        assert http.options("/v1/facts", headers=origin).headers["access-control-allow-origin"] == "https://app.example"
        other = {**origin, "Origin": "https://evil.example"}
        assert "access-control-allow-origin" not in http.options("/v1/facts", headers=other).headers
