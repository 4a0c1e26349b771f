"""The `recall` transform: what it finds under which key, and what becomes of a message without it."""

from copy import deepcopy
from functools import partial

import pytest

from headrace.compiler.buckets import Bounds
from headrace.compiler.language.catalogue import scan
from headrace.compiler.language.config import load_program
from headrace.compiler.language.documents import read
from headrace.compiler.language.fieldflow import FieldUse
from headrace.compiler.language.pipelines import PipelineConfig
from headrace.compiler.language.states import PipelineState
from headrace.compiler.lowering.chain import lower, plainly
from headrace.compiler.lowering.code import fuse
from headrace.operators.map import Map
from headrace.operators.recall import NOT_AN_OBJECT, Recall
from headrace.operators.remember import Remember
from tests.doubles import refusals
from tests.operators.keyed import Keyed
from tests.stand_ins import Kept, Told, batches, engine, reads, run, takes
from tests.virtual import virtual

REMEMBERED = {"m1": {"mode": "auto", "speed": 3}, "m2": {"mode": None}, "7": {"mode": "off"}}
ON_MISSING = ["skip", "null", "error"]

either_way = pytest.mark.parametrize("lowering", [plainly, lower], ids=["plain", "generated"])


def recall(*names, **options):
    return Recall.load({"recall": list(names or ["mode"]), **options})


def keyed(lowering, *transforms, remembered=REMEMBERED, **options):
    """Return a chain whose bucket holds something."""
    it = Keyed(lowering, *transforms, **options)
    it.bucket.merge(remembered)
    return it


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


# --- what it refuses


@pytest.mark.parametrize(
    ("document", "reasons"),
    [
        ({}, ["recall: this key is required"]),
        ({"recall": []}, ["recall: expected a list of at least one name, found an empty list"]),
        ({"recall": None}, ["recall: expected a list of at least one name, found null"]),
        ({"recall": "mode"}, ['recall: expected a list of at least one name, found "mode"']),
        ({"recall": [" "]}, ["recall[0]: this must not be blank"]),
        ({"recall": [5]}, ["recall[0]: expected a string that is not blank, found 5"]),
        ({"recall": ["a", "b", " a"]}, ["recall[2]: 'a' is recalled by recall[0] already"]),
        (
            {"recall": ["a"], "on_missing": "drop"},
            ['on_missing: expected one of skip, null, error, found "drop"'],
        ),
        ({"recall": ["a"], "when": []}, ["when: unknown key 'when'"]),
    ],
)
def test_what_cannot_be_meant_is_refused(document, reasons):
    assert refusals(Recall, document) == reasons


def test_names_are_trimmed():
    assert recall(" mode ", "a b").recall == ("mode", "a b")


@pytest.mark.parametrize("word", ["null", None])
def test_null_is_a_word_with_quotes_and_without(word):
    assert recall(on_missing=word).on_missing == "null"
    assert recall(on_missing=word).dump()["on_missing"] == "null"


def test_the_echo_leaves_the_default_out():
    assert recall(on_missing="skip").dump() == {"type": "recall", "recall": ["mode"]}
    assert recall(on_missing="error").dump()["on_missing"] == "error"


def said_of(text):
    """Return what is said of a config."""
    known = scan("headrace.operators", "headrace.connectors")
    return load_program(read(text, "mill.yaml", "yaml"), known)[1]


CHAIN = """\
state: {{ machines: {{}} }}
pipelines:
  - inputs: [{{ type: http }}]
    state: {{ bucket: machines, key: machine }}
    transforms:
      - {{ type: recall, recall: [mode, limit], on_missing: {policy} }}
      {between}
      - type: map
        {options}
        mappings:
          - {mapping}
"""
LIMIT = "{ type: field, field: limit }"


def remarks_on(mapping, policy='"null"', between="", options=""):
    text = CHAIN.format(policy=policy, between=between, options=options, mapping=mapping)
    return [(each.code, each.line, each.path) for each in said_of(text)]


