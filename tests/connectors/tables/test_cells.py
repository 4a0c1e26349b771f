"""Cells: what each type of column takes and refuses, in whole texts, value by value."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from headrace.compiler import jsontext
from headrace.connectors.tables import cells, moments
from headrace.connectors.tables.cells import Cell, Misfit
from headrace.connectors.tables.columns import CELLS

NAN, INFINITY = float("nan"), float("inf")
ENDLESS = pytest.param(10**5000, id="endless")  # which has no text of its own to be called by
HALF = "a\ud800b"
DEEPLY: list = []
for _ in range(100_000):
    DEEPLY = [DEEPLY]


def exact(text):
    """Return a number as a pipeline with a decimal column decodes it."""
    return jsontext.decode_exact(text.encode())


def told(cell, value):
    """Return why a cell refuses a value."""
    with pytest.raises(Misfit) as refusal:
        cell.one(value)
    assert surprised(cell, value), "the usual way takes what the plain one refuses"
    return str(refusal.value)


def surprised(cell, value):
    try:
        cell.many([value], {type(value)})
    except Exception:
        return True
    return False


def taken(cell: Cell, value, expected):
    """Assert what a cell makes of a value, to the type and the last digit, in either way."""
    assert repr(cell.one(value)) == repr(expected)
    if not surprised(cell, value):
        assert repr(cell.many([value], {type(value)})) == repr([expected])


def usually(type_, values):
    """Return what the usual way makes of a column: a usual one is not left to the plain way."""
    cell = CELLS[type_]
    return cell.many(values, set(map(type, values)))


NO_NUMBERS = [
    (True, "a boolean"),
    ("1", "a string"),
    ([1], "a list"),
    ({"a": 1}, "an object"),
]
NO_STRINGS = [
    (True, "a boolean"),
    (7, "a number"),
    (7.5, "a number"),
    (exact("7.50"), "a number"),
    (["a"], "a list"),
    ({"a": "b"}, "an object"),
]


# Text


@pytest.mark.parametrize("value", ["", "oven", "Größe", "\U0001f525", "a\nb", "\0", "null"])
def test_text_takes_strings_as_they_are(value):
    taken(CELLS["text"], value, value)


@pytest.mark.parametrize(("value", "found"), NO_STRINGS)
def test_text_takes_nothing_else(value, found):
    assert told(CELLS["text"], value) == f"expected a string, found {found}"


def test_text_is_made_of_whole_characters():
    expected = "expected a string, found one with half a character (a lone surrogate)"

    assert told(CELLS["text"], HALF) == expected
    assert told(CELLS["text"], "\udc00") == expected


def test_a_database_may_take_no_nul_in_text():
    assert (
        told(cells.text(nul=False), "a\0b") == "expected a string, found one with a NUL character"
    )
    taken(cells.text(nul=False), "a\\0", "a\\0")


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


# Booleans


def test_a_boolean_is_true_or_false():
    taken(CELLS["boolean"], True, True)
    taken(CELLS["boolean"], False, False)


@pytest.mark.parametrize(
    ("value", "found"),
    [(1, "a number"), (0, "a number"), (0.0, "a number"), ("true", "a string"), ([], "a list")],
)
def test_nothing_else_is_a_boolean(value, found):
    assert told(CELLS["boolean"], value) == f"expected a boolean, found {found}"


# Moments


def at(*parts, hours=0, minutes=0):
    offset = timedelta(hours=hours, minutes=minutes)
    return datetime(*parts, tzinfo=timezone(offset) if offset else UTC)


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("2026-03-01T08:00:00Z", at(2026, 3, 1, 8)),
        ("2026-03-01t08:00:00z", at(2026, 3, 1, 8)),
        ("2026-03-01 08:00:00Z", at(2026, 3, 1, 8)),
        ("2026-03-01T08:00:00.5Z", at(2026, 3, 1, 8, 0, 0, 500_000)),
        ("2026-03-01T08:00:00,5Z", at(2026, 3, 1, 8, 0, 0, 500_000)),
        ("2026-03-01T08:00:00.123456789Z", at(2026, 3, 1, 8, 0, 0, 123_456)),
        ("2026-03-01T08:00:00.999999999999Z", at(2026, 3, 1, 8, 0, 0, 999_999)),
        ("2026-03-01T08:00:00+01:00", at(2026, 3, 1, 8, hours=1)),
        ("2026-03-01T08:00:00-23:59", at(2026, 3, 1, 8, hours=-23, minutes=-59)),
        ("2026-03-01T08:00:00-00:00", at(2026, 3, 1, 8)),
        ("2026-03-01T08:00:00+0530", at(2026, 3, 1, 8, hours=5, minutes=30)),
        ("2026-03-01T08:00:00+01", at(2026, 3, 1, 8, hours=1)),
        ("2026-03-01T08:00Z", at(2026, 3, 1, 8)),
        ("2026-03-01T08:00:00", at(2026, 3, 1, 8)),
        ("2026-03-01 08:00", at(2026, 3, 1, 8)),
        ("2026-03-01", at(2026, 3, 1)),
        ("2024-02-29T00:00:00Z", at(2024, 2, 29)),
        ("2016-12-31T23:59:60Z", at(2017, 1, 1)),
        ("2016-12-31T23:59:60.5Z", at(2017, 1, 1, 0, 0, 0, 500_000)),
        ("2017-01-01T00:59:60+01:00", at(2017, 1, 1, 1, hours=1)),
        ("2026-03-01T24:00:00Z", at(2026, 3, 2)),
        ("2026-03-01T24:00:00.0000001+01:00", at(2026, 3, 2, hours=1)),
        ("2026-03-01T24:00", at(2026, 3, 2)),
        ("0001-01-01T00:00:00Z", at(1, 1, 1)),
        ("9999-12-31T23:59:59.999999Z", at(9999, 12, 31, 23, 59, 59, 999_999)),
        (0, at(1970, 1, 1)),
        (1_772_352_000, at(2026, 3, 1, 8)),
        (1_772_352_000.25, at(2026, 3, 1, 8, 0, 0, 250_000)),
        (exact("1772352000.250"), at(2026, 3, 1, 8, 0, 0, 250_000)),
        (-0.5, at(1969, 12, 31, 23, 59, 59, 500_000)),
        (9_000_000_000, at(2255, 3, 14, 16)),
        (-9e9, at(1684, 10, 19, 8)),
    ],
)
def test_a_timestamp_is_iso_8601_or_seconds(value, moment):
    taken(CELLS["timestamp"], value, moment)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "now",
        "infinity",
        "2026",
        "2026-03",
        "2026-3-1",
        "20260301T080000Z",
        "20260301",
        "2026-W09-7T08:00Z",
        "2026-060",
        "2026-03-01T08",
        "2026-03-01T08Z",
        "2026-03-01T08:00:00.Z",
        "2026-03-01T08:00:00 Z",
        "2026-03-01T08:00.5Z",
        "2026-03-01_08:00:00Z",
        "2026-03-01T08:00:00+1",
        "2026-03-01T08:00:00+01:00:00",
        "2026-03-01T08:00:00Z\n",
        " 2026-03-01T08:00:00Z",
        "2026-03-01Z",
        "+2026-03-01T08:00:00Z",
        "-2026-03-01T08:00:00Z",
        "12026-03-01T08:00:00Z",
        "\u0662026-03-01T08:00:00Z",
        "Sun, 01 Mar 2026 08:00:00 GMT",
        "1772352000",
    ],
)
def test_a_string_of_another_form_is_no_timestamp(value):
    assert told(CELLS["timestamp"], value) == "expected an ISO 8601 timestamp, found another string"


@pytest.mark.parametrize(
    "value",
    [
        "2026-02-29",
        "2026-13-01T08:00:00Z",
        "0000-01-01T00:00:00Z",
        "2026-03-01T25:00:00Z",
        "2026-03-01T24:00:01Z",
        "2026-03-01T24:00:00.000001Z",
        "2026-03-01T24:01Z",
        "2026-03-01T08:60:00Z",
        "2026-03-01T08:00:61Z",
        "2026-03-01T08:00:60Z",
        "2026-03-01T08:00:00+24:00",
        "2026-03-01T08:00:00+01:60",
        "9999-12-31T23:59:60Z",
        "9999-12-31T24:00:00Z",
    ],
)
def test_a_timestamp_is_in_the_calendar_and_on_the_clock(value):
    assert told(CELLS["timestamp"], value) == (
        "expected an ISO 8601 timestamp, found one that no calendar or clock shows"
    )


@pytest.mark.parametrize("value", [9_000_000_001, -9_000_000_001, 1.7e12, 10**400, NAN, INFINITY])
def test_milliseconds_are_no_seconds(value):
    assert told(CELLS["timestamp"], value) == (
        "expected at most 9000000000 seconds from 1970, found more"
    )


@pytest.mark.parametrize(
    ("value", "found"), [(True, "a boolean"), ([0], "a list"), ({"s": 0}, "an object")]
)
def test_nothing_else_is_a_timestamp(value, found):
    assert told(CELLS["timestamp"], value) == (
        f"expected a timestamp in a string, or seconds, found {found}"
    )


def test_timestamps_lie_between_two_days_in_utc():
    cell = moments.timestamp("1900-01-01", "2299-12-31")
    text = "expected a timestamp from 1900-01-01 to 2299-12-31, found another one"

    for value in (
        "1900-01-01T00:00:00Z",
        "1899-12-31T23:00:00-01:00",
        "2299-12-31T23:59:59.999999Z",
        "2300-01-01T00:59:59+01:00",
        -2_208_988_800,
    ):
        taken(cell, value, cell.one(value))
    for value in (
        "1899-12-31T23:59:59Z",
        "1900-01-01T00:59:59+01:00",
        "2300-01-01T00:00:00Z",
        "2299-12-31T23:00:00-01:00",
        -2_208_988_800.5,
    ):
        assert told(cell, value) == text
    for value in ("0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01"):
        assert told(CELLS["timestamp"], value) == (
            "expected a timestamp from 0001-01-01 to 9999-12-31, found another one"
        )


# Dates


@pytest.mark.parametrize("value", ["2026-03-01", "0001-01-01", "9999-12-31", "2024-02-29"])
def test_a_date_is_a_day_of_the_calendar(value):
    taken(CELLS["date"], value, date(*map(int, value.split("-"))))


@pytest.mark.parametrize(
    "value",
    ["", "2026-3-1", "20260301", "2026-W09-7", "2026-03-01T08:00:00Z", "01.03.2026", " 2026-03-01",
     "2026-03-01\n", "2026/03/01", "\u0662026-03-01"],
)  # fmt: skip
def test_a_string_of_another_form_is_no_date(value):
    assert told(CELLS["date"], value) == "expected a date as YYYY-MM-DD, found another string"


@pytest.mark.parametrize("value", ["2026-02-29", "2026-00-01", "2026-13-01", "0000-01-01"])
def test_a_date_is_in_the_calendar(value):
    assert told(CELLS["date"], value) == (
        "expected a date as YYYY-MM-DD, found one that is in no calendar"
    )


@pytest.mark.parametrize(("value", "found"), NO_STRINGS)
def test_nothing_else_is_a_date(value, found):
    assert told(CELLS["date"], value) == f"expected a date in a string, found {found}"


def test_dates_lie_between_two_days():
    cell = moments.date("1900-01-01", "2299-12-31")

    taken(cell, "1900-01-01", date(1900, 1, 1))
    taken(cell, "2299-12-31", date(2299, 12, 31))
    for value in ("1899-12-31", "2300-01-01"):
        assert (
            told(cell, value) == "expected a date from 1900-01-01 to 2299-12-31, found another one"
        )


# UUIDs


@pytest.mark.parametrize(
    "value", ["123e4567-e89b-12d3-a456-426614174000", "FFFFFFFF-0000-0000-0000-00000000000A"]
)
def test_a_uuid_has_five_groups_of_hexadecimal_digits(value):
    taken(CELLS["uuid"], value, value)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "123e4567e89b12d3a456426614174000",
        "{123e4567-e89b-12d3-a456-426614174000}",
        "urn:uuid:123e4567-e89b-12d3-a456-426614174000",
        "123e4567-e89b-12d3-a456-42661417400",
        "123g4567-e89b-12d3-a456-426614174000",
        "123e4567-e89b-12d3-a456-426614174000\n",
        "123e4567-e89b-12d3-a456-426614174000\n123e4567-e89b-12d3-a456-426614174000",
    ],
)
def test_another_string_is_no_uuid(value):
    assert told(CELLS["uuid"], value) == (
        "expected 8-4-4-4-12 hexadecimal digits, found another string"
    )


@pytest.mark.parametrize(("value", "found"), NO_STRINGS)
def test_nothing_else_is_a_uuid(value, found):
    assert told(CELLS["uuid"], value) == f"expected a UUID in a string, found {found}"


# JSON


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, b"null"),
        (True, b"true"),
        (8, b"8"),
        (42.0, b"42.0"),
        (exact("1.10"), b"1.10"),
        (10**30, b"1" + b"0" * 30),
        ("Gr\u00f6\u00dfe\n\0", b'"Gr\xc3\xb6\xc3\x9fe\\n\\u0000"'),
        ({"b": [1, {"a": None}], "a": {}}, b'{"b":[1,{"a":null}],"a":{}}'),
        ([INFINITY, NAN], b"[null,null]"),
    ],
)
def test_json_takes_anything(value, text):
    taken(CELLS["json"], value, text)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"a": [HALF]}, "a string with half a character (a lone surrogate)"),
        ([10**5000], "an integer of more than 4,300 digits"),
        (DEEPLY, "a value that is nested too deeply"),
    ],
    ids=["surrogate", "digits", "depth"],
)
def test_what_cannot_be_written_is_no_json(value, found):
    assert told(CELLS["json"], value) == f"expected JSON, found {found}"


@pytest.mark.parametrize("value", ["\0", {"a\0": 1}, [{"a": ["\0"]}]])
def test_a_database_may_take_no_nul_in_json(value):
    cell = cells.json(nul=False)

    assert told(cell, value) == "expected JSON, found a string with a NUL character"


def test_a_backslash_before_the_letters_of_a_nul_is_none():
    taken(cells.json(nul=False), {"path\\u0000": "\\u0000"}, rb'{"path\\u0000":"\\u0000"}')


# Whole columns


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("text", ["oven", "Größe"]),
        ("integer", [1, -5]),
        ("bigint", [2**40, 0]),
        ("float", [1.5, 2.5]),
        ("float", [1.5, 2]),
        ("float", [exact("1.50"), 1.5]),
        ("decimal", [1.5, 20]),
        ("decimal", [exact("1.50"), 1.5, 3]),
        ("boolean", [True, False]),
        ("timestamp", ["2026-03-01T08:00:00Z", "2026-03-01T08:00:00.123Z"]),
        ("timestamp", ["2026-03-01T08:00:00+01:00", "2026-03-01 08:00:00.5-05:30"]),
        ("timestamp", ["2026-03-01T08:00:00", "2026-03-01 08:00"]),
        ("timestamp", [1_772_352_000, 1_772_352_000.5]),
        ("date", ["2026-03-01", "2024-02-29"]),
        ("uuid", ["123e4567-e89b-12d3-a456-426614174000", "FFFFFFFF-0000-0000-0000-00000000000A"]),
        ("json", [{"a": "b\nc"}, None, [1]]),
    ],
)
def test_a_usual_column_goes_the_usual_way(type_, values):
    assert repr(usually(type_, values)) == repr([*map(CELLS[type_].one, values)])
