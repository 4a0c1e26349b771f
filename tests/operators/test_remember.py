"""The `remember` transform: what it writes under which key, when, and what it hands on."""

import pytest

from headrace.compiler.code import GiveUp
from headrace.compiler.lowering.chain import lower, plainly
from headrace.operators.remember import NOT_AN_OBJECT
from tests.covered import Covered, of_condition
from tests.operators.keyed import Keyed
from tests.operators.remembered import FAST, IS_AUTO, MODE, SPEED, either_way, generated, remember
from tests.virtual import virtual

NO_KEY = "remembered nothing of a message whose 'machine' is not a string, number or boolean"


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


# --- its branches, for the coverage of tests

COVERED = [
    Covered(
        """{type: remember, remember: [{field: x, as: x}],
            when: [{type: numeric, field: x, operator: greater_than, value: 5},
                   {type: string, field: y, operator: equal_to, value: b}]}""",
        "a: {1s: {id: k, x: 9, y: b}, 2s: {id: k, x: 1}, 3s: {id: k, x: 9}}",
        (*of_condition("x"), *of_condition("y")),
    ),
    # What a message lacks is not kept: nobody is asked about it.
    Covered("{type: remember, remember: [{field: x, as: x}]}", "a: {1s: {id: k, x: 9}}", ()),
]
