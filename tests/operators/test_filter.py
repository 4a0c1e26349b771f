"""The `filter` transform, as section 9.7 of the contract has it."""

from functools import partial

import pytest
from reactivex.subject import Subject

from headrace.compiler.code import GiveUp
from headrace.compiler.component.catalogue import scan
from headrace.compiler.component.fieldflow import FieldUse, Passing, Shape
from headrace.compiler.config.program import load_program
from headrace.compiler.lowering.chain import fuse, lower, plainly
from headrace.compiler.text.documents import read
from headrace.operators.filter import Filter
from tests.covered import Covered, of_condition
from tests.doubles import StubContext, refusals
from tests.marbles import over_lists

HOT = {"Numeric": {"field": "temp", "operator": "greater_than", "value": 80}}
NOT_A_NUMBER = "dropped a message whose 'temp' is not a number"


@pytest.fixture
def ctx():
    return StubContext(place="transforms[0]")


@pytest.fixture(params=[plainly, lower], ids=["plain", "generated"])
def kept(request, ctx):
    """Return what runs batches through a filter, in either form."""

    def run(document, *batches):
        seen, source = [], Subject()
        [operator] = request.param([(Filter.load(document), ctx)], [])
        source.pipe(over_lists(operator)).subscribe(seen.append)
        for batch in batches:
            source.on_next(batch)
        return seen

    return run


def numeric(operator, value, field="temp"):
    return {"Numeric": {"field": field, "operator": operator, "value": value}}


def string(operator, value, field="unit"):
    return {"String": {"field": field, "operator": operator, "value": value}}


# --- what it lets through


@pytest.mark.parametrize(
    ("operator", "value", "found", "matches"),
    [
        ("greater_than", 80, 80.5, True),
        ("greater_than", 80, 81, True),
        ("greater_than", 80, 80, False),
        ("greater_than", 80.0, 80, False),
        ("greater_than", 80, 10**400, True),
        ("greater_than", 80, -(10**400), False),
        ("greater_than", 1e308, 10**400, True),
        ("greater_than", 2**53, 2**53 + 1, True),
        ("less_than", 5, 4.99, True),
        ("less_than", 5, 5, False),
        ("less_than", 0, -0.0, False),
        ("equal_to", 1, 1.0, True),
        ("equal_to", 1.0, 1, True),
        ("equal_to", 0, -0.0, True),
        ("equal_to", 0.3, 0.1 + 0.2, False),
        ("equal_to", 10**400, 10**400, True),
    ],
)
def test_numbers_are_compared_as_numbers_however_they_are_spelled(
    kept, operator, value, found, matches
):
    batch = [{"temp": found}]

    assert kept(numeric(operator, value), batch) == ([batch] if matches else [])


@pytest.mark.parametrize("value", [-1, 0, 0.5, 1, 2])
@pytest.mark.parametrize("operator", ["greater_than", "less_than", "equal_to"])
def test_a_boolean_is_no_number_whatever_it_is_compared_with(kept, ctx, operator, value):
    assert kept(numeric(operator, value), [{"temp": True}, {"temp": False}]) == []
    assert ctx.warnings == [NOT_A_NUMBER]


@pytest.mark.parametrize(
    ("operator", "value", "found", "matches"),
    [
        ("equal_to", "C", "C", True),
        ("equal_to", "C", "c", False),
        ("equal_to", "C", "C ", False),
        ("equal_to", "", "", True),
        ("equal_to", " C ", " C ", True),
        ("contains", "alarm", "plc.alarm.7", True),
        ("contains", "alarm", "plc.Alarm.7", False),
        ("contains", "a.b", "a-b", False),
        ("contains", "", "anything", True),
        ("contains", "", "", True),
        ("contains", "größe", "die größe", True),
    ],
)
def test_strings_are_compared_exactly_and_with_their_case(kept, operator, value, found, matches):
    batch = [{"unit": found}]

    assert kept(string(operator, value), batch) == ([batch] if matches else [])


OTHERS = [None, True, False, [], {}, ["81"], {"a": 81}]


