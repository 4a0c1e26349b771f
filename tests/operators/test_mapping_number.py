"""The mapping `number`, and what `arithmetic` takes of two numbers."""

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.code import Code
from headrace.compiler.decimals import exact
from headrace.operators.map import Map
from headrace.operators.mappings.number import NumberMapping
from tests.doubles import refusals
from tests.examples import examples
from tests.operators.mappings import a_map, arithmetic


def number(*apply, **options):
    return {"type": "number", "from": "x", "apply": [*apply], **options}


@pytest.mark.parametrize(
    ("mapping", "value", "changed"),
    [
        (number("round"), 2.5, 3),
        (number("round"), -2.5, -3),
        (number("round"), 2.4999, 2),
        (number("round"), 0.49999999999999994, 0),
        (number("round"), -0.2, 0),
        (number("round", digits=2), 0.285, 0.29),
        (number("round", digits=2), -0.285, -0.29),
        (number("round", digits=2), 1.005, 1.01),
        (number("round", digits=2), 2.675, 2.68),
        (number("round", digits=2), 2.6749999, 2.67),
        (number("round", digits=1), 0.25, 0.3),
        (number("round", digits=2), -0.001, 0.0),
        (number("round", digits=2), 7, 7),
        (number("round"), 10**400, 10**400),
        (number("round"), 1e22, 10**22),
        (number("round"), 1.7e308, int(1.7e308)),
        (number("round", digits=15), 1.7e308, 1.7e308),
        (number("round", digits=15), 5e-324, 0.0),
        (number("ceil", digits=15), 5e-324, 1e-15),
        (number("floor"), -0.5, -1),
        (number("ceil"), -0.5, 0),
        (number("floor", digits=2), 0.29, 0.29),
        (number("ceil", digits=2), 1.1, 1.1),
        (number("floor", digits=1), -0.25, -0.3),
        (number("abs"), -5, 5),
        (number("abs"), -0.0, 0.0),
        (number("abs", "floor"), -1.5, 1),
        (number("floor", "abs"), -1.5, 2),
        (number("round", digits=2), exact("0.2850"), 0.29),
        (number("abs"), exact("-1.10"), 1.1),
    ],
)
def test_a_number_is_changed_by_the_digits_it_is_written_with(mapped, mapping, value, changed):
    assert repr(mapped(a_map(mapping), {"x": value})) == repr({"x": changed})


EXACT = {"round": ROUND_HALF_UP, "floor": ROUND_FLOOR, "ceil": ROUND_CEILING}
near_the_middle = st.builds(
    lambda whole, digits: float(f"{whole}.{digits}"),
    st.integers(-1000, 1000),
    st.integers(0, 10_000),
)


@examples(1000)
@given(
    st.floats(-1e12, 1e12) | near_the_middle,
    st.sampled_from([*EXACT]),
    st.integers(0, 6),
)
def test_quickly_or_by_its_digits_the_number_is_the_same(value, word, digits):
    mapping = NumberMapping(from_="x", apply=(word,), digits=digits)
    constants = {}
    formula = mapping.source(Code(constants, is_hopeful=True), None, optional=True)
    [quick] = [each for name, each in constants.items() if formula.expression.startswith(name)]
    decimal = Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), EXACT[word])

    assert mapping.made(value) == quick(value) == float(decimal)


@pytest.mark.parametrize("value", ["1", True, [1], {}])
@pytest.mark.parametrize("word", ["abs", "round", "ceil"])
def test_nothing_but_a_number_fits(mapped, word, value):
    failed = mapped(a_map(number(word)), {"x": value})

    assert failed.startswith("mapping 0 ('number'): field 'x' is a")
    assert failed.endswith(": expected a number")


@pytest.mark.parametrize(
    ("mapping", "reasons"),
    [
        (
            number("abs", digits=2),
            ["mappings[0].digits: 'digits' says nothing without round, floor or ceil"],
        ),
        (
            number("round", digits=16),
            [
                "mappings[0].digits: expected an integer of at least 0 and of at most 15, found 16",
            ],
        ),
        (
            number("truncate"),
            ['mappings[0].apply[0]: expected one of abs, round, floor, ceil, found "truncate"'],
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(mapping, reasons):
    assert refusals(Map, a_map(mapping)) == reasons


@pytest.mark.parametrize(
    ("left", "operator", "right", "result"),
    [
        (370, "modulo", 360, 10),
        (-10, "modulo", 360, 350),
        (10, "modulo", -360, -350),
        (5.5, "modulo", 2, 1.5),
        (10**400, "modulo", 7, 10**400 % 7),
        (1, "min", 2, 1),
        (2, "min", 2.0, 2),
        (2.0, "max", 2, 2.0),
        (-1, "max", 1.5, 1.5),
        (10**400, "max", 1.5, 10**400),
    ],
)
@pytest.mark.parametrize("shape", ["fields", "left", "right"])
def test_what_is_left_over_the_smaller_and_the_larger(mapped, shape, left, operator, right, result):
    mapping = arithmetic(
        left if shape == "left" else "l", operator, right if shape == "right" else "r"
    )

    assert repr(mapped(a_map(mapping), {"l": left, "r": right})["out"]) == repr(result)


@pytest.mark.parametrize("zero", [0, 0.0, -0.0])
def test_nothing_is_left_over_by_zero(mapped, zero):
    assert mapped(a_map(arithmetic("l", "modulo", "r")), {"l": 1, "r": zero}) == (
        "mapping 0 ('arithmetic'): field 'r' is zero: nothing can be divided by it"
    )
    assert refusals(Map, a_map(arithmetic("l", "modulo", zero))) == [
        "mappings[0].right.value: cannot divide by zero"
    ]


@pytest.mark.parametrize("operator", ["modulo", "min", "max"])
@pytest.mark.parametrize("value", ["%s", "a", True, [1]])
def test_nothing_but_numbers_is_compared(mapped, operator, value):
    failed = mapped(a_map(arithmetic("l", operator, 2)), {"l": value})

    assert failed.startswith("mapping 0 ('arithmetic'): field 'l' is a")
