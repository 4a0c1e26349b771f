"""The `map` transform, as sections 9.9 and 9.10 of the contract have it."""

from functools import partial

import pytest

from headrace.compiler.casts import CASTS
from headrace.compiler.lowering.chain import fuse
from headrace.operators.map import Map
from tests.covered import Covered
from tests.operators.mappings import (
    a_map,
    arithmetic,
    cast,
    coalesce,
    concat,
    constant,
    copy,
    drop,
    literal,
)

# --- what each kind of mapping writes


@pytest.mark.parametrize(
    ("mapping", "message", "written"),
    [
        (copy("temp", "t"), {"temp": 1.0}, {"temp": 1.0, "t": 1.0}),
        (copy("temp", "t"), {"temp": False}, {"temp": False, "t": False}),
        (copy("temp", "t"), {"temp": ""}, {"temp": "", "t": ""}),
        (copy("a", "b"), {"a": {"x": [1]}}, {"a": {"x": [1]}, "b": {"x": [1]}}),
        (copy("a", "b"), {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 1, "c": 3}),
        (copy("a", "a"), {"a": 1}, {"a": 1}),
        (constant("site", "s"), {}, {"s": "site"}),
        (constant(5, "s"), {"s": 4}, {"s": 5}),
        (constant(5.0, "s"), {}, {"s": 5.0}),
        (constant(10**400, "s"), {}, {"s": 10**400}),
        (constant(True, "s"), {}, {"s": True}),
        (constant(None, "s"), {"s": 1}, {"s": None}),
        (coalesce("a", "b"), {"a": 1, "b": 2}, {"a": 1, "b": 2, "out": 1}),
        (coalesce("a", "b"), {"a": None, "b": 2}, {"a": None, "b": 2, "out": 2}),
        (coalesce("a", "b", "c"), {"c": 0}, {"c": 0, "out": 0}),
        (coalesce("a", "b"), {"a": False, "b": 1}, {"a": False, "b": 1, "out": False}),
        (cast("n", "integer"), {"n": "12"}, {"n": 12}),
        (cast("n", "integer", **{"as": "m"}), {"n": "12"}, {"n": "12", "m": 12}),
        (cast("n", "json"), {"n": "null"}, {"n": None}),
        (drop("a", "b"), {"a": 1, "c": 2}, {"c": 2}),
        (drop("a"), {}, {}),
    ],
)
def test_what_a_mapping_writes(mapped, mapping, message, written):
    assert repr(mapped(a_map(mapping), message)) == repr(written)


@pytest.mark.parametrize("to", CASTS)
def test_every_cast_is_that_of_the_table(mapped, to):
    value = {"date": "2026-03-01", "timestamp": "2026-03-01", "json": "[1, 2.0]"}.get(to, "1")
    value = {"boolean": "TRUE", "uuid": "6BA7B810-9DAD-11D1-80B4-00C04FD430C8"}.get(to, value)

    assert repr(mapped(a_map(cast("v", to)), {"v": value})) == repr({"v": CASTS[to](value)})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is ", "as it is "),
        ("", ""),
        (5, "5"),
        (42.0, "42.0"),
        (1e16, "1e16"),
        (1e-5, "0.00001"),
        (True, "true"),
        (False, "false"),
        (10**30, "1" + "0" * 30),
    ],
)
def test_a_part_of_a_concat_is_a_string_as_it_is_or_a_scalar_as_json_writes_it(mapped, value, text):
    assert mapped(a_map(concat("<", ["a"], ">")), {"a": value})["out"] == f"<{text}>"


def test_a_concat_joins_its_parts_in_order(mapped):
    joined = concat(["site"], "/", ["_meta.line"], "/", ["site"])

    assert mapped(a_map(joined), {"site": "north", "_meta": {"line": 7}})["out"] == "north/7/north"
    assert mapped(a_map(concat("a", "", "b")), {})["out"] == "ab"


