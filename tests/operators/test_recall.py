"""The `recall` transform: what it finds under which key, and what becomes of a message without it."""

from copy import deepcopy
from functools import partial

import pytest

from headrace.compiler.buckets import Bounds
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.component.states import PipelineState
from headrace.compiler.lowering.chain import fuse, lower, plainly
from headrace.operators.map import Map
from headrace.operators.recall import NOT_AN_OBJECT
from headrace.operators.remember import Remember
from tests.covered import Covered
from tests.operators.keyed import Keyed
from tests.operators.recalled import REMEMBERED, keyed, recall
from tests.stand_ins import Kept, Told, batches, engine, reads, run, takes
from tests.virtual import virtual

ON_MISSING = ["skip", "null", "error"]


either_way = pytest.mark.parametrize("lowering", [plainly, lower], ids=["plain", "generated"])


# --- what it writes


@either_way
@pytest.mark.parametrize("on_missing", ON_MISSING)
@virtual
async def test_what_is_remembered_is_written_onto_the_message(on_missing, lowering):
    it = keyed(lowering, recall("mode", "speed", on_missing=on_missing))

    [[message]] = it.takes([{"machine": "m1", "x": 1}])

    assert [*message.items()] == [("machine", "m1"), ("x", 1), ("mode", "auto"), ("speed", 3)]
    assert it.ctx.warnings == it.ctx.failures == []


@either_way
@virtual
async def test_null_is_remembered_like_any_value(lowering):
    it = keyed(lowering, recall("mode"))

    assert it.takes([{"machine": "m2"}]) == [[{"machine": "m2", "mode": None}]]


@either_way
@virtual
async def test_a_field_of_that_name_is_overwritten_where_it_stands(lowering):
    it = keyed(lowering, recall("mode"))

    [[message]] = it.takes([{"mode": {"was": 1}, "machine": "m1"}])

    assert [*message.items()] == [("mode", "auto"), ("machine", "m1")]


@either_way
@virtual
async def test_a_name_with_dots_is_a_key_of_the_top_level(lowering):
    names = ["a", "a.b", "c.d"]
    remembered = {"m1": {name: name for name in names}}
    it = keyed(lowering, recall(*names), remembered=remembered)

    [[message]] = it.takes([{"machine": "m1", "c": {"d": 1}}])

    assert [*message.items()] == [
        ("machine", "m1"),
        ("c", {"d": 1}),
        ("a", "a"),
        ("a.b", "a.b"),
        ("c.d", "c.d"),
    ]


@either_way
@virtual
async def test_later_transforms_see_what_it_wrote(lowering):
    copies = [
        {"type": "copy", "from": "mode", "as": "was"},
        {"type": "copy", "from": "a.b", "as": "ab"},
    ]
    it = keyed(
        lowering,
        recall("mode", "a.b"),
        Map.load({"mappings": copies, "keep": "mapped"}),
        remembered={"m1": {"mode": "auto", "a.b": 1}},
    )

    out = it.takes([{"machine": "m1", "mode": "off", "a": {"b": 2}}])

    assert out == [[{"was": "auto", "ab": 1}]]


@either_way
@virtual
async def test_it_looks_under_the_key_that_transforms_before_it_made(lowering):
    rename = {"type": "copy", "from": "name", "as": "machine"}
    it = keyed(lowering, Map.load({"mappings": [rename]}), recall("mode"))

    [[message]] = it.takes([{"name": "m1", "machine": "m2"}])

    assert message["mode"] == "auto"


@either_way
@virtual
async def test_it_sees_what_was_remembered_before_and_by_the_transform_before_it(lowering):
    store = Remember.load({"remember": [{"field": "mode", "as": "last"}]})
    it = Keyed(lowering, recall("last", on_missing="null"), store, recall("last"))
    batch = [{"machine": "m1", "mode": 1}, {"machine": "m1", "mode": 2}]

    assert it.takes(batch, batch) == [[{**each, "last": 2} for each in batch]] * 2


@either_way
@virtual
async def test_messages_and_what_is_remembered_are_not_changed(lowering):
    it = keyed(lowering, recall("mode", "speed"))
    batch = [{"machine": "m1", "x": {"y": 1}}]
    untouched = deepcopy(batch)

    [[message]] = it.takes(batch)

    assert batch == untouched
    assert message["x"] is batch[0]["x"]
    assert it.holds() == REMEMBERED


# --- the key


@pytest.mark.parametrize(
    ("machine", "mode"),
    [("m1", "auto"), (7, "off"), ("7", "off"), (7.0, None), (True, None), ("", None)],
)
@either_way
@virtual
async def test_a_string_is_the_key_itself_and_a_number_or_boolean_its_json(lowering, machine, mode):
    it = keyed(lowering, recall("mode", on_missing="null"))

    assert it.takes([{"machine": machine}]) == [[{"machine": machine, "mode": mode}]]


