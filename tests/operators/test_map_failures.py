"""What a mapping cannot do fails its batch, and says where."""

import math

import pytest

from tests.operators.mappings import (
    a_map,
    arithmetic,
    cast,
    concat,
    constant,
    copy,
    literal,
)


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
