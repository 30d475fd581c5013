"""LangGraph's long-term store over a memory: :class:`EverlongStore`."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, Literal

from anyio import to_thread

from everlong.errors import Conflict, InvalidInput, MissingExtra, NotFound
from everlong.records import Passage, Principal, Query, Scope
from everlong.text import clean, from_safe_name, safe_name

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        IndexConfig,
        Item,
        ListNamespacesOp,
        MatchCondition,
        PutOp,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
        validate_op_namespace,
    )
except ImportError as missing:  # pragma: no cover - the extra is installed where tests run
    raise MissingExtra("langchain", "EverlongStore") from missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from langgraph.store.base import Op, Result

    from everlong.memory import Memory, ScopedMemory
    from everlong.records import Kind, MemoryFile

    _Fields = list[str] | Literal[False] | None

__all__ = ["EverlongStore"]

_ROOT: Final = "/store/"
_OPERATOR: Final = Principal(id="langgraph-store", role="operator")
_LONGEST: Final = 80
"""Characters of a label or key in a path: twelve of them pass into the 1,024 of a file path."""
_TRIES: Final = 20
"""How often others may put the same item while one put is on its way."""
_SLACK: Final = 0.05
"""Share of its time to live that an item may have lost before a read writes a new end: reads seldom write."""


class EverlongStore(BaseStore):
    """LangGraph's ``BaseStore``: every item is a memory file, so it has versions, rights, search and erasure.

    An item is the file ``/store/<label>/…/<key>.json`` at the scope that its namespace belongs to. ``query`` ranks by
    meaning with the memory's own embedder (by words if it has none), among the items that prefix and ``filter`` let in;
    items that are not indexed come last, without a score. Without ``query`` the latest comes first. An expired item is
    never returned; it is deleted when it is met, or by :meth:`sweep_ttl`. A read that renews a time to live writes only
    once a twentieth of it is over. Versions of deleted items stay in history until their scope is erased.

    Args:
        memory: an open memory; it stays yours to close.
        scope: where items are kept whose namespace belongs to nobody in particular. Whatever is kept there is visible
            from every scope that it covers, so the default is an organisation of its own, ``Scope(org="langgraph")``.
        namespace_scope: says to whom a namespace belongs, such as
            ``lambda ns: Scope(user=ns[1]) if ns[:1] == ("users",) and len(ns) > 1 else Scope(org="langgraph")``. It gets
            prefixes too; a search looks at the scope of its prefix only, so that nobody's items are found from
            elsewhere, and erasing a user erases their items.
        recalled: a label, such as ``"memory"``: a search with a query below a namespace that ends in it recalls what the
            memory knows at that scope, whichever host it came through: facts, turns and files, each as ``{"kind": …,
            "text": …}``. Nothing can be put there.
        by: who acts. Default: at a user's scope that user, elsewhere an operator.
        index: of it, ``fields`` counts: the paths that are searched in items whose ``put`` names none.
        ttl: LangGraph's settings, in minutes; ``sweep_interval_minutes`` makes calls sweep the scopes they touch.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Memory,
        *,
        scope: Scope | None = None,
        namespace_scope: Callable[[tuple[str, ...]], Scope] | None = None,
        recalled: str = "",
        by: Principal | None = None,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        shared = Scope(org="langgraph") if scope is None else scope
        self._memory, self._by, self._recalled = memory, by, recalled
        self._scope_of = namespace_scope or (lambda _: shared)
        self._fields = (index or {}).get("fields") or None
        self.ttl_config = ttl
        self._swept: dict[Scope, datetime] = {}

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Runs operations: reads see what was there before, then the last change of each item counts.

        Raises:
            InvalidNamespaceError: a label is empty, not text, or holds a period.
            InvalidInput: a value is no JSON, or nothing can be put there. ValueError: a filter has an unknown operator.
            AccessDenied: the policy forbids it. TooLarge: over ``max_file_bytes`` or ``max_files``.
        """
        asked = list(ops)
        for op in asked:
            validate_op_namespace(op)
        results: list[Result] = [None if isinstance(op, PutOp) else self._read(op) for op in asked]
        for op in {(op.namespace, op.key): op for op in asked if isinstance(op, PutOp)}.values():
            self._put(op)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The async twin of :meth:`batch`."""
        return await to_thread.run_sync(self.batch, list(ops))

    def sweep_ttl(self, namespace_prefix: tuple[str, ...] = ()) -> int:
        """Deletes what is expired at the scope of ``namespace_prefix`` below it; returns how many items that were."""
        shelf = self._shelf(namespace_prefix, sweep=False)
        return sum(shelf.drop_expired(item) for item in shelf.items(namespace_prefix))

    # ------------------------------------------------------------------------------------------------------ steps

    def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            return self._get(op)
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._list_namespaces(op)
        msg = f"unknown operation {type(op).__name__}"
        raise ValueError(msg)

    def _shelf(self, namespace: tuple[str, ...], *, sweep: bool = True) -> _Shelf:
        scope = self._scope_of(namespace).home
        by = self._by or (None if scope.user else _OPERATOR)
        shelf = _Shelf(self._memory.at(scope, by=by), self._memory.parts.clock)
        interval = (self.ttl_config or {}).get("sweep_interval_minutes")
        now = self._memory.parts.clock()
        if sweep and interval and now - self._swept.setdefault(scope, now) >= timedelta(minutes=interval):
            self._swept[scope] = now
            for item in shelf.items(()):
                shelf.drop_expired(item)
        return shelf

    def _get(self, op: GetOp) -> Item | None:
        shelf = self._shelf(op.namespace)
        found = shelf.find(op.namespace, op.key)
        if found is None or shelf.drop_expired(found):
            return None
        if op.refresh_ttl:
            shelf.renew(found)
        return Item(**found.told())

    def _put(self, op: PutOp) -> None:
        if self._is_recalled(op.namespace):
            msg = f"namespace {op.namespace} shows what memory knows; nothing is put there"
            raise InvalidInput(msg)
        shelf = self._shelf(op.namespace)
        if op.value is None:
            shelf.delete(op.namespace, op.key)
            return
        fields = self._fields if op.index is None else op.index
        shelf.put(op, dict(op.value), None if fields == ["$"] else fields)

    def _search(self, op: SearchOp) -> list[SearchItem]:
        shelf = self._shelf(op.namespace_prefix)
        if self._is_recalled(op.namespace_prefix):
            return shelf.recalled(op)
        found = [item for item in shelf.items(op.namespace_prefix) if not shelf.drop_expired(item)]
        found = [item for item in found if _meets_all(item.value, op.filter or {})]
        found.sort(key=lambda item: item.updated_at, reverse=True)
        scores = shelf.scores(op.query, found, op.offset + op.limit) if op.query and op.query.strip() else {}
        found.sort(key=lambda item: -scores.get(item.path, -1.0))
        page = found[op.offset : op.offset + op.limit]
        for item in page if op.refresh_ttl else ():
            shelf.renew(item)
        return [SearchItem(**item.told(), score=scores.get(item.path)) for item in page]

    def _is_recalled(self, namespace: tuple[str, ...]) -> bool:
        return bool(self._recalled) and namespace[-1:] == (self._recalled,)

    def _list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        conditions = op.match_conditions or ()
        prefix = next((_steady(each.path) for each in conditions if each.match_type == "prefix"), ())
        matching = {ns for ns in self._shelf(prefix).namespaces(prefix) if all(_names(each, ns) for each in conditions)}
        cut = matching if op.max_depth is None else {ns[: op.max_depth] for ns in matching}
        return sorted(cut)[op.offset : op.offset + op.limit]


