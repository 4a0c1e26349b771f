"""Large batches encoded in slices: the bytes are those of one go, and no turn is long."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.clock import Clock
from headrace.compiler.jsontext import encode, encode_lines
from headrace.compiler.largejson import (
    ENCODED_AT_ONCE,
    SLICE_MESSAGES,
    encode_each,
    encode_large,
    encode_large_lines,
    encoding,
    in_slices,
)
from tests.doubles import TickingClock
from tests.examples import examples
from tests.virtual import virtual

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
WAYS = [encode_each, encode_large, encode_large_lines]


def test_the_bytes_are_those_of_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "ENCODED_AT_ONCE", 3)

    @examples(100, database=None)
    @given(st.lists(VALUES, max_size=14), st.booleans())
    def holds(batch: list[Any], is_slow: bool) -> None:
        async def written() -> None:
            clock = TickingClock() if is_slow else Clock(asyncio.get_running_loop())
            assert await encode_large(batch, clock) == encode(batch)
            assert await encode_large(batch, clock, begin=b"", end=b"") == encode(batch)[1:-1]
            assert await encode_large_lines(batch, clock) == encode_lines(batch)
            assert await encode_each(batch, clock) == [*map(encode, batch)]

        asyncio.run(written())

    holds()


@pytest.mark.parametrize("way", WAYS)
@virtual
async def test_others_have_their_turns_meanwhile(way: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    turns, made = 0, Counter[int]()

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    def counting(real: Any, count: Any) -> Any:
        def encoded(value: Any) -> bytes:
            made[turns] += count(value)
            return real(value)

        return encoded

    one = 1 if way is encode_each else None
    monkeypatch.setattr(encoding, "encode", counting(encode, lambda each: one or len(each)))
    monkeypatch.setattr(encoding, "encode_lines", counting(encode_lines, len))
    ticking = asyncio.ensure_future(others())
    await asyncio.sleep(0)

    await way([{"n": 1}] * 10_000, TickingClock())

    ticking.cancel()
    assert sum(made.values()) == 10_000
    assert max(made.values()) <= 3 * ENCODED_AT_ONCE


@pytest.mark.parametrize("way", WAYS)
@virtual
async def test_a_message_that_cannot_be_encoded_fails_as_in_one_go(way: Any) -> None:
    batch = [*range(5000), "\ud800", *range(5000)]

    with pytest.raises(UnicodeEncodeError):
        await way(batch, TickingClock())


@virtual
async def test_what_is_made_of_slices_is_in_order() -> None:
    items = [*range(1000)]

    made = await in_slices(items, list, TickingClock())

    assert [each for some in made for each in some] == items
    assert {len(some) for some in made[:-1]} == {SLICE_MESSAGES}