@pytest.mark.parametrize("message", [{}, {"machine": None}, {"machine": ["m1"]}, {"machine": {}}])
@either_way
@virtual
async def test_for_a_message_without_a_key_nothing_is_remembered(lowering, message):
    known = {"machine": "m1"}
    skipping, writing = (
        keyed(lowering, recall("mode", on_missing=policy)) for policy in ("skip", "null")
    )

    assert skipping.takes([message, known]) == [[{**known, "mode": "auto"}]]
    assert writing.takes([message, known]) == [
        [{**message, "mode": None}, {**known, "mode": "auto"}]
    ]
    assert skipping.ctx.warnings == writing.ctx.warnings == []


@either_way
@virtual
async def test_the_field_of_the_key_may_be_a_dotted_path(lowering):
    it = keyed(lowering, recall("mode"), key="_meta.id")

    out = it.takes([{"_meta": {"id": 7}}, {"_meta.id": "m1"}, {"_meta": 7}, {"id": 7}])

    assert out == [[{"_meta": {"id": 7}, "mode": "off"}, {"_meta.id": "m1", "mode": "auto"}]]


@either_way
@virtual
async def test_without_a_key_it_looks_under_the_bucket_as_a_whole(lowering):
    it = keyed(lowering, recall("shift"), key=None, remembered={"": {"shift": "early"}})

    assert it.takes([{"machine": "m1"}, {}]) == [
        [{"machine": "m1", "shift": "early"}, {"shift": "early"}]
    ]


# --- what is not remembered


@either_way
@virtual
async def test_a_message_of_which_any_name_is_not_remembered_is_dropped_by_default(lowering):
    it = keyed(lowering, recall("mode", "speed"))

    out = it.takes([{"machine": "m2"}, {"machine": "m1"}, {"machine": "m3"}], [{"machine": "m2"}])

    assert out == [[{"machine": "m1", "mode": "auto", "speed": 3}]]
    assert it.ctx.warnings == it.ctx.failures == []


@either_way
@virtual
async def test_under_null_names_that_are_not_remembered_are_null(lowering):
    it = keyed(lowering, recall("mode", "speed", on_missing="null"))

    out = it.takes([{"machine": "7"}, {"machine": "m3", "mode": "kept?"}])

    assert out == [
        [
            {"machine": "7", "mode": "off", "speed": None},
            {"machine": "m3", "mode": None, "speed": None},
        ]
    ]


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            {"machine": "m3"},
            "nothing is remembered as 'mode' or 'speed' for the 'machine' of a message",
        ),
        ({"machine": "m2"}, "nothing is remembered as 'speed' for the 'machine' of a message"),
        ({}, "a message has no key: its 'machine' is not a string, number or boolean"),
        ("m1", "a message has no key: its 'machine' is not a string, number or boolean"),
    ],
)
@either_way
@virtual
async def test_under_error_a_name_that_is_not_remembered_fails_the_batch(lowering, message, said):
    it = keyed(lowering, recall("mode", "speed", on_missing="error"))

    out = it.takes([{"machine": "m1"}, message], [{"machine": "m1"}])

    assert out == [[{"machine": "m1", "mode": "auto", "speed": 3}]]
    assert it.ctx.failures == [said]


@either_way
@virtual
async def test_a_failure_of_the_bucket_as_a_whole_names_no_key(lowering):
    it = keyed(lowering, recall("shift", on_missing="error"), key=None)

    assert it.takes([{"machine": "m1"}]) == []
    assert it.ctx.failures == ["nothing is remembered as 'shift'"]


@either_way
@virtual
async def test_without_a_key_all_messages_share_what_is_not_remembered(lowering):
    def out(policy):
        it = keyed(lowering, recall("shift", "crew", on_missing=policy), key=None)
        it.bucket.merge({"": {"shift": "early"}})
        return it.takes([{"machine": "m1"}, {}])

    assert out("skip") == []
    assert out("null") == [
        [{"machine": "m1", "shift": "early", "crew": None}, {"shift": "early", "crew": None}]
    ]
    assert out("error") == []


OTHERS = [None, True, 5, 1.5, "machine", [], ["machine"]]


@pytest.mark.parametrize("message", OTHERS)
@either_way
@virtual
async def test_a_message_that_is_no_object_has_no_key(lowering, message):
    it = keyed(lowering, recall("mode"))

    assert it.takes([message, {"machine": "7"}], [message]) == [[{"machine": "7", "mode": "off"}]]
    assert it.ctx.warnings == []


@pytest.mark.parametrize("message", OTHERS)
@either_way
@virtual
async def test_what_cannot_carry_a_null_passes_unchanged_with_one_warning(lowering, message):
    it = keyed(lowering, recall("mode", on_missing="null"))

    assert it.takes([message, {"machine": "7"}], [message]) == [
        [message, {"machine": "7", "mode": "off"}],
        [message],
    ]
    assert it.ctx.warnings == [NOT_AN_OBJECT]