@pytest.mark.parametrize("message", [{"temp": each} for each in [*OTHERS, "81"]] + [{}, {"t": 81}])
@pytest.mark.parametrize(
    "condition",
    [numeric("greater_than", 80), numeric("less_than", 80), numeric("equal_to", 81)],
)
def test_a_message_without_the_number_is_dropped_with_a_warning(kept, ctx, condition, message):
    calm = {"temp": 0.25}

    assert all(batch == [calm] for batch in kept(condition, [calm, message]))
    assert ctx.warnings == [NOT_A_NUMBER]


@pytest.mark.parametrize("message", [{"unit": each} for each in [*OTHERS, 81, 1.5]] + [{}])
@pytest.mark.parametrize("condition", [string("equal_to", "81"), string("contains", "")])
def test_a_message_without_the_string_is_dropped_with_a_warning(kept, ctx, condition, message):
    assert kept(condition, [message, {"unit": "81"}]) == [[{"unit": "81"}]]
    assert ctx.warnings == ["dropped a message whose 'unit' is not a string"]


@pytest.mark.parametrize("message", [None, True, 81, 81.5, "temp", ["temp"], [[81]]])
def test_a_message_that_is_no_object_has_no_fields(kept, ctx, message):
    assert kept(HOT, [message, {"temp": 81}]) == [[{"temp": 81}]]
    assert ctx.warnings == [NOT_A_NUMBER]


def test_the_warning_comes_once_however_many_are_dropped(kept, ctx):
    batch = [{"temp": "hot"}, {"temp": 81}, {}, "x"]

    assert kept(HOT, batch, batch, [{"temp": None}]) == [[{"temp": 81}]] * 2
    assert ctx.warnings == [NOT_A_NUMBER]


def test_what_matches_stays_in_order_and_in_one_batch(kept):
    batch = [{"temp": temp} for temp in (81, 1, 90, 2, 85)]

    assert kept(HOT, batch) == [[{"temp": 81}, {"temp": 90}, {"temp": 85}]]


def test_a_batch_of_which_nothing_matches_is_dropped_whole(kept, ctx):
    assert kept(HOT, [{"temp": 1}], [{"temp": 90}], [{"temp": 80}]) == [[{"temp": 90}]]
    assert ctx.warnings == []


@pytest.mark.parametrize(
    ("message", "matches"),
    [
        ({"_meta": {"subject": "alarm"}}, True),
        ({"_meta.subject": "alarm"}, True),
        ({"_meta.subject": "calm", "_meta": {"subject": "alarm"}}, False),
        ({"_meta": "alarm"}, False),
        ({"_meta": {"topic": "alarm"}}, False),
    ],
)
def test_the_field_may_be_a_dotted_path(kept, message, matches):
    condition = string("contains", "alarm", field="_meta.subject")

    assert kept(condition, [message]) == ([[message]] if matches else [])


def test_messages_are_handed_on_as_they_are(kept):
    batch = [{"temp": 81, "x": {"y": 1}}, {"temp": 1}]
    untouched = repr(batch)

    [[message]] = kept(HOT, batch)

    assert message is batch[0]
    assert repr(batch) == untouched


def test_once_warned_the_generated_form_drops_by_itself(ctx):
    loop = fuse([partial(Filter.load(HOT).generate, ctx=ctx)], "p1 transforms[0]").loop
    batch = [{"temp": "hot"}, {"temp": 81}]

    with pytest.raises(GiveUp):
        loop(batch)
    assert ctx.warnings == []

    ctx.warn_once(NOT_A_NUMBER)
    assert loop(batch) == [{"temp": 81}]


# --- what it refuses


