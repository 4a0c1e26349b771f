"""Values that are let through, and whether two components leave any over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.component.fieldflow import ValueRange

NUMBERS = st.integers(-3, 3) | st.sampled_from([0.5, -0.5, 2.0, float("inf"), 2**60, 2**60 + 1])
STRINGS = st.text("ab", max_size=3)
CONDITIONS = st.one_of(
    st.builds(lambda bound: ValueRange(above=bound), NUMBERS),
    st.builds(lambda bound: ValueRange(below=bound), NUMBERS),
    st.builds(lambda value: ValueRange(equal=value), NUMBERS | STRINGS),
    st.builds(lambda part: ValueRange(containing=part), STRINGS),
)


def admits(values, value, read=lambda number: number):
    """Return whether a value is let through, numbers being compared as ``read`` sees them."""
    if isinstance(value, str):
        return value == values.equal or (
            values.containing is not None and values.containing in value
        )
    if values.above is not None:
        return read(value) > read(values.above)
    if values.below is not None:
        return read(value) < read(values.below)
    return isinstance(values.equal, int | float) and read(value) == read(values.equal)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ValueRange(above=5), ValueRange(below=5)),
        (ValueRange(above=5.5), ValueRange(below=3)),
        (ValueRange(equal=3), ValueRange(equal=4)),
        (ValueRange(equal=3), ValueRange(above=3)),
        (ValueRange(equal=3), ValueRange(below=3)),
        (ValueRange(equal="a"), ValueRange(equal="b")),
        (ValueRange(equal="auto"), ValueRange(containing="man")),
        (ValueRange(equal="3"), ValueRange(equal=3)),
        (ValueRange(containing=""), ValueRange(above=3)),
    ],
)
def test_contradictions_are_found_in_both_orders(one, other):
    assert one.excludes(other)
    assert other.excludes(one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ValueRange(above=3), ValueRange(below=5)),
        (ValueRange(above=3), ValueRange(above=5)),
        (ValueRange(below=3), ValueRange(below=5)),
        (ValueRange(equal=3), ValueRange(equal=3.0)),
        (ValueRange(equal=3), ValueRange(above=2)),
        (ValueRange(equal="auto"), ValueRange(containing="ut")),
        (ValueRange(containing="a"), ValueRange(containing="b")),
        (ValueRange(equal=2**53), ValueRange(equal=2**53 + 1)),
        (ValueRange(equal=10**400), ValueRange(equal=10**400 + 1)),
    ],
)
def test_what_may_leave_something_over_is_no_contradiction(one, other):
    assert not one.excludes(other)
    assert not other.excludes(one)


@given(one=CONDITIONS, other=CONDITIONS, value=NUMBERS | STRINGS)
def test_no_value_is_let_through_by_both_of_two_that_exclude_each_other(one, other, value):
    if one.excludes(other):
        assert not (admits(one, value) and admits(other, value))
        assert not (admits(one, value, float) and admits(other, value, float))