@pytest.mark.parametrize("message", OTHERS)
@pytest.mark.parametrize("on_missing", ON_MISSING)
@pytest.mark.parametrize("remembered", [{}, {"": {"mode": "auto"}}])
@either_way
@virtual
async def test_where_no_key_is_asked_for_what_is_no_object_passes_with_one_warning(
    lowering, remembered, on_missing, message
):
    it = keyed(lowering, recall(on_missing=on_missing), key=None, remembered=remembered)

    assert it.takes([message], [message]) == [[message]] * 2
    assert it.ctx.warnings == [NOT_AN_OBJECT]


@either_way
@virtual
async def test_nothing_comes_of_an_empty_batch(lowering):
    it = keyed(lowering, recall())

    assert recall().step(it.ctx)([]) == []
    assert it.takes([]) == []


# --- time


@either_way
@pytest.mark.parametrize("key", ["machine", None])
@virtual
async def test_what_has_expired_is_not_remembered_and_reading_does_not_keep_it(key, lowering):
    it = keyed(
        lowering,
        recall("mode", on_missing="null"),
        key=key,
        idle_seconds=10,
        remembered={"m1": {"mode": "auto"}, "": {"mode": "auto"}},
    )
    seen = []

    for seconds in (0, 5, 4, 1, 20):
        await it.clock.sleep(seconds)
        [[message]] = it.takes([{"machine": "m1"}])
        seen.append(message["mode"])

    assert seen == ["auto", "auto", "auto", None, None]


@either_way
@virtual
async def test_a_key_that_was_written_since_is_still_remembered(lowering):
    it = keyed(lowering, recall("mode"), idle_seconds=10)
    await it.clock.sleep(6)
    it.bucket.merge({"m1": {"speed": 5}})
    await it.clock.sleep(6)

    assert it.takes([{"machine": "m1"}, {"machine": "7"}]) == [[{"machine": "m1", "mode": "auto"}]]


# --- the generated form


@pytest.mark.parametrize("options", [{}, {"on_missing": "null"}])
@pytest.mark.parametrize("key", ["machine", None])
@pytest.mark.parametrize("idle_seconds", [None, 5])
@virtual
async def test_the_generated_form_needs_no_help_with_ordinary_messages(idle_seconds, key, options):
    transform = recall("mode", "speed", **options)
    it = keyed(lower, transform, key=key, idle_seconds=idle_seconds)
    loop = fuse([partial(transform.generate, ctx=it.ctx)], "p1 transforms[0]").loop
    batch = [{"machine": machine} for machine in ("m1", "m2", "m3", 7, None)] + [{}]

    assert [loop(batch)] == (transform.step(it.ctx)(batch) or [[]])


# --- between pipelines


@virtual
async def test_what_one_pipeline_remembers_another_one_recalls_by_a_key_of_its_own():
    it, sink = engine(), Kept()
    it.state.declare({"machines": Bounds()})
    modes = Told(it.clock, [batches([{"machine_id": 7, "mode": "auto"}])])
    readings = Told(it.clock, [5, batches([{"id": "7", "temp": 80}, {"id": "8", "temp": 81}])])
    store = Remember.load({"remember": [{"field": "mode", "as": "mode"}]})

    await run(
        it,
        PipelineConfig(
            id="modes", inputs=(reads(modes),), transforms=(store,), state=in_machines("machine_id")
        ),
    )
    await run(
        it,
        PipelineConfig(
            id="readings",
            inputs=(reads(readings),),
            transforms=(recall(),),
            outputs=(takes(sink),),
            state=in_machines("id"),
        ),
    )
    await it.clock.sleep(6)
    await it.close()

    assert sink.batches == [[{"id": "7", "temp": 80, "mode": "auto"}]]


def in_machines(key):
    return PipelineState(bucket="machines", key=key)


# --- its branches, for the coverage of tests

COVERED = [
    Covered(
        "{type: recall, recall: [r], on_missing: error, on_error: skip}",
        "state.last: {0s: {k: {r: 1}}}, a: {1s: {id: k}, 2s: {id: other}}",
        ("'r' was never remembered", "no message was ever skipped by error"),
    ),
    *(
        Covered(
            f"{{type: recall, recall: [r, s], on_missing: {policy}}}",
            "state.last: {0s: {k: {r: 1, s: 2}}}, a: {1s: {id: k}, 2s: {id: other}}",
            (
                "'r' and 's' were never remembered of one message",
                f"'r' and 's' were never missing ('on_missing' is {policy})",
            ),
        )
        for policy in ("skip", "null")
    ),
    Covered(
        "{type: recall, recall: [r], on_missing: error}",
        "state.last: {0s: {k: {r: 1}}}, a: {1s: {id: k}}",
        ("'r' was never remembered",),
    ),
]
