"""Which rows a question searches at all: the filters of a :class:`~everlong.records.Query` as one mask over a corpus."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, get_args

import numpy as np

from everlong.errors import InvalidInput
from everlong.records import ALL_KINDS, Origin

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from everlong.protocols import Corpus
    from everlong.records import Kind, Query

__all__ = ["allowed", "check", "matches"]

_MOST: Final = 100
"""Neighbours of a turn, on one side, that a question may ask for."""
_MISSING: Final = object()

Test = Callable[[Any, Any], bool]


# ------------------------------------------------------------------------------------------------------- metadata


def matches(metadata: Mapping[str, Any], conditions: Mapping[str, Any]) -> bool:
    """Whether a record's metadata meets every one of the conditions, which are checked by :func:`check`.

    A condition is ``key: value`` (the same as ``key: {"$eq": value}``) or ``key: {operator: operand, …}``, of which all
    must hold. A key is looked up as it stands; if it is not there, its dots lead into mappings (``a.b``).

    ============================  =========  ========================  ===========
    condition                     no key     ``null``                  else
    ============================  =========  ========================  ===========
    ``value``, ``$eq: value``     no         if ``value`` is null      if equal
    ``$ne: value``                **yes**    unless ``value`` is null  if not equal
    ``$gt $gte $lt $lte``         no         no                        number with number and text with text (by code
                                                                       point); no for all else, which raises nothing
    ``$in: [value, …]``           no         if null is in the list    if equal to one
    ``$exists: true`` / `false`   no / yes   yes / no                  yes / no
    ============================  =========  ========================  ===========

    Equal are numbers of one value (``1`` and ``1.0``), texts of the same characters, lists of equal values in the same
    order, mappings of equal values under the same keys, in any order. ``true`` is not ``1``, ``"1"`` is not ``1``. A
    list is compared as a whole. Keys are data: none is read as anything but a key.
    """
    return all(_meets(_find(metadata, key), condition) for key, condition in conditions.items())


def _meets(found: Any, condition: Any) -> bool:
    if not _is_operation(condition):
        return _equal(found, condition)
    return all(_OPERATORS[operator](found, operand) for operator, operand in condition.items())


def _find(metadata: Mapping[str, Any], key: str) -> Any:
    if key in metadata:
        return metadata[key]
    for place, character in enumerate(key):
        inner = metadata.get(key[:place]) if character == "." else None
        if isinstance(inner, Mapping) and (found := _find(inner, key[place + 1 :])) is not _MISSING:
            return found
    return _MISSING


def _is_operation(condition: Any) -> bool:
    return isinstance(condition, Mapping) and any(isinstance(key, str) and key.startswith("$") for key in condition)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _equal(one: Any, other: Any) -> bool:
    if _is_number(one) and _is_number(other):
        return bool(one == other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_equal(value, other[key]) for key, value in one.items())
    if _is_list(one) and _is_list(other):
        return len(one) == len(other) and all(map(_equal, one, other))
    return type(one) is type(other) and bool(one == other)


def _ordered(compare: Callable[[Any, Any], bool]) -> Test:
    def test(found: Any, operand: Any) -> bool:
        numbers = _is_number(found) and _is_number(operand)
        return (numbers or (isinstance(found, str) and isinstance(operand, str))) and compare(found, operand)

    return test


_OPERATORS: Final[Mapping[str, Test]] = MappingProxyType(
    {
        "$eq": _equal,
        "$ne": lambda found, operand: not _equal(found, operand),
        "$gt": _ordered(lambda found, operand: bool(found > operand)),
        "$gte": _ordered(lambda found, operand: bool(found >= operand)),
        "$lt": _ordered(lambda found, operand: bool(found < operand)),
        "$lte": _ordered(lambda found, operand: bool(found <= operand)),
        "$in": lambda found, operand: any(_equal(found, each) for each in operand),
        "$exists": lambda found, operand: (found is not _MISSING) is operand,
    }
)


# ------------------------------------------------------------------------------------------------------- checking


def check(query: Query) -> None:
    """Raises :class:`~everlong.errors.InvalidInput` when a filter is malformed."""
    _known("kind", query.kinds, ALL_KINDS)
    _known("origin", query.origins, get_args(Origin))
    _check_numbers(query)
    for name in ("since", "until", "as_of", "valid_at", "at"):
        value = getattr(query, name)
        if value is not None and (not isinstance(value, datetime) or value.tzinfo is None):
            raise InvalidInput(f"{name} is {value!r}; it must be a time with its zone")
    for name in ("categories", "sessions", "exclude_sessions", "files"):
        value = getattr(query, name)
        if isinstance(value, str):
            raise InvalidInput(f"{name} must be a list such as [{value!r}], not a single text")
    _check_conditions(query.metadata)


def _check_numbers(query: Query) -> None:
    if type(query.limit) is not int or query.limit < 0:
        raise InvalidInput(f"limit is {query.limit!r}; it must be a whole number, 0 or more")
    if query.min_score is not None and not (_is_number(query.min_score) and math.isfinite(query.min_score)):
        raise InvalidInput(f"min_score is {query.min_score!r}; it must be a number")
    for name in ("min_confidence", "min_trust"):
        value = getattr(query, name)
        if not _is_number(value) or not 0 <= value <= 1:
            raise InvalidInput(f"{name} is {value!r}; it must be a number from 0 to 1")
    for name in ("before", "after"):
        value = getattr(query, name)
        if type(value) is not int or not 0 <= value <= _MOST:
            raise InvalidInput(f"{name} is {value!r}; it must be a whole number from 0 to {_MOST}")


def _known(what: str, given: Sequence[str], known: Sequence[str]) -> None:
    if isinstance(given, str):
        raise InvalidInput(f"{what}s must be a list such as [{given!r}], not a single text")
    for each in given:
        if each not in known:
            raise InvalidInput(f"unknown {what} {each!r}; known are {', '.join(known)}")


def _check_conditions(conditions: object) -> None:
    if not isinstance(conditions, Mapping):
        raise InvalidInput(f"metadata must be conditions by key, not {type(conditions).__name__}")
    try:
        # No trace and no answer could hold anything else.
        json.dumps(dict(conditions), default=str, skipkeys=True, allow_nan=False)
    except (ValueError, RecursionError):
        raise InvalidInput("metadata conditions must be finite: no NaN, no infinity, nothing within itself") from None
    for key, condition in conditions.items():
        if not isinstance(key, str):
            raise InvalidInput(f"metadata keys are text, not {type(key).__name__}")
        if _is_operation(condition):
            for operator, operand in condition.items():
                _check_operation(key, operator, operand)


def _check_operation(key: str, operator: object, operand: object) -> None:
    if operator not in _OPERATORS:
        raise InvalidInput(f"unknown operator {operator!r} for {key!r}; known are {', '.join(_OPERATORS)}")
    if operator == "$in" and not _is_list(operand):
        raise InvalidInput(f"$in for {key!r} needs a list of values")
    if operator == "$exists" and not isinstance(operand, bool):
        raise InvalidInput(f"$exists for {key!r} needs true or false")
    if operator in {"$gt", "$gte", "$lt", "$lte"} and not (_is_number(operand) or isinstance(operand, str)):
        raise InvalidInput(f"{operator} for {key!r} needs a number or text")


# ----------------------------------------------------------------------------------------------------------- mask


def allowed(corpus: Corpus, query: Query, kind: Kind, told: Sequence[Mapping[str, Any]] | None) -> NDArray[np.bool_]:
    """Rows that the question's filters let in. ``told`` is the metadata of every row, if there are conditions on it."""
    rows = np.ones(corpus.size, bool) if corpus.readable is None else corpus.readable.copy()
    if query.sessions:
        rows &= _among(corpus.session, corpus.sessions, query.sessions)
    if query.exclude_sessions and kind == "message":
        rows &= ~_among(corpus.session, corpus.sessions, query.exclude_sessions)
    if query.categories:
        rows &= _among(corpus.category, corpus.categories, query.categories)
    if query.origins:
        rows &= _among(corpus.origin, corpus.origins, query.origins)
    if query.min_confidence > 0:
        rows &= corpus.confidence >= np.float32(query.min_confidence)
    if query.min_trust > 0:
        rows &= corpus.trust >= np.float32(query.min_trust)
    rows &= _in_time(corpus, query)
    if kind == "file":
        rows &= _not_hidden(corpus)
        if query.files:
            rows &= _among(corpus.speaker, corpus.speakers, _within(corpus.speakers, query.files))
    if told is not None:
        rows[rows] = [matches(told[row], query.metadata) for row in np.flatnonzero(rows).tolist()]
    return rows


