"""The `map` transform, as sections 9.9 and 9.10 of the contract have it."""

import math
from functools import partial

import pytest
from reactivex.subject import Subject

from headrace.compiler.language.catalogue import scan
from headrace.compiler.language.config import load_program
from headrace.compiler.language.documents import read
from headrace.compiler.language.fieldflow import FieldUse
from headrace.compiler.lowering.chain import lower, plainly
from headrace.compiler.lowering.code import fuse
from headrace.operators.casts import CASTS
from headrace.operators.map import Map
from tests.doubles import StubContext, refusals
from tests.marbles import over_lists


@pytest.fixture
def ctx():
    return StubContext(place="transforms[0]")


@pytest.fixture(params=[plainly, lower], ids=["plain", "generated"])
def run(request, ctx):
    """Return what runs a batch through a map, in either form: the messages, None if it failed."""

    def run(document, batch):
        seen, source = [], Subject()
        [operator] = request.param([(Map.load(document), ctx)], [])
        source.pipe(over_lists(operator)).subscribe(seen.append)
        untouched = repr(batch)
        source.on_next(batch)
        assert repr(batch) == untouched
        return seen[0] if seen else None

    return run


@pytest.fixture
def mapped(run, ctx):
    """Return what runs one message through a map, and gives what fails in its place."""

    def run_one(document, message):
        batch = run(document, [message])
        return ctx.failures[-1] if batch is None else batch[0]

    return run_one


def a_map(*mappings, **options):
    return {"mappings": [*mappings], **options}


def copy(from_, as_=None, **options):
    named = {"type": "copy", "from": from_, **options}
    return named if as_ is None else named | {"as": as_}


def constant(value, as_):
    return {"type": "constant", "value": literal(value), "as": as_}


def literal(value):
    kind = {str: "text", bool: "boolean", type(None): "null"}.get(type(value), "number")
    return {"type": kind} if value is None else {"type": kind, "value": value}


def coalesce(*from_, as_="out", **options):
    return {"type": "coalesce", "from": [*from_], "as": as_, **options}


def cast(from_, to, **options):
    return {"type": "cast", "from": from_, "to": to, **options}


def concat(*parts, as_="out"):
    """A part in a list is a field."""
    spelt = [
        {"type": "field", "field": part[0]}
        if isinstance(part, list)
        else {"type": "value", "value": part}
        for part in parts
    ]
    return {"type": "concat", "parts": spelt, "as": as_}


def arithmetic(left, operator, right, as_="out"):
    """A string is a field."""
    left, right = (
        {"type": "field", "field": side}
        if isinstance(side, str)
        else {"type": "value", "value": side}
        for side in (left, right)
    )
    return {"type": "arithmetic", "left": left, "operator": operator, "right": right, "as": as_}


def drop(*fields):
    return {"type": "drop", "from": [*fields]}


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


# --- what fails


@pytest.mark.parametrize(
    ("mapping", "message", "failure"),
    [
        (
            cast("n", "integer"),
            {"n": "12.0"},
            "('cast'): field 'n': cannot read a string as an integer: "
            "expected a whole number, or its digits in a string",
        ),
        (
            cast("a.n", "uuid"),
            {"a": {"n": 5}},
            "('cast'): field 'a.n': cannot read a number as a uuid: "
            "expected 8-4-4-4-12 hexadecimal digits",
        ),
        (
            concat("<", ["a"], ["b"]),
            {"a": "x", "b": [1]},
            "('concat'): field 'b': cannot read a list as text: "
            "expected a string, number or boolean",
        ),
        (
            concat(["a.b"]),
            {"a": {"b": {}}},
            "('concat'): field 'a.b': cannot read an object as text: "
            "expected a string, number or boolean",
        ),
        (
            arithmetic("l", "add", "r"),
            {"l": 1, "r": "2"},
            "('arithmetic'): field 'r' is a string: expected a number",
        ),
        (
            arithmetic("l", "add", 1),
            {"l": True},
            "('arithmetic'): field 'l' is a boolean: expected a number",
        ),
        (
            arithmetic("l", "multiply", 2),
            {"l": [1]},
            "('arithmetic'): field 'l' is a list: expected a number",
        ),
        (
            arithmetic(1, "divide", "r"),
            {"r": 0},
            "('arithmetic'): field 'r' is zero: nothing can be divided by it",
        ),
        (
            arithmetic("r", "divide", "r"),
            {"r": -0.0},
            "('arithmetic'): field 'r' is zero: nothing can be divided by it",
        ),
        (
            arithmetic("l", "multiply", 1.8),
            {"l": 1.7e308},
            "('arithmetic'): multiply of 'l' and 1.8 leaves the range of doubles",
        ),
        (
            arithmetic("l", "add", "l"),
            {"l": -1.7e308},
            "('arithmetic'): add of 'l' and 'l' leaves the range of doubles",
        ),
        (
            arithmetic(1, "divide", "r"),
            {"r": 5e-324},
            "('arithmetic'): divide of 1 and 'r' leaves the range of doubles",
        ),
        (
            arithmetic("l", "add", 0.5),
            {"l": 10**400},
            "('arithmetic'): add of 'l' and 0.5 leaves the range of doubles",
        ),
        (
            arithmetic("l", "divide", 3),
            {"l": 10**400},
            "('arithmetic'): divide of 'l' and 3 leaves the range of doubles",
        ),
        (
            constant(1, "a.b.c"),
            {"a": {"b": 5}},
            "('constant'): cannot write 'a.b.c': 'b' is not an object",
        ),
        (constant(1, "a.b"), {"a": None}, "('constant'): cannot write 'a.b': 'a' is not an object"),
        (copy("a", "a.b"), {"a": "x"}, "('copy'): cannot write 'a.b': 'a' is not an object"),
    ],
)
@pytest.mark.parametrize(
    "options", [{}, {"keep": "mapped"}, {"on_missing": "omit"}, {"on_missing": "null"}], ids=str
)
def test_what_cannot_be_done_fails_the_batch_and_says_where(
    mapped, mapping, message, failure, options
):
    document = a_map(constant(0, "first"), mapping, **options)

    assert mapped(document, message) == f"mapping 1 {failure}"


