"""What waits for a person is decided here: let in, changed on the way, or turned away."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from everlong.errors import Conflict, EmptyText, InvalidInput, NotFound
from everlong.records import Fact, Page, Profile, Proposal, Section
from everlong.text import clean, normal
from everlong.write.apply import index_fact, name_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from everlong.protocols import Call, Clock, Embedder, NewId, Store, Transaction
    from everlong.records import Principal, ProposalKind, Scope
    from everlong.write.apply import Applier

__all__ = ["REPEATABLE", "Reviewer"]

REPEATABLE: Final = frozenset(
    {"remember", "revise", "forget", "update_profile", "erase", "write_file", "edit_file", "delete_file"}
)
"""Calls that can wait for a person: their arguments are plain values."""


class Reviewer:
    """Reads the inbox and carries out what a person decided, each decision in one transaction with its journal entry."""

    def __init__(
        self,
        *,
        store: Store,
        applier: Applier,
        embedder: Embedder | None,
        clock: Clock,
        new_id: NewId,
        redact: Callable[[Any], Any],
    ) -> None:
        self._store, self._applier, self._embedder, self._clock = store, applier, embedder, clock
        self._new_id, self._redact = new_id, redact

    def hold(self, call: Call, reason: str) -> str:
        """Keeps a call for a person to approve, less its secrets; returns the proposal's id, or nothing for calls that
        cannot wait: those that only read, and those whose arguments are not plain values. The same call made again
        waits once."""
        payload = {
            "arguments": self._redact(dict(call.arguments)),
            "by": {"id": call.by.id, "role": call.by.role, "groups": list(call.by.groups)},
        }
        if call.action not in REPEATABLE or not _plain(payload):
            return ""
        with self._store.write() as tx:
            for waiting in tx.proposals.list(call.scope, kind="call", limit=1000).items:
                if (waiting.scope, waiting.target, waiting.payload) == (call.scope, call.action, payload):
                    return waiting.id
            proposal = Proposal(
                id=self._new_id("prop"),
                scope=call.scope,
                kind="call",
                target=call.action,
                reason=reason,
                by=name_of(call.by),
                created_at=self._clock(),
                payload=payload,
            )
            return tx.proposals.put(proposal).id

    def take_call(self, scope: Scope, proposal_id: str) -> Proposal | None:
        """Takes a call that waits out of the inbox, for it to be made; ``None`` when the proposal is no call."""
        with self._store.write() as tx:
            proposal = tx.proposals.get(scope, proposal_id)
            if proposal.kind != "call":
                return None
            self._take(tx, proposal)
            return proposal

    def note(self, proposal: Proposal, *, by: Principal) -> None:
        """Journals that a call was approved and made."""
        with self._store.write() as tx:
            self._applier.journal(
                tx, proposal.scope, by, "approve", kind="call", target=proposal.target, reason=proposal.reason
            )

    def give_back(self, proposal: Proposal) -> None:
        """Lets a call wait again that was taken and could not be made."""
        with self._store.write() as tx:
            tx.proposals.put(proposal)

    def list(self, scope: Scope, *, kind: ProposalKind | None, cursor: str, limit: int) -> Page[Proposal]:
        with self._store.read() as tx:
            return tx.proposals.list(scope, kind=kind, cursor=cursor, limit=limit)

    def approve(self, scope: Scope, *, by: Principal, proposal_id: str, content: str | None) -> Fact | Profile:
        """See :meth:`everlong.memory.Inbox.approve`."""
        wording = None if content is None else clean(content).strip()
        if wording is not None and not normal(wording):
            msg = "the new wording is empty; leave it out to approve as it stands, or reject"
            raise EmptyText(msg)
        with self._store.write() as tx:
            proposal = tx.proposals.get(scope, proposal_id)
            self._take(tx, proposal)
            changed = self._carry_out(tx, proposal, by, wording)
            self._applier.journal(
                tx,
                proposal.scope,
                by,
                "approve",
                kind="profile" if proposal.kind == "section" else "fact",
                target=proposal.target,
                reason=proposal.reason,
                after=changed.version,
            )
        self._store.notify()
        return changed

    def reject(self, scope: Scope, *, by: Principal, proposal_id: str, reason: str) -> None:
        """See :meth:`everlong.memory.Inbox.reject`."""
        now = self._clock()
        with self._store.write() as tx:
            proposal = tx.proposals.get(scope, proposal_id)
            self._take(tx, proposal)
            if proposal.kind == "fact":
                held = tx.facts.get(proposal.scope, proposal.target)
                if held.status == "held":
                    gone = replace(held, status="retired", retired_at=now, updated_at=now, reason=reason)
                    tx.facts.revise(gone, expected=held.version)
            self._applier.journal(
                tx, proposal.scope, by, "reject", kind=proposal.kind, target=proposal.target, reason=reason
            )

    def _take(self, tx: Transaction, proposal: Proposal) -> None:
        if not tx.proposals.delete(proposal):
            msg = f"proposal {proposal.id!r} was decided by someone else"
            raise NotFound(msg)

    def _carry_out(self, tx: Transaction, proposal: Proposal, by: Principal, wording: str | None) -> Fact | Profile:
        if proposal.kind == "fact":
            return self._let_in(tx, proposal, by, wording)
        if proposal.kind == "removal":
            return self._remove(tx, proposal, by)
        if proposal.kind == "section":
            return self._rewrite(tx, proposal, wording)
        msg = f"a waiting {proposal.kind} cannot be reworded; approve it as it stands, or reject it"
        raise InvalidInput(msg)

    def _let_in(self, tx: Transaction, proposal: Proposal, by: Principal, wording: str | None) -> Fact:
        now = self._clock()
        held = tx.facts.get(proposal.scope, proposal.target)
        if held.status != "held":
            raise Conflict(f"fact {held.id}", expected="held", actual=held.status)
        let_in = replace(held, status="active", updated_at=now, reason=f"approved by {name_of(by)}: {held.reason}")
        row = None
        if wording is not None and wording != held.content:
            let_in = replace(let_in, content=wording)
            row = index_fact(let_in)
            if self._embedder is not None:
                self._applier.enqueue_embedding(tx, held.scope)
        self._retire_replaced(tx, let_in)
        return tx.facts.revise(let_in, expected=held.version, indexed=row)

    def _retire_replaced(self, tx: Transaction, successor: Fact) -> None:
        if not successor.supersedes:
            return
        old = tx.facts.get(successor.scope, successor.supersedes)
        if old.status != "active":
            return
        now = self._clock()
        gone = replace(
            old,
            status="retired",
            retired_at=now,
            updated_at=now,
            superseded_by=successor.id,
            reason=f"superseded by {successor.id}",
        )
        tx.facts.revise(gone, expected=old.version)

    def _remove(self, tx: Transaction, proposal: Proposal, by: Principal) -> Fact:
        now = self._clock()
        fact = tx.facts.get(proposal.scope, proposal.target)
        if fact.status != "active":
            raise Conflict(f"fact {fact.id}", expected="active", actual=fact.status)
        reason = f"removal approved by {name_of(by)}: {proposal.reason}"
        gone = replace(fact, status="retired", retired_at=now, updated_at=now, reason=reason)
        return tx.facts.revise(gone, expected=fact.version)

    def _rewrite(self, tx: Transaction, proposal: Proposal, wording: str | None) -> Profile:
        now = self._clock()
        profile = tx.profiles.get(proposal.scope)
        summary = wording or str(proposal.payload["summary"])
        sections = {**profile.sections, proposal.target: Section(summary=summary, updated_at=now)}
        return tx.profiles.put(replace(profile, sections=sections, updated_at=now), expected=profile.version)


def _plain(payload: Any) -> bool:
    try:
        json.dumps(payload, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True
