"""Lists of conditions: of several all have to hold, however many there are."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.compiler.component.conditions import all_hold
from tests.compiler.component.conditions.asked import (
    boolean,
    conditions,
    exists,
    generated,
    hold,
    numeric,
    of,
    one_of,
    string,
)


@pytest.mark.parametrize("message", [{}, {"a": 1}, None, "a", []])
def test_without_conditions_there_is_nothing_that_does_not_hold(message):
    assert hold(message)


def test_all_of_several_have_to_hold():
    fast, auto = numeric("greater_than", 5, "speed"), string("equal_to", "auto", "is.mode")

    assert hold({"speed": 6, "is": {"mode": "auto"}}, fast, auto)
    assert hold({"speed": 6, "is.mode": "auto"}, fast, auto)
    assert not hold({"speed": 5, "is": {"mode": "auto"}}, fast, auto)
    assert not hold({"speed": 6, "is": {"mode": "off"}}, fast, auto)


def test_there_is_no_most_conditions():
    assert hold({"a": 300}, *(numeric("greater_than", value) for value in range(300)))


def test_generated_code_goes_on_with_messages_in_order():
    through = generated(conditions(numeric("greater_than", 1), numeric("less_than", 5)))

    assert through([{"a": 2}, {"a": 7}, {}, {"a": 0}, {"a": 4}]) == [{"a": 2}, {"a": 4}]


paths = st.sampled_from(["a", "b", "a.b", "b.a"])
values = st.none() | st.booleans() | st.sampled_from([0, 1, 1.0, 0.5, -2, "", "x", "xy", "1"])
found = values | st.lists(values, max_size=2) | st.dictionaries(st.sampled_from("ab"), values)
messages = st.dictionaries(paths, found, max_size=3)
COMPARISONS = ["greater_than", "less_than", "equal_to", "at_least", "at_most", "not_equal_to"]
STRINGS = ["equal_to", "not_equal_to", "contains", "starts_with", "ends_with"]
NUMBERS = [0, 1, 0.5, -2]
single = (
    st.builds(numeric, st.sampled_from(COMPARISONS), st.sampled_from(NUMBERS), paths)
    | st.builds(
        string,
        st.sampled_from(STRINGS),
        st.sampled_from(["", "x", "1", "X"]),
        paths,
        ignore_case=st.booleans(),
    )
    | st.builds(exists, paths)
    | st.builds(boolean, paths, value=st.booleans())
    | st.builds(
        lambda values, field: one_of(*values, field=field),
        st.lists(st.booleans() | st.sampled_from([*NUMBERS, "x", "1"]), min_size=1, max_size=3),
        paths,
    )
    | st.builds(
        lambda kind, operator, field, other: {
            "type": kind,
            "field": field,
            "operator": operator,
            "other": other,
        },
        st.sampled_from(["numeric", "string"]),
        st.sampled_from(["equal_to", "not_equal_to"]),
        paths,
        paths,
    )
    | st.builds(
        lambda operator, value, field: {
            "type": "length",
            "field": field,
            "operator": operator,
            "value": value,
        },
        st.sampled_from(COMPARISONS),
        st.integers(0, 2),
        paths,
    )
)
asked = st.lists(
    st.recursive(
        single,
        lambda inner: st.builds(
            lambda word, conditions: of(word, *conditions),
            st.sampled_from(["any", "all", "not"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        max_leaves=4,
    ),
    max_size=3,
)


@given(asked, st.lists(messages, max_size=4))
@example([numeric("less_than", 2), string("contains", "x")], [{"a": 1}, {"a": "x"}])
def test_generated_code_and_the_plain_test_agree(documents, batch):
    read = conditions(*documents)

    assert generated(read)(batch) == [*filter(all_hold(read), batch)]
