"""Which tokenizer counts, and that none asks the network."""

from __future__ import annotations

import logging
import socket
from importlib.util import find_spec
from pathlib import Path

import pytest

from everlong.errors import ConfigError, MissingExtra
from everlong.read.counter import open_counter
from everlong.text import estimate_tokens


def test_the_estimate_and_a_callable_are_taken_as_they_are() -> None:
    assert open_counter() is estimate_tokens
    assert open_counter("estimate") is estimate_tokens
    assert open_counter(len) is len


@pytest.mark.parametrize("spec", ["", "tiktoken", "tiktoken:", "tiktoken:gpt9", "cl100k_base", "other:cl100k_base"])
def test_an_unknown_counter_is_named_with_those_there_are(spec: str) -> None:
    with pytest.raises(ConfigError, match="tiktoken:cl100k_base"):
        open_counter(spec)


@pytest.mark.parametrize("kept", [None, b"broken"])
def test_without_its_vocabulary_tokens_are_estimated_and_nothing_is_fetched(
    kept: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked for")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    file = tmp_path / "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
    if kept is not None:
        file.write_bytes(kept)
    if find_spec("tiktoken") is None:
        with pytest.raises(MissingExtra, match="tiktoken"):
            open_counter("tiktoken:cl100k_base")
        return
    with caplog.at_level(logging.WARNING, "everlong.counter"):
        counter = open_counter("tiktoken:cl100k_base")
    assert counter is estimate_tokens
    assert len(caplog.records) == 1
    assert not file.exists() or file.read_bytes() == kept
