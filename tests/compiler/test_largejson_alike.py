"""Large lists of messages that begin alike: what is decoded of them is what is decoded at once."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler import largejson
from headrace.compiler.jsontext import MAX_DEPTH, Decoding, NotJson, decode
from headrace.compiler.largejson import DecodedBatch, alike, cutting, decode_large, growing
from headrace.compiler.largejson.cutting import SLICE, Cutting
from tests.compiler.jsonvalues import VALUES, nest
from tests.examples import examples

BEGINS = st.sampled_from(["id", "", "é", "a b"])
STRAYS = [
    b",",
    b"]",
    b"[",
    b'"',
    b"\\",
    b"1",
    b"}",
    b"{",
    b":",
    b"",
    b"\xff",
    b"\x0b",
    b"},{",
    b" ",
]


def sliced(text: bytes | bytearray, decoding: Decoding | None = None) -> DecodedBatch:
    """Return what is decoded in slices, on a loop of its own."""
    return asyncio.run(decode_large(text, decoding or Decoding()))


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Have slices of a few bytes, and tell where texts left the short way that did not go all of it."""
    for module in (alike, cutting, growing):
        monkeypatch.setattr(module, "SLICE", 200)
    monkeypatch.setattr(cutting, "WINDOW", 16)
    left: list[int] = []

    def other_way(text: bytes, begun: int, *, keeps_digits: bool) -> Cutting:
        left.append(begun)
        return Cutting(text, begun, keeps_digits=keeps_digits)

    monkeypatch.setattr(largejson, "Cutting", other_way)
    return left


def listed(messages: list[Any], separators: tuple[str, str], before: str, after: str) -> bytes:
    """Return the text of a list, with blanks of its own."""
    inside = json.dumps(messages, separators=separators, ensure_ascii=False)[1:-1]
    return f"{before}[{before}{inside}{after}]{after}".encode()


SPACED = st.tuples(
    st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " :\t")]),
    st.sampled_from(["", " \n"]),
    st.sampled_from(["", "\r\n\t "]),
)


@pytest.mark.long
def test_messages_that_begin_alike_are_what_they_are_at_once(begun: list[int]) -> None:
    @examples(150, database=None)
    @given(BEGINS, st.lists(VALUES, min_size=1, max_size=12), SPACED)
    def holds(key: str, values: list[Any], spaced: Any) -> None:
        text = listed([{key: n, "of": each} for n, each in enumerate(values)], *spaced)
        assert repr(list(sliced(text))) == repr(decode(text))

    holds()


@pytest.mark.long
def test_what_is_wrong_with_messages_that_begin_alike_is_refused_as_at_once(
    begun: list[int],
) -> None:
    @examples(300, database=None)
    @given(BEGINS, st.lists(VALUES, min_size=2, max_size=8), SPACED, st.data())
    def refuses(key: str, values: list[Any], spaced: Any, data: st.DataObject) -> None:
        text = bytearray(listed([{key: n, "of": each} for n, each in enumerate(values)], *spaced))
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 1))] = data.draw(st.sampled_from(STRAYS))
        try:
            expected = decode(text)
        except NotJson:
            with pytest.raises(NotJson):
                sliced(text)
        else:
            messages = expected if type(expected) is list else [expected]
            assert repr(list(sliced(text))) == repr(messages)

    refuses()


ORDINARY = [{"id": n, "temp": 21.5, "tags": ["a", {"b": "},{"}]} for n in range(30)]


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), ("\n,\r\n", ":\t")])
def test_ordinary_messages_go_the_short_way(begun: list[int], separators: tuple[str, str]) -> None:
    text = listed(ORDINARY, separators, " ", "\n")

    assert list(sliced(text)) == list(sliced(bytearray(text))) == ORDINARY
    assert begun == []


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([{"id": {"id": {"id": n}}, "of": [{"id": 1}] * 9} for n in range(9)]),
        json.dumps([{f"{n}": 1, "temp": 21.5} for n in range(30)]),
        json.dumps([{"id": '},{"id":1', "of": "x" * 90}] * 9),
        json.dumps([1, *ORDINARY]),
        json.dumps(ORDINARY[0] | {"more": "x" * 90}),
        json.dumps(ORDINARY)[:-1] + ", 1e3]",
        "[" + json.dumps({"k" * 2000: 1}) + "]",
        "[{}]",
    ],
    ids=lambda text: text[:30],
)
def test_what_cannot_be_cut_there_is_decoded_all_the_same(begun: list[int], text: str) -> None:
    expected = json.loads(text)

    assert list(sliced(text.encode())) == (expected if type(expected) is list else [expected])