@pytest.mark.parametrize(
    ("document", "reasons"),
    [
        ({}, [": a filter needs a condition"]),
        ({"Numeric": None}, [": a filter needs a condition"]),
        (
            HOT | string("contains", "alarm"),
            [": a filter has one condition, not both"],
        ),
        # One mistake, told once.
        ({"Numerics": HOT["Numeric"]}, ["Numerics: unknown key 'Numerics'"]),
        (HOT | {"field": "temp"}, ["field: unknown key 'field'"]),
        (
            {"Numeric": {}},
            [
                "Numeric.field: this key is required",
                "Numeric.operator: this key is required",
                "Numeric.value: this key is required",
            ],
        ),
        (
            {"Numeric": "temp > 80"},
            ["Numeric: expected an object with 'field', 'operator' and 'value', found a string"],
        ),
        (numeric("less_than", 1, field="  "), ["Numeric.field: this must not be blank"]),
        (
            numeric("contains", 1),
            [
                "Numeric.operator: expected one of greater_than, less_than, equal_to, "
                'found "contains"'
            ],
        ),
        (numeric("equal_to", "80"), ['Numeric.value: expected a number, found "80"']),
        (numeric("equal_to", True), ["Numeric.value: expected a number, found true"]),
        (numeric("equal_to", None), ["Numeric.value: expected a number, found null"]),
        (
            string("greater_than", "a"),
            ['String.operator: expected one of equal_to, contains, found "greater_than"'],
        ),
        (string("equal_to", 5), ["String.value: expected a string, found 5"]),
    ],
)
def test_a_condition_that_cannot_be_meant_is_refused(document, reasons):
    assert refusals(Filter, document) == reasons


def test_a_refusal_says_where_and_what_would_be_accepted():
    text = """\
- inputs: [{type: dummy, duration: 1}]
  transforms:
    - type: filter
      Numeric: {field: temp, operator: greater_than, value: 80}
      String: {field: unit, operator: equal_to, value: C}
    - type: filter
      Numerc: {field: temp, operator: greater_than, value: 80}
"""

    program, [both, misspelt] = load_program(
        read(text, "mill.yaml", "yaml"), scan("headrace.operators", "headrace.connectors")
    )

    assert program is None
    assert both.as_json() == {
        "file": "mill.yaml",
        "line": 3,
        "column": 7,
        "end_line": 5,
        "end_column": 58,
        "path": "pipelines[0].transforms[0]",
        "severity": "error",
        "code": "conflict",
        "message": "a filter has one condition, not both",
        "found": None,
        "expected": "exactly one of Numeric, String, when",
        "suggestion": None,
        "replacement": None,
    }
    assert misspelt.as_json() == {
        "file": "mill.yaml",
        "line": 7,
        "column": 7,
        "end_line": 7,
        "end_column": 13,
        "path": "pipelines[0].transforms[1].Numerc",
        "severity": "error",
        "code": "unknown-key",
        "message": "unknown key 'Numerc'",
        "found": "Numerc",
        "expected": "one of Numeric, String, when",
        "suggestion": "did you mean 'Numeric'?",
        "replacement": "Numeric",
    }


@pytest.mark.parametrize("document", [HOT, numeric("equal_to", 8.0), string("contains", "")])
def test_the_echo_is_what_was_written(document):
    assert repr(Filter.load(document).dump()) == repr({"type": "filter"} | document)


# --- what it says of fields


def test_it_reads_one_field_and_hands_on_nothing_without_it():
    use = Filter.load(numeric("less_than", 5, field=" a.b ")).field_use()

    assert use == FieldUse.of(reads=["a.b"], drops_without=["a.b"])


def stopped(*conditions):
    """Return why nothing passes filters one after the other; None if something may."""
    passing = Passing(Shape.of(["temp", "unit"], "inputs[0]"))
    for index, condition in enumerate(conditions):
        passing = Filter.load(condition).passes(passing.seen_by(f"transforms[{index}]"))
    return passing.stopped


def test_filters_that_exclude_each_other_let_nothing_through():
    nothing = "transforms[1] drops every message that transforms[0] hands on"

    assert stopped(HOT, numeric("less_than", 80)) == nothing
    assert stopped(HOT, numeric("equal_to", 80)) == nothing
    assert stopped(numeric("less_than", 5), numeric("equal_to", 5.0)) == nothing
    assert stopped(string("equal_to", "C"), string("equal_to", "F")) == nothing
    assert stopped(string("equal_to", "C"), string("contains", "F")) == nothing
    assert stopped(HOT, string("contains", "", field="temp")) == nothing
    assert stopped(HOT, numeric("less_than", 81)) is None
    assert stopped(string("contains", "C"), string("contains", "F")) is None
    assert stopped(numeric("equal_to", 5, field="speed")) == (
        "transforms[0] hands on nothing without 'speed'"
    )


# --- a list of conditions

