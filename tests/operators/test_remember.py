"""The `remember` transform: what it writes under which key, when, and what it hands on."""

from copy import deepcopy
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.compiler.clock import run_virtual
from headrace.compiler.language.catalogue import scan
from headrace.compiler.language.config import load_program
from headrace.compiler.language.documents import read
from headrace.compiler.language.fieldflow import FieldUse
from headrace.compiler.lowering.chain import lower, plainly
from headrace.compiler.lowering.code import GiveUp, fuse
from headrace.operators.filter import Filter
from headrace.operators.map import Map
from headrace.operators.remember import NOT_AN_OBJECT, Remember
from tests.doubles import StubContext, refusals
from tests.operators.keyed import Keyed
from tests.virtual import virtual

MODE = {"field": "mode", "as": "mode"}
SPEED = {"field": "speed", "as": "last_speed"}
NO_KEY = "remembered nothing of a message whose 'machine' is not a string, number or boolean"

either_way = pytest.mark.parametrize("lowering", [plainly, lower], ids=["plain", "generated"])


def remember(*values, **options):
    return Remember.load({"remember": list(values or [MODE, SPEED]), **options})


def generated(it, transform):
    """Return the generated form alone: it raises where it leaves a batch to the plain one."""
    return fuse([partial(transform.generate, ctx=it.ctx)], "p1 transforms[0]").loop


# --- what it writes


@either_way
@virtual
async def test_values_are_written_under_their_names_and_the_key_of_the_message(lowering):
    it = Keyed(lowering, remember())
    batch = [
        {"machine": "m1", "mode": "auto", "speed": 3},
        {"machine": "m2", "mode": "off", "speed": {"rpm": [1, 2]}},
    ]

    assert it.takes(batch) == [batch]
    assert it.holds() == {
        "m1": {"mode": "auto", "last_speed": 3},
        "m2": {"mode": "off", "last_speed": {"rpm": [1, 2]}},
    }
    assert it.ctx.warnings == []


@either_way
@virtual
async def test_null_is_a_value_and_a_missing_field_is_none(lowering):
    it = Keyed(lowering, remember())

    it.takes(
        [{"machine": "m1", "mode": "auto", "speed": 1}, {"machine": "m2", "mode": "auto"}],
        [{"machine": "m1", "mode": None}],
    )

    assert it.holds() == {"m2": {"mode": "auto"}, "m1": {"mode": None, "last_speed": 1}}


@either_way
@virtual
async def test_a_message_with_none_of_the_fields_leaves_its_key_as_it_is(lowering):
    it = Keyed(lowering, remember(), idle_seconds=10)
    it.takes([{"machine": "m1", "mode": "auto"}])
    await it.clock.sleep(6)

    it.takes([{"machine": "m1"}, {"machine": "m2"}])
    await it.clock.sleep(4)

    assert it.holds() == {}


@either_way
@virtual
async def test_other_names_under_the_key_stay_as_they_are(lowering):
    it = Keyed(lowering, remember())
    it.bucket.merge({"m1": {"mode": "off", "tool": "drill"}})

    it.takes([{"machine": "m1", "mode": "auto", "speed": 1}])

    assert it.holds() == {"m1": {"mode": "auto", "tool": "drill", "last_speed": 1}}


@either_way
@virtual
async def test_of_several_messages_with_one_key_the_last_one_counts_name_by_name(lowering):
    it = Keyed(lowering, remember())

    it.takes(
        [
            {"machine": "m1", "mode": "auto", "speed": 1},
            {"machine": "m2", "mode": "off", "speed": 7},
            {"machine": "m1", "speed": 2},
            {"machine": "m1", "speed": 3, "mode": None},
            {"machine": "m2", "mode": "auto"},
        ]
    )

    assert it.holds() == {
        "m1": {"mode": None, "last_speed": 3},
        "m2": {"mode": "auto", "last_speed": 7},
    }