@pytest.mark.parametrize(
    ("left", "operator", "right", "result"),
    [
        (1, "add", 2, 3),
        (1, "add", 2.0, 3.0),
        (1, "subtract", 2, -1),
        (3, "multiply", 2, 6),
        (21.5, "multiply", 2, 43.0),
        (6, "divide", 2, 3.0),
        (1, "divide", 4, 0.25),
        (1, "divide", -0.5, -2.0),
        (10**30, "add", 1, 10**30 + 1),
        (10**400, "multiply", 10**400, 10**800),
        (10**400, "divide", 10**399, 10.0),
        (1.7e308, "subtract", 1.7e308, 0.0),
        (-0.0, "multiply", 1, -0.0),
    ],
)
@pytest.mark.parametrize("shape", ["fields", "left", "right"])
def test_integers_stay_integers_and_divide_gives_doubles(
    mapped, shape, left, operator, right, result
):
    mapping = arithmetic(
        left if shape == "left" else "l", operator, right if shape == "right" else "r"
    )

    assert repr(mapped(a_map(mapping), {"l": left, "r": right})["out"]) == repr(result)


def test_both_sides_may_be_constants_or_the_same_field(mapped):
    both = a_map(arithmetic(2, "add", 3, "a"), arithmetic("x", "multiply", "x", "b"))

    assert mapped(both, {"x": 1.5}) == {"x": 1.5, "a": 5, "b": 2.25}


# --- paths


@pytest.mark.parametrize(
    ("mapping", "message", "written"),
    [
        (copy("_meta.topic"), {"_meta": {"topic": "s"}}, {"_meta": {"topic": "s"}, "topic": "s"}),
        (copy("a.b"), {"a.b": 1}, {"a.b": 1, "b": 1}),
        (copy("a.b", "x"), {"a.b": 1, "a": {"b": 2}}, {"a.b": 1, "a": {"b": 2}, "x": 1}),
        (cast("a.b", "text"), {"a": {"b": 1}}, {"a": {"b": 1}, "b": "1"}),
        (constant(1, "a.b.c"), {}, {"a": {"b": {"c": 1}}}),
        (constant(1, "a.b"), {"a": {"x": 0}, "z": 1}, {"a": {"x": 0, "b": 1}, "z": 1}),
        (constant(1, "a.b"), {"a.b": 0, "a": {"b": 0}}, {"a.b": 1, "a": {"b": 0}}),
        (constant(1, "a.b"), {"a.b": 0, "a": 5}, {"a.b": 1, "a": 5}),
        (drop("a.b"), {"a": {"b": 1}}, {"a": {}}),
        (drop("a.b"), {"a.b": 1, "a": {"b": 2}}, {"a": {"b": 2}}),
        (drop("a.b"), {"a": 5}, {"a": 5}),
        (copy(" a ", " b.c "), {"a": 1}, {"a": 1, "b": {"c": 1}}),
    ],
)  # fmt: skip
def test_paths_are_read_and_written_as_everywhere(mapped, mapping, message, written):
    assert repr(mapped(a_map(mapping), message)) == repr(written)


def test_later_mappings_see_what_earlier_ones_wrote(mapped):
    steps = a_map(
        arithmetic("t", "multiply", 2, "u.double"),
        copy("u.double", "twice"),
        drop("u"),
        coalesce("u.double", "twice", as_="again"),
        copy("again", "t"),
    )

    assert mapped(steps, {"t": 4}) == {"t": 8, "twice": 8, "again": 8}


# --- what is missing


READING = [copy("x", "out"), cast("x", "text", **{"as": "out"}), coalesce("x", "y")]


READING_ALL = [*READING, concat("<", ["x"]), arithmetic("x", "add", 1)]


@pytest.mark.parametrize("message", [{}, {"x": None}])
@pytest.mark.parametrize("mapping", READING_ALL, ids=lambda mapping: mapping["type"])
class TestMissing:
    def test_by_default_the_batch_fails(self, mapped, mapping, message):
        missing = "fields 'x', 'y' are" if mapping["type"] == "coalesce" else "field 'x' is"

        assert mapped(a_map(mapping), message) == (
            f"mapping 0 ('{mapping['type']}'): {missing} missing or null"
        )

    def test_omit_writes_nothing(self, mapped, mapping, message):
        document = a_map(mapping, on_missing="omit")

        assert mapped(document, message) == message
        assert mapped(document, message | {"out": 1}) == message | {"out": 1}

    @pytest.mark.parametrize("policy", ["null", None])
    def test_null_writes_null(self, mapped, mapping, message, policy):
        document = a_map(mapping, on_missing=policy)

        assert mapped(document, message) == message | {"out": None}
        assert mapped(document, message | {"out": 1}) == message | {"out": None}

    def test_only_what_was_written_is_kept(self, mapped, mapping, message):
        assert mapped(a_map(mapping, on_missing="omit", keep="mapped"), message) == {}
        assert mapped(a_map(mapping, on_missing="null", keep="mapped"), message) == {"out": None}