def _within(paths: Sequence[str], wanted: Sequence[str]) -> frozenset[str]:
    """The paths that ``wanted`` names, itself or by a folder above it."""
    exact, folders = set(wanted), tuple(each for each in wanted if each.endswith("/"))
    return frozenset(path for path in paths if path in exact or path.startswith(folders))


def _among(ordinals: NDArray[np.int32], names: Sequence[str], wanted: Collection[str]) -> NDArray[np.bool_]:
    return np.isin(ordinals, [ordinal for ordinal, name in enumerate(names) if name in wanted])


def _in_time(corpus: Corpus, query: Query) -> NDArray[np.bool_]:
    rows = np.ones(corpus.size, bool)
    if query.since is not None:
        rows &= corpus.created >= query.since.timestamp()
    if query.until is not None:
        rows &= corpus.created < query.until.timestamp()
    if query.as_of is not None:
        rows &= corpus.created <= query.as_of.timestamp()
    if query.valid_at is not None:
        at = query.valid_at.timestamp()
        rows &= (corpus.valid_from <= at) & (at < corpus.valid_until)
    return rows


def _not_hidden(corpus: Corpus) -> NDArray[np.bool_]:
    """Passages with text of the narrowest file of each path: it hides the wider ones. What may not be read hides none."""
    readable = slice(None) if corpus.readable is None else corpus.readable
    narrowest = np.zeros(len(corpus.speakers), np.int32)
    np.maximum.at(narrowest, corpus.speaker[readable], corpus.place[readable])
    shown: NDArray[np.bool_] = (corpus.place == narrowest[corpus.speaker]) & (corpus.length > 0)
    return shown
