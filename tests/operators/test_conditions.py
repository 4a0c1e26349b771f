"""Conditions as `remember` and a gate ask them: of several all have to hold, and none says why not."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.compiler.lowering.chain import fuse
from headrace.compiler.schema.structures import ListOf
from headrace.compiler.schema.variants import VariantOf
from headrace.operators.conditions import Condition, all_hold, where_all_hold

CONDITIONS = ListOf(VariantOf(Condition))


def conditions(*documents):
    """Return conditions as a config has them."""
    return CONDITIONS.read(list(documents))


def numeric(operator, value, field="a"):
    return {"type": "numeric", "field": field, "operator": operator, "value": value}


def string(operator, value, field="a"):
    return {"type": "string", "field": field, "operator": operator, "value": value}


def generated(asked):
    """Return what generated code lets through, as a function over a batch."""

    def noting(code):
        code.before("through = []")
        with where_all_hold(asked, code):
            code.line(f"through.append({code.message})")
        code.returns("through")

    return fuse([noting], "p1 transforms[0]").loop


def hold(message, *documents):
    """Return whether conditions hold for a message, by the plain test and by generated code."""
    asked = conditions(*documents)
    plain = all_hold(asked)(message)
    if type(message) is dict:  # generated code leaves everything else to the plain steps
        assert bool(generated(asked)([message])) == plain
    return plain


@pytest.mark.parametrize(
    ("operator", "value", "found", "holds"),
    [
        ("greater_than", 80, 80.5, True),
        ("greater_than", 80, 80, False),
        ("greater_than", 80, 10**400, True),
        ("less_than", 5, 4.99, True),
        ("less_than", 5, 5, False),
        ("equal_to", 1, 1.0, True),
        ("equal_to", 1.0, 1, True),
        ("equal_to", 0, -0.0, True),
        ("equal_to", 0.3, 0.1 + 0.2, False),
    ],
)
def test_numbers_are_compared_as_numbers_however_they_are_spelled(operator, value, found, holds):
    assert hold({"a": found}, numeric(operator, value)) is holds


@pytest.mark.parametrize("value", [-1, 0, 0.5, 1, 2])
@pytest.mark.parametrize("operator", ["greater_than", "less_than", "equal_to"])
@pytest.mark.parametrize("found", [True, False, None, "1", "", [], [1], {}, {"a": 1}])
def test_what_is_no_number_does_not_match_a_number(operator, value, found):
    assert not hold({"a": found}, numeric(operator, value))


@pytest.mark.parametrize(
    ("operator", "value", "found", "holds"),
    [
        ("equal_to", "C", "C", True),
        ("equal_to", "C", "c", False),
        ("equal_to", "", "", True),
        ("contains", "alarm", "plc.alarm.7", True),
        ("contains", "alarm", "plc.Alarm.7", False),
        ("contains", "", "anything", True),
        ("contains", "", "", True),
    ],
)
def test_strings_are_compared_exactly_and_with_their_case(operator, value, found, holds):
    assert hold({"a": found}, string(operator, value)) is holds


@pytest.mark.parametrize("value", ["", "1", "a", "true"])
@pytest.mark.parametrize("operator", ["equal_to", "contains"])
@pytest.mark.parametrize("found", [True, None, 1, 1.5, [], [""], ["a"], {}, {"a": 1}])
def test_what_is_no_string_does_not_match_a_string(operator, value, found):
    assert not hold({"a": found}, string(operator, value))


@pytest.mark.parametrize("message", [{}, {"b": 1}, {"a": {"c": 1}}, {"a.c": 1}, {"a": [1]}])
@pytest.mark.parametrize(
    "condition",
    [numeric("less_than", 2, "a.b"), string("contains", "", "a.b"), numeric("equal_to", 0, "a.b")],
)
def test_a_missing_field_does_not_match(message, condition):
    assert not hold(message, condition)


@pytest.mark.parametrize("message", [None, True, 1, "a", [], ["a"]])
def test_what_is_no_object_has_no_fields(message):
    assert not hold(message, numeric("less_than", 2))
    assert not hold(message, string("contains", ""))


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
asked = st.lists(
    st.builds(
        numeric,
        st.sampled_from(["greater_than", "less_than", "equal_to"]),
        st.sampled_from([0, 1, 0.5, -2]),
        paths,
    )
    | st.builds(
        string, st.sampled_from(["equal_to", "contains"]), st.sampled_from(["", "x", "1"]), paths
    ),
    max_size=3,
)


@given(asked, st.lists(messages, max_size=4))
@example([numeric("less_than", 2), string("contains", "x")], [{"a": 1}, {"a": "x"}])
def test_generated_code_and_the_plain_test_agree(documents, batch):
    read = conditions(*documents)

    assert generated(read)(batch) == [*filter(all_hold(read), batch)]
