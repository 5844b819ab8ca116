"""The helper with which tests wait for other processes and threads."""

import pytest
from eventually import eventually


def test_a_condition_is_looked_at_until_it_is_true_and_its_value_is_returned():
    values = iter([0, [], "found"])
    assert eventually(lambda: next(values), timeout_s=60, what="there is a value") == "found"


def test_a_condition_that_is_true_at_once_needs_no_time():
    assert eventually(lambda: 7, timeout_s=0, what="7 is true") == 7


@pytest.mark.parametrize("what", ["the process has ended", lambda: "the process has ended"])
def test_the_error_says_what_was_not_seen_in_time(what):
    with pytest.raises(AssertionError, match=r"^not within 0 s: the process has ended$"):
        eventually(lambda: False, timeout_s=0, what=what)


def test_an_error_of_the_condition_ends_the_wait():
    with pytest.raises(ZeroDivisionError):
        eventually(lambda: 1 // 0, timeout_s=60, what="a number can be divided by zero")
