"""What a transform `recall` refuses, and what it says of itself."""

import pytest

from headrace.compiler.component.catalogue import scan
from headrace.compiler.component.fieldflow import FieldUse
from headrace.compiler.config.program import load_program
from headrace.compiler.lowering.chain import plainly
from headrace.compiler.text.documents import read
from headrace.operators.recall import Recall
from tests.doubles import refusals
from tests.operators.recalled import keyed, recall
from tests.virtual import virtual

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
