"""The beginning of a message: what is shown is what the whole of it begins with, at a bounded cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.decimals import Written
from headrace.compiler.jsontext import decode_exact, encode
from headrace.compiler.largejson import are_small, beginning
from headrace.compiler.runtime.monitoring.failures import cut
from tests.examples import examples

TEXTS = st.text(max_size=30) | st.sampled_from(["\x01\\" * 20, "é😀" * 20, "k" * 70])
NUMBERS = (
    st.integers() | st.sampled_from([8, 9, 10**40, -(2**64), 10**300]) | st.floats(allow_nan=False)
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(TEXTS, inner, max_size=9),
    max_leaves=70,
)


@pytest.mark.long
def test_what_is_shown_of_a_message_is_the_beginning_of_all_of_it() -> None:
    @examples(150, database=None)
    @given(VALUES, st.integers(1, 90))
    def holds(value: Any, most: int) -> None:
        text, whole = beginning(value, most), encode(value)

        assert text[:most] == whole[:most]
        assert (len(text) > most) == (len(whole) > most)
        assert cut(text.decode(), most) == cut(whole.decode(), most)

    holds()


def test_numbers_as_they_were_written_are_cut_as_others_are() -> None:
    value = decode_exact(b'[{"a":1.50,"b":' + b"1." + b"0" * 300 + b"}," + b"2.500," * 40 + b"1]")
    assert type(value[0]["a"]) is Written

    for most in range(1, 400):
        assert beginning(value, most)[:most] == encode(value)[:most]


@pytest.mark.parametrize(
    "made",
    [
        lambda: "x" * 4_000_000,
        lambda: "\x01" * 4_000_000,
        lambda: [1] * 2_000_000,
        lambda: [2**70] * 200_000,
        lambda: [None] * 2_000_000,
        lambda: [[]] * 2_000_000,
        lambda: [{"a": 1}] * 500_000,
        lambda: [["x" * 5000]] * 1000,
        lambda: {"k" * 4_000_000: 1},
        lambda: {f"{n}": n for n in range(300_000)},
        lambda: {"a": [{"b": list(range(400_000))}]},
        lambda: [[[1] * 1000] * 1000] * 10,
    ],
    ids=[
        '"xxxxxxxxxxx',
        r'"\u0001\u000',
        "[1, 1, 1, 1,",
        "[11805916207",
        "[null, null,",
        "[[], [], [],",
        '[{"a": 1}, {',
        '[["xxxxxxxxx',
        "message8",
        "message9",
        "message10",
        "[[[1, 1, 1, ",
    ],
)
def test_of_a_large_message_little_more_is_encoded_than_is_shown(
    made: Callable[[], Any],
) -> None:
    message = made()

    text = beginning(message, 2048)

    assert text[:2048] == encode(message)[:2048]
    assert len(text) < 8 * 2048  # one character may take six bytes
    assert not are_small([message])


def test_messages_are_small_by_what_they_have_together() -> None:
    ordinary = {"sensor": "press-line-7", "temp": 21.5, "seq": 12345, "deep": [[[{}]]]}

    assert are_small([ordinary] * 100)
    assert not are_small([{"a": "x" * 160_000}] * 100)
    assert not are_small([{"x" * 160_000: 1}] * 100)
    assert not are_small([[10**4000] * 40] * 100)
    assert not are_small([[[1]] * 500] * 100)


def test_what_cannot_be_encoded_is_still_refused() -> None:
    for message in ("\ud800", [{"a": 10**5000}], object(), {object(): 2}):
        with pytest.raises((ValueError, TypeError)):
            beginning(message, 2048)
