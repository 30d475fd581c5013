"""Chat and embedding models behind any endpoint that speaks OpenAI's protocol, through the official SDK."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from everlong.errors import ConfigError, MissingExtra, ModelError
from everlong.protocols import Calibration, ChatReply
from everlong.records import Usage

try:
    import openai
except ModuleNotFoundError as absent:
    raise MissingExtra("openai", "a model behind an OpenAI-compatible endpoint") from absent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from everlong.protocols import ChatTurn, Vectors

__all__ = ["CAUTIOUS", "OpenAIChat", "OpenAIEmbedder"]

_log = logging.getLogger(__name__)

_FORMS: Final = ("json_schema", "json_object", "plain")
_REFUSING: Final = (openai.BadRequestError, openai.UnprocessableEntityError, openai.InternalServerError)
_UNSENT: Final = ("pattern", "format")

CAUTIOUS: Final = Calibration(unrelated=0.2, related=0.7, duplicate=0.95)
"""For an embedding model that nobody measured. A guess, not a measurement: it merges only near-equal statements.
Measure your model (cosines of some unrelated, related and equal pairs) and give its own."""


class OpenAIChat:
    """A chat model behind an OpenAI-compatible endpoint. Safe for many threads.

    When the endpoint refuses ``json_schema`` (status 400, 422 or 5xx), ``json_object`` is tried, then plain text;
    the form that worked is remembered. A server that fails in every form raises, and nothing is remembered.

    Args:
        model: as the endpoint names it.
        base_url: default: ``OPENAI_BASE_URL``, else OpenAI's own.
        api_key: default: ``OPENAI_API_KEY``. Endpoints given by ``base_url`` may need none.
        timeout: seconds for one attempt.
        max_retries: further attempts after a time-out, a lost connection, status 429 or 5xx.
        temperature: ``None`` leaves it to the endpoint, which some models demand.
        max_tokens: longest answer in tokens; ``None`` leaves it to the endpoint.

    Raises:
        ConfigError: no key is given or set.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
        max_retries: int = 2,
        temperature: float | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self.name = model
        self._client = _client(base_url, api_key, timeout, max_retries)
        self._options: dict[str, Any] = {"model": model}
        if temperature is not None:
            self._options["temperature"] = temperature
        if max_tokens is not None:
            self._options["max_tokens"] = max_tokens
        self._form = 0

    def complete(self, turns: Sequence[ChatTurn], *, schema: Mapping[str, Any] | None = None) -> ChatReply:
        """The whole answer; see :meth:`everlong.protocols.ChatModel.complete`.

        Raises:
            ModelError: no answer, a refusal, a truncated answer, a time-out, or the endpoint's refusal.
        """
        messages = _messages(turns)
        if schema is None:
            return self._reply(self._create(messages=messages))
        sent = _plain_schema(schema)
        for form in range(self._form, len(_FORMS)):
            try:
                answer = self._create(messages=messages, **_response_format(_FORMS[form], sent))
            except ModelError as error:
                if form == len(_FORMS) - 1 or not isinstance(error.__cause__, _REFUSING):
                    raise
                _log.info("%s refuses %s: %s", self.name, _FORMS[form], error)
                continue
            self._form = form
            return self._reply(answer)
        raise AssertionError("the last form answers or raises")

    def stream(self, turns: Sequence[ChatTurn]) -> Iterator[str]:
        """Pieces of the answer's text as they come.

        Raises:
            ModelError: as :meth:`complete`; a truncated answer raises after its last piece.
        """
        reason = None
        try:
            with self._client.chat.completions.create(
                messages=_messages(turns), stream=True, **self._options
            ) as events:
                for event in events:
                    for choice in event.choices[:1]:
                        reason = choice.finish_reason or reason
                        if choice.delta.content:
                            yield choice.delta.content
        except openai.OpenAIError as error:
            raise _translated(self.name, error) from error
        except Exception as error:
            if not _is_transport(error):
                raise
            raise ModelError(f"{self.name}: the connection broke in mid-answer ({error}); try again") from error
        _check_finish(self.name, reason or "no finish_reason")

    def _create(self, **arguments: Any) -> Any:
        try:
            return self._client.chat.completions.create(**self._options, **arguments)
        except (openai.OpenAIError, ValueError) as error:
            raise _translated(self.name, error) from error

    def _reply(self, answer: Any) -> ChatReply:
        spent = getattr(answer, "usage", None)
        usage = Usage(
            calls=1,
            input_tokens=(spent.prompt_tokens or 0) if spent else 0,
            output_tokens=(spent.completion_tokens or 0) if spent else 0,
        )
        try:
            return ChatReply(text=self._content(answer), usage=usage, model=answer.model or self.name)
        except ModelError as error:
            error.usage = usage
            raise

    def _content(self, answer: Any) -> str:
        choices = getattr(answer, "choices", None)
        if not choices:
            raise ModelError(f"{self.name}: the endpoint answered without choices; is base_url right (…/v1)?")
        choice = choices[0]
        if choice.message.refusal:
            raise ModelError(f"{self.name} refuses to answer: {choice.message.refusal}")
        _check_finish(self.name, choice.finish_reason)
        if not choice.message.content:
            raise ModelError(f"{self.name}: the answer is empty")
        content: str = choice.message.content
        return content