def test_one_bad_message_fails_its_batch_and_no_other(run, ctx):
    document = a_map(arithmetic("t", "add", 1))

    assert run(document, [{"t": 1}, {"t": "secret"}]) is None
    assert run(document, [{"t": 1}, {"t": 2}]) == [{"t": 1, "out": 2}, {"t": 2, "out": 3}]
    assert ctx.failures == ["mapping 0 ('arithmetic'): field 't' is a string: expected a number"]


def test_a_default_does_not_help_a_value_that_will_not_convert(mapped):
    document = a_map(cast("n", "integer", default=literal(0)), on_missing="null")

    assert mapped(document, {"n": "x"}).startswith("mapping 0 ('cast'): field 'n': cannot read")


def test_an_integer_keeps_no_more_digits_than_a_message_may_have(mapped):
    squares = [arithmetic(f"n{n}", "multiply", f"n{n}", f"n{n + 1}") for n in range(30)]

    assert mapped(a_map(arithmetic("n", "multiply", 10)), {"n": 10**4298})["out"] == 10**4299
    assert mapped(a_map(*squares, keep="mapped"), {"n0": -(10**1000)}) == (
        "mapping 2 ('arithmetic'): multiply of 'n2' and 'n2' has more than 4,300 digits"
    )


def test_a_text_is_joined_up_to_the_length_of_a_message(mapped):
    doubled = [concat([f"t{n}"], [f"t{n}"], as_=f"t{n + 1}") for n in range(60)]

    assert mapped(a_map(*doubled, keep="mapped"), {"t0": "x" * 1024 * 1024}) == (
        "mapping 4 ('concat'): the result is longer than 16,777,216 characters"
    )


def test_an_overflow_that_a_result_hides_is_none(mapped):
    assert mapped(a_map(arithmetic("l", "multiply", 1)), {"l": 10**400})["out"] == 10**400
    assert mapped(a_map(arithmetic("l", "divide", "r")), {"l": 1.7e308, "r": math.inf}) == {
        "l": 1.7e308,
        "r": math.inf,
        "out": 0.0,
    }


# --- what it refuses


