"""The same subject with another value is replaced; another subject stands beside it."""

import pytest

from tests.unit.write.same_subject import FOUND_LATER, HELD_OUT, KEPT_BOTH, TUNED
from tests.unit.write.test_reconcile import claim, kept, run

PAIRS = [*TUNED, *HELD_OUT, *FOUND_LATER]


@pytest.mark.parametrize(("old", "new", "kind"), PAIRS)
def test_what_becomes_of_the_later_statement(old, new, kind):
    fact = kept(old)
    (change,) = run(claim(new), facts=[fact], near=[[(fact, 0.97)]])
    assert change.kind == ("add" if (old, new) in KEPT_BOTH else kind), change.reason


@pytest.mark.parametrize(
    ("old", "new"),
    [("User's box number 5 holds the red scarves", "User's box number 8 holds the red scarves"),
     ("用户的5号箱子里放着红围巾", "用户的8号箱子里放着红围巾"),
     ("User's first job was at a bank", "User's second job was at a bank")],
)  # fmt: skip
def test_a_correction_of_one_thing_leaves_its_like_alone(old, new):
    fact = kept(old)
    (change,) = run(claim(new, category="correction"), facts=[fact], near=[[(fact, 0.97)]])
    assert change.kind == "add"