class OpenAIEmbedder:
    """An embedding model behind an OpenAI-compatible endpoint. Safe for many threads.

    Args:
        model: as the endpoint names it; also names the vector space.
        base_url: default: ``OPENAI_BASE_URL``, else OpenAI's own.
        api_key: default: ``OPENAI_API_KEY``. Endpoints given by ``base_url`` may need none.
        dimensions: length of the vectors; ``None`` asks the endpoint once, when it is first needed.
        calibration: what the model's cosines mean; default :data:`CAUTIOUS`.
        query_prefix: put before questions, for models that want it (``query: `` for E5).
        text_prefix: put before all other texts.
        batch: texts in one request.
        timeout: seconds for one attempt.
        max_retries: further attempts after a time-out, a lost connection, status 429 or 5xx.

    Raises:
        ConfigError: no key is given or set.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        dimensions: int | None = None,
        calibration: Calibration = CAUTIOUS,
        query_prefix: str = "",
        text_prefix: str = "",
        batch: int = 128,
        timeout: float = 60.0,
        max_retries: int = 2,
    ) -> None:
        self.model = model
        self.calibration = calibration
        self._dimensions = dimensions
        self._prefixes = (text_prefix, query_prefix)
        self._batch = batch
        self._client = _client(base_url, api_key, timeout, max_retries)

    @property
    def dimensions(self) -> int:
        """Length of the vectors, as given or as the endpoint's first answer shows."""
        if self._dimensions is None:
            self._dimensions = self._request(["dimensions"]).shape[1]
        return self._dimensions

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Unit vectors of ``texts``, in requests of ``batch`` texts.

        Raises:
            ModelError: the endpoint failed, or its vectors are too few, of another length, not finite or zero.
        """
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        prefix = self._prefixes[query]
        clean = [_sendable(prefix + text) or " " for text in texts]
        parts = [self._request(clean[start : start + self._batch]) for start in range(0, len(clean), self._batch)]
        width = self._dimensions or parts[0].shape[1]
        if any(part.shape[1] != width for part in parts):
            found = sorted({part.shape[1] for part in parts})
            raise ModelError(f"{self.model}: vectors have {found} numbers, not {width}; was the model exchanged?")
        self._dimensions = width
        return np.concatenate(parts)

    def _request(self, texts: list[str]) -> Vectors:
        try:
            answer = self._client.embeddings.create(model=self.model, input=texts)
            rows = [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]
            vectors: Vectors = np.asarray(rows, dtype=np.float32)
        except (openai.OpenAIError, ValueError, TypeError, AttributeError) as error:
            raise _translated(self.model, error) from error
        if vectors.ndim != 2 or len(vectors) != len(texts):  # noqa: PLR2004 - rows and columns
            raise ModelError(f"{self.model}: {len(texts)} texts gave vectors of shape {vectors.shape}")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise ModelError(f"{self.model}: a vector is zero or not finite; the endpoint's model is broken")
        vectors /= lengths
        return vectors


def _client(base_url: str | None, api_key: str | None, timeout: float, max_retries: int) -> openai.OpenAI:
    if base_url and not api_key:
        api_key = _key_of_environment() or "none"
    try:
        return openai.OpenAI(base_url=base_url, api_key=api_key, timeout=timeout, max_retries=max_retries)
    except openai.OpenAIError as error:
        raise ConfigError(f"no key for the model: set OPENAI_API_KEY or give api_key ({error})") from error


def _key_of_environment() -> str:
    import os

    return os.environ.get("OPENAI_API_KEY", "")


def _messages(turns: Sequence[ChatTurn]) -> Any:
    return [{"role": turn.role, "content": _sendable(turn.content)} for turn in turns]


def _sendable(text: str) -> str:
    """``text`` less what JSON in UTF-8 cannot carry (lone surrogates)."""
    return text.encode("utf-8", "replace").decode()


def _response_format(form: str, schema: Any) -> dict[str, Any]:
    if form == "json_schema":
        named = {"name": schema.get("title", "answer"), "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    return {"response_format": {"type": "json_object"}} if form == "json_object" else {}


def _plain_schema(schema: Any) -> Any:
    """``schema`` less the keywords that many servers refuse; a property of that name stays."""
    if isinstance(schema, list):
        return [_plain_schema(item) for item in schema]
    if not isinstance(schema, dict) and not hasattr(schema, "items"):
        return schema
    return {
        key: {name: _plain_schema(inner) for name, inner in value.items()}
        if key in {"properties", "$defs"}
        else _plain_schema(value)
        for key, value in schema.items()
        if not (key in _UNSENT and isinstance(value, str))
    }


def _check_finish(model: str, reason: str | None) -> None:
    if reason == "length":
        raise ModelError(f"{model}: the answer was cut off at the token limit; raise max_tokens or send less")
    if reason == "content_filter":
        raise ModelError(f"{model}: the endpoint's content filter withheld the answer")
    if reason == "no finish_reason":
        raise ModelError(f"{model}: the stream ended before the answer did; try again")


def _is_transport(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] in {"httpx", "httpx2", "httpcore", "httpcore2"}


def _translated(model: str, error: Exception) -> ModelError:
    """What happened and what to do about it; the SDK's error stays as the cause."""
    match error:
        case openai.APITimeoutError():
            advice = "did not answer in time; raise timeout, or see whether the endpoint is overloaded"
        case openai.APIConnectionError():
            advice = "cannot be reached; check base_url and the network"
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            advice = "does not accept the key; check OPENAI_API_KEY or api_key"
        case openai.NotFoundError():
            advice = "is unknown to the endpoint; check the model's name and base_url (…/v1)"
        case openai.RateLimitError():
            advice = "is over its rate or quota; wait, or raise the quota"
        case openai.InternalServerError():
            advice = f"failed on the server (status {error.status_code}); try again later"
        case _:
            advice = "gave no usable answer"
    return ModelError(f"{model} {advice}: {str(error)[:300]}")
