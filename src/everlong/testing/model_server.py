"""An OpenAI-compatible endpoint on a real loopback socket that says what a test tells it to say."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import struct
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Body = dict[str, Any]

__all__ = ["Fault", "ModelServer", "minimal"]

_DIMENSIONS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong with one request. ``delay`` is in seconds and comes before all else.

    ``status`` answers with that status; ``drop`` closes the connection unanswered; ``truncate`` answers half the
    text with ``finish_reason`` length; ``refuse`` fills the message's refusal.
    """

    status: int = 0
    drop: bool = False
    truncate: bool = False
    refuse: str = ""
    delay: float = 0.0


class ModelServer:
    """Serves ``/v1/chat/completions`` (also streamed) and ``/v1/embeddings`` until the ``with`` block ends.

    A chat request is answered by, in this order: the next of ``answers``; the first of ``rules`` that gives text;
    the smallest value of the schema it asks for; ``"ok"``. Faults are taken from ``faults``, one a request.

    Args:
        refuses: kinds of ``response_format`` answered with status 400, such as ``json_schema``.
        vector: what ``/v1/embeddings`` gives for a text; default: 8 numbers drawn from the text's hash.

    ``requests`` holds path and body of every request so far; ``raw`` the bodies' bytes.
    """

    def __init__(self, *, refuses: tuple[str, ...] = (), vector: Callable[[str], list[float]] | None = None) -> None:
        self.answers: deque[str] = deque()
        self.rules: list[Callable[[Body], str | None]] = []
        self.faults: deque[Fault] = deque()
        self.requests: list[tuple[str, Body]] = []
        self.raw: list[bytes] = []
        self.refuses = refuses
        self.vector = vector or _hashed
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """What to give as ``base_url``."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def say(self, *answers: str) -> None:
        """Adds to the answers."""
        self.answers.extend(answers)

    def fail(self, *faults: Fault) -> None:
        """Adds to the faults."""
        self.faults.extend(faults)

    def record(self, path: str, raw: bytes) -> tuple[Body, Fault]:
        """Notes a request; gives its body and what shall go wrong with it."""
        body: Body = json.loads(raw or b"{}")
        with self._lock:
            self.requests.append((path, body))
            self.raw.append(raw)
            fault = self.faults.popleft() if self.faults else Fault()
        kind = (body.get("response_format") or {}).get("type", "")
        return body, Fault(status=400) if kind in self.refuses else fault

    def answer(self, body: Body) -> str:
        """The text that answers a chat request."""
        with self._lock:
            if self.answers:
                return self.answers.popleft()
        for rule in self.rules:
            text = rule(body)
            if text is not None:
                return text
        asked = (body.get("response_format") or {}).get("json_schema")
        return json.dumps(minimal(asked["schema"]), ensure_ascii=False) if asked else "ok"


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    owner: ModelServer

    def handle_error(self, *_: Any) -> None:
        """A client that went away is no news in a test."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits about 40 ms for an acknowledgement
    server: _Http

    def log_message(self, *_: Any) -> None:
        """Tests read ``requests``, not a log."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body, fault = self.server.owner.record(self.path, raw)
        time.sleep(fault.delay)
        if fault.drop:
            self._drop()
        elif fault.status:
            self._send(fault.status, {"error": {"message": f"scripted {fault.status}", "type": "scripted"}})
        elif self.path == "/v1/embeddings":
            self._send(200, _embeddings(body, self.server.owner.vector))
        elif self.path == "/v1/chat/completions":
            self._chat(body, fault)
        else:
            self._send(404, {"error": {"message": f"no {self.path}", "type": "scripted"}})

    def _chat(self, body: Body, fault: Fault) -> None:
        text = self.server.owner.answer(body)
        if fault.truncate:
            text = text[: len(text) // 2]
        reason = "length" if fault.truncate else "stop"
        if body.get("stream"):
            self._stream(body, text, reason)
            return
        message = {"role": "assistant", "content": None if fault.refuse else text, "refusal": fault.refuse or None}
        choice = {"index": 0, "message": message, "finish_reason": reason}
        asked = sum(len(str(turn.get("content", "")).split()) for turn in body.get("messages", ()))
        said = len(text.split())
        usage = {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}
        self._send(200, {**_head(body, "chat.completion"), "choices": [choice], "usage": usage})

    def _stream(self, body: Body, text: str, reason: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        pieces = [text[start : start + 4] for start in range(0, len(text), 4)]
        deltas: list[tuple[Body, str | None]] = [({"content": piece}, None) for piece in pieces]
        for delta, finish in [*deltas, ({}, reason)]:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            event = {**_head(body, "chat.completion.chunk"), "choices": [choice]}
            self.wfile.write(b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _send(self, status: int, answer: Body) -> None:
        payload = json.dumps(answer, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def _drop(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def _head(body: Body, kind: str) -> Body:
    return {"id": "chatcmpl-1", "object": kind, "created": 0, "model": body.get("model", "")}


def _embeddings(body: Body, vector: Callable[[str], list[float]]) -> Body:
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    packed = body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": i, "embedding": _packed(row) if packed else row}
        for i, row in enumerate(map(vector, texts))
    ]
    usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    return {"object": "list", "data": data, "model": body.get("model", ""), "usage": usage}


def _packed(row: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode()


def _hashed(text: str) -> list[float]:
    digest = hashlib.sha256(text.encode()).digest()
    return [byte / 127.5 - 1.0 for byte in digest[:_DIMENSIONS]]


def minimal(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Any:
    """The smallest value that a JSON Schema allows: required properties, empty lists, first of every choice."""
    root = schema if root is None else root
    if "$ref" in schema:
        return minimal(_resolved(schema["$ref"], root), root)
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return minimal(schema[key][0], root)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    return _of_type(schema, root)


def _resolved(ref: str, root: Mapping[str, Any]) -> Any:
    found: Any = root
    for part in ref.removeprefix("#/").split("/"):
        found = found[part]
    return found


def _of_type(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    kind = schema.get("type", "object")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object":
        known = schema.get("properties", {})
        return {name: minimal(known.get(name, {"type": "string"}), root) for name in schema.get("required", ())}
    if kind == "array":
        return [minimal(schema.get("items", {"type": "string"}), root)] * int(schema.get("minItems", 0))
    if kind == "string":
        return "x" * int(schema.get("minLength", 0))
    return {"integer": int(schema.get("minimum", 0)), "number": float(schema.get("minimum", 0)), "boolean": False}.get(
        kind
    )