@pytest.mark.parametrize("policy", ["error", "omit", "null"])
@pytest.mark.parametrize("default", ["C", 5, 5.0, True, None])
@pytest.mark.parametrize("mapping", READING, ids=lambda mapping: mapping["type"])
def test_a_default_is_answered_before_the_policy(mapped, mapping, default, policy):
    document = a_map(mapping | {"default": literal(default)}, on_missing=policy)

    assert repr(mapped(document, {})) == repr({"out": default})
    assert repr(mapped(document, {"x": None})) == repr({"x": None, "out": default})
    assert mapped(document, {"x": "here"})["out"] == "here"


@pytest.mark.parametrize(
    "mapping", [concat(["a"], ["b"]), arithmetic("a", "add", "b")], ids=["concat", "arithmetic"]
)
def test_one_missing_part_makes_the_whole_missing(mapped, mapping):
    kind = mapping["type"]

    assert mapped(a_map(mapping), {"b": 1}) == f"mapping 0 ('{kind}'): field 'a' is missing or null"
    assert mapped(a_map(mapping), {"a": 1}) == f"mapping 0 ('{kind}'): field 'b' is missing or null"
    assert mapped(a_map(mapping), {}) == (
        f"mapping 0 ('{kind}'): fields 'a', 'b' are missing or null"
    )
    assert mapped(a_map(mapping, on_missing="null"), {"a": 1}) == {"a": 1, "out": None}
    assert mapped(a_map(mapping, on_missing="omit"), {"b": 1}) == {"b": 1}


WRONG = [
    (concat(["a"], "/", ["b"]), [1], "field '{}': cannot read a list as text"),
    (concat(["a"], "/", ["b"]), {}, "field '{}': cannot read an object as text"),
    (arithmetic("a", "add", "b"), "1", "field '{}' is a string: expected a number"),
    (arithmetic("a", "divide", "b"), True, "field '{}' is a boolean: expected a number"),
    (arithmetic("a", "multiply", "b"), [1], "field '{}' is a list: expected a number"),
]


@pytest.mark.parametrize("policy", ["error", "omit", "null"])
@pytest.mark.parametrize("keep", ["all", "mapped"])
@pytest.mark.parametrize(("mapping", "value", "failure"), WRONG, ids=map(str, range(len(WRONG))))
def test_what_is_of_a_wrong_type_fails_the_batch_also_where_another_part_is_missing(
    mapped, mapping, value, failure, keep, policy
):
    document = a_map(constant(0, "first"), mapping, on_missing=policy, keep=keep)
    start = f"mapping 1 ('{mapping['type']}'): "

    for message in ({"a": value}, {"a": value, "b": None}):
        assert mapped(document, message).startswith(start + failure.format("a"))
    assert mapped(document, {"b": value}).startswith(start + failure.format("b"))


@pytest.mark.parametrize("policy", ["omit", "null"])
@pytest.mark.parametrize(
    "mapping", [concat(["a"], ["b"]), arithmetic("a", "add", "b")], ids=["concat", "arithmetic"]
)
def test_the_generated_form_needs_no_help_where_one_of_two_parts_is_missing(ctx, mapping, policy):
    transform = Map.load(a_map(mapping, on_missing=policy))
    batch = [{"a": 1, "b": 2}, {"a": 1}, {"b": 2.5}, {}]

    made = fuse([partial(transform.generate, ctx=ctx)], "p1 transforms[0]").loop(batch)

    assert [made] == transform.step(ctx)(batch)


def test_what_a_policy_covers_may_differ_from_message_to_message(run):
    document = a_map(copy("x", "a.b"), copy("y", default=literal(0)), on_missing="omit")
    batch = [{"x": 1}, {"y": 2}, {"a": {"c": 3}, "x": 4}]

    assert run(document, batch) == [
        {"x": 1, "a": {"b": 1}, "y": 0},
        {"y": 2},
        {"a": {"c": 3, "b": 4}, "x": 4, "y": 0},
    ]


