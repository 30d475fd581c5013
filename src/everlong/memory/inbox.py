"""The review inbox of a scope."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from everlong.memory.scoped import ScopedMemory
    from everlong.records import Fact, Page, Profile, Proposal, ProposalKind

__all__ = ["Inbox"]


class Inbox:
    """Changes that wait for a person: nothing in here is recalled or shown to a model before it is approved.

    Any operation may raise :class:`~everlong.errors.AccessDenied`; agents may look but never decide.
    """

    def __init__(self, scoped: ScopedMemory) -> None:
        self._scope, self._by, self._run = scoped.scope, scoped.by, scoped._run
        self._reviewer = scoped._memory.parts.reviewer

    def list(self, *, kind: ProposalKind | None = None, cursor: str = "", limit: int = 100) -> Page[Proposal]:
        """What waits within this scope less its session, newest first; the text of a held fact is
        ``memory.fact(proposal.target)``."""
        return self._run("proposals", partial(self._reviewer.list, self._scope), kind=kind, cursor=cursor, limit=limit)

    def approve(self, proposal_id: str, *, content: str | None = None) -> Fact | Profile:
        """Lets it take effect; ``content`` replaces the wording of a fact or summary first. Returns what changed.

        Raises:
            NotFound: no such proposal here, or someone decided it already.
            Conflict: what it speaks of has changed since; reject it or wait for a new one.
            EmptyText: ``content`` is empty.
        """
        approve = partial(self._reviewer.approve, self._scope, by=self._by)
        return self._run("approve", approve, proposal_id=proposal_id, content=content)

    def reject(self, proposal_id: str, *, reason: str = "rejected in review") -> None:
        """Takes it out; a held fact is retired with ``reason``.

        Raises:
            NotFound: no such proposal here, or someone decided it already.
        """
        reject = partial(self._reviewer.reject, self._scope, by=self._by)
        self._run("reject", reject, proposal_id=proposal_id, reason=reason)
