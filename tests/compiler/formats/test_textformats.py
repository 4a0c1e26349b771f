"""Texts and lines: whatever the bytes are, messages come of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.formats.characters import MOST_TEXT, PIECE
from tests.compiler.formats.reading import kept, made


def test_a_payload_is_one_message_whatever_it_holds() -> None:
    assert made("text", b"21.5") == [{"value": "21.5"}]
    assert made("text", b"a\r\nb\n") == [{"value": "a\r\nb\n"}]
    assert made("text", b"") == [{"value": ""}]


def test_a_line_is_a_message_and_an_empty_one_is_none() -> None:
    assert made("lines", b"a\r\n\r\nb\n\n c") == [{"value": "a"}, {"value": "b"}, {"value": " c"}]
    assert made("lines", b"") == made("lines", b"\n\r\n") == []


@pytest.mark.parametrize("word", ["text", "lines"])
def test_under_a_field_of_its_own_the_text_is_the_message(word: str) -> None:
    assert made(word, b"21.5", is_bare=True) == ["21.5"]


@pytest.mark.parametrize("word", ["text", "lines"])
def test_bytes_that_are_no_text_are_replaced(word: str) -> None:
    assert made(word, b"21\xff.5") == [{"value": "21\ufffd.5"}]
    assert made(word, b"\x81", encoding="windows-1252") == [{"value": "\ufffd"}]
    assert made(word, b"\x00\xd8", encoding="utf-16") == [{"value": "\ufffd"}]


@pytest.mark.parametrize(
    ("encoding", "payload"),
    [
        ("utf-8", "21 °C".encode()),
        ("utf-8", "\ufeff21 °C".encode()),
        ("latin-1", "21 °C".encode("latin-1")),
        ("windows-1252", "21 °C".encode("windows-1252")),
        ("utf-16", "21 °C".encode("utf-16-le")),
        ("utf-16", "\ufeff21 °C".encode("utf-16-le")),
        ("utf-16", "\ufeff21 °C".encode("utf-16-be")),
    ],
)
def test_an_encoding_and_its_mark_of_the_byte_order(encoding: str, payload: bytes) -> None:
    for word in ("text", "lines"):
        assert made(word, payload, encoding=encoding) == [{"value": "21 °C"}]


@given(st.text(max_size=40), st.integers(0, 3), st.sampled_from(["utf-8", "utf-16-le"]))
def test_it_makes_no_difference_where_a_piece_ends(text: str, before: int, codec: str) -> None:
    whole = "x" * (PIECE - 20 - before) + text + "\n" + text * 3
    payload = whole.encode(codec)
    encoding = codec.removesuffix("-le")

    lines = whole.replace("\r\n", "\n").split("\n")
    assert made("text", payload, encoding=encoding) == [{"value": whole}]
    assert made("lines", payload, encoding=encoding) == [{"value": each} for each in lines if each]


def test_a_text_has_at_most_so_many_characters() -> None:
    most = "é" * MOST_TEXT

    assert made("text", most.encode()) == [{"value": most}]
    assert made("text", f"{most}1".encode()) == "more than 2,097,152 characters in one payload"


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_line_has_at_most_so_many_characters(end: str) -> None:
    most = "é" * MOST_TEXT
    too_long = "a line of more than 2,097,152 characters"

    assert made("lines", f"a\n{most}{end}".encode()) == [{"value": "a"}, {"value": most}]
    assert made("lines", f"a\n\n{most}1{end}b".encode()) == f"row 3: {too_long}"
    whole, left_out = kept("lines", f"a\n{most}1\n{most}{end or chr(10)}{most}12{end}".encode())
    assert whole == [{"value": "a"}, {"value": most}]
    assert left_out == [too_long, too_long]


def test_a_carriage_return_may_end_one_piece_and_its_line_feed_begin_the_next() -> None:
    line = "x" * (PIECE - 1)

    assert made("lines", f"{line}\r\nb\r\r\nc\r".encode()) == [
        {"value": line},
        {"value": "b\r"},
        {"value": "c\r"},
    ]


def test_a_line_may_be_longer_than_a_piece() -> None:
    line = "x" * (3 * PIECE)

    assert made("lines", f"a\n{line}\nb".encode()) == [
        {"value": "a"},
        {"value": line},
        {"value": "b"},
    ]
