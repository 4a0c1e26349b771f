"""What unquoted YAML text and JSON numbers mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.text.diagnostics import Fault
from headrace.compiler.text.scalars import characters, integer, plain, real


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *dict.fromkeys(("true", "True", "TRUE"), True).items(),
        *dict.fromkeys(("false", "False", "FALSE"), False).items(),
        *dict.fromkeys(("", "~", "null", "Null", "NULL")).items(),
        ("42", 42),
        ("-42", -42),
        ("+42", 42),
        ("0010", 10),
        ("0o17", 15),
        ("0xFf", 255),
        ("9" * 30, int("9" * 30)),
        ("1.5", 1.5),
        ("-.5", -0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        ("+12.5E-1", 1.25),
    ],
)
def test_plain_text_is_read_by_the_core_schema(text, value):
    assert plain(text) == value
    assert type(plain(text)) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        *("yes", "no", "on", "off", "y", "n", "tRUE", "nULL", "none"),
        *("2026-03-01", "2026-03-01T08:00:00Z", "12:30", "12:30:45", "190:20:30.15"),
        *("1_000", "0b11", "-0x1f", "0o8", "0x", "1e", "e3", ".", "1.2.3", "inf", "nan", "+.nan"),
        *("=", "<", "-", "١٢", "1 000"),
    ],
)
def test_everything_else_is_a_string(text):
    assert plain(text) == text


@pytest.mark.parametrize("text", [".inf", "-.Inf", "+.INF", ".nan", ".NaN", "1e400", "-1e400"])
def test_what_is_not_finite_is_refused(text):
    assert plain(text) == Fault(
        "number-too-large",
        "this number is not finite",
        expected="a number between -1.8e+308 and 1.8e+308",
    )


@given(st.integers())
def test_whole_numbers_keep_every_digit(number):
    assert plain(str(number)) == integer(str(number)) == number
    assert plain(f"0x{abs(number):x}") == plain(f"0o{abs(number):o}") == abs(number)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_finite_numbers_read_back_the_same(number):
    assert plain(repr(number)) == real(repr(number)) == number


@pytest.mark.parametrize("sign", ["", "-"])
def test_whole_numbers_have_at_most_4300_digits(sign):
    longest = sign + "9" * 4300

    assert str(integer(longest)) == longest
    assert integer(f"{longest}9") == Fault(
        "number-too-large",
        "a whole number has at most 4,300 digits",
    )


def test_a_hexadecimal_number_that_could_not_be_written_back_is_refused():
    assert isinstance(plain("0x" + "f" * 4300), Fault)


def test_half_a_surrogate_pair_is_no_character():
    assert characters("\U0001f600") == "\U0001f600"
    assert characters("a\ud83d") == Fault("lone-surrogate", r"\ud83d is half of a character")
