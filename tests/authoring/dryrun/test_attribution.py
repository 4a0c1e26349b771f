"""Which message came from which, and why others have gone no further."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.authoring.dryrun.dryrunning import tried
from tests.authoring.dryrun.staged import (
    as_filter,
    buffers,
    conditions,
    kind,
    maps,
    names,
    numbers,
    seeds,
    states,
    values,
)
from tests.examples import examples
from tests.stand_ins import does


def script(code, scope="message"):
    return {"type": "script", "scope": scope, "source": {"type": "inline", "code": code}}


def origins(trial, stage):
    """Return the origins of what a stage handed on, batch by batch."""
    return [[*lot.origins] for lot in trial.stages[stage].handed_on]


def test_items_came_from_the_message_that_had_them_and_an_empty_list_is_told():
    chain = [{"type": "explode", "from": "l", "on_missing": "skip"}]
    batch = [{"l": [{"n": 1}, {"n": 2}]}, {"l": []}, {}, {"l": [{"n": 3}]}]

    trial = tried(chain, batch, traced=True)

    assert origins(trial, -1) == [[(0,), (0,), (3,)]]
    assert left(trial) == [
        (1, 0, "'l' is an empty list"),
        (2, 0, "'l' is missing or null, and 'on_missing' is skip"),
    ]


def left(trial):
    return [(index, lost.at, lost.why) for index, lost in trial.left()]


# Stages that leave the `id` of a message alone.
keeping = st.one_of(
    conditions.map(as_filter),
    maps,
    buffers,
    kind("splitter", out_size=st.integers(1, 3)),
    kind(
        "explode",
        **{
            "from": st.just("l"),
            "as": st.sampled_from(["item", "a"]),
            "on_missing": st.sampled_from(["skip", "keep"]),
        },
    ),
    kind("remember", remember=names.map(lambda name: [{"field": name, "as": name}])),
    kind("recall", recall=st.lists(names, min_size=1, max_size=2, unique=True)),
    st.sampled_from(["emit(msg);", "if msg.n != 1 { emit(msg); emit(msg); }"]).map(script),
)
collecting = kind(
    "reducer",
    group_by=st.sampled_from([[], ["a"], ["b", "a"]]),
    aggregations=st.just([{"function": "collect", "field": "id", "as": "ids"}]),
    on_missing=st.just("skip"),
)
chains = st.builds(
    lambda some, last: [*some, *last],
    st.lists(keeping, max_size=5),
    st.lists(collecting, max_size=1),
).filter(bool)
messages = st.lists(
    st.fixed_dictionaries(
        dict.fromkeys("ab", values), optional={"m": values, "n": numbers, "l": st.lists(numbers)}
    ),
    min_size=1,
    max_size=8,
).map(lambda made: [{"id": number, **each} for number, each in enumerate(made)])


@examples(300)
@given(chains, messages, states, seeds, st.sampled_from([0, 3]))
def test_a_message_came_from_those_whose_marks_it_carries(chain, batch, state, held, advance):
    trial = tried(chain, batch, state=state, seeds=held, advance=advance, traced=True)

    for stage in trial.stages:
        for lot in stage.handed_on:
            for message, of in zip(lot.batch, lot.origins, strict=True):
                assert list(of) == sorted(set(message.get("ids", [message.get("id")])))
    if trial.failure is None:
        through = {index for each in origins(trial, -1) for of in each for index in of}
        gone = {index for index, _, _ in left(trial)}
        assert (through | gone, through & gone) == ({each["id"] for each in batch}, set())


@pytest.mark.parametrize(
    ("stage", "messages", "expected"),
    [
        (
            {"type": "filter", "Numeric": {"field": "t", "operator": "greater_than", "value": 80}},
            [{"t": 20}, {"t": 81}, {}, {"t": "hot"}],
            [
                (0, 0, "'t' is 20, and the condition is greater_than 80"),
                (2, 0, "'t' is missing, and the condition is greater_than 80"),
                (3, 0, "'t' is \"hot\", and the condition is greater_than 80"),
            ],
        ),
        (
            {"type": "filter", "String": {"field": "s.t", "operator": "contains", "value": "x"}},
            [{"s": {"t": "abc"}}],
            [(0, 0, '\'s.t\' is "abc", and the condition is contains "x"')],
        ),
        (
            {"type": "splitter", "out_size": 2},
            [1, 2, 3],
            [(2, 0, "left over behind the last whole batch of 2 ('out_size')")],
        ),
        (
            {
                "type": "reducer",
                "group_by": ["m", "k"],
                "on_missing": "skip",
                "aggregations": [{"function": "count", "as": "n"}],
            },
            [{"m": 1, "k": 1}, {"m": 1}],
            [(1, 0, "'k' is missing or null, and 'on_missing' is skip")],
        ),
        (
            {"type": "recall", "recall": ["mode", "unit"]},
            [{"m": "known"}, {"m": "half"}, {"m": 7}, {"m": None}],
            [
                (1, 0, "nothing is remembered under \"half\" as 'unit', and 'on_missing' is skip"),
                (
                    2,
                    0,
                    "nothing is remembered under \"7\" as 'mode' or 'unit', and 'on_missing' is skip",
                ),
                (3, 0, "it has no key: 'm' is not a string, number or boolean"),
            ],
        ),
        (
            script("if msg { emit(msg); }"),
            [True, False],
            [(1, 0, "the script did not call 'emit' for it")],
        ),
        (
            script("emit([])", "batch"),
            [1, 2],
            [(n, 0, "the script did not call 'emit' for its batch") for n in (0, 1)],
        ),
        (
            {"type": "buffer", "size": 3},
            [1, 2, 3, 4],
            [(3, 0, "held (1 in all) until there are 3")],
        ),
        (
            {
                "type": "buffer",
                "max_messages": 9,
                "seconds": 30,
                "until": {
                    "conditions": [
                        {"type": "numeric", "field": "n", "operator": "equal_to", "value": 1}
                    ]
                },
            },
            [1, 2],
            [
                (
                    n,
                    0,
                    "held (2 in all) until there are 9, or 30 s after the first one came,"
                    " or the gate opens",
                )
                for n in (0, 1)
            ],
        ),
        (does(lambda batch: []), [1], [(0, 0, "'doing' made nothing of it")]),
    ],
)
def test_why_a_message_went_no_further(stage, messages, expected):
    trial = tried(
        [stage],
        messages,
        state={"bucket": "b", "key": "m"},
        seeds={"known": {"mode": 1, "unit": 2}, "half": {"mode": 1}},
        traced=True,
    )

    assert left(trial) == expected


def test_what_a_script_makes_of_a_message_came_from_that_message():
    split = script("for n in 0..msg { emit(#{n: n}); }")

    trial = tried([split], [2, 0, 1], traced=True)

    assert origins(trial, 0) == [[(0,), (0,), (2,)]]


def test_what_is_made_of_a_whole_batch_came_from_all_of_it():
    whole = script("emit([1, 2]); emit([3])", "batch")

    trial = tried([{"type": "splitter", "out_size": 2}, whole], [7, 8, 9, 10], traced=True)

    assert origins(trial, 1) == [[(0, 1), (0, 1)], [(0, 1)], [(2, 3), (2, 3)], [(2, 3)]]


def test_a_message_of_which_something_comes_through_has_not_left():
    both = script("emit(#{n: 1}); emit(#{n: 2})")
    first = {"type": "filter", "Numeric": {"field": "n", "operator": "equal_to", "value": 1}}

    trial = tried([both, first], [{}], traced=True)

    assert left(trial) == []


def test_a_message_whose_parts_end_in_several_places_is_told_of_each():
    both = script("emit(#{n: 1}); emit(#{n: 2, s: 1})")
    numbers = (
        {"type": "filter", "Numeric": {"field": f, "operator": "equal_to", "value": 2}}
        for f in "ns"
    )

    trial = tried([both, *numbers], [{}], traced=True)

    assert [(index, at) for index, at, _ in left(trial)] == [(0, 1), (0, 2)]


def test_a_script_that_pauses_between_messages_is_traced_as_well():
    slow = script("let n = 0; while n < 90000 { n += 1; } emit(msg)")
    slow["max_operations"] = 10**9

    trial = tried([slow], [*range(10)], traced=True)

    assert origins(trial, 0) == [[(n,) for n in range(10)]]


def test_of_a_chain_that_failed_what_left_before_is_told():
    hot = {"type": "filter", "Numeric": {"field": "n", "operator": "greater_than", "value": 1}}

    trial = tried([hot, script("throw 1")], [{"n": 1}, {"n": 2}], traced=True)

    assert [(index, at) for index, at, _ in left(trial)] == [(0, 0)]


def test_nothing_is_traced_unless_it_is_asked():
    trial = tried([{"type": "splitter", "out_size": 2}], [1, 2, 3])

    assert origins(trial, 0) == [[]]
    assert left(trial) == []


def test_a_step_is_asked_once_whether_traced_or_not():
    asked = count()

    for traced in (False, True):
        tried([does(lambda batch: [[next(asked)]])], [1, 2], traced=traced)

    assert next(asked) == 2


CASTING = {
    "type": "map",
    "mappings": [{"type": "cast", "from": "n", "to": "integer"}],
    "on_error": "skip",
}
NO_INTEGER = (
    "skipped by error: mapping 0 ('cast'): field 'n': cannot read a string as an integer: "
    "expected a whole number, or its digits in a string"
)


@pytest.mark.parametrize(
    ("transform", "why"),
    [
        (CASTING, NO_INTEGER),
        (
            {"type": "parse", "from": "t", "csv": {"columns": ["a", "b"]}, "on_error": "skip"},
            "skipped by error: 't' does not fit csv: 1 cell for 2 columns",
        ),
        (
            {"type": "explode", "from": "l", "on_error": "skip"},
            "skipped by error: field 'l' holds a number: expected objects",
        ),
        (
            {**script("msg.n = 10 / msg.n; emit(msg)"), "on_error": "skip"},
            "skipped by error: script line 1, column 12: '/' does not take an int and a string",
        ),
    ],
)
def test_a_message_that_is_skipped_by_error_is_told_of_with_the_text(transform, why):
    fits, bad = {"t": "1,2", "l": [{}]}, {"n": "x", "t": "1", "l": [{}, 5]}
    trial = tried([transform], [fits | {"n": 1}, bad, fits | {"n": 5}], traced=True)

    assert trial.failure is None
    assert origins(trial, 0) == [[(0,), (2,)]]
    [(index, at, said)] = left(trial)
    assert (index, at) == (1, 0)
    assert said.startswith(why)


def test_without_attribution_it_is_a_warning():
    trial = tried([CASTING], [{"n": 1}, {"n": "x"}])

    assert trial.failure is None
    assert trial.warnings(trial.stages[0]) == [NO_INTEGER]