@either_way
@virtual
async def test_names_come_in_the_order_of_the_config_whatever_message_brings_which(lowering):
    it = Keyed(lowering, remember())

    it.takes([{"machine": "m1", "speed": 1}, {"machine": "m1", "mode": "auto"}])

    assert [*it.holds()["m1"]] == ["mode", "last_speed"]


@either_way
@virtual
async def test_a_field_may_be_a_dotted_path_and_a_name_has_dots_that_mean_nothing(lowering):
    it = Keyed(lowering, remember({"field": "state.mode", "as": " is.mode "}))

    it.takes(
        [
            {"machine": "m1", "state": {"mode": "auto"}},
            {"machine": "m2", "state": {"mode": "auto"}, "state.mode": "literal"},
            {"machine": "m3", "state": {"mode": None}},
        ],
        [{"machine": "m1", "state": "auto"}, {"machine": "m4", "state": {}}],
    )

    assert it.holds() == {
        "m3": {"is.mode": None},
        "m2": {"is.mode": "literal"},
        "m1": {"is.mode": "auto"},
    }


# --- the key


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ("m1", "m1"),
        ("", ""),
        (" m1 ", " m1 "),
        ("größe", "größe"),
        (7, "7"),
        (-0, "0"),
        (10**30, "1" + 30 * "0"),
        (7.0, "7.0"),
        (-0.0, "-0.0"),
        (1e16, "1e16"),
        (1e-5, "0.00001"),
        (True, "true"),
        (False, "false"),
    ],
)
@either_way
@virtual
async def test_a_string_is_the_key_itself_and_a_number_or_boolean_its_json(lowering, value, key):
    it = Keyed(lowering, remember(MODE))

    it.takes([{"machine": value, "mode": "auto"}])

    assert it.holds() == {key: {"mode": "auto"}}


@either_way
@virtual
async def test_1_and_1_0_and_true_are_three_keys_and_a_string_of_the_same_text_is_the_same(
    lowering,
):
    it = Keyed(lowering, remember(MODE))

    it.takes(
        [
            {"machine": value, "mode": place}
            for place, value in enumerate([1, 1.0, True, "1", "1.0"])
        ]
    )

    assert it.holds() == {"true": {"mode": 2}, "1.0": {"mode": 4}, "1": {"mode": 3}}


@pytest.mark.parametrize("machine", [{}, {"machine": None}, {"machine": []}, {"machine": {}}])
@either_way
@virtual
async def test_of_a_message_without_a_key_nothing_is_remembered_with_one_warning(lowering, machine):
    it = Keyed(lowering, remember(MODE))
    batch = [{"machine": "m1", "mode": "auto"}, {**machine, "mode": "off"}]

    assert it.takes(batch, batch, [{**machine, "speed": 1}]) == [
        batch,
        batch,
        [{**machine, "speed": 1}],
    ]
    assert it.holds() == {"m1": {"mode": "auto"}}
    assert it.ctx.warnings == [NO_KEY]


@pytest.mark.parametrize(
    ("message", "key"),
    [
        ({"_meta": {"id": 5}}, "5"),
        ({"_meta.id": "literal", "_meta": {"id": 5}}, "literal"),
        ({"_meta": "m1"}, None),
        ({"_meta": {"id": {}}}, None),
    ],
)
@either_way
@virtual
async def test_the_field_of_the_key_may_be_a_dotted_path(lowering, message, key):
    it = Keyed(lowering, remember(MODE), key="_meta.id")

    it.takes([{**message, "mode": "auto"}])

    assert it.holds() == ({} if key is None else {key: {"mode": "auto"}})


@either_way
@virtual
async def test_without_a_key_what_is_remembered_concerns_the_bucket_as_a_whole(lowering):
    it = Keyed(lowering, remember(), key=None)

    it.takes([{"machine": "m1", "mode": "off", "speed": 4}, {"mode": "auto"}])

    assert it.holds() == {"": {"mode": "auto", "last_speed": 4}}
    assert it.ctx.warnings == []


