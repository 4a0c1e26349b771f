"""Which texts have numbers that the decoder takes long for, and what becomes of them."""

import json
import subprocess
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler import casts, jsontext
from headrace.compiler.formats import PayloadFormat
from headrace.compiler.formats.format import FormatOptions, Intake
from headrace.compiler.jsontext import Decoding, NotJson, decode, decode_exact, encode
from headrace.compiler.largejson import takes_long
from headrace.compiler.slownumbers import (
    UNSEEN,
    UNSEEN_BY_PYTHON,
    finder,
    has_slow_numbers,
    python_finder,
)
from tests.compiler.jsonvalues import exactly

SLOW = st.from_regex(
    r"-?(0|[1-9][0-9]?)(\.[0-9]{1,3})?[eE][+-]?[0-9]{3,5}"
    r"|-?[1-9][0-9]{19,30}(\.[0-9]{1,3})?[eE][+-]?[0-9]{1,2}"
    r"|-?0\.[0-9]{18,30}[eE][+-]?[0-9]{1,2}",
    fullmatch=True,
)
PLACES = [
    "%s",
    "[%s]",
    "[1,%s,2]",
    "[1E5,1e5,%s]",
    "[ %s ]",
    '{"a":%s}',
    '[{"a": %s }]',
    '[{"a":%s\n,"b":"x"}]',
]
NUMBERS = [
    "1e300",
    "1E300",
    "1e+300",
    "5e-324",
    "59841654316460142684e95",
    "0.0252431337354869458E-9",
]
IDENTIFIERS = [
    "7f3e1234-0e10-4e55-9e99-2e300e300e30",
    "3e300",
    "70B3E5700E001234",
    "device-3e123.a",
]


def found(text):
    """Both have to say the same; Python's looks at long texts only."""
    by_python = python_finder()(b" " * UNSEEN_BY_PYTHON + text)
    assert has_slow_numbers(text) is by_python
    return by_python


@pytest.fixture
def without_extension(monkeypatch):
    monkeypatch.setitem(sys.modules, "rhai", None)
    finder.cache_clear()
    yield
    finder.cache_clear()


@pytest.fixture
def asked(monkeypatch):
    """What is asked of Python's own `float`, and nothing of the decoder."""
    asked = []
    unusual = msgspec.json.Decoder(float_hook=lambda number: asked.append(number))
    monkeypatch.setattr(jsontext, "_EXPONENTS", unusual)
    monkeypatch.setattr(jsontext, "_SHALLOW", None)
    monkeypatch.setattr(jsontext, "_PLAIN", None)
    return asked


@given(SLOW, st.sampled_from(PLACES))
def test_a_number_that_is_slow_is_seen_wherever_it_is(number, place):
    assert found((place % number).encode())


@pytest.mark.parametrize("text", [*IDENTIFIERS, "e100"])
def test_an_identifier_that_looks_like_a_number_with_an_exponent_is_none(text):
    message = {"id": text, text: [text, 1.5], "near": 1.5e22}

    assert not found(encode([message, message]))


@given(st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: 1e-99 < abs(x) < 1e99))
def test_a_double_as_programs_write_it_is_not_slow_unless_its_exponent_is_long(number):
    assert not found(f"[{number!r},1]".encode())


@given(st.text("1e3,.+- E]x0", max_size=60))
def test_the_extension_says_of_any_text_what_python_says(text):
    found(text.encode())


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_text_may_lie_in_any_buffer(kind):
    assert has_slow_numbers(kind(b"[1e300]"))
    assert not has_slow_numbers(kind(b"[1e30]"))


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_that_are_slow_are_not_left_to_the_decoder(number, asked):
    many = UNSEEN // len(number)
    body = f"[{','.join([number] * many)}]".encode()
    assert UNSEEN < len(body) < UNSEEN_BY_PYTHON

    for read in (decode, jsontext.decode_shallow):
        read(body)

    assert asked == [number] * many * 2
    assert takes_long(body, Decoding())


def test_identifiers_are_left_to_the_decoder(monkeypatch):
    monkeypatch.setattr(jsontext, "_EXPONENTS", None)
    messages = [{"id": text, "temp": 21.5} for text in IDENTIFIERS * 1000]

    for read in (decode, jsontext.decode_shallow):
        assert read(encode(messages)) == messages
    assert not takes_long(encode(messages[:1000]), Decoding())


def test_a_text_in_a_message_is_looked_at_however_short_it_is(asked):
    assert casts.json("[1e300,2.5]") == [None, None]
    assert asked == ["1e300", "2.5"]

    assert casts.json("[1e30,2.5]") == [1e30, 2.5]
    assert len(asked) == 2


def test_so_is_each_line_among_many(asked):
    line = b'{"a":[%b]}\n' % b",".join([b"1e300"] * 9)
    into = Intake(len(line) * 100)

    for _ in PayloadFormat.known["ndjson"](FormatOptions("utf-8")).slices(
        line * 100, into, Decoding()
    ):
        pass

    assert len(into.batch) == 100
    assert asked == ["1e300"] * 900


def test_where_digits_are_kept_they_are_kept_of_slow_numbers_as_well():
    decoding = Decoding()
    decoding.keep_digits(keeps=True)

    assert encode(casts.json("[1.50e300]", decoding)) == b"[1.50e300]"


def test_nor_is_what_turns_out_to_be_no_json_where_digits_are_kept(asked, monkeypatch):
    monkeypatch.setattr(jsontext, "_SHALLOW", None)

    with pytest.raises(NotJson):
        decode_exact(b"[1e308,1e308,]")

    assert asked == ["1e308", "1e308"]


@pytest.mark.usefixtures("without_extension")
@pytest.mark.parametrize("number", NUMBERS)
def test_without_the_extension_long_texts_are_looked_at(number):
    body = f"[{','.join([number] * UNSEEN_BY_PYTHON)}]".encode()
    short = body[:UNSEEN_BY_PYTHON].rpartition(b",")[0] + b"]"

    assert has_slow_numbers(body)
    assert not has_slow_numbers(short)
    for text in (body, short):
        assert exactly(decode(text)) == exactly(json.loads(text))
    assert casts.json(f"[{number}]") == json.loads(f"[{number}]")


LAZY = """
import sys
from headrace.compiler.jsontext import decode, encode
from headrace.compiler.slownumbers import UNSEEN
decode(b" " * (UNSEEN - 1) + b"1")
before = "rhai" in sys.modules
decode(b" " * UNSEEN + b"1")
print(before, "rhai" in sys.modules)
"""


def test_the_extension_is_imported_when_there_is_a_text_to_look_at():
    done = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False", "True"]