def test_constants_and_drops_read_nothing_and_know_no_policy(mapped):
    for policy in ("error", "omit", "null"):
        document = a_map(constant(1, "a"), drop("b", "c.d"), on_missing=policy)
        assert mapped(document, {}) == {"a": 1}


# --- what is kept


@pytest.mark.parametrize(
    ("mappings", "message", "kept"),
    [
        ([copy("a", "b")], {"a": 1, "c": 2}, {"b": 1}),
        ([copy("a.b")], {"a": {"b": 1, "c": 2}}, {"b": 1}),
        ([copy("x", "a.b"), copy("y", "a.c")], {"x": 1, "y": 2, "a": {"z": 0}}, {"a": {"b": 1, "c": 2}}),
        ([copy("x", "a.b"), copy("x", "c"), copy("x", "a.d")], {"x": 1}, {"a": {"b": 1, "d": 1}, "c": 1}),
        ([copy("x", "a"), copy("y", "a.b")], {"x": {"z": 1}, "y": 2}, {"a": {"z": 1, "b": 2}}),
        ([copy("y", "a.b"), copy("x", "a")], {"x": {"z": 1}, "y": 2}, {"a": {"z": 1}}),
        ([copy("x", "a.b")], {"x": 1, "a.b": 0}, {"a": {"b": 1}}),
        ([constant(None, "a")], {"a": 1}, {"a": None}),
        ([copy("a", "b"), copy("b", "c")], {"a": 1}, {"b": 1, "c": 1}),
        ([copy("a", "b"), copy("a", "a")], {"a": 1}, {"b": 1, "a": 1}),
    ],
)  # fmt: skip
def test_keep_mapped_makes_a_new_object_of_what_was_written(mapped, mappings, message, kept):
    assert repr(mapped(a_map(*mappings, keep="mapped"), message)) == repr(kept)


def test_written_fields_keep_their_place_and_new_ones_go_to_the_end(mapped):
    document = a_map(constant(1, "new"), constant(2, "b"), constant(3, "a.x"), constant(4, "last"))

    written = mapped(document, {"a": {"x": 0, "y": 0}, "b": 0, "c": 0})

    assert [*written] == ["a", "b", "c", "new", "last"]
    assert [*written["a"]] == ["x", "y"]


def test_one_message_out_for_each_one_in(run):
    batch = [{"n": n} for n in range(5)]

    assert run(a_map(drop("n")), batch) == [{}] * 5
    assert run(a_map(copy("n", "m"), keep="mapped"), batch) == [{"m": n} for n in range(5)]


@pytest.mark.parametrize("message", [None, True, 5, "text", [], [{"a": 1}]])
@pytest.mark.parametrize(
    "document",
    [
        a_map(copy("a", "b")),
        a_map(constant(1, "b")),
        a_map(constant(1, "b.c"), keep="mapped"),
        a_map(drop("a")),
        a_map(drop("a.b")),
        a_map(copy("a", "b"), on_missing="omit"),
        a_map(copy("a", "b"), on_missing="null", keep="mapped"),
    ],
)
def test_a_message_that_is_no_object_passes_unchanged_with_one_warning(run, ctx, document, message):
    passed = run(document, [{"a": 1}, message, message])

    assert repr(passed[1:]) == repr([message, message])
    assert len(passed) == 3
    assert ctx.warnings == ["passed on a message that is not an object, unchanged"]


# --- the generated form


@pytest.mark.parametrize(
    "document",
    [
        a_map(*READING_ALL[:1], drop("z", "x.y"), constant(1, "a.b")),
        a_map(*READING_ALL[1:2], keep="mapped"),
        a_map(arithmetic("x", "multiply", 1.8), on_missing="omit"),
        a_map(arithmetic("x", "multiply", 1.8), on_missing="null"),
        a_map(concat(["x"], "/"), copy("out", "a.b"), on_missing="omit", keep="mapped"),
        a_map(coalesce("x", "y"), copy("out.z", default=literal(1)), on_missing="null"),
    ],
)
@pytest.mark.parametrize("message", [{"x": 1}, {"x": 1.5, "a": {}}, {"x": 2, "a.b": 1}])
def test_the_generated_form_needs_no_help_with_ordinary_messages(ctx, document, message):
    transform = Map.load(document)
    loop = fuse([partial(transform.generate, ctx=ctx)], "p1 transforms[0]").loop

    assert [loop([message, message])] == transform.step(ctx)([message, message])


