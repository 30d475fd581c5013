"""What LangGraph kept so far, brought into a memory: items of another store, conversations of a checkpointer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
    from langgraph.store.base import BaseStore, SearchItem

    from everlong.integrations.langgraph import EverlongStore
    from everlong.memory import Memory
    from everlong.records import Scope

__all__ = ["import_store", "import_threads"]

_PAGE = 100


def import_store(source: BaseStore, target: EverlongStore) -> int:
    """Puts every item of ``source`` (LangGraph's SQLite, PostgreSQL or any other store) into ``target``; returns how
    many. Doing it again changes nothing but the time of the change. A store does not tell what is left of a time to
    live, nor which fields of an item are searched, so both are as ``target``'s settings say."""
    count = 0
    for namespace in _namespaces(source):
        for item in _items(source, namespace):
            target.put(item.namespace, item.key, item.value)
            count += 1
    return count


def import_threads(
    saver: BaseCheckpointSaver[Any], memory: Memory, scope: Callable[[CheckpointTuple], Scope | None]
) -> int:
    """Keeps what was said in every thread of a checkpointer, so that it is recalled and facts are learned from it;
    returns how many messages were new. Doing it again adds nothing. What a thread's own summary replaced is not there
    any more.

    Args:
        saver: the checkpointer.
        memory: an open memory.
        scope: says whose a thread is, such as ``lambda point: Scope(user=point.metadata["user_id"])``; ``None`` leaves
            it out. The session is the thread.

    Raises:
        Overloaded: too much waits for extraction; run it again later.
    """
    seen: set[str] = set()
    count = 0
    for point in saver.list(None):  # the latest of a thread first
        where = point.config["configurable"]
        thread = str(where["thread_id"])
        if where.get("checkpoint_ns") or thread in seen:
            continue
        seen.add(thread)
        owner = scope(point)
        said = point.checkpoint["channel_values"].get("messages")
        if owner is not None and said:
            count += len(memory.at(replace(owner, session=thread)).add(said).message_ids)
    return count


def _namespaces(source: BaseStore) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    while page := source.list_namespaces(limit=_PAGE, offset=len(found)):
        found += page
    return found


def _items(source: BaseStore, namespace: tuple[str, ...]) -> Iterator[SearchItem]:
    """Those of exactly this namespace, page by page; reading them renews nothing."""
    offset = 0
    while page := source.search(namespace, limit=_PAGE, offset=offset, refresh_ttl=False):
        yield from (item for item in page if item.namespace == namespace)
        offset += len(page)