@pytest.mark.parametrize(
    "message", [None, True, 5, 1.5, "machine", "mode", [], ["machine", "mode"]]
)
@pytest.mark.parametrize("key", ["machine", "machine.id", None])
@either_way
@virtual
async def test_a_message_that_is_no_object_passes_with_one_warning(lowering, key, message):
    it = Keyed(lowering, remember(MODE), key=key)
    object_ = {"machine": "m1", "machine.id": "m1", "mode": "auto"}

    assert it.takes([message, object_], [object_, message]) == [
        [message, object_],
        [object_, message],
    ]
    assert it.holds() == {"m1" if key else "": {"mode": "auto"}}
    assert it.ctx.warnings == [NOT_AN_OBJECT]


# --- conditions


FAST = {"type": "numeric", "field": "speed", "operator": "greater_than", "value": 5}
IS_AUTO = {"type": "string", "field": "state.mode", "operator": "equal_to", "value": "auto"}


@either_way
@virtual
async def test_all_conditions_have_to_hold(lowering):
    it = Keyed(lowering, remember(SPEED, when=[FAST, IS_AUTO]))
    batch = [
        {"machine": "m1", "speed": 6, "state": {"mode": "auto"}},
        {"machine": "m2", "speed": 5, "state": {"mode": "auto"}},
        {"machine": "m3", "speed": 7, "state": {"mode": "off"}},
        {"machine": "m1", "speed": 1, "state": {"mode": "auto"}},
    ]

    assert it.takes(batch) == [batch]
    assert it.holds() == {"m1": {"last_speed": 6}}


@pytest.mark.parametrize(
    "message",
    [
        {"machine": "m1", "state": {"mode": "auto"}},
        {"machine": "m1", "speed": "6", "state": {"mode": "auto"}},
        {"machine": "m1", "speed": True, "state": {"mode": "auto"}},
        {"machine": "m1", "speed": 6},
        {"machine": "m1", "speed": 6, "state": "auto"},
        {"machine": [], "speed": 1},
        {"speed": 1},
        "speed",
        ["speed"],
        None,
    ],
)
@either_way
@virtual
async def test_a_message_that_does_not_match_passes_silently(lowering, message):
    it = Keyed(lowering, remember(SPEED, when=[FAST, IS_AUTO]))

    assert it.takes([message]) == [[message]]
    assert it.holds() == {}
    assert it.ctx.warnings == []


@either_way
@virtual
async def test_a_message_that_matches_and_has_no_key_is_warned_about(lowering):
    it = Keyed(lowering, remember(SPEED, when=[FAST]))

    it.takes([{"speed": 6}])

    assert it.ctx.warnings == [NO_KEY]


@either_way
@virtual
async def test_no_conditions_are_the_same_as_none_given(lowering):
    it = Keyed(lowering, remember(MODE, when=[]))

    it.takes([{"machine": "m1", "mode": "auto"}])

    assert it.holds() == {"m1": {"mode": "auto"}}


# --- a bucket that is full


@either_way
@virtual
async def test_the_keys_of_a_batch_go_as_those_of_a_batch_for_each_message_would(lowering):
    it = Keyed(lowering, remember(MODE), max_keys=2)

    it.takes([{"machine": machine, "mode": "auto"} for machine in "abac"])

    assert {*it.holds()} == {"a", "c"}


@either_way
@virtual
async def test_a_key_that_had_to_go_within_a_batch_comes_back_without_its_other_names(lowering):
    it = Keyed(lowering, remember(), max_keys=2)

    it.takes([{"machine": "a", "mode": "off", "speed": 1}])
    it.takes([{"machine": machine, "mode": "auto"} for machine in "bcab"])

    assert it.holds() == {"a": {"mode": "auto"}, "b": {"mode": "auto"}}


