"""Every row of the cast table."""

import gc
from time import thread_time

import pytest

from headrace.compiler.casts import CASTS, LONGEST, CastError, float_with_comma
from tests.slowness import shortest, slowness

SECONDS = 1772352000
"""2026-03-01T08:00:00 in UTC."""


@pytest.mark.parametrize(
    ("to", "value", "gives"),
    [
        ("text", "as it is ", "as it is "),
        ("text", 5, "5"),
        ("text", 10**30, "1" + "0" * 30),
        ("text", 42.0, "42.0"),
        ("text", 0.1, "0.1"),
        ("text", -0.0, "-0.0"),
        ("text", 1e16, "1e16"),
        ("text", 1e-5, "0.00001"),
        ("text", -9.9e-5, "-0.000099"),
        ("text", 1e-6, "1e-6"),
        ("text", True, "true"),
        ("text", False, "false"),
        ("integer", 5, 5),
        ("integer", -(10**30), -(10**30)),
        ("integer", 12.0, 12),
        ("integer", -0.0, 0),
        ("integer", 1e18, 10**18),
        ("integer", "42", 42),
        ("integer", " -42\n", -42),
        ("integer", "+7", 7),
        ("integer", "007", 7),
        ("integer", "123456789012345678901234567890", 123456789012345678901234567890),
        ("float", 5, 5),
        ("float", 5.5, 5.5),
        ("float", " 5 ", 5.0),
        ("float", "-1.5e3", -1500.0),
        ("float", ".5", 0.5),
        ("float", "5.", 5.0),
        ("float", "+1E-2", 0.01),
        ("boolean", True, True),
        ("boolean", False, False),
        ("boolean", 1, True),
        ("boolean", 0, False),
        ("boolean", " TRUE ", True),
        ("boolean", "fAlse", False),
        ("timestamp", "2026-03-01 08:00:00.5+05:30", "2026-03-01T08:00:00.500+05:30"),
        ("timestamp", "2026-03-01T08:00:00Z", "2026-03-01T08:00:00+00:00"),
        ("timestamp", "2026-03-01", "2026-03-01T00:00:00+00:00"),
        ("timestamp", SECONDS, "2026-03-01T08:00:00+00:00"),
        ("timestamp", SECONDS + 0.25, "2026-03-01T08:00:00.250+00:00"),
        ("date", "2026-03-01", "2026-03-01"),
        ("date", "2026-03-01T23:30:00-08:00", "2026-03-01"),
        ("date", "2026-03-01T00:30:00+12:00", "2026-03-01"),
        ("date", SECONDS, "2026-03-01"),
        ("date", -0.5, "1969-12-31"),
        (
            "uuid",
            " 6BA7B810-9dad-11D1-80b4-00C04FD430C8 ",
            "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        ),
        ("json", '{"a": [1, 2.0, null]}', {"a": [1, 2.0, None]}),
        ("json", " true ", True),
        ("json", "12345678901234567890123", 12345678901234567890123),
        ("json", '"größe"', "größe"),
        ("json", "null", None),
    ],
)
def test_what_converts(to, value, gives):
    # By repr: 1, 1.0 and True are equal and not the same.
    assert repr(CASTS[to](value)) == repr(gives)


LONG = {
    "integer": ("7", " ", 7),
    "float": ("7", " ", 7.0),
    "boolean": ("true", " ", True),
    "timestamp": ("2026-03-01T08:00:00.0Z", "", None),
    "date": ("2026-03-01T08:00:00.0Z", "", None),
    "uuid": ("6ba7b810-9dad-11d1-80b4-00c04fd430c8", " ", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
    "json": ("[1]", " ", [1]),
}


@pytest.mark.parametrize("to", [to for to in CASTS if to != "text"])
def test_a_text_converts_that_is_not_too_long(to):
    word, filling, gives = LONG[to]
    if filling:
        longest = word.ljust(LONGEST)
    else:
        longest = word.replace(".0", "." + "0" * (LONGEST - len(word) + 1))
        gives = CASTS[to](word)
    longer = longest.replace(filling or "0", 2 * (filling or "0"), 1)

    assert len(longest) == LONGEST == len(longer) - 1
    assert CASTS[to](longest) == gives
    with pytest.raises(CastError, match=r"expected at most 131,072 characters$"):
        CASTS[to](longer)


def test_a_text_is_one_however_long_it_is():
    assert CASTS["text"]("a" * (LONGEST + 1)) == "a" * (LONGEST + 1)


def test_so_does_a_number_with_a_comma():
    assert float_with_comma("7,5".ljust(LONGEST)) == 7.5
    with pytest.raises(CastError, match=r"expected at most 131,072 characters$"):
        float_with_comma("7,5".ljust(LONGEST + 1))


def _filled(item):
    return f"[{','.join([item] * ((LONGEST - 1) // (len(item) + 1)))}]"


@pytest.mark.timed
@pytest.mark.parametrize(
    "text",
    [
        _filled("1e308"),
        _filled("5e-324"),
        _filled("[]"),
        _filled("[[[[[[[[[[]]]]]]]]]]"),
        _filled("1"),
    ],
    ids=["large", "small", "lists", "nested", "usual"],
)
def test_json_takes_less_than_20_milliseconds_whatever_it_is(text):
    def seconds():
        gc.collect()
        began = thread_time()
        made = CASTS["json"](text)
        took = thread_time() - began
        assert len(made) > 1
        return took

    assert shortest(seconds, 0.02, times=5) < 0.02 * slowness()


A_LIST, AN_OBJECT = [1], {"a": 1}


@pytest.mark.parametrize(
    ("to", "value"),
    [
        *[("text", value) for value in (A_LIST, AN_OBJECT, None)],
        *[("integer", value) for value in (A_LIST, AN_OBJECT, None, True, False, 1.5)],
        *[("integer", float(word)) for word in ("inf", "nan")],
        *[("integer", word) for word in ("", " ", "12.0", "1e3", "1_000", "0x10", "- 1", "--1")],
        *[
            ("integer", word)
            for word in ("\N{FULLWIDTH DIGIT ONE}", "1 2", "true", "+", "1" * 5000)
        ],
        *[("float", value) for value in (A_LIST, AN_OBJECT, None, True)],
        *[("float", word) for word in ("", "nan", "NaN", "inf", "-Infinity", "1e400", "1_0")],
        *[
            ("float", word)
            for word in (".", "e5", "1e", "0x1p3", "1,5", "\N{ARABIC-INDIC DIGIT THREE}", "1.5.2")
        ],
        *[("boolean", value) for value in (A_LIST, AN_OBJECT, None, 2, -1, 1.0, 0.0)],
        *[("boolean", word) for word in ("", "yes", "no", "on", "1", "0", "t")],
        *[("timestamp", value) for value in (A_LIST, AN_OBJECT, None, True, 9.1e9, SECONDS * 1000)],
        *[("timestamp", word) for word in ("", "2026-03-01T08:00:00", "2026-W09-7", str(SECONDS))],
        *[("timestamp", word) for word in ("20260301T080000Z", " 2026-03-01", "2026-02-30")],
        *[("date", value) for value in (A_LIST, AN_OBJECT, None, False, "01.03.2026", "2026-03")],
        *[("uuid", value) for value in (A_LIST, AN_OBJECT, None, 5, "")],
        ("uuid", "6ba7b8109dad11d180b400c04fd430c8"),
        ("uuid", "{6ba7b810-9dad-11d1-80b4-00c04fd430c8}"),
        ("uuid", "urn:uuid:6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
        ("uuid", "6ba7b810-9dad-11d1-80b4-00c04fd430cg"),
        *[("json", value) for value in (A_LIST, AN_OBJECT, None, 5, True)],
        *[("json", word) for word in ("", "{", "NaN", "1e400", "{'a': 1}", "1 2", '"\ud800"')],
    ],
)
def test_what_does_not_convert(to, value):
    with pytest.raises(CastError):
        CASTS[to](value)


@pytest.mark.parametrize(
    ("to", "value", "message"),
    [
        ("text", A_LIST, "cannot read a list as text: expected a string, number or boolean"),
        pytest.param(
            *("text", 10**5000, "cannot read a number as text: expected at most 4,300 digits"),
            id="more digits than pytest can show",
        ),
        (
            "integer",
            "1e3",
            "cannot read a string as an integer: expected a whole number, or its digits in a string",
        ),
        (
            "integer",
            "1" * 5000,
            "cannot read a string as an integer: expected at most 4,300 digits",
        ),
        (
            "float",
            "nan",
            "cannot read a string as a float: expected a number within the range of doubles, "
            "or one in a string",
        ),
        ("boolean", 1.0, "cannot read a number as a boolean: expected true, false, 1 or 0"),
        (
            "timestamp",
            "soon",
            "cannot read a string as a timestamp: expected RFC 3339 with an offset, YYYY-MM-DD, "
            "or seconds since 1970 up to 9e9 (the mapping 'time' reads others)",
        ),
        ("date", True, "cannot read a boolean as a date: expected a string or a number of seconds"),
        (
            "uuid",
            AN_OBJECT,
            "cannot read an object as a uuid: expected 8-4-4-4-12 hexadecimal digits",
        ),
        ("json", "{", "cannot read a string as JSON: expected well-formed JSON"),
        ("json", 5, "cannot read a number as JSON: expected a string that holds JSON"),
    ],
)
def test_an_error_tells_types_and_never_the_value(to, value, message):
    with pytest.raises(CastError) as error:
        CASTS[to](value)

    assert str(error.value) == message


def test_every_cast_type_of_the_specification_is_there():
    assert list(CASTS) == [
        "text", "integer", "float", "boolean", "timestamp", "date", "uuid", "json",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "number"), [("12,5", 12.5), (" -3 ", -3.0), (",5", 0.5), ("1,5e3", 1500.0), (7, 7)]
)
def test_a_float_may_have_a_comma_before_its_decimals(value: object, number: float) -> None:
    assert float_with_comma(value) == number


@pytest.mark.parametrize("value", ["1.5", "1.234,5", "1,2,3", "", True, None, ["1,5"]])
def test_a_point_is_none_where_a_comma_is(value: object) -> None:
    with pytest.raises(CastError):
        float_with_comma(value)
