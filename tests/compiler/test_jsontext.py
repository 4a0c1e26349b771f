"""Messages as JSON text: what is taken, what is refused, and how a value is written."""

import json
import math
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.compiler import jsontext
from headrace.compiler.jsontext import (
    MAX_DEPTH,
    NotJson,
    decode,
    encode,
    encode_lines,
    text,
)
from headrace.compiler.slownumbers import UNSEEN
from tests.compiler.jsonvalues import VALUES, damaged, exactly, nest

# --- what comes in


@given(VALUES)
def test_what_is_written_reads_back_with_its_types(value):
    assert exactly(decode(encode(value))) == exactly(value)


def refuse_constant(name):
    raise ValueError(name)


def finite(digits):
    number = float(digits)
    if math.isinf(number):
        raise ValueError(digits)
    return number


def plainly(body):
    """The rules once more, slow and obvious, over the standard library."""
    value = json.loads(body.decode(), parse_constant=refuse_constant, parse_float=finite)
    json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate cannot be encoded
    return value


@given(damaged())
@example(b'{"a":1,"b":2,"a":3}')
@example(b"[-0,-0.0,1e-400,123456789012345678901234567890]")
@example(b"9" * 4300)
@example(b"9" * 4301)
def test_takes_and_refuses_what_the_standard_library_does_under_our_rules(body):
    try:
        wanted = exactly(plainly(body))
    except ValueError:
        with pytest.raises(NotJson):
            decode(body)
    else:
        assert exactly(decode(body)) == wanted


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"NaN", "JSON is malformed: invalid character (byte 0)"),
        (b'{"a":Infinity}', "JSON is malformed: invalid character (byte 5)"),
        (b"[-Infinity]", "JSON is malformed: invalid character (byte 2)"),
        (b'{"a":[1e400]}', "Number out of range - at `$[...][0]`"),
        (b'{"a":-1e400}', "Number out of range - at `$[...]`"),
        (b"[" + b"9" * 4301 + b"]", "Integer value out of range - at `$[0]`"),
        (b'"\\ud800"', "Input data was truncated"),
        (
            b'["\\ud800 and more"]',
            "JSON is malformed: unexpected end of escaped utf-16 surrogate pair (byte 8)",
        ),
        (b'{"\\udc00\\ud800":1}', "JSON is malformed: invalid utf-16 surrogate pair (byte 8)"),
        (b'{"a":1} x', "JSON is malformed: trailing characters (byte 9)"),
        (b'{"a":1}{"a":2}', "JSON is malformed: trailing characters (byte 8)"),
        (b"\xef\xbb\xbf{}", "JSON is malformed: invalid character (byte 0)"),
        (b'{"a":"\xff"}', "not UTF-8"),
        (b'{"\xed\xa0\x80":1}', "not UTF-8"),
        (b"", "Input data was truncated"),
        (b"  ", "Input data was truncated"),
        (b'{"a":', "Input data was truncated"),
        (b"[1,]", "JSON is malformed: trailing comma in array (byte 3)"),
        (b"{'a':1}", "JSON is malformed: object keys must be strings (byte 1)"),
        (b"01", "JSON is malformed: invalid number (byte 1)"),
    ],
)
def test_malformed_text_is_refused_with_the_place(body, reason):
    with pytest.raises(NotJson) as refused:
        decode(body)

    assert str(refused.value) == reason


@pytest.mark.parametrize(
    "body", [b'{"password":"hunter2', b'{"password":"hunter2\xff"}', b'{"hunter2":[1e400]}']
)
def test_a_refusal_quotes_nothing_of_the_payload(body):
    with pytest.raises(NotJson) as refused:
        decode(body)

    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("holder", [bytes, bytearray, memoryview])
def test_a_body_may_be_any_kind_of_bytes(holder):
    assert decode(holder(b'{"a":[1]}')) == {"a": [1]}


