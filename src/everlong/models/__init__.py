"""Models by name: embedders that work with nothing else installed, and clients for services.

Only the file that a name needs is imported, when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everlong.errors import ConfigError

if TYPE_CHECKING:
    from everlong.protocols import ChatModel, Embedder

__all__ = ["open_chat_model", "open_embedder"]


def open_embedder(
    spec: str = "use",
    *,
    base_url: str | None = None,
    api_key: str | None = None,
) -> Embedder | None:
    """The embedder that ``spec`` names; nothing is loaded before its first use.

    Args:
        spec: ``use`` (always there, 512 numbers, 16 languages), ``e5`` (extra ``[e5]``, 384 numbers, about 100
            languages, finds more and takes about ten times as long), ``openai:MODEL`` (extra ``[openai]``, any
            OpenAI-compatible endpoint), or ``none`` for search by words only, which gives ``None``.
        base_url: the endpoint of ``openai:MODEL``; default: ``OPENAI_BASE_URL``, else OpenAI's.
        api_key: its key; default: ``OPENAI_API_KEY``.

    Raises:
        ConfigError: no such embedder.
        MissingExtra: its packages are not installed.
    """
    kind, _, model = spec.strip().partition(":")
    if kind == "none" and not model:
        return None
    if kind == "use" and not model:
        from everlong.models.use import UniversalSentenceEncoder

        return UniversalSentenceEncoder()
    if kind == "e5" and not model:
        from everlong.models.e5 import MultilingualE5

        return MultilingualE5()
    if kind == "openai" and model:
        from everlong.models.openai import OpenAIEmbedder

        return OpenAIEmbedder(model, base_url=base_url, api_key=api_key)
    raise ConfigError(f"unknown embedder {spec!r}: choose use, e5, openai:MODEL or none")


def open_chat_model(spec: str, *, base_url: str | None = None, api_key: str | None = None, **options: Any) -> ChatModel:
    """The chat model that ``spec`` names, such as ``openai:gpt-4o-mini``.

    Args:
        spec: ``openai:MODEL`` (extra ``[openai]``): OpenAI, or any endpoint that speaks its protocol.
        base_url: the endpoint; default: ``OPENAI_BASE_URL``, else OpenAI's.
        api_key: its key; default: ``OPENAI_API_KEY``.
        options: further arguments of :class:`everlong.models.openai.OpenAIChat`.

    Raises:
        ConfigError: no such kind of model.
        MissingExtra: its packages are not installed.
    """
    kind, _, model = spec.strip().partition(":")
    if kind == "openai" and model:
        from everlong.models.openai import OpenAIChat

        return OpenAIChat(model, base_url=base_url, api_key=api_key, **options)
    raise ConfigError(f"unknown chat model {spec!r}: choose openai:MODEL, with base_url for other endpoints")
