"""The `reducer` transform: what it groups, what it makes of a group, what it refuses."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reactivex.testing import ReactiveTest, TestScheduler

from headrace.compiler.errors import BatchFailed
from headrace.operators.aggregations import FUNCTIONS
from headrace.operators.reducer import Reducer
from tests.covered import Covered
from tests.doubles import StubContext
from tests.marbles import over_lists
from tests.operators.reduced import (
    COUNT,
    MEAN,
    aggregations,
    awkward,
    fields,
    generated,
    messages,
    numbers,
    reduced,
    reducer,
    scalars,
)


def failure(reducer, batch):
    with pytest.raises(BatchFailed) as failed:
        reducer.step(StubContext())(batch)
    return str(failed.value)


# --- groups


def test_one_message_per_group_in_first_seen_order():
    means = reducer(MEAN, COUNT, group_by=["machine"])
    batch = [
        {"machine": "b", "temp": 1},
        {"machine": "a", "temp": 2},
        {"machine": "b", "temp": 4, "seq": 7},
    ]

    assert reduced(means, batch) == [
        {"machine": "b", "mean": 2.5, "n": 2},
        {"machine": "a", "mean": 2.0, "n": 1},
    ]


def test_group_fields_come_first_then_the_aggregations_as_they_are_listed():
    counts = reducer(COUNT, {**MEAN, "as": "a"}, group_by=["z", "b"])

    [message] = reduced(counts, [{"a": 1, "b": 2, "temp": 3, "z": 4}])

    assert list(message) == ["z", "b", "n", "a"]


@pytest.mark.parametrize("options", [{}, {"group_by": []}, {"on_missing": "skip"}])
def test_without_group_by_the_whole_batch_is_one_group(options):
    counts = reducer(COUNT, **options)

    assert reduced(counts, [{"a": 1}, {"b": 2}, "no object"]) == [{"n": 3}]


def test_groups_are_type_exact_and_objects_are_grouped_by_content():
    values = [1, 1.0, "1", True, 1, {"x": 1, "y": [2]}, {"y": [2], "x": 1}, {"x": 1.0, "y": [2]}]
    counts = reducer(COUNT, group_by=["a"])

    groups = reduced(counts, [{"a": value} for value in values])

    assert repr([tuple(group.values()) for group in groups]) == repr(
        [(1, 2), (1.0, 1), ("1", 1), (True, 1), (values[5], 2), (values[7], 1)]
    )


def test_every_combination_of_group_fields_is_a_group():
    counts = reducer(COUNT, group_by=["a", "b"])
    batch = [{"a": a, "b": b} for a in (1, "1") for b in (True, 1, "1")] * 2

    groups = reduced(counts, batch)

    assert [group["n"] for group in groups] == [2] * 6


def test_a_dotted_group_field_is_written_under_its_name_as_a_literal_key():
    counts = reducer(COUNT, group_by=["_meta.machine"])
    batch = [{"_meta": {"machine": "a"}}, {"_meta.machine": "a", "_meta": {"machine": "b"}}]

    assert reduced(counts, batch) == [{"_meta.machine": "a", "n": 2}]


def test_as_is_trimmed_and_written_as_a_literal_key():
    counts = reducer({"function": "count", "as": " stats.n "})

    assert reduced(counts, [{}]) == [{"stats.n": 1}]


def test_nothing_is_emitted_for_an_empty_batch():
    for each in (reducer(), reducer(group_by=["a"]), reducer(MEAN, on_missing="skip")):
        assert each.step(StubContext())([]) == each.reduce([]) == []


def test_what_comes_in_is_not_changed():
    batch = [{"a": {"x": 1}, "temp": 1}, {"a": {"x": 1}, "temp": 2}]

    reduced(reducer({"function": "collect", "field": "temp", "as": "all"}, group_by=["a"]), batch)

    assert batch == [{"a": {"x": 1}, "temp": 1}, {"a": {"x": 1}, "temp": 2}]


# --- functions, each in both forms


@pytest.mark.parametrize("on_missing", ["error", "skip"])
@pytest.mark.parametrize("group_by", [[], ["machine"]])
def test_all_functions_at_once(group_by, on_missing):
    everything = reducer(
        *({"function": name, "field": "temp", "as": name} for name in FUNCTIONS),
        COUNT,
        group_by=group_by,
        on_missing=on_missing,
    )
    batch = [{"machine": "a", "temp": temp} for temp in (2, 4.0, 4, 4, 5, 5, 7, 9)]

    [quick] = generated(everything)(batch)

    quick.pop("machine", None)
    assert repr(quick) == repr(
        {
            "sum": 40.0,
            "avg": 5.0,
            "min": 2,
            "max": 9,
            "count": 8,
            "count_distinct": 6,
            "first": 2,
            "last": 9,
            "collect": [2, 4.0, 4, 4, 5, 5, 7, 9],
            "median": 4.5,
            "stddev": 2.0,
            "n": 8,
        }
    )
    reduced(everything, batch)


def test_integers_stay_integers_of_any_size():
    functions = [{"function": f, "field": "a", "as": f} for f in ("sum", "min", "max")]

    result = reduced(reducer(*functions), [{"a": 2**70}, {"a": 1}])

    assert repr(result) == repr([{"sum": 2**70 + 1, "min": 1, "max": 2**70}])


@pytest.mark.parametrize(
    ("values", "function"),
    [
        ([1e308, 1e308], "sum"),
        ([1e308, 1e308], "avg"),
        ([10**400, 0.5], "sum"),
        ([10**400], "avg"),
        ([10**400], "median"),
        ([1e308, -1e308], "stddev"),
    ],
)
@pytest.mark.parametrize("group_by", [[], ["machine"]])
def test_a_result_that_is_not_finite_is_null(values, function, group_by):
    batch = [{"machine": 1, "a": value} for value in values]
    each = reducer({"function": function, "field": "a", "as": "x"}, group_by=group_by)

    [result] = reduced(each, batch)

    assert result["x"] is None


# --- what is missing


def test_a_message_without_a_group_field_fails_the_batch_by_default():
    batch = [{"machine": "a", "temp": 1}, {"temp": 2}]

    assert (
        failure(reducer(MEAN, group_by=["machine"]), batch)
        == "group_by 'machine': missing from a message, or null"
    )


def test_skip_leaves_a_message_without_a_group_field_out_of_everything():
    batch = [{"machine": "a", "temp": 1}, {"temp": 2}, {"machine": None, "temp": 3}]
    means = reducer(MEAN, COUNT, group_by=["machine"], on_missing="skip")

    assert reduced(means, batch) == [{"machine": "a", "mean": 1.0, "n": 1}]


def test_nothing_is_emitted_when_every_message_was_skipped():
    means = reducer(MEAN, group_by=["machine"], on_missing="skip")

    assert generated(means)([{"temp": 1}, {"temp": 2}]) == []
    assert means.step(StubContext())([{"temp": 1}, 17]) == []


def test_a_message_without_an_aggregated_field_fails_the_batch_by_default():
    assert (
        failure(reducer(COUNT, MEAN), [{"temp": 1}, {"temp": None}])
        == "aggregation 1 ('avg' of 'temp'): missing from a message, or null"
    )


def test_skip_leaves_a_message_out_of_that_aggregation_only():
    every = {"function": "collect", "field": "seq", "as": "all"}
    means = reducer(MEAN, every, COUNT, group_by=["machine"], on_missing="skip")
    batch = [{"machine": 1, "temp": 3, "seq": 1}, {"machine": 1, "seq": 2}, {"machine": 1}]

    assert reduced(means, batch) == [{"machine": 1, "mean": 3.0, "all": [1, 2], "n": 3}]


def test_under_skip_a_group_without_values_has_null_zero_or_an_empty_list():
    functions = [{"function": name, "field": "temp", "as": name} for name in FUNCTIONS]

    [result] = reduced(reducer(*functions, on_missing="skip"), [{}, {"temp": None}])

    nothing = {"count": 0, "count_distinct": 0, "collect": []}
    assert result == {name: nothing.get(name) for name in FUNCTIONS}


@pytest.mark.parametrize("on_missing", ["error", "skip"])
def test_count_with_a_field_counts_the_messages_that_carried_it(on_missing):
    counts = reducer({"function": "count", "field": "a", "as": "n"}, on_missing=on_missing)

    assert reduced(counts, [{"a": 1}, {}, {"a": None}, {"a": False}, "no object"]) == [{"n": 2}]


def test_every_field_of_what_is_no_object_is_missing():
    assert (
        failure(reducer(MEAN), [{"temp": 1}, [1]])
        == "aggregation 0 ('avg' of 'temp'): missing from a message, or null"
    )


# --- what is of a wrong type


@pytest.mark.parametrize("on_missing", ["error", "skip"])
@pytest.mark.parametrize(
    ("function", "values", "message"),
    [
        ("avg", [1, "2"], "expected a number, found a string"),
        ("sum", [1, True], "expected a number, found a boolean"),
        ("median", [[], 1], "expected a number, found a list"),
        ("stddev", [1, {}], "expected a number, found an object"),
        ("min", [1, "a"], "expected a number, found a string"),
        ("max", ["a", True], "expected a string, found a boolean"),
        ("min", [[]], "expected a number or a string, found a list"),
    ],
)
def test_a_value_of_a_wrong_type_always_fails_the_batch(function, values, message, on_missing):
    each = reducer({"function": function, "field": "temp", "as": "x"}, on_missing=on_missing)
    batch = [{"temp": value} for value in values]

    assert failure(each, batch) == f"aggregation 0 ('{function}' of 'temp'): {message}"


def test_a_failing_batch_is_dropped_and_later_ones_go_on():
    ctx, scheduler = StubContext(), TestScheduler()
    batches = scheduler.create_hot_observable(
        ReactiveTest.on_next(210, [{"temp": "x"}]), ReactiveTest.on_next(220, [{"temp": 1}])
    )

    seen = scheduler.start(lambda: batches.pipe(over_lists(reducer(MEAN).operator(ctx))))

    assert seen.messages == [ReactiveTest.on_next(220, [{"mean": 1.0}])]
    assert ctx.failures == ["aggregation 0 ('avg' of 'temp'): expected a number, found a string"]


usual = st.fixed_dictionaries(
    {"a": scalars, "b": st.sampled_from("xy"), "t": numbers, "u": numbers}
)


configs = st.fixed_dictionaries(
    {
        "group_by": st.lists(fields, max_size=2, unique=True),
        "aggregations": st.lists(aggregations, min_size=1, max_size=4).map(
            lambda listed: [{**each, "as": f"as{at}"} for at, each in enumerate(listed)]
        ),
        "on_missing": st.sampled_from(["error", "skip"]),
    }
)


@given(
    configs,
    st.lists(usual, max_size=8) | st.lists(messages | usual | scalars | awkward, max_size=8),
)
@example(
    {"aggregations": [{"function": "sum", "field": "t", "as": "x"}], "group_by": ["a"]},
    [{"a": 1, "t": -0.0}],
)
def test_the_generated_form_gives_what_the_plain_one_gives(config, batch):
    each = Reducer.load(config)

    try:
        quick = generated(each)(batch)
    except Exception:  # it left the batch to the plain form, which is its right
        return

    assert repr([quick] if quick else []) == repr(each.reduce(batch))


@given(configs, st.lists(usual, min_size=1, max_size=8))
def test_on_usual_messages_the_generated_form_gives_up_only_where_the_plain_one_fails(
    config, batch
):
    each = Reducer.load(config)

    try:
        expected = each.reduce(batch)
    except BatchFailed:
        return

    quick = generated(each)(batch)

    assert repr([quick] if quick else []) == repr(expected)


# --- its branches, for the coverage of tests

COVERED = [
    Covered(
        """{type: reducer, group_by: [g], on_missing: skip,
            aggregations: [{function: sum, field: x, as: x}]}""",
        "a: {1s: [{g: 1, x: 1}, {g: 1}]}",
        (
            "'g' and 'x' were never there in one message",
            "'g' and 'x' were never missing ('on_missing' is skip)",
        ),
    ),
    Covered(
        "{type: reducer, aggregations: [{function: sum, field: x, as: x}]}",
        "a: {1s: {x: 1}}",
        ("'x' was never there",),
    ),
    Covered("{type: reducer, aggregations: [{function: count, as: n}]}", "a: {1s: {}}", ()),
]
