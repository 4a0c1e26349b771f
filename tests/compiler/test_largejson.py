"""Large texts decoded in slices: what they hold is what they hold at once, and no slice is long."""

from __future__ import annotations

import asyncio
import gc
import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal, localcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.clock import Clock
from headrace.compiler.decimals import Written
from headrace.compiler.delivery import Acknowledgement
from headrace.compiler.jsontext import Decoding, NotJson, decode
from headrace.compiler.largejson import (
    DecodedBatch,
    LargeList,
    alike,
    cutting,
    decode_large,
    growing,
)
from headrace.compiler.largejson.cutting import SLICE, WINDOW, Cutting
from headrace.compiler.largejson.letting_go import MANY_CONTAINERS, MESSAGES_AT_ONCE
from tests.examples import examples
from tests.virtual import virtual

MIB = 1024 * 1024

STRINGS = st.text(max_size=40) | st.sampled_from(['"\\' * 30, "[,{}]:" * 9, "😀é" * 30, "x" * 200])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | STRINGS,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(STRINGS, inner, max_size=6),
    max_leaves=60,
)  # fmt: skip


def sliced(text: bytes | bytearray, decoding: Decoding | None = None) -> DecodedBatch:
    """Return what is decoded in slices, on a loop of its own."""
    return asyncio.run(decode_large(text, decoding or Decoding()))


def at_once(text: bytes) -> list[Any]:
    """Return the messages that the text holds when it is decoded at once."""
    value = decode(text)
    return value if type(value) is list else [value]


