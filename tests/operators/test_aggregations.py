"""The functions of the `reducer`, as folds over a list of values."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.errors import BatchFailed
from headrace.operators.aggregations import FUNCTIONS, exact

HUGE = 10**400

integers = st.lists(st.integers(-(10**30), 10**30), min_size=1)
doubles = st.lists(st.floats(-1e6, 1e6), min_size=1)


def fold(function, values):
    return FUNCTIONS[function].fold(values)


@pytest.mark.parametrize(
    ("function", "values", "result"),
    [
        ("sum", [1, 2], "3"),
        ("sum", [1, 2.5], "3.5"),
        ("sum", [2.0, 2.0], "4.0"),
        ("sum", [2**63, 2**63], str(2**64)),
        ("sum", [], "None"),
        ("sum", [1e308, 1e308], "None"),
        ("sum", [HUGE, 0.5], "None"),
        ("sum", [HUGE, 1], str(HUGE + 1)),
        ("avg", [1, 2], "1.5"),
        ("avg", [2, 4], "3.0"),
        ("avg", [], "None"),
        ("avg", [1e308, 1e308], "None"),
        ("avg", [HUGE], "None"),
        ("avg", [HUGE, -HUGE, 3], "1.0"),
        ("min", [3, 1.5, 2], "1.5"),
        ("min", [1, 1.0], "1"),
        ("min", ["b", "a", "é"], "'a'"),
        ("min", [], "None"),
        ("max", [3, 1.5], "3"),
        ("max", ["Z", "a"], "'a'"),
        ("max", ["\uffff", "\U00010000"], repr("\U00010000")),
        ("max", [], "None"),
        ("count", ["a", 1, {}], "3"),
        ("count", [], "0"),
        ("count_distinct", [1, 1.0, "1", True, 1, "1"], "4"),
        ("count_distinct", [{"a": 1, "b": 2}, {"b": 2, "a": 1}], "1"),
        ("count_distinct", [{"a": 1}, {"a": 1.0}, [1], [1, 1]], "4"),
        ("count_distinct", [], "0"),
        ("first", [{"a": 1}, 2], "{'a': 1}"),
        ("first", [], "None"),
        ("last", [1, [2]], "[2]"),
        ("last", [], "None"),
        ("collect", [1, "a", False, 1.0], "[1, 'a', False, 1.0]"),
        ("collect", [], "[]"),
        ("median", [3, 1, 2], "2.0"),
        ("median", [4, 1, 3, 2], "2.5"),
        ("median", [1.5], "1.5"),
        ("median", [], "None"),
        ("median", [HUGE], "None"),
        ("stddev", [2, 4, 4, 4, 5, 5, 7, 9], "2.0"),
        ("stddev", [5], "0.0"),
        ("stddev", [], "None"),
        ("stddev", [1e308, -1e308], "None"),
        ("stddev", [HUGE, 1], "None"),
    ],
)
def test_each_function_gives_what_the_table_says(function, values, result):
    assert repr(fold(function, values)) == result


@pytest.mark.parametrize("function", ["sum", "avg", "median", "stddev"])
@pytest.mark.parametrize(
    ("value", "kind"), [("1", "a string"), (True, "a boolean"), ([], "a list"), ({}, "an object")]
)
def test_what_is_no_number_fails(function, value, kind):
    with pytest.raises(BatchFailed, match=f"^expected a number, found {kind}$"):
        fold(function, [1, value])


@pytest.mark.parametrize("function", ["min", "max"])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, "a"], "expected a number, found a string"),
        (["a", 1.5], "expected a string, found a number"),
        ([True], "expected a number or a string, found a boolean"),
        (["a", []], "expected a string, found a list"),
    ],
)
def test_numbers_and_strings_are_not_compared(function, values, message):
    with pytest.raises(BatchFailed) as failure:
        fold(function, values)

    assert str(failure.value) == message


@given(integers)
def test_integers_are_added_and_compared_to_the_last_digit(values):
    assert fold("sum", values) == sum(values)
    assert fold("min", values) == sorted(values)[0]
    assert fold("max", values) == sorted(values)[-1]
    assert fold("avg", values) == float(statistics.mean(values))


@given(doubles)
def test_doubles_come_out_as_the_standard_library_has_them(values):
    def near(other):
        return pytest.approx(float(other), rel=1e-9, abs=1e-6)

    assert fold("sum", values) == near(math.fsum(values))
    assert fold("avg", values) == near(statistics.fmean(values))
    assert fold("median", values) == near(statistics.median(values))
    assert fold("stddev", values) == near(statistics.pstdev(values))


def test_a_value_is_the_same_when_its_type_and_its_content_are():
    values = [1, 1.0, "1", True, 0.0, -0.0, None, [1], ["1"], {"a": {"b": 1, "c": 2}}, {"a": {}}]

    assert len({exact(value) for value in values}) == len(values)
    assert exact({"a": {"c": 2, "b": 1}}) == exact({"a": {"b": 1, "c": 2}})
    assert exact(10**30) != exact(1e30)
