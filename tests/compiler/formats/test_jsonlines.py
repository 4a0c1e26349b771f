"""Lines of JSON: each is what the decoder of JSON makes of it, wherever the text is cut."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.compiler.jsontext import decode
from headrace.compiler.largejson import LARGE, SLICE
from headrace.compiler.slownumbers import UNSEEN
from tests.compiler.formats.reading import kept, made

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize("around", [0, 1, 2_000, 15_000])
def test_a_value_over_several_lines_is_no_message_wherever_it_stands(around: int) -> None:
    lines = [b'{"n": 1}'] * around
    payload = b"\n".join([*lines, b'{"a":', b"1}", *lines])

    messages, left_out = kept("ndjson", payload)

    assert messages == [{"n": 1}] * (2 * around)
    assert len(left_out) == 2


@given(st.lists(VALUES, max_size=20), st.sampled_from(["\n", "\r\n", "\n\n", "\n \n"]))
def test_each_line_is_a_message(values: list[Any], ends: str) -> None:
    text = ends.join(json.dumps(each) for each in values).encode()

    assert made("ndjson", text) == made("ndjson", text + ends.encode()) == values
    assert made("ndjson", text, keeps_digits=True) == values


def test_an_array_is_one_message() -> None:
    assert made("ndjson", b"[1, 2]\n[]\n") == [[1, 2], []]


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        (b'{"a": 1}\n{"a":\n', "row 2: not JSON: Input data was truncated"),
        (b'1\n\n{"a": 1,}\n', "row 3: not JSON: JSON is malformed: trailing comma"),
        (b"1 2\n", "row 1: not JSON: JSON is malformed: trailing characters"),
        (b'{"a":\n1}\n', "row 1: not JSON: Input data was truncated"),
        (b"\xff\n", "row 1: not JSON: "),
        (b"[" * 129 + b"]" * 129, "row 1: not JSON: nested deeper than 128"),
    ],
)
def test_a_line_that_is_no_json_is_told_with_its_row(payload: bytes, told: str) -> None:
    assert made("ndjson", payload).startswith(told)


def test_elsewhere_it_is_left_out_and_its_kind_is_told() -> None:
    assert kept("ndjson", b'1\nx\n{"a": 1\n2\n') == (
        [1, 2],
        ["not JSON: JSON is malformed: invalid character", "not JSON: Input data was truncated"],
    )


@pytest.mark.parametrize("size", [UNSEEN, SLICE, SLICE + 1, LARGE, 2 * LARGE])
@pytest.mark.parametrize("line", [b'{"a":[%b1]}', b'"%b"', b"[[%b1]]"])
def test_a_line_may_be_as_long_as_its_payload(size: int, line: bytes) -> None:
    inside = b"x" * size if line[:1] == b'"' else b"1," * (size // 2)
    long = line % inside
    payload = b"\n".join([b"1", long, b"{}", b""])

    assert made("ndjson", payload) == [1, decode(long), {}]


@pytest.mark.parametrize("line", [b"1,1", b"1]", b"[1", b"{}{}", b"1 1", b"]["])
def test_a_long_line_is_one_value(line: bytes) -> None:
    long = b" " * LARGE + line

    messages, left_out = kept("ndjson", b"1\n" + long + b"\n2\n")

    assert messages == [1, 2]
    assert len(left_out) == 1


@pytest.mark.parametrize("size", [SLICE, LARGE])
def test_a_long_line_of_blanks_is_left_out(size: int) -> None:
    assert made("ndjson", b"1\n" + b" \t" * size + b"\r\n2\n" + b" " * size) == [1, 2]


@pytest.mark.parametrize("at", [0, 1, 5_000])
def test_the_row_is_that_of_the_payload_however_long_it_is(at: int) -> None:
    lines = [b'{"n": %d}' % number for number in range(10_000)]
    lines[at] = b"x"

    assert made("ndjson", b"\n".join(lines)).startswith(f"row {at + 1:,}: not JSON")


@example([b"59841654316460142684e95"] * 2000)
@given(st.lists(st.sampled_from([b"1", b"1.50", b"9e307", b"x", b"", b"[1]"]), max_size=9))
def test_it_makes_no_difference_how_much_there_is(lines: list[bytes]) -> None:
    few = kept("ndjson", b"\n".join(lines))
    many = kept("ndjson", b"\n".join([*lines, b" " * UNSEEN]))

    assert few == many