@pytest.mark.parametrize("policy", ["omit", "null"])
def test_the_generated_form_needs_no_help_where_a_missing_field_is_usual(ctx, policy):
    transform = Map.load(a_map(*READING_ALL[:1], on_missing=policy))
    loop = fuse([partial(transform.generate, ctx=ctx)], "p1 transforms[0]").loop

    assert [loop([{}, {"x": None}, {"x": 1}])] == transform.step(ctx)([{}, {"x": None}, {"x": 1}])


# --- its branches, for the coverage of tests

BOTH = ["'x' and 'z' were never there", "'x' and 'z' were never missing ('on_missing' is omit)"]
COVERED = [
    Covered(
        "{type: map, on_error: skip, mappings: [{type: copy, from: x, as: c}]}",
        "a: {1s: {x: 1}, 2s: {}}",
        ("'x' was never there", "no message was ever skipped by error"),
    ),
    Covered(
        """{type: map, on_missing: omit, mappings: [
            {type: copy, from: x, as: c, default: {type: number, value: 0}},
            {type: cast, from: y, to: integer},
            {type: concat, as: xy, parts: [{type: field, field: x}, {type: field, field: z}]},
            {type: coalesce, as: w, from: [x, z]},
            {type: template, as: t, template: "{x} {z}"},
            {type: constant, as: k, value: {type: number, value: 1}},
            {type: drop, from: [q]}]}""",
        "a: {1s: {x: 1, z: 1, y: '2'}, 2s: {}, 3s: {y: two}}",
        (
            "'x' was never there",
            "'x' was never missing, so 'default' was never written",
            "'y' was never there",
            "'y' was never missing ('on_missing' is omit)",
            "the cast of 'y' never failed",
            *3 * BOTH,
        ),
    ),
    Covered(
        """{type: map, mappings: [{type: arithmetic, as: y, operator: add,
            left: {type: field, field: x}, right: {type: value, value: 1}}]}""",
        "a: {1s: {x: 1}}",
        ("'x' was never there",),  # that a batch fails is no way that somebody has chosen
    ),
    Covered(
        """{type: map, mappings: [
            {type: copy, from: x, as: c, when: [{type: exists, field: x}]},
            {type: drop, from: [q], when: [{type: any, conditions: [{type: boolean, field: b}]}]}]}""",
        "a: {1s: {x: 1, b: true}, 2s: {}}",
        (
            "the condition on 'x' was never true",
            "the condition on 'x' was never false",
            "'x' was never there",
            "the condition 'any' of 1 condition was never true",
            "the condition 'any' of 1 condition was never false",
            "the condition on 'b' was never true",
            "the condition on 'b' was never false",
        ),
    ),
    Covered(
        """{type: map, mappings: [{type: choose, as: y, default: {type: number, value: 0}, cases: [
            {when: [{type: exists, field: x}], value: {type: number, value: 1}}]}]}""",
        "a: {1s: {x: 1}, 2s: {}}",
        (
            "this case was never chosen",
            "the condition on 'x' was never true",
            "the condition on 'x' was never false",
            "'default' was never written",
        ),
    ),
    Covered(
        """{type: map, on_missing: omit, mappings: [{type: rename, fields: {x: z}},
            {type: rename, fields: {a: b, c: d}}]}""",
        "a: {1s: {x: 1, a: 1, c: 1}, 2s: {}}",
        (
            "'x' was never there",
            "'x' was never missing ('on_missing' is omit)",
            "'a' and 'c' were never all there",
            "none of 'a' and 'c' was ever missing ('on_missing' is omit)",
        ),
    ),
    Covered(
        """{type: map, on_missing: omit, mappings: [
            {type: time, from: x, plus: {type: field, field: y}, as: t},
            {type: elapsed, from: x, until: y, as: e},
            {type: now, as: n}]}""",
        "a: {1s: {x: 1, y: 1}, 2s: {}, 3s: {x: never, y: 1}, 4s: {x: 1, y: 90000000000}}",
        (
            "'x' and 'y' were never there",
            "'x' and 'y' were never missing ('on_missing' is omit)",
            "the reading of 'x' and 'y' never failed",
            "'x' and 'y' were never there",
            "'x' and 'y' were never missing ('on_missing' is omit)",
            "the reading of 'x' and 'y' never failed",
        ),
    ),
]
