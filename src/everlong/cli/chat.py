"""``everlong chat``: a conversation with any OpenAI-compatible model, with memory."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Final

from everlong.cli import render
from everlong.errors import ConfigError, ModelError
from everlong.protocols import ChatTurn

if TYPE_CHECKING:
    from everlong.memory import Memory, ScopedMemory
    from everlong.protocols import ChatModel

_SYSTEM: Final = "You are a helpful assistant. Answer in the user's language."
_LEAVE: Final = frozenset({"/quit", "/exit"})


def converse(memory: Memory, scoped: ScopedMemory, *, as_json: bool) -> None:
    """Reads a line, answers with what is remembered in mind, keeps both; until the end of input or ``/quit``."""
    model = _model()
    render.note(f"{model.name}; session {scoped.scope.session}; /quit ends", quiet=as_json)
    turns: list[ChatTurn] = []
    for line in sys.stdin:
        question = line.strip()
        if question in _LEAVE:
            break
        if question:
            _turn(scoped, model, turns, question, as_json=as_json)
    with render.progress("remembering", quiet=as_json):
        memory.drain()


def _turn(scoped: ScopedMemory, model: ChatModel, turns: list[ChatTurn], question: str, *, as_json: bool) -> None:
    block = scoped.context(question).text
    system = f"{_SYSTEM}\n\n{block}" if block else _SYSTEM
    turns.append(ChatTurn(role="user", content=question))
    pieces: list[str] = []
    try:
        for piece in model.stream([ChatTurn(role="system", content=system), *turns]):
            pieces.append(piece)
            if not as_json:
                print(piece, end="", flush=True)
    except ModelError as error:
        turns.pop()
        render.error(error)
        scoped.add([("user", question)])
        return
    answer = "".join(pieces)
    turns.append(ChatTurn(role="assistant", content=answer))
    scoped.add([("user", question), ("assistant", answer)])
    print(json.dumps({"question": question, "answer": answer, "memory": block}, ensure_ascii=False) if as_json else "")


def _model() -> ChatModel:
    from everlong.config import Settings
    from everlong.models import open_chat_model

    settings = Settings()
    if not settings.model:
        msg = "chat needs a model: set EVERLONG_MODEL, for example openai:gpt-4o-mini (and EVERLONG_BASE_URL)"
        raise ConfigError(msg)
    return open_chat_model(settings.model, base_url=settings.base_url, api_key=settings.api_key)