def test_of_a_repeated_key_the_last_value_counts():
    assert decode(b'{"a":1,"b":2,"a":3}') == {"a": 3, "b": 2}


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        (b"[", b"]"),
        (b'{"a":', b"}"),
        (b'[0,"]]]]",', b',"[[[["]'),
        (b'{"\\"}}":"{", "a": ', b' ,"z":"}"}'),
    ],
)
def test_a_message_nests_128_deep_and_no_deeper(opening, closing):
    assert decode(nest(MAX_DEPTH, opening, closing)) is not None
    for depth in (MAX_DEPTH + 1, 500, 100_000):
        with pytest.raises(NotJson, match="nested deeper than 128"):
            decode(nest(depth, opening, closing))


def test_an_empty_list_or_object_counts_as_a_level():
    for empty in (b"[]", b"{}"):
        decode(nest(MAX_DEPTH - 1, b"[", b"]", empty))
        with pytest.raises(NotJson):
            decode(nest(MAX_DEPTH, b"[", b"]", empty))


def test_a_text_that_never_closes_is_refused_by_its_depth():
    with pytest.raises(NotJson, match="nested deeper than 128"):
        decode(b'{"a":' * 100_000)


def test_the_list_around_a_batch_counts_as_a_level():
    flat = [b'{"machine":"press-1","note":"[[[[{{{{"}'] * 1000

    def batch(depth):
        return b"[" + b",".join([*flat, nest(depth, b"[", b"]"), *flat]) + b"]"

    assert len(decode(batch(MAX_DEPTH - 1))) == 2001
    with pytest.raises(NotJson):
        decode(batch(MAX_DEPTH))


@pytest.mark.parametrize("place", [0, 50, 99])
def test_one_of_many_messages_may_be_too_deep(place):
    messages = [nest(20, b'{"a":', b"}")] * 100
    for depth, is_deep in ((MAX_DEPTH - 1, False), (MAX_DEPTH, True)):
        messages[place] = nest(depth, b"[", b"]")
        body = b"[" + b",".join(messages) + b"]"

        if is_deep:
            with pytest.raises(NotJson, match="nested deeper than 128"):
                decode(body)
        else:
            assert encode(decode(body)) == body


@pytest.mark.parametrize("holder", [bytes, bytearray, memoryview])
def test_a_body_of_any_kind_of_bytes_nests_as_deep(holder):
    assert encode(decode(holder(nest(MAX_DEPTH, b"[", b"]")))) == nest(MAX_DEPTH, b"[", b"]")
    with pytest.raises(NotJson, match="nested deeper than 128"):
        decode(holder(nest(MAX_DEPTH + 1, b"[", b"]")))


def test_what_has_too_few_brackets_to_be_too_deep_is_not_looked_through(monkeypatch):
    monkeypatch.setattr(jsontext, "_check_depth", None)
    message = nest(30, b'{"a":[', b"]}")

    for body in (message, b"[" + b",".join([message] * 100) + b"]"):
        assert encode(decode(body)) == body


@given(st.integers(1, 200), st.lists(st.sampled_from("[{"), min_size=200, max_size=200))
def test_depth_is_counted_the_same_for_lists_and_objects(depth, kinds):
    value = 1
    for kind in kinds[:depth]:
        value = [value, "]"] if kind == "[" else {"a}": "{", "b": value}
    body = json.dumps(value).encode()

    if depth <= MAX_DEPTH:
        assert decode(body) == value
    else:
        with pytest.raises(NotJson):
            decode(body)


# --- what goes out


def double(number):
    """A double's digits as Python has them, and the exponent as the encoder writes it."""
    if 1e-5 <= abs(number) < 1e-4:
        return f"{Decimal(repr(number)):f}"  # the one decade that has an exponent in Python alone
    return repr(number).replace("e+", "e").replace("e-0", "e-")


