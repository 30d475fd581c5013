"""Which tokenizer a budget is counted by. None of them ever asks the network."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from everlong.errors import ConfigError, MissingExtra
from everlong.text import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everlong.protocols import TokenCounter

__all__ = ["open_counter"]

_log = logging.getLogger("everlong.counter")
_VOCABULARIES: Final[Mapping[str, str]] = {
    "r50k_base": "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    "p50k_base": "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
"""tiktoken's vocabularies, each with the SHA-256 of its file, which tiktoken itself checks (and fetches anew if wrong)."""


def open_counter(spec: str | TokenCounter = "estimate") -> TokenCounter:
    """The counter that ``spec`` names: ``estimate`` (built in), ``tiktoken:NAME`` such as ``tiktoken:cl100k_base``, or
    a callable from text to a number of tokens, as it is.

    ``tiktoken`` would download a vocabulary that its cache (``TIKTOKEN_CACHE_DIR``) has not. Here it never does: then
    the estimate counts instead, and one line in the log says so.

    Raises:
        ConfigError: there is no such counter. MissingExtra: ``tiktoken`` is not installed.
    """
    if callable(spec):
        return spec
    if spec == "estimate":
        return estimate_tokens
    kind, _, name = spec.partition(":")
    if kind != "tiktoken" or name not in _VOCABULARIES:
        msg = f"no token counter is called {spec!r}; there are estimate, " + ", ".join(
            f"tiktoken:{known}" for known in _VOCABULARIES
        )
        raise ConfigError(msg)
    try:
        tiktoken: Any = import_module("tiktoken")
    except ImportError:
        raise MissingExtra("tiktoken", f"counting by {spec}") from None
    if not _cached(name):
        _log.warning("the vocabulary of %s is not in tiktoken's cache: tokens are estimated", spec)
        return estimate_tokens
    encoding = tiktoken.get_encoding(name)
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def _cached(name: str) -> bool:
    """Whether tiktoken will find the vocabulary, whole, without the network."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder == "":  # its way to say: no cache
        return False
    url = f"https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
    key = hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
    file = Path(folder or Path(tempfile.gettempdir()) / "data-gym-cache") / key
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest() == _VOCABULARIES[name]
    except OSError:
        return False