@either_way
@virtual
async def test_a_later_batch_displaces_the_key_that_was_written_first_within_an_earlier_one(
    lowering,
):
    it = Keyed(lowering, remember(MODE), max_keys=3)

    it.takes(
        *([{"machine": machine, "mode": "auto"} for machine in some] for some in ("aba", "cd"))
    )

    assert {*it.holds()} == {"a", "c", "d"}


WRITTEN = st.fixed_dictionaries(
    {},
    optional={
        "machine": st.sampled_from(["a", "b", "c", "d", None]),
        "mode": st.sampled_from(["auto", "off", None]),
        "speed": st.integers(4, 8),
    },
)


@either_way
@given(
    batches=st.lists(st.lists(WRITTEN, max_size=8), max_size=3),
    max_keys=st.integers(1, 5),
    is_conditional=st.booleans(),
)
@example(
    batches=[[{"machine": "a"}, {"machine": "b", "mode": "off"}, {"machine": "a", "mode": "off"}]],
    max_keys=1,
    is_conditional=False,
)
def test_a_batch_comes_to_the_same_as_a_batch_for_each_of_its_messages(
    lowering, batches, max_keys, is_conditional
):
    async def main():
        transform = remember(when=[FAST] if is_conditional else [])
        whole, single = (Keyed(lowering, transform, max_keys=max_keys) for _ in range(2))

        whole.takes(*batches)
        single.takes(*([message] for batch in batches for message in batch))

        assert [(key, entry.values) for key, entry in whole.bucket.entries.items()] == [
            (key, entry.values) for key, entry in single.bucket.entries.items()
        ]
        assert whole.ctx.warnings == single.ctx.warnings

    run_virtual(main)


# --- what it hands on


@virtual
async def test_the_batch_is_handed_on_as_the_very_list_and_nothing_in_it_is_changed():
    it = Keyed(lower)
    batch = [{"machine": "m1", "mode": {"is": "auto"}}, {"machine": "m2"}, "x"]
    untouched = deepcopy(batch)

    [out] = remember(MODE).step(it.ctx)(batch)
    kept = generated(it, remember(MODE))(batch[:1])

    assert out is batch
    assert kept == batch[:1]
    assert kept[0] is batch[0]
    assert batch == untouched


@virtual
async def test_the_generated_form_hands_on_the_very_list_too():
    it = Keyed(lower)
    loop = generated(it, remember())
    complete = [{"machine": "m1", "mode": "auto", "speed": 1}] * 2
    incomplete = [*complete, {"machine": "m1", "speed": 2}, {"machine": 5}]

    assert loop(complete) is complete
    assert loop(incomplete) is incomplete
    assert it.holds() == {"m1": {"mode": "auto", "last_speed": 2}}


@either_way
@virtual
async def test_it_remembers_what_the_transforms_before_it_made(lowering):
    double = {"type": "arithmetic", "operator": "multiply", "as": "speed"} | {
        "left": {"type": "field", "field": "speed"},
        "right": {"type": "value", "value": 2},
    }
    fast = {"Numeric": {"field": "speed", "operator": "greater_than", "value": 5}}
    it = Keyed(lowering, Map.load({"mappings": [double]}), Filter.load(fast), remember(SPEED))

    out = it.takes([{"machine": "m1", "speed": 3}, {"machine": "m2", "speed": 2}])

    assert out == [[{"machine": "m1", "speed": 6}]]
    assert it.holds() == {"m1": {"last_speed": 6}}


@either_way
@virtual
async def test_an_empty_batch_writes_nothing(lowering):
    it = Keyed(lowering, remember())

    assert remember().step(it.ctx)([]) == [[]]
    assert it.takes([]) == []
    assert it.holds() == {}


# --- when it writes


@either_way
@virtual
async def test_a_batch_is_written_at_once_when_its_last_message_is_through(lowering):
    it = Keyed(lowering, remember(MODE))
    told = []
    it.bucket.watch("m1", lambda: told.append(deepcopy(it.holds())))

    it.takes([{"machine": machine, "mode": machine} for machine in ("m1", "m2", "m1", "m3")])

    assert told == [{"m3": {"mode": "m3"}, "m2": {"mode": "m2"}, "m1": {"mode": "m1"}}]


