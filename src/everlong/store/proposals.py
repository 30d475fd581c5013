"""Proposals: changes that wait for a person, one of a kind for one target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import ColumnElement, bindparam, delete, select

from everlong.errors import Conflict
from everlong.store import rows, sql
from everlong.store.pages import Listing, find
from everlong.store.schema import proposals

if TYPE_CHECKING:
    from everlong.records import Page, Proposal, ProposalKind, Scope
    from everlong.store.sql import Work

_COLUMNS: Final = rows.proposal_columns()
_ADD: Final = sql.Insert(proposals).values({c.name: bindparam(c.name) for c in proposals.c}).on_conflict_do_nothing()
_SAME: Final = select(*_COLUMNS).where(
    sql.exactly(proposals), proposals.c.kind == bindparam("w_kind"), proposals.c.target == bindparam("w_target")
)
_DROP: Final = delete(proposals).where(sql.exactly(proposals), proposals.c.id == bindparam("w_id"))


def _asked(named: tuple[str, ...], *, kind: bool) -> list[ColumnElement[bool]]:
    return [sql.within(proposals, named), *([proposals.c.kind == bindparam("w_kind")] if kind else [])]


_LIST: Final = Listing(
    _COLUMNS,
    (proposals.c.created_at, proposals.c.id, proposals.c.org),
    rows.to_proposal,
    lambda named, kind: _asked(named, kind=kind),
)


class Proposals:
    """The review inbox in one transaction."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def put(self, proposal: Proposal) -> Proposal:
        if self._work.change(_ADD, **rows.from_proposal(proposal)):
            return proposal
        where = {"w_kind": proposal.kind, "w_target": proposal.target}
        waiting = None if proposal.kind == "call" else self._work.row(_SAME, **sql.place(proposal.scope), **where)
        if waiting is None:
            raise Conflict(f"proposal {proposal.id}", expected="a new id", actual="one in use")
        return rows.to_proposal(waiting)

    def get(self, scope: Scope, proposal_id: str) -> Proposal:
        return rows.to_proposal(find(self._work, _COLUMNS, scope, proposal_id))

    def list(
        self, scope: Scope, *, kind: ProposalKind | None = None, cursor: str = "", limit: int = 100
    ) -> Page[Proposal]:
        asked = sql.place(scope) | ({"w_kind": kind} if kind else {})
        return _LIST(self._work, sql.named(scope, home=True), kind is not None, cursor=cursor, limit=limit, **asked)

    def delete(self, proposal: Proposal) -> bool:
        return bool(self._work.change(_DROP, **sql.place(proposal.scope), w_id=proposal.id))