@pytest.mark.parametrize(
    ("document", "reasons"),
    [
        ({}, ["mappings: this key is required"]),
        (a_map(), ["mappings: expected a list of at least one mapping, found an empty list"]),
        (a_map({"from": "a"}), ["mappings[0]: 'type' is required"]),
        (a_map(copy("a") | {"type": "move"}), ['mappings[0].type: unknown type "move"']),
        (a_map(copy(" ")), ["mappings[0].from: this must not be blank"]),
        (a_map(copy("a", " ")), ["mappings[0].as: this must not be blank"]),
        (a_map(copy("a") | {"to": "b"}), ["mappings[0].to: unknown key 'to'"]),
        (
            a_map({"type": "constant"}),
            ["mappings[0].value: this key is required", "mappings[0].as: this key is required"],
        ),
        (
            a_map({"type": "constant", "as": "a", "value": 5}),
            [
                "mappings[0].value: expected an object whose 'type' is one of text, number, boolean, null,"
                " found a number"
            ],
        ),
        (
            a_map(copy("a", default={"type": "number", "value": "5"})),
            ['mappings[0].default.value: expected a number, found "5"'],
        ),
        (
            a_map(copy("a", default={"type": "boolean", "value": 1})),
            ["mappings[0].default.value: expected true or false, found 1"],
        ),
        (
            a_map(copy("a", default={"type": "null", "value": None})),
            ["mappings[0].default.value: unknown key 'value'"],
        ),
        (
            a_map(coalesce("a")),
            ["mappings[0].from: expected a list of at least two dotted paths, found a list of 1"],
        ),
        (a_map(coalesce("a", "")), ["mappings[0].from[1]: this must not be blank"]),
        (
            a_map(cast("a", "int")),
            [
                "mappings[0].to: expected one of text, integer, float, boolean, timestamp, date, "
                'uuid, json, found "int"'
            ],
        ),
        (
            a_map(concat()),
            ["mappings[0].parts: expected a list of at least one part, found an empty list"],
        ),
        (
            a_map(concat(5, [" "])),
            [
                "mappings[0].parts[0].value: expected a string, found 5",
                "mappings[0].parts[1].field: this must not be blank",
            ],
        ),
        (
            a_map(concat(["a"]) | {"default": literal(1)}),
            ["mappings[0].default: unknown key 'default'"],
        ),
        (
            a_map(arithmetic("a", "modulo", True)),
            [
                "mappings[0].operator: expected one of add, subtract, multiply, divide, "
                'found "modulo"',
                "mappings[0].right.value: expected a number, found true",
            ],
        ),
        (a_map(arithmetic("a", "divide", 0)), ["mappings[0].right.value: cannot divide by zero"]),
        (a_map(arithmetic(1, "divide", -0.0)), ["mappings[0].right.value: cannot divide by zero"]),
        (
            a_map(drop()),
            ["mappings[0].from: expected a list of at least one dotted path, found an empty list"],
        ),
        (
            a_map(copy("a", "b"), drop("a"), keep="mapped"),
            ["mappings[1]: a drop under 'keep: mapped' drops nothing: only what is mapped is kept"],
        ),
        (a_map(copy("a"), keep="some"), ['keep: expected one of all, mapped, found "some"']),
        (a_map(copy("a"), keep=None), ["keep: expected one of all, mapped, found null"]),
        (
            a_map(copy("a"), on_missing="skip"),
            ['on_missing: expected one of error, omit, null, found "skip"'],
        ),
    ],
)
def test_a_map_that_cannot_be_meant_is_refused(document, reasons):
    assert refusals(Map, document) == reasons


@pytest.mark.parametrize(
    ("mappings", "reasons"),
    [
        (
            [copy("x", "a"), copy("y", " a ")],
            ["mappings[1].as: 'a' is written twice: mappings[0] writes it already"],
        ),
        (
            [copy("a"), drop("b"), copy("x.a")],
            ["mappings[2].from: 'a' is written twice: mappings[0] writes it already"],
        ),
        (
            [copy("x", "a.b"), copy("y", "a.b"), copy("z", "a.b")],
            [
                "mappings[1].as: 'a.b' is written twice: mappings[0] writes it already",
                "mappings[2].as: 'a.b' is written twice: mappings[0] writes it already",
            ],
        ),
        ([copy("x", "a.b"), copy("y", "a.c"), copy("z", "ab")], []),
    ],
)
def test_no_two_mappings_write_one_field(mappings, reasons):
    assert refusals(Map, a_map(*mappings)) == reasons


def test_thousands_of_mappings_are_judged_in_their_stride():
    many = [constant(n, f"a.f{n}") for n in range(10_000)]  # pair by pair it would take minutes

    assert refusals(Map, a_map(*many)) == []


SCALARS = [
    constant("{}", "a"),
    constant(1, "a"),
    constant(None, "a"),
    concat("x", as_="a"),
    arithmetic("x", "add", 1, "a"),
    *(cast("x", to, **{"as": "a"}) for to in CASTS if to != "json"),
]


@pytest.mark.parametrize("scalar", SCALARS, ids=lambda mapping: mapping.get("to", mapping["type"]))
def test_nothing_is_written_below_what_surely_is_no_object_in_whatever_order(scalar):
    below, other = copy("y", "a.b.c"), copy("y", "ab")
    kind = scalar["type"]

    assert refusals(Map, a_map(scalar, other, below)) == [
        f"mappings[2].as: cannot write 'a.b.c': mappings[0] ({kind}) makes 'a' "
        "a value that is no object"
    ]
    assert refusals(Map, a_map(below, scalar)) == [
        f"mappings[0].as: cannot write 'a.b.c': mappings[1] ({kind}) makes 'a' "
        "a value that is no object"
    ]


@pytest.mark.parametrize(
    "writer", [copy("x", "a"), coalesce("x", "y", as_="a"), cast("x", "json", **{"as": "a"})]
)
def test_what_may_be_an_object_is_left_to_the_run(writer):
    assert refusals(Map, a_map(writer, copy("y", "a.b"))) == []


