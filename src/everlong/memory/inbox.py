"""The review inbox of a scope."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from everlong.errors import EverlongError
from everlong.records import Principal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from everlong.memory.scoped import ScopedMemory
    from everlong.records import Page, Proposal, ProposalKind

__all__ = ["Inbox"]

_CALLS: Final[Mapping[str, Callable[[ScopedMemory, dict[str, Any]], Any]]] = {
    "remember": lambda memory, given: memory.remember(**given),
    "revise": lambda memory, given: memory.revise(given["fact_id"], expected=given["expected"], **given["changes"]),
    "forget": lambda memory, given: memory.forget(**given),
    "update_profile": lambda memory, given: memory.update_profile(**given),
    "erase": lambda memory, _: memory.erase(),
    "write_file": lambda memory, given: memory.files.write(**given),
    "edit_file": lambda memory, given: memory.files.edit(**given),
    "delete_file": lambda memory, given: memory.files.delete(**given),
}
"""How a call that waited is made again."""


class Inbox:
    """Changes that wait for a person: nothing in here is recalled or shown to a model before it is approved.

    Any operation may raise :class:`~everlong.errors.AccessDenied`; agents may look but never decide.
    """

    def __init__(self, scoped: ScopedMemory) -> None:
        self._scoped, self._scope, self._by, self._run = scoped, scoped.scope, scoped.by, scoped._run
        self._reviewer = scoped._memory.parts.reviewer

    def list(self, *, kind: ProposalKind | None = None, cursor: str = "", limit: int = 100) -> Page[Proposal]:
        """What waits within this scope less its session, newest first; the text of a held fact is
        ``memory.fact(proposal.target)``."""
        return self._run("proposals", partial(self._reviewer.list, self._scope), kind=kind, cursor=cursor, limit=limit)

    def approve(self, proposal_id: str, *, content: str | None = None) -> Any:
        """Lets it take effect; ``content`` replaces the wording of a fact or summary first. Returns what changed: the
        fact or the profile, and for a call what the call returns, made in the name of who asked.

        Raises:
            NotFound: no such proposal here, or someone decided it already.
            Conflict: what it speaks of has changed since; reject it or wait for a new one.
            EmptyText: ``content`` is empty.
        """
        return self._run("approve", self._approve, proposal_id=proposal_id, content=content)

    def _approve(self, *, proposal_id: str, content: str | None) -> Any:
        waiting = self._reviewer.take_call(self._scope, proposal_id) if content is None else None
        if waiting is None:
            return self._reviewer.approve(self._scope, by=self._by, proposal_id=proposal_id, content=content)
        asked = waiting.payload["by"]
        asker = Principal(id=asked["id"], role=asked["role"], groups=tuple(asked["groups"]))
        memory = self._scoped.approved_at(waiting.scope, asker, by=self._by)
        try:
            made = _CALLS[waiting.target](memory, dict(waiting.payload["arguments"]))
        except EverlongError:
            self._reviewer.give_back(waiting)
            raise
        self._reviewer.note(waiting, by=self._by)
        return made

    def reject(self, proposal_id: str, *, reason: str = "rejected in review") -> None:
        """Takes it out; a held fact is retired with ``reason``.

        Raises:
            NotFound: no such proposal here, or someone decided it already.
        """
        reject = partial(self._reviewer.reject, self._scope, by=self._by)
        self._run("reject", reject, proposal_id=proposal_id, reason=reason)
