"""The tree of errors is as drawn, and each has a status and an exit code."""

from __future__ import annotations

import re

import pytest

from everlong import errors
from everlong.errors import AccessDenied, Conflict, EverlongError, MissingExtra, UnusableExtraction
from everlong.records import Scope

ALL = [getattr(errors, name) for name in errors.__all__]
CODES = {
    "ConfigError": (500, 2),
    "InvalidInput": (400, 3),
    "AccessDenied": (403, 4),
    "NotFound": (404, 5),
    "Conflict": (409, 6),
    "TooLarge": (413, 3),
    "ModelError": (502, 7),
    "StoreError": (503, 8),
    "Overloaded": (429, 9),
}
CHILDREN = {
    "ConfigError": {"MissingExtra"},
    "InvalidInput": {"InvalidScope", "InvalidPath", "UnknownCategory", "EmptyText"},
    "AccessDenied": {"ApprovalRequired"},
    "ModelError": {"UnusableExtraction"},
    "StoreError": {"StoreUnavailable", "SchemaMismatch"},
}


def test_everything_raised_on_purpose_has_one_root() -> None:
    assert {cls.__name__ for cls in EverlongError.__subclasses__()} == set(CODES)
    assert all(issubclass(cls, EverlongError) for cls in ALL)


def test_all_names_every_class_of_the_module() -> None:
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    defined = {cls.__name__ for cls in classes if cls.__module__ == errors.__name__}
    assert defined == set(errors.__all__)


@pytest.mark.parametrize("name", CODES)
def test_branches_have_their_status_exit_code_and_children(name: str) -> None:
    branch = getattr(errors, name)
    assert (branch.status, branch.exit_code) == CODES[name]
    assert {child.__name__ for child in branch.__subclasses__()} == CHILDREN.get(name, set())
    for child in branch.__subclasses__():
        assert (child.status, child.exit_code) == CODES[name]


@pytest.mark.parametrize("cls", ALL)
def test_each_error_says_what_it_means(cls: type[EverlongError]) -> None:
    assert cls.__doc__
    assert cls.__doc__.strip().endswith(".")


def test_the_drawn_tree_names_every_class_but_none_that_is_gone() -> None:
    drawing = (errors.__doc__ or "").split("A message says")[0]
    drawn = set(re.findall(r"[A-Z][a-z]+[A-Z][A-Za-z]+|Conflict|Overloaded", drawing))
    assert drawn - {"LookupError"} == set(errors.__all__)


def test_builtin_handlers_catch_what_they_would_expect() -> None:
    assert issubclass(errors.NotFound, LookupError)
    assert issubclass(errors.InvalidScope, ValueError)


def test_a_conflict_tells_both_versions() -> None:
    error = Conflict("fact f1", expected=2, actual=5)
    assert (error.expected, error.actual) == (2, 5)
    assert "expected 2" in str(error)
    assert "found 5" in str(error)


def test_a_denial_tells_action_place_and_reason() -> None:
    error = AccessDenied("erase", Scope(user="ann"), "users may not erase")
    assert (error.action, error.scope, error.reason) == ("erase", Scope(user="ann"), "users may not erase")
    assert str(error) == "erase at user=ann is denied: users may not erase"


def test_a_missing_extra_tells_how_to_install_it() -> None:
    error = MissingExtra("postgres", "a postgresql:// store")
    assert error.extra == "postgres"
    assert "pip install 'everlong[postgres]'" in str(error)


def test_an_unusable_extraction_keeps_the_answer_but_does_not_print_it() -> None:
    error = UnusableExtraction("no JSON object", raw="Ann's secret is 42")
    assert (error.reason, error.raw) == ("no JSON object", "Ann's secret is 42")
    assert "secret" not in str(error)
