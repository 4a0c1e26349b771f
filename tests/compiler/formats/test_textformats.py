"""Texts and lines: whatever the bytes are, messages come of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.formats.characters import PIECE
from tests.compiler.formats.reading import made


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


def test_a_line_may_be_as_long_as_its_payload() -> None:
    line = "x" * (3 * PIECE)

    assert made("lines", f"a\n{line}\nb".encode()) == [
        {"value": "a"},
        {"value": line},
        {"value": "b"},
    ]
