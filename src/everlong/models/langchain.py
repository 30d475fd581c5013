"""Models that a host brings along: LangChain's, a plain function, or anything that keeps our protocols.

They are told by what they can do, so LangChain itself is never imported here.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from everlong.errors import ConfigError, ModelError
from everlong.protocols import Calibration, ChatReply
from everlong.records import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from everlong.protocols import ChatModel, ChatTurn, Embedder, Vectors

__all__ = ["as_chat_model", "as_embedder"]

_ROLES: Final = {"system": "system", "user": "human", "assistant": "ai"}
_CUT: Final = frozenset({"length", "max_tokens", "MAX_TOKENS"})
_CAUTIOUS: Final = Calibration(unrelated=0.2, related=0.7, duplicate=0.95)


def as_chat_model(model: Any) -> ChatModel:
    """``model`` as a :class:`~everlong.protocols.ChatModel`.

    Args:
        model: one that is a ``ChatModel`` already (given back as it is), a LangChain ``BaseChatModel`` or other
            runnable with ``invoke``, or a function from messages (``[{"role": …, "content": …}]``) to text.

    Raises:
        ConfigError: it is none of these.
    """
    if callable(getattr(model, "complete", None)) and hasattr(model, "name"):
        return cast("ChatModel", model)
    if callable(getattr(model, "invoke", None)):
        return _Runnable(model)
    if callable(model) and not isinstance(model, type):
        return _Function(model)
    raise ConfigError(f"{type(model).__name__} is no chat model: it has neither complete nor invoke, nor is a function")


def as_embedder(
    embedder: Any, *, model: str = "", dimensions: int | None = None, calibration: Calibration | None = None
) -> Embedder:
    """``embedder`` as an :class:`~everlong.protocols.Embedder`.

    Args:
        embedder: one that is an ``Embedder`` already (given back as it is), LangChain ``Embeddings``, or a function
            from a list of texts to a list of vectors.
        model: name of the vector space; default: the object's ``model`` or ``model_name``, else its class. Name it
            yourself when several models share a class, or their vectors would be compared.
        dimensions: length of the vectors; by default one text is embedded to see.
        calibration: what the cosines mean. The default is a cautious guess for unknown models (unrelated 0.2,
            related 0.7, duplicate 0.95), not a measurement.

    Raises:
        ConfigError: it is none of these.
    """
    if callable(getattr(embedder, "embed", None)) and hasattr(embedder, "calibration"):
        return cast("Embedder", embedder)
    texts, query = getattr(embedder, "embed_documents", None), getattr(embedder, "embed_query", None)
    if not callable(texts) and callable(embedder) and not isinstance(embedder, type):
        texts = embedder
    if not callable(texts):
        raise ConfigError(
            f"{type(embedder).__name__} is no embedder: it has neither embed nor embed_documents, nor is a function"
        )
    return _Embeddings(
        texts,
        query if callable(query) else None,
        model=model or _name(embedder),
        dimensions=dimensions,
        calibration=calibration or _CAUTIOUS,
    )


class _Runnable:
    """A LangChain chat model; the schema is left to the prompt, since hosts bind response formats each their way."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.name = _name(model)

    def complete(self, turns: Sequence[ChatTurn], *, schema: Mapping[str, Any] | None = None) -> ChatReply:  # noqa: ARG002
        """See :meth:`everlong.protocols.ChatModel.complete`."""
        try:
            answer = self._model.invoke(_pairs(turns))
        except Exception as error:
            raise _translated(self.name, error) from error
        told = getattr(answer, "response_metadata", None) or {}
        if (told.get("finish_reason") or told.get("stop_reason")) in _CUT:
            raise ModelError(f"{self.name}: the answer was cut off at the token limit; raise its max_tokens")
        refusal = (getattr(answer, "additional_kwargs", None) or {}).get("refusal")
        if refusal:
            raise ModelError(f"{self.name} refuses to answer: {refusal}")
        return _reply(self.name, _text(getattr(answer, "content", answer)), _usage(answer))

    def stream(self, turns: Sequence[ChatTurn]) -> Iterator[str]:
        """Pieces of the answer's text."""
        try:
            for piece in self._model.stream(_pairs(turns)):
                text = _text(getattr(piece, "content", piece))
                if text:
                    yield text
        except Exception as error:
            raise _translated(self.name, error) from error


