"""Records from JSON: what :func:`everlong.records.plain.plain` writes, read back."""

from __future__ import annotations

import base64
import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from everlong import records

__all__ = ["decode"]


def decode(kind: Any, value: Any) -> Any:
    """``value`` as a ``kind``: a record, a time, bytes, or tuples, mappings and unions of them. Fields of a newer server
    that this version does not know are left out."""
    origin = get_origin(kind)
    if origin in {Union, types.UnionType}:
        return _one_of(get_args(kind), value)
    if origin is tuple:
        return tuple(decode(get_args(kind)[0], each) for each in value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        inner = get_args(kind)[1]
        return {name: decode(inner, each) for name, each in value.items()}
    if is_dataclass(origin or kind):
        return _record(origin or kind, get_args(kind), value)
    if kind is datetime:
        return datetime.fromisoformat(value)
    return base64.b64decode(value) if kind is bytes else value


def _one_of(kinds: Sequence[Any], value: Any) -> Any:
    if value is None:
        return None
    there = [kind for kind in kinds if kind is not type(None)]
    if isinstance(value, dict) and all(is_dataclass(kind) for kind in there):
        there.sort(key=lambda kind: len({f.name for f in fields(kind)} ^ set(value)))
    return decode(there[0], value)


def _record(kind: Any, inner: tuple[Any, ...], value: Mapping[str, Any]) -> Any:
    hints = _hints(kind)
    given = {}
    for name in hints.keys() & value.keys():
        given[name] = decode(_filled(hints[name], inner), value[name])
    return kind(**given)


def _filled(hint: Any, inner: tuple[Any, ...]) -> Any:
    """A hint of a generic record with its one parameter in place."""
    return hint[inner] if inner and any(isinstance(each, TypeVar) for each in get_args(hint)) else hint


@cache
def _hints(kind: Any) -> dict[str, Any]:
    # Records name some types for a type checker only; these are the ones.
    known = {name: getattr(records, name) for name in records.__all__} | {
        "Mapping": Mapping,
        "Sequence": Sequence,
        "datetime": datetime,
    }
    hints = get_type_hints(kind, localns=known)
    return {f.name: hints[f.name] for f in fields(kind)}
