"""LangGraph's store in a memory: profiles that nodes read and write, a namespace and a scope for each user.

python examples/langgraph_store.py
"""

from __future__ import annotations

from dataclasses import dataclass

from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime  # noqa: TC002 - LangGraph reads the hint when the graph is made

from everlong import Scope, open_memory
from everlong.integrations.langgraph import EverlongStore


@dataclass
class Who:
    user_id: str


def owner(namespace: tuple[str, ...]) -> Scope:
    """A user's items are the user's own; all else belongs to the organisation."""
    if len(namespace) > 1 and namespace[0] == "users":
        return Scope(org="acme", user=namespace[1])
    return Scope(org="acme")


def note(state: MessagesState, runtime: Runtime[Who]) -> None:
    runtime.store.put(
        ("users", runtime.context.user_id, "notes"), state["messages"][-1].id, {"text": state["messages"][-1].text}
    )


def main() -> None:
    with open_memory("sqlite://") as memory:
        store = EverlongStore(memory, namespace_scope=owner, ttl={"default_ttl": 60 * 24 * 30})
        graph = (
            StateGraph(MessagesState, context_schema=Who).add_node(note).add_edge(START, "note").compile(store=store)
        )
        for user, text in (("ann", "I take my tea green."), ("ann", "我的狗叫豆豆。"), ("bob", "I never drink tea.")):
            graph.invoke({"messages": [("user", text)]}, context=Who(user))
        memory.drain()  # give every text its vector now; the background does it otherwise
        for user, question in (("ann", "What tea?"), ("ann", "狗的名字"), ("bob", "What tea?")):
            best = store.search(("users", user), query=question, limit=1)[0]
            print(f"{user}: {question} {best.value['text']} ({best.score:.2f})")
        memory.at(Scope(org="acme", user="ann")).erase()
        print(
            f"after erasing ann: {len(store.search(('users', 'ann')))} of ann's, {len(store.search(('users', 'bob')))} of bob's"
        )


if __name__ == "__main__":
    main()