class _Function:
    """A function from messages to text."""

    def __init__(self, function: Callable[[list[dict[str, str]]], Any]) -> None:
        self._function = function
        self.name = getattr(function, "__name__", type(function).__name__)

    def complete(self, turns: Sequence[ChatTurn], *, schema: Mapping[str, Any] | None = None) -> ChatReply:  # noqa: ARG002
        """See :meth:`everlong.protocols.ChatModel.complete`."""
        try:
            answer = self._function([{"role": turn.role, "content": turn.content} for turn in turns])
        except Exception as error:
            raise _translated(self.name, error) from error
        return _reply(self.name, _text(answer), Usage(calls=1))

    def stream(self, turns: Sequence[ChatTurn]) -> Iterator[str]:
        """The whole answer in one piece."""
        yield self.complete(turns).text


class _Embeddings:
    """Two functions, one for texts and maybe one for questions."""

    def __init__(
        self,
        texts: Callable[[list[str]], Any],
        query: Callable[[str], Any] | None,
        *,
        model: str,
        dimensions: int | None,
        calibration: Calibration,
    ) -> None:
        self._texts, self._query, self._width = texts, query, dimensions
        self.model = model
        self.calibration = calibration

    @cached_property
    def dimensions(self) -> int:
        """Length of the vectors, as given or as one text shows."""
        return self._width or int(self._vectors(["dimensions"], query=False).shape[1])

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """See :meth:`everlong.protocols.Embedder.embed`."""
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        vectors = self._vectors(list(texts), query=query)
        if vectors.shape != (len(texts), self.dimensions):
            raise ModelError(
                f"{self.model}: {len(texts)} texts gave vectors of shape {vectors.shape}, not {self.dimensions} wide"
            )
        return vectors

    def _vectors(self, texts: list[str], *, query: bool) -> Vectors:
        try:
            rows = [self._query(text) for text in texts] if query and self._query else self._texts(texts)
            vectors: Vectors = np.array(rows, dtype=np.float32)
        except Exception as error:
            raise _translated(self.model, error) from error
        lengths = np.linalg.norm(np.atleast_2d(vectors), axis=-1, keepdims=True)
        if vectors.ndim != 2 or not np.isfinite(lengths).all() or not lengths.all():  # noqa: PLR2004 - rows, columns
            raise ModelError(f"{self.model}: the vectors are zero, not finite or of unequal length")
        vectors /= lengths
        return vectors


def _name(model: Any) -> str:
    for attribute in ("model_name", "model", "__name__"):
        found = getattr(model, attribute, None)
        if isinstance(found, str) and found:
            return found
    return type(model).__name__


def _pairs(turns: Sequence[ChatTurn]) -> list[tuple[str, str]]:
    return [(_ROLES[turn.role], turn.content) for turn in turns]


def _text(content: Any) -> str:
    """The text in an answer: itself, or its text blocks in order; reasoning and tool blocks are left out."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise ModelError(f"the model answered with {type(content).__name__}, not with text")
    texts = (block if isinstance(block, str) else _block_text(block) for block in content)
    return "".join(texts)


def _block_text(block: Any) -> str:
    return str(block.get("text") or "") if isinstance(block, dict) and block.get("type", "text") == "text" else ""


def _usage(answer: Any) -> Usage:
    spent = getattr(answer, "usage_metadata", None) or {}
    return Usage(
        calls=1,
        input_tokens=int(spent.get("input_tokens") or 0),
        output_tokens=int(spent.get("output_tokens") or 0),
    )


def _reply(name: str, text: str, usage: Usage) -> ChatReply:
    if not text.strip():
        raise ModelError(f"{name}: the answer holds no text")
    return ChatReply(text=text, usage=usage, model=name)


def _translated(name: str, error: Exception) -> ModelError:
    if isinstance(error, ModelError):
        return error
    return ModelError(f"{name} failed: {type(error).__name__}: {str(error)[:300]}")
