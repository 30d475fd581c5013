"""Tokens of an OpenID provider: checked against its keys, mapped to an identity, and nothing taken on trust."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from everlong.errors import ConfigError, StoreUnavailable
from everlong.server.auth import ByToken, Unauthenticated

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER = rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Provider:
    """A JWKS endpoint that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked, provider = 0, self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.asked += 1
                public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
                body = json.dumps({"keys": [{**public, "kid": "k1", "use": "sig", "alg": "RS256"}]}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/jwks"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def provider() -> Iterator[Provider]:
    running = Provider()
    yield running
    running.server.shutdown()
    running.server.server_close()


def token(key: Any = KEY, algorithm: str = "RS256", headers: dict[str, str] | None = None, **claims: Any) -> str:
    usual = {"sub": "ann", "aud": "memory", "iss": "https://id.example", "exp": int(time.time()) + 300}
    said = {name: value for name, value in {**usual, **claims}.items() if value is not None}
    return jwt.encode(said, key, algorithm=algorithm, headers={"kid": "k1", **(headers or {})})


def test_a_token_is_an_identity(provider: Provider, serve) -> None:
    with serve(jwt_keys=provider.url, jwt_audience="memory", jwt_issuer="https://id.example") as running:
        assert provider.asked == 0, "nothing is fetched at the start"
        for user in ("ann", "安娜@例子.cn"):
            with running.http(token(sub=user, org="acme", groups=["staff"])) as http:
                told = http.get("/v1/whoami").json()
                assert told == {
                    "id": user,
                    "role": "user",
                    "groups": ["staff"],
                    "org": "acme",
                    "user": user,
                    "agent": "",
                }
                http.post("/v1/facts", json={"content": f"{user} drinks tea"})
                assert http.get("/v1/facts").json()["total"] == 1
        assert provider.asked == 1, "the keys are kept"


WRONG = {
    "expired": {"exp": int(time.time()) - 3600},
    "endless": {"exp": None},
    "for another application": {"aud": "mail"},
    "of another issuer": {"iss": "https://evil.example"},
    "of another key": {"key": OTHER},
    "of a key that is not known": {"headers": {"kid": "k9"}},
    "of nobody": {"sub": None},
    "not yet": {"nbf": int(time.time()) + 3600},
    "of the system": {"role": "system"},
    "of a role that is none": {"role": "god"},
    "of the place of keys": {"org": "everlong.server.keys"},
    "with a user that is no text": {"role": ["operator"]},
    "of a user that no scope can have": {"sub": "x" * 600},
}


@pytest.mark.parametrize("why", WRONG)
def test_a_wrong_token_opens_nothing(provider: Provider, why: str) -> None:
    tokens = ByToken(provider.url, audience="memory", issuer="https://id.example")
    with pytest.raises(Unauthenticated):
        tokens.identify(token(**WRONG[why]))


def test_a_token_without_a_signature_opens_nothing(provider: Provider) -> None:
    tokens = ByToken(provider.url, audience="memory")
    with pytest.raises(Unauthenticated):
        tokens.identify(token(key="", algorithm="none"))
    public = KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    head, body, _ = token().split(".")
    import base64
    import hashlib
    import hmac

    forged = base64.urlsafe_b64encode(json.dumps({"alg": "HS256", "typ": "JWT", "kid": "k1"}).encode()).rstrip(b"=")
    signed = forged + b"." + body.encode()
    mac = base64.urlsafe_b64encode(hmac.new(public, signed, hashlib.sha256).digest()).rstrip(b"=")
    with pytest.raises(Unauthenticated):
        tokens.identify((signed + b"." + mac).decode())
    assert head


def test_claims_can_be_elsewhere(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s" * 40)
    claims = {"user": "preferred_username", "org": "tenant.id", "role": "realm.role", "groups": "https://x/groups"}
    tokens = ByToken(str(secret), audience="memory", claims=claims)
    said = {
        "preferred_username": "林",
        "tenant": {"id": "acme"},
        "realm": {"role": "operator"},
        "https://x/groups": "admins",
    }
    found = tokens.identify(token(key="s" * 40, algorithm="HS256", **said))
    assert found is not None
    assert (found.by.id, found.by.role, found.by.groups, found.org, found.user) == (
        "林",
        "operator",
        ("admins",),
        "acme",
        "",
    )


def test_a_public_key_in_a_file(tmp_path: Path) -> None:
    pem = tmp_path / "key.pem"
    pem.write_bytes(
        KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    tokens = ByToken(str(pem), audience="memory")
    found = tokens.identify(token(role="agent", agent="coder", sub="service-7"))
    assert found is not None
    assert (found.by.id, found.agent, found.user) == ("coder", "coder", "")
    with pytest.raises(Unauthenticated):
        tokens.identify(token(key=OTHER))


def test_a_provider_that_is_away_is_no_refusal() -> None:
    with pytest.raises(StoreUnavailable):
        ByToken("http://127.0.0.1:9/jwks", audience="memory").identify(token())


def test_settings_that_would_open_too_much_are_refused(tmp_path: Path) -> None:
    short = tmp_path / "short"
    short.write_text("guess me")
    for keys, audience, claims in [
        ("https://id.example/jwks", "", {}),
        (str(short), "memory", {}),
        (str(tmp_path / "none"), "memory", {}),
        ("https://id.example/jwks", "memory", {"users": "sub"}),
    ]:
        with pytest.raises(ConfigError):
            ByToken(keys, audience=audience, claims=claims)
