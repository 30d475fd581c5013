"""Conversations that ChatGPT and Claude export as ``conversations.json``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from everlong.errors import InvalidInput
from everlong.integrations.importers.target import Turn, load_json, moment, talk
from everlong.records import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from everlong.integrations.importers.target import Found, Target
    from everlong.records import MessageRole

__all__ = ["chatgpt", "claude"]

_ROLES: Final[dict[str, MessageRole]] = {"user": "user", "human": "user", "assistant": "assistant"}
_DEEPEST: Final = 100_000
"""Turns of one conversation; a longer chain of parents goes round in a circle."""


def chatgpt(source: str, target: Target) -> Iterator[Found]:
    """What user and assistant said, on the branch of each conversation that was shown last; tools, hidden and empty
    turns are left out."""
    return _conversations(source, target, _branch)


def claude(source: str, target: Target) -> Iterator[Found]:
    """What user and assistant said, in order; empty turns are left out."""
    return _conversations(source, target, _chat)


def _conversations(source: str, target: Target, read: Callable[[dict[str, Any], int], list[Turn]]) -> Iterator[Found]:
    data = load_json(source)
    listed = data.get("conversations", [data]) if isinstance(data, dict) else data
    if not isinstance(listed, list):
        raise InvalidInput(f"{source} is no list of conversations")
    position = 1
    for number, conversation in enumerate(listed, 1):
        try:
            name, title, begun = _head(conversation)
            turns = read(conversation, number)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            told = f"is no conversation: {type(error).__name__} {error}"
            yield number, Fault(line=number, kind="session", reason=told)
            continue
        yield from talk(target, name, turns, title=title, begun=begun, first=position)
        position += len(turns)


def _head(conversation: dict[str, Any]) -> tuple[str, str, Any]:
    name = next((conversation[key] for key in ("conversation_id", "id", "uuid") if conversation.get(key)), None)
    if not isinstance(name, str) or not name.strip():
        raise ValueError("it has no id")
    title = conversation.get("title") or conversation.get("name") or ""
    begun = moment(conversation.get("create_time") or conversation.get("created_at"))
    return name, str(title), begun


# ----------------------------------------------------------------------------------------------------- ChatGPT


def _branch(conversation: dict[str, Any], number: int) -> list[Turn]:
    mapping = conversation["mapping"]
    nodes = _chain(mapping, conversation.get("current_node")) or _by_time(mapping)
    return [turn for turn in (_turn(name, node, number) for name, node in nodes) if turn]


def _chain(mapping: dict[str, Any], last: object) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    while isinstance(last, str) and last in mapping:
        if len(found) > _DEEPEST:
            raise ValueError("its turns follow one another in a circle")
        found.append((last, mapping[last]))
        last = mapping[last].get("parent")
    return found[::-1]


def _by_time(mapping: dict[str, Any]) -> list[tuple[str, Any]]:
    def made(pair: tuple[str, Any]) -> float:
        return float((pair[1].get("message") or {}).get("create_time") or 0)

    return sorted(mapping.items(), key=made)


def _turn(name: str, node: dict[str, Any], number: int) -> Turn | None:
    message = node.get("message") or {}
    role = _ROLES.get((message.get("author") or {}).get("role") or "")
    content = message.get("content") or {}
    hidden = (message.get("metadata") or {}).get("is_visually_hidden_from_conversation")
    if role is None or hidden or content.get("content_type", "text") not in {"text", "multimodal_text"}:
        return None
    said = _joined(content.get("parts") or [])
    at = moment(message.get("create_time"))
    return Turn(place=number, key=name, role=role, content=said, at=at) if said else None


def _joined(parts: list[Any]) -> str:
    texts = (
        part if isinstance(part, str) else part.get("text", "") if isinstance(part, dict) else "" for part in parts
    )
    return "\n".join(text for text in texts if isinstance(text, str) and text.strip()).strip()


# ------------------------------------------------------------------------------------------------------ Claude


def _chat(conversation: dict[str, Any], number: int) -> list[Turn]:
    turns = []
    for order, message in enumerate(conversation["chat_messages"]):
        role = _ROLES.get(message.get("sender") or "")
        pieces = message.get("content")
        blocks = (
            [each for each in pieces if isinstance(each, dict) and each.get("type", "text") == "text"]
            if (isinstance(pieces, list))
            else []
        )
        said = _joined(blocks) or str(message.get("text") or "").strip()
        if role and said:
            key = str(message.get("uuid") or order)
            turns.append(Turn(place=number, key=key, role=role, content=said, at=moment(message.get("created_at"))))
    return turns