@dataclass(frozen=True, slots=True)
class _Kept:
    """One item with the file that it is kept in. ``fields`` are the paths that are searched: ``None`` all of it,
    ``False`` nothing; ``ttl`` is in minutes."""

    path: str
    version: int
    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    fields: _Fields = None
    ttl: float | None = None
    expires_at: datetime | None = None

    def told(self) -> dict[str, Any]:
        return {
            "namespace": self.namespace,
            "key": self.key,
            "value": self.value,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
        }


class _Shelf:
    """Items of one scope, as files."""

    def __init__(self, scoped: ScopedMemory, clock: Callable[[], datetime]) -> None:
        self._scoped, self._files, self._clock = scoped, scoped.files, clock

    def find(self, namespace: tuple[str, ...], key: str) -> _Kept | None:
        return self._at(_path(namespace, key))

    def _at(self, path: str) -> _Kept | None:
        try:
            file = self._files.read(path)
        except NotFound:
            return None
        return _item(file) if file.scope == self._scoped.scope else None

    def _paths(self, prefix: tuple[str, ...]) -> list[str]:
        infos = self._files.list(_folder(prefix))
        return [each.path for each in infos if each.scope == self._scoped.scope and each.path.endswith(".json")]

    def items(self, prefix: tuple[str, ...]) -> list[_Kept]:
        found = (self._at(path) for path in self._paths(prefix))
        return [item for item in found if item is not None]

    def namespaces(self, prefix: tuple[str, ...]) -> set[tuple[str, ...]]:
        now = self._clock()
        live = (item for item in self.items(prefix) if item.expires_at is None or item.expires_at > now)
        return {item.namespace for item in live}

    def put(self, op: PutOp, value: dict[str, Any], fields: _Fields) -> None:
        now = self._clock()
        told: dict[str, Any] = {"value": value, "namespace": op.namespace, "key": op.key, "updated_at": now.isoformat()}
        if fields is not None:
            told["index"] = fields
        if op.ttl is not None:
            told |= {"ttl": op.ttl, "expires_at": (now + timedelta(minutes=op.ttl)).isoformat()}
        path = _path(op.namespace, op.key)
        self._write(path, told)
        if isinstance(fields, list):
            texts = [text for field in fields for text in get_text_at_path(value, field)]
            self._write(_searched(path), clean("\n\n".join(texts)))
        else:
            self._remove(_searched(path))

    def delete(self, namespace: tuple[str, ...], key: str) -> None:
        self._drop(_path(namespace, key))

    def drop_expired(self, item: _Kept) -> bool:
        """Deletes an item whose time is over; says whether it was."""
        if item.expires_at is None or item.expires_at > self._clock():
            return False
        self._drop(item.path, item.version)
        return True

    def renew(self, item: _Kept) -> None:
        """Gives an item its whole time to live again, once it lost a notable part of it."""
        if item.ttl is None or item.expires_at is None:
            return
        end = self._clock() + timedelta(minutes=item.ttl)
        if end - item.expires_at < _SLACK * timedelta(minutes=item.ttl):
            return
        told = json.loads(self._files.read(item.path).content) | {"expires_at": end.isoformat()}
        with suppress(Conflict):  # someone put or renewed it meanwhile, which gave it its time
            self._files.write(item.path, told, expected=item.version)

    def scores(self, query: str, items: list[_Kept], wanted: int) -> dict[str, float]:
        """How well items answer ``query``, 0 to 1, by path: of those that it found and no others."""
        searched = {(_searched(i.path) if i.fields else i.path): i.path for i in items if i.fields is not False}
        if not searched:
            return {}
        asked = Query(text=query, kinds=("file",), files=tuple(searched), limit=max(200, 5 * wanted), min_score=0.0)
        best: dict[str, float] = {}
        for hit in self._scoped.recall(asked).hits:
            if isinstance(hit.record, Passage):
                best.setdefault(searched[hit.record.path], hit.score)
        return best

    def recalled(self, op: SearchOp) -> list[SearchItem]:
        """What memory knows about the query."""
        if not op.query or not op.query.strip():
            return []
        kinds: tuple[Kind, ...] = ("fact", "message", "file")
        hits = self._scoped.recall(Query(text=op.query, kinds=kinds, limit=op.offset + op.limit)).hits
        told = [(hit, {"kind": hit.kind, "text": hit.text}) for hit in hits]
        page = [(hit, value) for hit, value in told if _meets_all(value, op.filter or {})][op.offset :][: op.limit]
        return [SearchItem(op.namespace_prefix, hit.id, value, hit.at, hit.at, hit.score) for hit, value in page]

    def _write(self, path: str, content: str | Mapping[str, Any]) -> None:
        """Puts ``content`` over whatever is there. One line of text is never merged with another, so that of two who
        write at once one comes after the other, whole."""
        expected = self._version(path)
        for _ in range(_TRIES):
            try:
                self._files.write(path, content, expected=expected)
            except Conflict as conflict:  # it knows of versions that no reader sees before they are on the disk
                expected = conflict.actual if isinstance(conflict.actual, int) else 0
            else:
                return
        self._files.write(path, content, expected=expected)

    def _version(self, path: str) -> int:
        try:
            file = self._files.read(path)
        except NotFound:
            return 0
        return file.version if file.scope == self._scoped.scope else 0

    def _drop(self, path: str, version: int | None = None) -> None:
        self._remove(path, version)
        self._remove(_searched(path))

    def _remove(self, path: str, version: int | None = None) -> None:
        with suppress(NotFound, Conflict):  # gone already, or put again meanwhile
            if self._version(path):
                self._files.delete(path, expected=version)