def written(value):
    """How a value is written, slow and obvious."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{written(k)}:{written(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    if isinstance(value, float):
        return double(value)
    return json.dumps(value, ensure_ascii=False)


@given(VALUES)
@example(0.00001234)
@example([1e16, 1e-7, -0.0, 5e-324, 1.7976931348623157e308])
def test_values_are_written_compact_in_utf_8_with_keys_in_their_order(value):
    assert encode(value).decode() == written(value)


@given(st.floats(allow_nan=False, allow_infinity=False) | st.floats(1e-6, 1e-3))
@example(1e-5)
@example(-9.999999999999999e-05)
@example(1e-4)
def test_the_text_of_a_double_is_the_shortest_with_a_point_or_an_exponent(number):
    shown = text(number)

    assert shown == double(number)
    assert encode({"v": [number]}) == f'{{"v":[{shown}]}}'.encode()
    assert set(shown) & set(".e")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (42.0, "42.0"),
        (42, "42"),
        (-0.0, "-0.0"),
        (1e16, "1e16"),
        (1e15, "1000000000000000.0"),
        (1e-5, "0.00001"),
        (1e-4, "0.0001"),
        (2**64, "18446744073709551616"),
        (True, "true"),
        (None, "null"),
        ("é😀\n\x7f/\u2028", '"é😀\\n\x7f/\u2028"'),
        ({"b": 1, "a": [1.0]}, '{"b":1,"a":[1.0]}'),
    ],
)
def test_the_text_of_a_value(value, shown):
    assert text(value) == shown


def test_integers_have_as_many_digits_as_they_need():
    for widest in (10**4300 - 1, -(10**4299) + 1):
        assert decode(encode(widest)) == widest


def test_an_integer_beyond_what_python_writes_fails_and_does_not_crash():
    for beyond in (10**4300, -(10**4300)):
        with pytest.raises(ValueError, match="4300 digits"):
            encode(beyond)


def test_a_decimal_is_written_with_the_digits_it_has():
    assert encode({"price": Decimal("1.10")}) == b'{"price":1.10}'


def test_what_is_no_number_becomes_null():
    assert encode([math.nan, math.inf, -math.inf]) == b"[null,null,null]"
    assert text(math.nan) == "null"


@pytest.mark.parametrize("value", ["\ud800", {"\udc00": 1}, ["fine", {"a": "\udfff"}]])
def test_a_lone_surrogate_cannot_be_written(value):
    for write in (encode, text, lambda item: encode_lines([item])):
        with pytest.raises(ValueError, match="surrogates not allowed"):
            write(value)


@pytest.mark.parametrize("value", [object(), {None: 1}, {True: 1}, {(1, 2): 1}])
def test_what_is_not_json_cannot_be_written(value):
    with pytest.raises(TypeError):
        encode(value)


def test_what_nests_without_end_fails_and_does_not_crash():
    endless = []
    endless.append(endless)

    with pytest.raises(RecursionError):
        encode(endless)


def test_a_batch_as_lines_has_a_newline_after_each_message():
    assert encode_lines([{"a": 1}, 2.0, "x\ny"]) == b'{"a":1}\n2.0\n"x\\ny"\n'
    assert encode_lines([]) == b""


# --- numbers that the decoder takes long for


EDGES = [
    "1e300", "9E303", "-1e+308", "5e-324", "0.12345678901234567e-300", "1.5", "1e5", '"1e300"',
]  # fmt: skip


@given(st.lists(st.sampled_from(EDGES), min_size=1))
def test_a_long_text_with_exponents_is_what_it_is_without_a_look(numbers):
    short = f"[{','.join(numbers)}]".encode()
    long = b" " * UNSEEN + short

    assert exactly(decode(long)) == exactly(decode(short)) == exactly(json.loads(short))


@pytest.mark.parametrize(
    "end", ["1e999]", "-1e400]", "1e300", "x]", nest(200, "[", "]", "1e300") + "]"]
)
def test_a_long_text_with_exponents_is_refused_as_a_short_one_is(end):
    text = "[" + "1e300," * 10 + end
    told = []
    for padding in ("", " " * UNSEEN):
        with pytest.raises(NotJson) as refused:
            decode((padding + text).encode())
        told.append(str(refused.value).partition(" (byte ")[0])

    assert told[0] == told[1]