COPY = "{ type: copy, from: mode, as: status }"
CAST = "{ type: cast, from: limit, to: text }"
CONCAT = f"{{ type: concat, parts: [{{ type: value, value: x }}, {LIMIT}], as: out }}"
ARITHMETIC = f"{{ type: arithmetic, left: {LIMIT}, operator: add, right: {LIMIT}, as: o }}"


@pytest.mark.parametrize(
    ("mapping", "place"),
    [
        (COPY, "from"),
        (CAST, "from"),
        (CONCAT, "parts[1].field"),
        (ARITHMETIC, "left.field"),
    ],
)
def test_a_null_that_fails_a_map_later_on_is_remarked_on_where_the_map_reads_it(mapping, place):
    assert ("fails-on-null", 11, f"pipelines[0].transforms[1].mappings[0].{place}") in remarks_on(
        mapping
    )


@pytest.mark.parametrize("mapping", [COPY, CAST, CONCAT, ARITHMETIC])
def test_every_advice_about_a_null_is_taken_and_none_is_held_back(mapping):
    defaulted = mapping.removesuffix(" }") + ", default: { type: text, value: x } }"
    said = {
        "give it a 'default', ": remarks_on(defaulted),
        "set 'on_missing' to null or omit here, ": [
            *remarks_on(mapping, options="on_missing: omit"),
            *remarks_on(mapping, options='on_missing: "null"'),
        ],
        "or to skip where it is recalled": remarks_on(mapping, policy="skip"),
    }

    text = CHAIN.format(policy='"null"', between="", options="", mapping=mapping)
    suggested = {each.suggestion for each in said_of(text)}

    assert suggested == {"".join(advice for advice, refused in said.items() if not refused)}


@pytest.mark.parametrize(
    "chain",
    [
        {"policy": "skip"},
        {"options": "on_missing: omit"},
        {"mapping": "{ type: copy, from: mode, as: s, default: { type: 'null' } }"},
        {"mapping": "{ type: copy, from: other, as: s }"},
        {"mapping": "{ type: coalesce, from: [mode, other], as: s }"},
        {"between": "- { type: filter, String: { field: mode, operator: contains, value: '' } }"},
        {"between": "- { type: recall, recall: [mode] }"},
        {
            "between": "- { type: map, mappings: [{ type: copy, from: mode, as: mode,"
            " default: { type: text, value: off } }] }"
        },
        {"between": "- { type: script, source: { type: inline, code: 'emit(msg)' } }"},
    ],
    ids=str,
)
def test_a_null_that_fails_nothing_is_not_remarked_on(chain):
    assert remarks_on(**{"mapping": "{ type: copy, from: mode, as: s }", **chain}) == []


def test_a_null_is_remarked_on_once_with_what_would_do():
    again = "- { type: map, mappings: [{ type: copy, from: mode, as: first }] }"
    text = CHAIN.format(
        policy='"null"',
        between=again,
        options="",
        mapping="{ type: copy, from: mode, as: second }",
    )

    [said] = said_of(text)

    assert (said.severity, said.message, said.suggestion) == (
        "warning",
        "this fails the batch where 'mode' is null, and transforms[0] (recall, line 6) writes null for "
        "what is not remembered",
        "give it a 'default', set 'on_missing' to null or omit here, or to skip where it is recalled",
    )
    assert said.path == "pipelines[0].transforms[1].mappings[0].from"


REDUCING = """\
state: {{ machines: {{}} }}
pipelines:
  - inputs: [{{ type: http }}]
    state: {{ bucket: machines, key: machine }}
    transforms:
      - {{ type: recall, recall: [mode, limit], on_missing: "null" }}
      - {{ type: buffer, size: 10 }}
      - {{ type: reducer, {reducer} }}
"""
MOST = "aggregations: [{ function: count, as: n }, { function: max, field: limit, as: most }]"
MODES = "aggregations: [{ function: count, as: n }], group_by: [machine, mode]"


