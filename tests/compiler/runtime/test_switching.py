"""Threads change often while anything computes beside the loop, and as usual before and after."""

import sys

import pytest

from headrace.compiler.runtime.switching import SWITCH_SECONDS, Switching

MICROSECOND = 1.5e-6
"""The interpreter keeps whole ones, and reading and setting may cost one of them."""


def test_threads_change_often_until_the_last_of_several_is_over():
    usual, switching, seen = sys.getswitchinterval(), Switching(), []

    with switching.often():
        with switching.often():
            seen.append(sys.getswitchinterval())
        seen.append(sys.getswitchinterval())

    assert seen == [pytest.approx(SWITCH_SECONDS)] * 2
    assert sys.getswitchinterval() == pytest.approx(usual, abs=MICROSECOND)


def test_a_failure_leaves_it_as_usual():
    usual, switching = sys.getswitchinterval(), Switching()

    with pytest.raises(ZeroDivisionError), switching.often():
        raise ZeroDivisionError

    assert sys.getswitchinterval() == pytest.approx(usual, abs=MICROSECOND)
