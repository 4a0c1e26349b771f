"""Numbers as they were written: which remember it, and what they are to everybody else."""

from copy import deepcopy
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.compiler.decimals import FLOATS, NUMBERS, Written, exact
from headrace.compiler.jsontext import (
    MAX_DEPTH,
    Decoding,
    NotJson,
    decode,
    decode_exact,
    encode,
    encode_lines,
    text,
)
from tests.compiler.jsonvalues import VALUES, damaged, exactly, nest

LONG = "0.123456789012345678901234567890"

spelt = st.from_regex(
    r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,25}([eE][+-]?[0-9]{1,2})?|[eE][+-]?[0-9]{1,2})",
    fullmatch=True,
)
short = st.from_regex(r"-?(0|[1-9][0-9]{0,8})\.[0-9]{1,8}", fullmatch=True)
shortest = st.floats(allow_nan=False, allow_infinity=False).map(repr)


def digits(number):
    """The digits and the scale of a number, as the database gets them."""
    return Decimal(number.text if type(number) is Written else text(number)).as_tuple()


@given(spelt | short | shortest)
@example("-0.0")
@example("0.00001")
@example("0.000099999999999")
@example("99999999999999.9")
@example("10.0")
@example("1e16")
@example("5e-324")
def test_the_digits_and_the_scale_are_those_that_were_written(written):
    number = exact(written)

    assert digits(number) == Decimal(written).as_tuple()
    assert float(number).hex() == float(written).hex()
    assert type(number) in FLOATS


@pytest.mark.parametrize(
    "written", ["5.0", "21.53", "-0.0", "0.00001", "1013.25", "99999999999999.9", "1731000000.125"]
)
def test_where_the_double_gives_them_back_it_is_a_plain_one(written):
    assert type(exact(written)) is float


@pytest.mark.parametrize("written", ["1.10", "0.00", "1e3", "1E-7", "1.5e+2", LONG])
def test_else_it_remembers_them(written):
    number = exact(written)

    assert type(number) is Written
    assert number.text == written


def test_to_everybody_else_it_is_the_double():
    price = Written("1.10")

    assert isinstance(price, float)
    assert type(price) in NUMBERS
    assert price == 1.1
    assert {1.1: "found"}[price] == "found"
    assert repr(price) == str(price) == "1.1"


@pytest.mark.parametrize(
    "calculate",
    [lambda n: n + 1, lambda n: 0 + n, lambda n: n * 1.0, lambda n: n / 1, lambda n: -n, float],
)
def test_what_is_calculated_with_it_is_a_plain_double(calculate):
    assert type(calculate(Written("1.10"))) is float


def test_a_copy_of_it_remembers_as_well():
    assert deepcopy([Written("1.10")])[0].text == "1.10"


# --- as JSON


@given(st.lists(spelt | short, min_size=1, max_size=5))
def test_what_is_decoded_and_encoded_again_is_as_it_was_written(numbers):
    body = ("[" + ",".join(numbers) + "]").encode()

    again = encode(decode_exact(body))

    assert [Decimal(each).as_tuple() for each in again.decode()[1:-1].split(",")] == [
        Decimal(each).as_tuple() for each in numbers
    ]
    assert exactly(decode(again)) == exactly(decode(body))


def test_lines_and_nested_values_show_it_as_it_was_written():
    message = decode_exact(b'{"a":[1.10,{"b":1e3}],"c":2.5}')

    assert encode(message) == b'{"a":[1.10,{"b":1e3}],"c":2.5}'
    assert encode_lines([message, message["a"][0]]) == encode(message) + b"\n1.10\n"


@pytest.mark.parametrize(
    ("written", "shown"), [("1.10", "1.1"), ("1e3", "1000.0"), ("1.0E-5", "0.00001")]
)
def test_its_text_is_that_of_the_double(written, shown):
    assert text(exact(written)) == shown == text(float(written))


@given(VALUES)
def test_apart_from_that_it_is_the_usual_value(value):
    body = encode(value)

    assert encode(decode_exact(body)) == body
    assert decode_exact(body) == decode(body)


def outcome(read, body):
    """The value with its types, numbers as doubles; or the words of the refusal."""
    try:
        return exactly(decode(encode(read(body))))
    except NotJson as refused:
        return str(refused)


@given(damaged())
@example(b"[1e400]")
@example(b'{"a":-1.0e999}')
@example(b"9" * 4301)
@example(b'{"a":"\xff"}')
@example(b'"\\ud800"')
@example(b"[1.]")
def test_what_is_refused_is_refused_in_the_same_words(body):
    assert outcome(decode_exact, body) == outcome(decode, body)


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1" + "0" * 400 + ".5"])
def test_a_number_beyond_the_doubles_is_refused(number):
    with pytest.raises(ValueError, match="Number out of range"):
        exact(number)


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_the_limit_of_nesting_is_the_same(opening, closing):
    assert decode_exact(nest(MAX_DEPTH, opening, closing, b"1.10")) is not None
    for depth in (MAX_DEPTH + 1, 500, 100_000):
        with pytest.raises(NotJson, match="nested deeper than 128"):
            decode_exact(nest(depth, opening, closing, b"1.10"))


@pytest.mark.parametrize("place", [0, 50, 99])
def test_one_of_many_messages_may_be_too_deep(place):
    shallow = nest(8, b"[", b"]", b"1.10")
    for depth, is_deep in ((MAX_DEPTH - 1, False), (MAX_DEPTH, True)):
        messages = [shallow] * 100
        messages[place] = nest(depth, b"[", b"]", b"1.10")
        body = b"[" + b",".join(messages) + b"]"

        if is_deep:
            with pytest.raises(NotJson, match="nested deeper than 128"):
                decode_exact(body)
        else:
            assert encode(decode_exact(body)) == body


@pytest.mark.parametrize("holder", [bytes, bytearray, memoryview])
def test_a_body_may_be_any_kind_of_bytes(holder):
    assert decode_exact(holder(b'{"a":[1.10]}')) == {"a": [1.1]}


def test_a_decoding_is_switched_back_and_forth():
    decoding = Decoding()

    for keeps, kind in [(False, float), (True, Written), (False, float)]:
        decoding.keep_digits(keeps=keeps)
        assert type(decoding.decode(b"1.10")) is type(decoding.decode_usual(b"1.10")) is kind