@pytest.fixture(params=[(64, 16), (33, 100), (20, 8)], ids=str)
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have slices of a few bytes, so that small texts are cut everywhere."""
    length, window = request.param
    for module in (alike, cutting):
        monkeypatch.setattr(module, "SLICE", length)
    monkeypatch.setattr(growing, "SLICE", length)
    monkeypatch.setattr(cutting, "WINDOW", window)


@pytest.mark.long
@pytest.mark.usefixtures("small")
def test_a_text_in_slices_holds_what_it_holds_at_once() -> None:
    @examples(60, database=None)
    @given(VALUES, st.booleans(), st.sampled_from([None, 1, 70]))
    def holds(value: Any, is_ascii: bool, indent: int | None) -> None:
        text = json.dumps(value, ensure_ascii=is_ascii, indent=indent).encode()
        assert repr(list(sliced(text))) == repr(at_once(text))

    holds()


@pytest.mark.long
@pytest.mark.usefixtures("small")
def test_what_is_refused_at_once_is_refused_in_slices() -> None:
    @examples(80, database=None)
    @given(VALUES, st.data())
    def refuses(value: Any, data: st.DataObject) -> None:
        text = bytearray(json.dumps(value).encode())
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 1))] = data.draw(
            st.sampled_from([b",", b"]", b"[", b'"', b"\\", b"1", b"}", b"{", b":", b"", b"\xff"])
        )
        try:
            expected = repr(at_once(bytes(text)))
        except NotJson:
            with pytest.raises(NotJson):
                sliced(text)
        else:
            assert repr(list(sliced(text))) == expected

    refuses()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "text",
    [
        b'{"a":1,"b":[%b],"a":[%b],"c":2}',
        b'{"' + b"k" * 90 + b'":[%b],"z":{"z":[%b]},"z":"' + b"v\\\\\\n" * 40 + b'"}',
        b'[1,{"x":1,"x":[%b],"y":"' + "é😀".encode() * 40 + b'"},[%b]]',
        b"[" + b" \n" * 90 + b"1" + b" " * 200 + b", 2 ,[%b],3,[%b]" + b"\t" * 99 + b"]",
    ],
)
def test_order_and_the_last_of_equal_keys_are_kept(text: bytes) -> None:
    text = text % ((b'{"n":1.5},"s",null,' * 12 + b"7",) * 2)

    assert repr(list(sliced(text))) == repr(at_once(text))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "text",
    [
        b'{"k":1[%b]}', b'{"k"[%b]}', b'{[%b]:1}', b"[1[%b]]", b"[[%b}]", b'{"a":[%b]]', b"[[%b],]",
        b"[,[%b]]", b"[[%b]][1]", b"[[%b]", b'{"k":[%b],}', b"[[%b] [1]]", b"[[%b],,1]", b"[%b]]",
        b'["\\ud800",[%b]]', b'["\xff",[%b]]', b"[NaN,[%b]]", b"[[%b],1e400]", b"\xef\xbb\xbf[%b]",
        b"[[%b]," + b"1" * 5000 + b"]", b'[[%b],"' + b"a" * 300, b'[[%b],"\x01"]', b"", b"   ", b"x",
    ],
)  # fmt: skip
def test_what_is_malformed_between_slices_is_refused(text: bytes) -> None:
    if b"%b" in text:
        text = text % (b'{"n":1},"s",' * 30 + b"7")

    with pytest.raises(NotJson):
        decode(text)
    with pytest.raises(NotJson):
        sliced(text)


def half_way(double: float) -> str:
    """Return what lies half way between a double and the next one, to the last digit."""
    with localcontext(prec=1200):
        return str((Decimal(double) + Decimal(math.nextafter(double, math.inf))) / 2)


_HALF = [half_way(each) for each in (5e-324, 2.2250738585072014e-308, 1 / 3, 1.0, 1e15)]
DIGITS = st.text("0123456789", max_size=40) | st.sampled_from(
    [
        "0" * 900,
        "9" * 900,
        "0" * 900 + "1",
        "",
        *("".join(re.findall(r"\d", half)) for half in _HALF),
    ]
)
NUMBERS_ = st.builds(
    lambda minus, whole, point, fraction, more, e: f"{minus}{whole}{point}{fraction}{more}{e}",
    st.sampled_from(["", "", "", "-", "--", "+"]),
    DIGITS.map(lambda digits: digits.lstrip("0") or "0") | st.sampled_from(["", "01", "0"]),
    st.sampled_from([".", ".", ".", "", ".."]),
    DIGITS,
    DIGITS,
    st.sampled_from(
        ["", "", "e5", "E-300", "e-1200", "e+1200", "e-", "e", "e5e5", "e00", "e-" + "0" * 50 + "7",
         "e" + "9" * 50, "e-" + "9" * 50, "x", "é"]
    ),
) | st.sampled_from([half.replace("E", more + "e") if "E" in half else half + more
                     for half in _HALF for more in ("", "0" * 900, "0" * 900 + "1")])  # fmt: skip


@pytest.mark.long
@pytest.mark.usefixtures("small")
def test_a_long_number_is_the_double_that_it_stands_for() -> None:
    @examples(300, database=None)
    @given(
        NUMBERS_,
        st.sampled_from(["%s", "[%s]", '[1, %s,"x"]', '{"a":%s}', "{%s:1}", "[ %s %s]", "[%s"]),
    )
    def holds(number: str, frame: str) -> None:
        text = frame.replace("%s", number).encode()
        try:
            expected = repr(at_once(text))
        except NotJson:
            with pytest.raises(NotJson):
                sliced(text)
        else:
            assert repr(list(sliced(text))) == expected
            assert repr(float(number)) in expected or number.lstrip("-").isdigit()

    holds()


LONG = 16 * MIB
LONG_NUMBERS = {
    "integer": (b"1" * LONG, "Integer value out of range"),
    "integer with a fraction": (b"1" * LONG + b".5", "Number out of range"),
    "fraction": (b"0." + b"1" * LONG, "0.1111111111111111"),
    "nothing but zeros": (b"-0." + b"0" * LONG, "-0.0"),
    "zeros made up for": (b"0." + b"0" * LONG + b"1e%d" % (LONG + 1), "1.0"),
    "digits made up for": (b"1" * LONG + b"e-%d" % LONG, "0.1111111111111111"),
    "exponent of zeros": (b"1e" + b"0" * LONG + b"3", "1000.0"),
    "exponent": (b"1e-" + b"9" * LONG, "0.0"),
    "no number": (b"x" * LONG, "JSON is malformed: invalid number"),
    "signs": (b"-" * LONG, "JSON is malformed: invalid number"),
}


@pytest.mark.parametrize("frame", [b"%b", b"[%b]", b'[{"a": [1, %b]}, 2]'], ids=str)
@pytest.mark.parametrize(("number", "expected"), LONG_NUMBERS.values(), ids=LONG_NUMBERS)
def test_a_long_number_is_never_handed_on_as_a_whole(
    monkeypatch: pytest.MonkeyPatch, number: bytes, expected: str, frame: bytes
) -> None:
    decoding, sizes, text = Decoding(), [], frame.replace(b"%b", number)
    plain = decoding.decode_shallow
    decoding.decode_shallow = lambda slice: sizes.append(len(slice)) or plain(slice)

    try:
        told = str(sliced(text, decoding))
    except NotJson as cause:
        told = str(cause)

    assert expected in told
    assert max(sizes, default=0) < SLICE


def test_a_long_number_whose_digits_are_kept_has_all_of_them() -> None:
    decoding = Decoding()
    decoding.keep_digits(keeps=True)
    number = b"0." + b"1" * (4 * SLICE)

    (value,) = sliced(b"[" + number + b"]", decoding)

    assert isinstance(value, Written)
    assert value.text == number.decode()
    with pytest.raises(NotJson, match="Integer value out of range"):
        sliced(b"[" + b"1" * (4 * SLICE) + b"]", decoding)


def test_the_place_of_a_fault_is_that_in_the_whole_text() -> None:
    text = b"[" + b'{"n": 1}, ' * 40_000 + b"x]"

    with pytest.raises(NotJson) as at_once_:
        decode(text)
    with pytest.raises(NotJson) as in_slices:
        sliced(text)

    assert str(in_slices.value) == str(at_once_.value)


def test_128_levels_are_taken_and_one_more_is_refused_before_anything_is_decoded() -> None:
    fits = b"[" * 127 + b'"x",' * 20_000 + b"1" + b"]" * 127
    decoding = Decoding()
    decoding.decode = decoding.decode_shallow = pytest.fail

    with pytest.raises(NotJson, match="nested deeper than 128"):
        sliced(b"[[1]," + b"1," * 50_000 + b"[" + fits + b"]]", decoding)
    with pytest.raises(NotJson, match="nested deeper than 128"):
        sliced(b"[" + b"[" * MIB, decoding)

    assert repr(list(sliced(b"[%b]" % fits))) == repr(at_once(b"[%b]" % fits))


def test_numbers_are_as_the_pipeline_has_them() -> None:
    exact = Decoding()
    exact.keep_digits(keeps=True)
    text = b"[" + b"1.10," * 60_000 + b"123456789012345678901234567890]"

    usual, kept = sliced(text), sliced(text, exact)

    assert {type(number) for number in usual} == {float, int}
    assert {type(number) for number in kept} == {Written, int}
    assert usual[-1] == kept[-1] == 123456789012345678901234567890


LARGE_ONES = {
    "messages": b'[%b1]' % (b'{"sensor":"press-line-7","temp":21.5,"ok":true},' * 20_000),
    "nests": b"[%b1]" % (b"[[[[[[[[[]]]]]]]]]," * 50_000),
    "numbers": b"[%b1]" % (b"1," * 500_000),
    "one string": b'"%b"' % (b"a" * MIB),
    "escapes": b'{"k":"%b"}' % (b"\\ud83d\\ude00\\n" * 70_000),
    "characters": b'["%b"]' % ("é😀€".encode() * 110_000),
    "keys": b"{%b}" % b",".join(b'"%x":1' % n for n in range(100_000)),
    "one message": b'{"a":{"rows":[%b1],"b":2}}' % (b'{"a":[1,2],"b":{"c":"d"}},' * 40_000),
    "a list in a list": b"[[%b1]]" % (b"[]," * 350_000),
    "to the last level": b"[%b1]" % ((b"[" * 126 + b"]" * 126 + b",") * 4_000),
    "blanks": b"[1,%b2%b]" % (b" \n" * 300_000, b"\t" * 400_000),
    "a long key": b'[{"%b":[1]}]' % (b"k" * MIB),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", LARGE_ONES)
def test_no_slice_of_a_large_text_is_long(name: str) -> None:
    text = LARGE_ONES[name]
    lengths: list[int] = []
    decoding = Decoding()

    def counted(part: Any) -> Any:
        lengths.append(len(part))
        return decode(part)

    decoding.decode = decoding.decode_shallow = counted

    assert repr(list(sliced(text, decoding))) == repr(at_once(text))
    assert max(lengths) < 2 * SLICE
    assert sum(lengths) < len(text) + 100 * len(lengths)


@pytest.mark.long
@pytest.mark.parametrize("name", LARGE_ONES)
def test_looking_through_a_text_takes_a_turn_for_each_window(name: str) -> None:
    text = LARGE_ONES[name]
    looked = Cutting(text)

    turns = sum(1 for _ in looked.slices())

    assert turns >= len(text) // SLICE - 1
    assert len(looked.steps) <= 4 * len(text) // SLICE + 130
    assert turns <= 3 * len(text) // WINDOW + 10


def long_lists(generation: int | None = None) -> list[list[Any]]:
    """Return the lists of more items than that text has that the collector knows."""
    known = gc.get_objects(generation=generation)
    return [each for each in known if type(each) in (list, DecodedBatch) and len(each) > 200_000]


@pytest.mark.parametrize(
    "text",
    [b"[1%b]", b"[[1%b]]", b'{"a":[1%b]}'],
    ids=["batch", "list_in_it", "list_in_a_message"],
)
async def test_a_list_of_many_items_is_not_looked_through_with_what_is_young(
    monkeypatch: pytest.MonkeyPatch, text: bytes
) -> None:
    monkeypatch.setattr(growing, "MANY_ITEMS", 50_000)
    gc.disable()
    try:
        others = {id(each) for each in long_lists()}  # what other tests have left
        batch = await decode_large(text % (b",1" * 200_000), Decoding())
        old = [each for each in long_lists(generation=2) if id(each) not in others]
    finally:
        gc.enable()

    assert [len(each) for each in old] == [200_001]
    assert len(batch) in (1, 200_001)


async def test_a_batch_that_nobody_holds_is_cut_down_a_slice_at_a_time(monkeypatch) -> None:
    batch = await decode_large(LARGE_ONES["nests"], Decoding())
    gone: list[str] = []
    batch.there.debt = Acknowledgement(lambda: gone.append("gone"))
    slices, usual = len(batch.slices), gc.get_threshold()

    del batch
    for _ in range(slices - 1):
        await asyncio.sleep(0)
    at_first = list(gone)
    for _ in range(1000):
        await asyncio.sleep(0)

    assert slices > 20
    assert (at_first, gone) == ([], ["gone"])
    assert usual[2] > gc.get_threshold()[2]


@pytest.mark.long
async def test_what_is_made_of_a_large_batch_is_cut_down_a_slice_at_a_time_as_well() -> None:
    class Message:
        there = 0

        def __init__(self) -> None:
            Message.there += 1

        def __del__(self) -> None:
            Message.there -= 1

    batch = LargeList()
    for _ in range(3 * MESSAGES_AT_ONCE):
        batch.append(Message())

    del batch
    left = [Message.there]
    while Message.there:
        await asyncio.sleep(0)
        left.append(Message.there)

    assert left == [n * MESSAGES_AT_ONCE for n in (3, 2, 1, 0)]


@virtual
async def test_a_batch_that_lies_in_a_cycle_is_collected_after_a_minute_at_the_latest() -> None:
    clock, usual = Clock(asyncio.get_running_loop()), gc.get_threshold()
    batch = DecodedBatch(asyncio.get_running_loop())
    batch.add_containers(MANY_CONTAINERS + 1)
    batch.append({"failed": batch})
    gone: list[str] = []
    batch.there.debt = Acknowledgement(lambda: gone.append("gone"))

    del batch
    gc.collect(0)
    put_off = gc.get_threshold()
    await clock.sleep(60)
    taken_up = gc.get_threshold()
    gc.collect()
    await clock.sleep(1)

    assert put_off[2] > usual[2]
    assert taken_up == usual == gc.get_threshold()
    assert gone == ["gone"]


async def test_what_somebody_still_holds_of_a_large_message_is_left_whole() -> None:
    batch = await decode_large(LARGE_ONES["one message"], Decoding())
    gone: list[str] = []
    batch.there.debt = Acknowledgement(lambda: gone.append("gone"))
    held = batch[0]["a"]["rows"]
    expected = len(held)

    del batch
    for _ in range(1000):
        await asyncio.sleep(0)

    assert gone == ["gone"]
    assert len(held) == expected
    assert held[-2] == {"a": [1, 2], "b": {"c": "d"}}


@pytest.mark.parametrize("inside", [b"a", rb"\\", "ö".encode()])
def test_a_string_without_an_end_is_refused_and_not_decoded(inside: bytes) -> None:
    cutting = Cutting(b'"' + inside * SLICE)

    for _ in cutting.slices():
        pass

    assert cutting.steps == []
    assert str(cutting.fault) == "Input data was truncated"
