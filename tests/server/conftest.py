"""A real server on a real socket, over a memory in a file."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from everlong.config import build, load_settings
from everlong.memory import Memory
from everlong.server.app import create_app
from everlong.server.keys import Keys


@dataclass
class Served:
    """A running server, the memory behind it, and its keys."""

    url: str
    memory: Memory
    keys: Keys

    def key(self, **whose: Any) -> str:
        return self.keys.make("test", **whose)[1]

    def http(self, key: str = "", **headers: str) -> httpx.Client:
        if key:
            headers["Authorization"] = f"Bearer {key}"
        return httpx.Client(base_url=self.url, headers=headers, timeout=30)


def listening(app: Any) -> tuple[uvicorn.Server, threading.Thread, str]:
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    return server, thread, f"http://127.0.0.1:{port}"


@contextmanager
def serving(path: Path, *, auth: bool = True, **settings: Any) -> Iterator[Served]:
    settings = {"embedder": "none", "worker": "none", "rate_limit": "", "url": f"sqlite:///{path / 'm.db'}", **settings}
    chosen = load_settings(**settings)
    with build(chosen) as memory:
        server, thread, url = listening(create_app(memory, chosen, auth=auth))
        try:
            yield Served(url, memory, Keys(memory.parts.store, clock=memory.parts.clock))
        finally:
            server.should_exit = True
            thread.join(20)


@pytest.fixture
def serve(tmp_path: Path) -> Callable[..., AbstractContextManager[Served]]:
    """Starts a server of one's own, with other settings."""
    return lambda **settings: serving(tmp_path, **settings)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served")) as running:
        yield running