OTHERS = [{"other": 1}, [1, [2]], "text", 1, None, {}, {"id": "x" * 900}, [[[{"id": 1}]]]]


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: str(other)[:20])
@pytest.mark.parametrize("separators", [(",", ":"), (" ,\n", " : ")])
def test_what_does_not_begin_alike_is_gone_on_with(
    begun: list[int], separators: tuple[str, str], other: Any
) -> None:
    messages = [*ORDINARY, *[other] * 200, *ORDINARY]
    text = listed(messages, separators, " ", "\n")

    assert list(sliced(text)) == list(sliced(bytearray(text))) == messages
    assert begun[0] == begun[1] > 1000
    assert text[begun[0] :].startswith(b",")


@pytest.mark.parametrize("end", [',{"id":x}]', ",]", "", ',{"id":1}', ',{"id":"' + "x" * 900])
def test_what_is_wrong_behind_ordinary_messages_is_told_where_it_is(
    begun: list[int], end: str
) -> None:
    text = (json.dumps(ORDINARY)[:-1] + end).encode()
    told = []
    for read in (decode, sliced):
        with pytest.raises(NotJson) as refused:
            read(text)
        told.append(str(refused.value))

    assert told[0].partition(" - at `")[0] == told[1]


WRONG = [
    ",\x0b",
    ",\x0c",
    ",\xa0",
    ",\0",
    "\x0b,",
    "",
    " ",
    ";",
    "x",
    ",,",
    ", ,",
    "],[",
    ",{},,",
    ",1",
]


@pytest.mark.parametrize("between", WRONG)
def test_what_is_wrong_between_any_two_messages_is_refused(begun: list[int], between: str) -> None:
    messages = [json.dumps(each) for each in ORDINARY]

    for place in range(1, len(messages)):
        text = f"[{','.join(messages[:place])}{between}{','.join(messages[place:])}]"
        with pytest.raises(NotJson):
            sliced(text.encode())
    assert len(begun) == len(messages) - 1


@pytest.mark.parametrize("end", ["", ",", "]", ",]", "]]", "}]", " x]", ',{"id":}]', ',{"id":1}'])
def test_an_end_that_is_none_is_refused(begun: list[int], end: str) -> None:
    text = f"[{','.join(map(json.dumps, ORDINARY))}{end}".encode()

    if end == "]":
        assert list(sliced(text)) == ORDINARY
    else:
        with pytest.raises(NotJson):
            sliced(text)


def test_messages_that_begin_alike_nest_128_deep_and_no_deeper(
    begun: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alike, "SLICE", 1000)

    def listed(depth: int) -> bytes:
        return b"[%b]" % b",".join([b'{"id":%b}' % nest(depth - 2, b"[", b"]")] * 9)

    assert repr(list(sliced(listed(MAX_DEPTH)))) == repr(decode(listed(MAX_DEPTH)))
    assert begun == []
    with pytest.raises(NotJson, match="nested deeper than 128"):
        sliced(listed(MAX_DEPTH + 1))


def test_no_slice_of_messages_that_begin_alike_is_long() -> None:
    text = json.dumps(ORDINARY * 1000).encode()
    decoding, lengths = Decoding(), []
    decoding.decode = lambda part: lengths.append(len(part)) or decode(part)  # type: ignore[func-returns-value]

    assert len(sliced(text, decoding)) == 30_000
    assert SLICE / 2 < max(lengths) <= SLICE + 2
    assert sum(lengths) < len(text) + 10 * len(lengths)


@pytest.mark.parametrize("end", [b",x]", b"", b',{"id":"%b"}]' % (b"x" * SLICE)])
def test_no_slice_but_the_last_is_decoded_twice(end: bytes) -> None:
    text = json.dumps(ORDINARY * 1000).encode()[:-1] + end
    decoding, lengths = Decoding(), []

    def counted(part: bytes) -> Any:
        lengths.append(len(part))
        return decode(part)

    decoding.decode = decoding.decode_shallow = counted
    with suppress(NotJson):
        sliced(text, decoding)

    assert len(text) < sum(lengths) < len(text) + 2 * SLICE