@either_way
@virtual
async def test_a_batch_that_fails_before_it_has_written_nothing(lowering):
    demand = Map.load({"mappings": [{"type": "copy", "from": "speed", "as": "v"}]})
    it = Keyed(lowering, demand, remember(MODE))

    out = it.takes(
        [{"machine": "m1", "mode": "auto", "speed": 1}, {"machine": "m1", "mode": "off"}]
    )

    assert out == []
    assert it.ctx.failures == ["mapping 0 ('copy'): field 'speed' is missing or null"]
    assert it.holds() == {}


@either_way
@virtual
async def test_a_batch_that_fails_after_it_has_written(lowering):
    demand = Map.load({"mappings": [{"type": "copy", "from": "speed", "as": "v"}]})
    it = Keyed(lowering, remember(MODE), demand)

    assert it.takes([{"machine": "m1", "mode": "auto"}]) == []
    assert it.ctx.failures == ["mapping 0 ('copy'): field 'speed' is missing or null"]
    assert it.holds() == {"m1": {"mode": "auto"}}


# --- bounds


@either_way
@virtual
async def test_a_new_key_takes_the_place_of_the_one_written_longest_ago(lowering):
    it = Keyed(lowering, remember(MODE), max_keys=3)

    for machines in ("ab", "c", "a", "de", "cfgh"):
        it.takes([{"machine": machine, "mode": machines} for machine in machines])

    assert [*it.bucket.entries] == ["f", "g", "h"]


@either_way
@virtual
async def test_of_a_key_that_has_expired_nothing_is_left_when_it_is_written_again(lowering):
    it = Keyed(lowering, remember(), idle_seconds=10)
    it.takes([{"machine": "m1", "mode": "auto", "speed": 1}])
    await it.clock.sleep(9)
    it.takes([{"machine": "m1", "speed": 2}])
    await it.clock.sleep(9)
    assert it.holds() == {"m1": {"mode": "auto", "last_speed": 2}}

    await it.clock.sleep(1)
    it.takes([{"machine": "m1", "speed": 3}])

    assert it.holds() == {"m1": {"last_speed": 3}}


# --- the generated form


@pytest.mark.parametrize(
    "batch",
    [
        [{"machine": "m1", "mode": "auto", "speed": 1}],
        [{"machine": "m1", "mode": "auto"}, {"machine": 5, "speed": None}],
        [{"machine": "m1", "speed": 6, "state": 3}, {"mode": "off", "speed": 2}],
    ],
)
@pytest.mark.parametrize("options", [{}, {"when": [FAST]}])
@virtual
async def test_the_generated_form_needs_no_help_with_ordinary_messages(options, batch):
    quick, plain = Keyed(lower), Keyed(plainly)
    for it in (quick, plain):
        it.ctx.warn_once(NO_KEY)

    generated(quick, remember(**options))(batch)
    remember(**options).step(plain.ctx)(batch)

    assert quick.holds() == plain.holds()


@virtual
async def test_the_generated_form_leaves_the_first_warning_to_the_plain_one():
    it = Keyed(lower)
    loop = generated(it, remember(MODE))

    with pytest.raises(GiveUp):
        loop([{"machine": "m1", "mode": "auto"}, {"mode": "off"}])

    assert it.holds() == {}
    assert it.ctx.warnings == []


# --- what it refuses


