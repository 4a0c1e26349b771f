"""Cells of numbers: integers, doubles and decimals, value by value."""

from __future__ import annotations

from decimal import Decimal

import pytest

from headrace.compiler import jsontext
from headrace.connectors.tables import cells
from headrace.connectors.tables.columns import CELLS
from tests.connectors.tables.fitted import ENDLESS, INFINITY, NAN, NO_NUMBERS, exact, taken, told

# Integers


@pytest.mark.parametrize(("type_", "bits"), [("integer", 32), ("bigint", 64)])
def test_integers_have_so_many_bits(type_, bits):
    limit = 2 ** (bits - 1)

    for value in (0, -1, limit - 1, -limit):
        taken(CELLS[type_], value, value)
    for value in (limit, -limit - 1, 10**400, -(10**5000)):
        assert (
            told(CELLS[type_], value) == f"expected an integer of {bits} bits, found a larger one"
        )


@pytest.mark.parametrize("type_", ["integer", "bigint"])
@pytest.mark.parametrize(
    "value", [5.5, 12.0, -0.0, 1e3, exact("1e3"), exact("12.00"), NAN, INFINITY]
)
def test_a_number_with_a_point_or_an_exponent_is_no_integer(type_, value):
    assert told(CELLS[type_], value) == (
        "expected an integer, found a number with a point or an exponent"
    )


@pytest.mark.parametrize("type_", ["integer", "bigint"])
@pytest.mark.parametrize(("value", "found"), NO_NUMBERS)
def test_nothing_else_is_an_integer(type_, value, found):
    assert told(CELLS[type_], value) == f"expected an integer, found {found}"


# Doubles


@pytest.mark.parametrize(
    ("value", "double"),
    [
        (8, 8.0),
        (0.1, 0.1),
        (-0.0, -0.0),
        (5e-324, 5e-324),
        (1.7976931348623157e308, 1.7976931348623157e308),
        (2**53 + 1, 2.0**53),
        (10**308, 1e308),
        (exact("1.10"), 1.1),
        (exact("1e-1000000"), 0.0),
    ],
)
def test_a_float_is_any_number_as_the_double_nearest_to_it(value, double):
    taken(CELLS["float"], value, double)


def test_doubles_of_a_sum_beyond_doubles_are_taken():
    huge = 1.7976931348623157e308
    row = [huge, huge]

    assert [*map(CELLS["float"].one, row)] == row


@pytest.mark.parametrize("value", [10**309, -(10**309), ENDLESS])
def test_a_float_is_within_the_range_of_doubles(value):
    assert told(CELLS["float"], value) == (
        "expected a number, found one beyond the range of doubles"
    )


@pytest.mark.parametrize("type_", ["float", "decimal"])
@pytest.mark.parametrize("value", [NAN, INFINITY, -INFINITY])
def test_a_number_is_finite(type_, value):
    assert told(CELLS[type_], value) == "expected a number, found one that is not finite"


@pytest.mark.parametrize("type_", ["float", "decimal"])
@pytest.mark.parametrize(("value", "found"), NO_NUMBERS)
def test_nothing_else_is_a_number(type_, value, found):
    assert told(CELLS[type_], value) == f"expected a number, found {found}"


# Decimals


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "7",
        "-7",
        "1.10",
        "-0.0",
        "0.00",
        "0.1",
        "0.10",
        "42.0",
        "100",
        "1e3",
        "1E3",
        "1.50e2",
        "2.5e-7",
        "0.00001",
        "0.000012",
        "1e16",
        "1e22",
        "123456789012345678901234567890.123456789012345678901234567890",
        "9007199254740993",
        "1e-16383",
        "0.1e-16382",
        "1.7976931348623157e308",
        "5e-324",
    ],
)
def test_a_decimal_has_the_digits_that_were_written(text):
    taken(CELLS["decimal"], exact(text), Decimal(text))


def test_digits_of_a_plain_double_are_those_of_its_json_text():
    for value in (0.1, 1e-5, 2.5e-5, 1e16, 1.2345678901234568e20, 21.333333333333332, 1 / 3):
        taken(CELLS["decimal"], value, Decimal(jsontext.text(value)))


def test_an_integer_may_have_more_digits_than_python_writes():
    assert CELLS["decimal"].one(10**5000) == Decimal(10) ** 5000


def test_zero_has_no_digits_before_its_own():
    for text in ("0e5", "0e131072", "-0e999999"):
        taken(CELLS["decimal"], exact(text), Decimal(0))


TOO_LONG = (
    "expected a number of at most 131,072 digits before its point and 16,383 after it,"
    " found one of more"
)


@pytest.mark.parametrize(
    "text",
    [
        "1e-16384",
        "1e-1000000",
        "1.5e-16383",
        "1e-999999999999999999999999",
        "0e999999999999999999999",
    ],
)
def test_digits_are_bounded(text):
    assert told(CELLS["decimal"], exact(text)) == TOO_LONG


@pytest.mark.long
def test_digits_before_the_point_are_bounded():
    cell = cells.decimal(before=3, after=2)
    text = (
        "expected a number of at most 3 digits before its point and 2 after it, found one of more"
    )

    for value in ("999", "999.99", "-999.9", "0.01", "9.99e2", "0", "0.000", "0e-9"):
        exact_digits = exact(value)
        taken(cell, exact_digits, cell.one(exact_digits))
    for value in ("1000", "1e3", "0.001", "-0.009", "999.999", "1e-3", "123456"):
        assert told(cell, exact(value)) == text
    assert told(CELLS["decimal"], 10**131_072) == TOO_LONG


def test_zeros_after_the_last_digit_are_no_reason_to_refuse():
    cell = cells.decimal(before=3, after=2)

    taken(cell, exact("1.5000"), Decimal("1.50"))
    taken(cell, exact("0e-1000000"), Decimal("0.00"))


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("1.10", "1.10"),
        ("-0.0", "-0.0"),
        ("8", "8"),
        ("1e3", "1000"),
        ("1.50e-3", "0.00150"),
        ("2.5e-7", "0.00000025"),
        ("0.0000001", "0.0000001"),
        ("0e20000", "0"),
        ("123456789012345678901234567890.10", "123456789012345678901234567890.10"),
    ],
)
def test_a_decimal_may_go_over_as_text_without_an_exponent(text, plain):
    taken(cells.decimal_text(), exact(text), plain)


def test_the_text_of_a_decimal_has_the_same_bounds():
    assert told(cells.decimal_text(), exact("1e-20000")) == TOO_LONG