# -------------------------------------------------------------------------------------------------- files of items


def _part(label: str) -> str:
    """The name of a label or key in a path: another one for each, short enough for deep namespaces."""
    name = safe_name(label)
    if len(name) <= _LONGEST:
        return name
    digest = blake2b(label.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()
    return f"{name[:36].rstrip('%')}%-{digest}"


def _folder(namespace: tuple[str, ...]) -> str:
    return _ROOT + "".join(f"{_part(label)}/" for label in namespace)


def _path(namespace: tuple[str, ...], key: str) -> str:
    return f"{_folder(namespace)}{_part(key)}.json"


def _searched(path: str) -> str:
    """The file with the texts of chosen fields, beside the item's own."""
    return path.removesuffix(".json") + ".text"


def _names_of(path: str, told: Mapping[str, Any]) -> list[str]:
    """Labels and key of the item at ``path``. What was shortened there is told by the file."""
    parts = path.removeprefix(_ROOT).removesuffix(".json").split("/")
    return [_label(part, name) for part, name in zip(parts, [*told["namespace"], told["key"]], strict=True)]


def _label(part: str, told: str) -> str:
    try:
        return from_safe_name(part)
    except InvalidInput:
        return told


def _item(file: MemoryFile) -> _Kept | None:
    """The item that a file holds; ``None`` if someone wrote something else there."""
    try:
        told = json.loads(file.content)
        expires = told.get("expires_at")
        updated = datetime.fromisoformat(told["updated_at"])
        *namespace, key = _names_of(file.path, told)
        return _Kept(
            path=file.path,
            version=file.version,
            namespace=tuple(namespace),
            key=key,
            value=told["value"],
            created_at=min(file.created_at, updated),
            updated_at=updated,
            fields=told.get("index"),
            ttl=told.get("ttl"),
            expires_at=datetime.fromisoformat(expires) if expires else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


# --------------------------------------------------------------------------------------------------------- filters


def _meets_all(value: Mapping[str, Any], conditions: Mapping[str, Any]) -> bool:
    return all(_meets(value.get(key), condition) for key, condition in conditions.items())


def _meets(found: Any, condition: Any) -> bool:
    """Whether a value meets a condition of LangGraph's: operators, mappings in part, lists as a whole, else equality."""
    if isinstance(condition, dict):
        if any(str(key).startswith("$") for key in condition):
            return all(_compare(found, operator, operand) for operator, operand in condition.items())
        return isinstance(found, dict) and _meets_all(found, condition)
    if isinstance(condition, (list, tuple)):
        same = isinstance(found, (list, tuple)) and len(found) == len(condition)
        return same and all(map(_meets, found, condition))
    return bool(found == condition)


def _compare(found: Any, operator: str, operand: Any) -> bool:
    match operator:
        case "$eq":
            return bool(found == operand)
        case "$ne":
            return bool(found != operand)
        case "$gt" | "$gte" | "$lt" | "$lte":
            return _ordered(*_comparable(found, operand), operator)
        case _:
            msg = f"unknown operator {operator}; there are $eq, $ne, $gt, $gte, $lt and $lte"
            raise ValueError(msg)


def _comparable(found: Any, operand: Any) -> tuple[Any, Any]:
    """Both as numbers where both can be read as such, as LangGraph does; else as they are."""
    try:
        return float(found), float(operand)
    except (TypeError, ValueError):
        return found, operand


def _ordered(one: Any, other: Any, operator: str) -> bool:
    """Numbers with numbers and text with text; what has no order meets nothing."""
    if type(one) is not type(other) or not isinstance(one, (float, str)):
        return False
    equal = one == other and operator in {"$gte", "$lte"}
    return equal or (one > other if operator in {"$gt", "$gte"} else one < other)


# ------------------------------------------------------------------------------------------------------ namespaces


def _steady(path: tuple[str, ...]) -> tuple[str, ...]:
    """The labels of a pattern before its first wildcard."""
    return path[: path.index("*")] if "*" in path else path


def _names(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    size = len(condition.path)
    if size > len(namespace):
        return False
    part = namespace[:size] if condition.match_type == "prefix" else namespace[len(namespace) - size :]
    return all(wanted in ("*", label) for wanted, label in zip(condition.path, part, strict=True))