@pytest.mark.parametrize(
    ("reducer", "field", "place"),
    [
        (MOST, "limit", "aggregations[1].field"),
        (MODES, "mode", "group_by[1]"),
    ],
)
def test_a_null_that_fails_a_reducer_later_on_is_remarked_on_where_it_reads_it(
    reducer, field, place
):
    [said] = said_of(REDUCING.format(reducer=reducer))

    assert (said.code, said.line, said.path) == (
        "fails-on-null",
        8,
        f"pipelines[0].transforms[2].{place}",
    )
    assert said.message.startswith(
        f"this fails the batch where '{field}' is null, and transforms[0]"
    )
    assert said.suggestion == "set 'on_missing' to skip here, or to skip where it is recalled"


@pytest.mark.parametrize(
    "reducer",
    [
        f"{MOST}, on_missing: skip",
        f"{MODES}, on_missing: skip",
        "aggregations: [{ function: count, field: mode, as: n }]",
        "aggregations: [{ function: count, as: n }], group_by: [machine]",
    ],
)
def test_a_null_that_fails_no_reducer_is_not_remarked_on(reducer):
    assert said_of(REDUCING.format(reducer=reducer)) == []


def test_without_state_on_the_pipeline_it_is_refused_where_it_stands():
    [refused] = said_of(
        """\
- inputs: [{ type: http }]
  transforms:
    - { type: recall, recall: [mode] }
"""
    )

    assert (refused.line, refused.path, refused.code, refused.message) == (
        3,
        "pipelines[0].transforms[0]",
        "no-state",
        "'recall' needs to know which bucket: the pipeline has no 'state'",
    )


# --- what it says of fields


def test_it_reads_the_key_and_writes_keys_of_the_top_level():
    assert recall("mode", "a.b").field_use() == FieldUse.of(keys=["mode", "a.b"], by_key=True)


CONFIG = """\
state: {{ machines: {{}} }}
pipelines:
  - inputs: [{{ type: dummy, duration: 1 }}]
    state: {state}
    transforms:
      - {{ type: recall, recall: [mode, a.b], on_missing: {on_missing} }}
      - type: map
        mappings: [{{ type: copy, from: {field}, as: x }}]
"""


def remarks(field="mode", on_missing="skip", state="{ bucket: machines }"):
    """Return lines and words of what is remarked on a chain that recalls and then reads a field."""
    text = CONFIG.format(field=field, on_missing=on_missing, state=state)
    return [(each.line, each.message) for each in said_of(text)]


@pytest.mark.parametrize("field", ["mode", "mode.x", "a.b", "value"])
def test_what_it_writes_can_be_read_behind_it(field):
    assert remarks(field) == []


def test_what_nobody_wrote_cannot():
    assert remarks("a.c") == [(8, "reads 'a.c', which inputs[0] (dummy, line 3) does not hand on")]


NO_KEY = "reads 'machine', which inputs[0] (dummy, line 3) does not hand on"


@pytest.mark.parametrize("on_missing", ["skip", "error"])
def test_where_no_message_has_the_key_nothing_comes_behind_it(on_missing):
    assert remarks(on_missing=on_missing, state="{ bucket: machines, key: machine }") == [
        (6, NO_KEY),
        (
            7,
            "no message ever comes here: "
            "transforms[0] (recall, line 6) hands on nothing without 'machine'",
        ),
    ]


def test_under_null_everything_comes_behind_it():
    keyed = "{ bucket: machines, key: machine }"

    assert remarks("value", on_missing="null", state=keyed) == [(6, NO_KEY)]


# --- what a dry run says


@pytest.mark.parametrize(
    ("key", "message", "reason"),
    [
        (
            "machine",
            {"machine": "m3"},
            "nothing is remembered under \"m3\" as 'mode' or 'speed', and 'on_missing' is skip",
        ),
        (
            "machine",
            {"machine": 7},
            "nothing is remembered under \"7\" as 'speed', and 'on_missing' is skip",
        ),
        ("machine", {}, "it has no key: 'machine' is not a string, number or boolean"),
        (None, {}, "nothing is remembered as 'mode' or 'speed', and 'on_missing' is skip"),
    ],
)
@virtual
async def test_a_dropped_message_lacks_names_or_a_key(key, message, reason):
    it = keyed(plainly, key=key)

    assert recall("mode", "speed").reason(message, it.ctx) == reason


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
