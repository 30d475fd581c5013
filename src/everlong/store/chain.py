"""The chain over the journal: sealed at the end of each transaction, kept through erasures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, bindparam, exists, or_, select, update

from everlong.records import ERASING, Link, body_digest, link_hash
from everlong.store import sql
from everlong.store.forget import MARK
from everlong.store.schema import chain, journal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from everlong.records import Entry
    from everlong.store.sql import Work

_ADD: Final = sql.Insert(chain).values({c.name: bindparam(c.name) for c in chain.c})
_HERE: Final = chain.c.org == bindparam("w_org")
# The row of number 0 is no link: it holds how many there are and the last hash, and whoever adds links takes it first.
_HEAD: Final = _ADD.on_conflict_do_update(index_elements=["org", "number"], set_={"erased": chain.c.erased}).returning(
    chain.c.entry, chain.c.hash
)
_MOVE: Final = update(chain).where(_HERE, chain.c.number == 0).values(entry=bindparam("entry"), hash=bindparam("hash"))
_LINKS: Final = (
    select(chain.c.number, chain.c.entry, chain.c.body, chain.c.hash, chain.c.erased)
    .where(_HERE, chain.c.number > bindparam("after"))
    .order_by(chain.c.number)
    .limit(bindparam("most"))
)
_OWN: Final = and_(journal.c.org == chain.c.org, journal.c.id == chain.c.entry)
_ERASED: Final = (
    update(chain)
    .where(
        or_(_HERE, bindparam("w_all") == 1),
        chain.c.number > 0,
        chain.c.erased == "",
        or_(~exists().where(_OWN), exists().where(_OWN, journal.c.reason == MARK, journal.c.payload == "{}")),
    )
    .values(erased=bindparam("erased"))
)


def seal(work: Work, entries: Sequence[Entry]) -> None:
    """Adds a link for each of ``entries``, in their order. When one of them says that something was erased, the links of
    entries that are gone, or that lost their words, name it. Traces of questions change nothing and have no link.

    At the very end of a transaction, so that the head, which all writers of an organisation share, is the last lock that
    anybody takes, and taken organisation by organisation in order: no two wait for each other in a circle.
    """
    linked = [entry for entry in entries if entry.kind != "trace"]
    for org in sorted({entry.scope.org for entry in linked}):
        _seal(work, org, [entry for entry in linked if entry.scope.org == org])
    for entry in [entry for entry in linked if entry.action in ERASING][-1:]:
        work.change(_ERASED, w_org=entry.scope.org, w_all=int(not any(entry.scope.parts)), erased=entry.id)


def _seal(work: Work, org: str, entries: Iterable[Entry]) -> None:
    none: dict[str, Any] = {"org": org, "body": "", "erased": ""}
    found = work.row(_HEAD, **none, number=0, entry="0", hash="")
    if found is None:
        raise AssertionError("an upsert returns its row")
    number, last = int(found[0]), str(found[1])
    for entry in entries:
        number, body = number + 1, body_digest(entry)
        last = link_hash(last, entry, body)
        work.change(_ADD, org=org, number=number, entry=entry.id, body=body, hash=last, erased="")
    work.change(_MOVE, w_org=org, entry=str(number), hash=last)


def links(work: Work, org: str, *, after: int, limit: int) -> tuple[Link, ...]:
    """Links above ``after``, in order."""
    found = work.rows(_LINKS, w_org=org, after=after, most=limit)
    return tuple(Link(number=n, entry=e, body=b, hash=h, erased=x) for n, e, b, h, x in found)