HOT_OR_ALARM = {
    "when": [
        {"type": "exists", "field": "machine"},
        {
            "type": "any",
            "conditions": [
                {"type": "numeric", "field": "temp", "operator": "at_least", "value": 80},
                {"type": "boolean", "field": "alarm"},
            ],
        },
    ]
}


def test_what_all_conditions_hold_for_goes_on_and_nothing_is_told_of_the_rest(kept, ctx):
    batch = [
        {"machine": "m1", "temp": 80},
        {"machine": "m1", "temp": "hot", "alarm": True},
        {"machine": None, "temp": 90},
        {"temp": 90},
        {"machine": "m1"},
        "hot",
        None,
    ]

    assert kept(HOT_OR_ALARM, batch, batch[2:]) == [batch[:2]]
    assert ctx.warnings == ctx.failures == []


def test_not_takes_what_is_no_object(kept):
    negated = {"when": [{"type": "not", "conditions": [{"type": "exists", "field": "a"}]}]}

    assert kept(negated, ["text", {"a": 1}, {}, [1]]) == [["text", {}, [1]]]


def test_conditions_are_either_a_list_or_one_by_itself():
    both = {**HOT, **HOT_OR_ALARM}

    assert refusals(Filter, both) == [": a filter has either 'when' or 'Numeric'"]
    assert refusals(Filter, {"when": []}) == [
        "when: expected a list of at least one condition, found an empty list"
    ]
    assert refusals(Filter, {"when": None}) == [
        "when: expected a list of at least one condition, found null"
    ]


def test_a_list_of_conditions_reads_all_fields_and_needs_those_that_are_certain():
    use = Filter.load(HOT_OR_ALARM).field_use()

    assert use == FieldUse.of(reads=["machine", "temp", "alarm"], drops_without=["machine"])


def test_a_list_of_conditions_narrows_what_passes():
    def asked(*conditions):
        return {"when": [*conditions]}

    hot = {"type": "numeric", "field": "temp", "operator": "at_least", "value": 80}
    cold = hot | {"operator": "less_than"}
    nothing = "transforms[1] drops every message that transforms[0] hands on"

    assert stopped(asked(hot), asked(cold)) == nothing
    assert stopped(asked({"type": "all", "conditions": [hot]}), asked(cold)) == nothing
    assert stopped(asked({"type": "not", "conditions": [hot]}), asked(cold)) is None
    assert stopped(asked({"type": "any", "conditions": [hot, cold]}), asked(cold)) is None
    assert stopped(asked(hot), asked(hot | {"operator": "at_most"})) is None
    assert stopped(asked(hot), asked(hot | {"operator": "at_most", "value": 79})) == nothing
    assert stopped(asked(hot), numeric("equal_to", 79.5)) == nothing
    assert stopped(asked(hot), numeric("equal_to", 80)) is None
    assert stopped(numeric("greater_than", 80), asked(hot | {"operator": "at_most"})) == nothing
    assert stopped(numeric("equal_to", 80), asked(hot | {"operator": "at_most"})) is None


def test_why_a_message_was_dropped_is_told(ctx):
    reason = Filter.load(HOT_OR_ALARM).reason({"machine": "m1", "temp": 71}, ctx)

    assert reason == (
        "'temp' is 71, and the condition is at_least 80; and 'alarm' is missing, and the condition is true"
    )


# --- its branches, for the coverage of tests

COVERED = [
    Covered(
        "{type: filter, Numeric: {field: x, operator: less_than, value: 5}}",
        "a: {1s: {x: 1}, 2s: {x: 9}}",
        of_condition("x"),
    ),
    Covered(
        "{type: filter, String: {field: x, operator: contains, value: b}}",
        "a: {1s: {x: abc}, 2s: {x: 9}}",
        of_condition("x"),
    ),
    Covered(
        """{type: filter, when: [
            {type: exists, field: x}, {type: not, conditions: [{type: boolean, field: y}]}]}""",
        "a: {1s: {x: 1, y: true}, 2s: {x: 1}, 3s: {}}",
        (
            *of_condition("x"),
            "the condition 'not' of 1 condition was never true",
            "the condition 'not' of 1 condition was never false",
            *of_condition("y"),
        ),
    ),
]