def test_a_refusal_says_where_and_what_would_be_accepted():
    text = """\
- inputs: [{type: http}]
  transforms:
    - type: map
      mappings:
        - {type: cast, from: n, to: integr}
        - type: arithmetic
          left: {type: field, field: t}
          operator: divide
          right: {type: value, value: 0}
          as: share
"""

    program, diagnostics = load_program(
        read(text, "mill.yaml", "yaml"), scan("headrace.operators", "headrace.connectors")
    )

    assert program is None
    assert [
        (each.line, each.column, each.path, each.code, each.found, each.expected, each.suggestion)
        for each in diagnostics
    ] == [
        (
            5,
            37,
            "pipelines[0].transforms[0].mappings[0].to",
            "not-a-choice",
            '"integr"',
            "one of text, integer, float, boolean, timestamp, date, uuid, json",
            "did you mean 'integer'?",
        ),
        (
            9,
            39,
            "pipelines[0].transforms[0].mappings[1].right.value",
            "zero-divisor",
            "0",
            "a number other than zero",
            None,
        ),
    ]


def test_what_is_wrong_between_mappings_points_at_the_target():
    text = """\
- inputs: [{type: http}]
  transforms:
    - type: map
      mappings:
        - {type: constant, as: site, value: {type: null}}
        - type: copy
          from: hall
          as: site.hall
        - {type: copy, from: old.site}
"""

    _, [below, twice] = load_program(
        read(text, "mill.yaml", "yaml"), scan("headrace.operators", "headrace.connectors")
    )

    assert (below.line, below.column, below.code, below.found, below.expected) == (
        8,
        15,
        "scalar-in-the-way",
        "site.hall",
        "a field that is not below 'site'",
    )
    assert (twice.line, twice.column, twice.code, twice.found, twice.expected) == (
        9,
        30,
        "duplicate",
        "site",
        "a field of its own for every mapping",
    )


# --- how it is spelled


def test_every_kind_of_mapping_is_spelled_and_echoed_as_the_contract_shows():
    document = {
        "type": "map",
        "mappings": [
            {"type": "copy", "from": "_meta.subject"},
            {"type": "copy", "from": "unit", "as": "u", "default": {"type": "text", "value": "C"}},
            {"type": "constant", "value": {"type": "null"}, "as": "site"},
            {"type": "coalesce", "from": ["t", "temp"], "as": "t2"},
            {"type": "cast", "from": "n", "to": "integer", "as": "count"},
            {
                "type": "concat",
                "parts": [
                    {"type": "field", "field": "site"},
                    {"type": "value", "value": "/"},
                ],
                "as": "id",
            },
            {
                "type": "arithmetic",
                "left": {"type": "field", "field": "t2"},
                "operator": "multiply",
                "right": {"type": "value", "value": 1.8},
                "as": "f",
            },
            {"type": "drop", "from": ["n", "unit"]},
        ],
        "on_missing": "null",
    }

    loaded = Map.load({key: value for key, value in document.items() if key != "type"})

    assert repr(loaded.dump()) == repr(document)


def test_the_echo_leaves_out_policies_that_are_the_default():
    document = a_map(copy("a"), keep="all", on_missing="error")

    assert Map.load(document).dump() == {"type": "map", "mappings": [copy("a")]}


def test_null_is_a_word_where_it_is_one_and_absence_elsewhere():
    assert Map.load(a_map(copy("a"), on_missing=None)).on_missing == "null"
    assert Map.load(a_map(constant(None, "a") | {"value": {"type": None}})) == Map.load(
        a_map(constant(None, "a"))
    )
    assert Map.load(a_map(copy("a", default=None))) == Map.load(a_map(copy("a")))


# --- what it says of fields


@pytest.mark.parametrize(
    ("document", "use"),
    [
        (
            a_map(copy("a.b"), constant(1, "c"), drop("d", "e.f")),
            FieldUse.of(reads=["a.b"], writes=["b", "c"], removes=["d", "e.f"]),
        ),
        (
            a_map(coalesce("a", "b"), concat(["c"], "/", as_="d"), keep="mapped"),
            FieldUse.of(reads=["a", "b", "c"], writes=["out", "d"], keeps=False),
        ),
        # What came before does not matter to what was written by an earlier mapping.
        (
            a_map(copy("a", "b"), arithmetic("b", "add", "c"), copy("out.x", "z")),
            FieldUse.of(reads=["a", "b", "c", "out.x"], writes=["b", "out", "z"], asks=["a", "c"]),
        ),
        # Something may be in the way to where it writes.
        (
            a_map(copy("x", "a.b.c")),
            FieldUse.of(reads=["x", "a.b.c", "a"], writes=["a.b.c"], asks=["x"]),
        ),
    ],
)
def test_it_says_what_it_reads_writes_and_removes(document, use):
    assert Map.load(document).field_use() == use


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