@pytest.mark.parametrize(
    ("document", "reasons"),
    [
        ({}, ["remember: this key is required"]),
        (
            {"remember": []},
            ["remember: expected a list of at least one value, found an empty list"],
        ),
        ({"remember": None}, ["remember: expected a list of at least one value, found null"]),
        (
            {"remember": ["mode"]},
            ["remember[0]: expected an object with 'field' and 'as', found a string"],
        ),
        (
            {"remember": [{}]},
            ["remember[0].field: this key is required", "remember[0].as: this key is required"],
        ),
        (
            {"remember": [{"field": " ", "as": ""}]},
            ["remember[0].field: this must not be blank", "remember[0].as: this must not be blank"],
        ),
        (
            {"remember": [MODE, SPEED, {"field": "m", "as": " mode "}]},
            ["remember[2].as: 'mode' is written by remember[0] already"],
        ),
        ({"remember": [MODE], "when": None}, ["when: expected a list of conditions, found null"]),
        (
            {"remember": [MODE], "when": [None]},
            ["when[0]: expected an object whose 'type' is one of numeric, string, found null"],
        ),
        ({"remember": [MODE], "when": [{"field": "a"}]}, ["when[0]: 'type' is required"]),
        ({"remember": [MODE], "wehn": []}, ["wehn: unknown key 'wehn'"]),
    ],
)
def test_what_cannot_be_meant_is_refused(document, reasons):
    assert refusals(Remember, document) == reasons


@pytest.mark.parametrize(
    "document",
    [
        {"remember": [MODE]},
        {"remember": [{"field": "a.b", "as": "c"}], "when": [FAST, IS_AUTO]},
        {"remember": [MODE], "when": []},
    ],
)
def test_the_echo_is_what_was_written(document):
    assert Remember.load(document).dump() == {"type": "remember"} | document


def said_of(text):
    """Return what is said of a config."""
    known = scan("headrace.operators", "headrace.connectors")
    return load_program(read(text, "mill.yaml", "yaml"), known)[1]


def test_without_state_on_the_pipeline_it_is_refused_where_it_stands():
    [refused] = said_of(
        """\
state: { machines: {} }
pipelines:
  - inputs: [{ type: http }]
    transforms:
      - type: remember
        remember: [{ field: mode, as: mode }]
"""
    )

    assert refused.as_json() == {
        "file": "mill.yaml",
        "line": 5,
        "column": 9,
        "path": "pipelines[0].transforms[0]",
        "severity": "error",
        "code": "no-state",
        "message": "'remember' needs to know which bucket: the pipeline has no 'state'",
        "found": None,
        "expected": "'state' on the pipeline, such as 'state: { bucket: machines, key: machine_id }'",
        "suggestion": None,
    }


# --- what it says of fields


def test_it_reads_what_it_keeps_and_asks_for_and_the_key():
    use = remember(MODE, {"field": "a.b", "as": "x"}, when=[FAST]).field_use()

    assert use == FieldUse.of(reads=["mode", "a.b", "speed"], by_key=True)


def test_a_key_that_is_not_handed_on_is_remarked_on():
    said = said_of(
        """\
state: { machines: {} }
pipelines:
  - inputs: [{ type: dummy, duration: 1 }]
    state: { bucket: machines, key: machine_id }
    transforms:
      - type: remember
        remember: [{ field: value, as: value }, { field: mode, as: mode }]
"""
    )

    assert [(each.line, each.code, each.message) for each in said] == [
        (
            6,
            "not-handed-on",
            "reads 'machine_id', which inputs[0] (dummy, line 3) does not hand on",
        ),
        (7, "not-handed-on", "reads 'mode', which inputs[0] (dummy, line 3) does not hand on"),
    ]


def test_what_is_known_of_messages_holds_behind_it():
    said = said_of(
        """\
state: { machines: {} }
pipelines:
  - inputs: [{ type: dummy, duration: 1 }]
    state: { bucket: machines }
    transforms:
      - type: remember
        remember: [{ field: value, as: temp }]
      - type: map
        mappings: [{ type: copy, from: temp, as: t }]
"""
    )

    assert [(each.line, each.message) for each in said] == [
        (9, "reads 'temp', which inputs[0] (dummy, line 3) does not hand on")
    ]


def test_each_message_of_a_dry_run_came_from_itself():
    it, batch = StubContext(), [{}, {}]

    assert remember().origins(batch, [batch]) == [[[0], [1]]]
    assert it.warnings == []
