"""Answers that go on: over with the first of what they are made of."""

import asyncio
import logging

from headrace.web.resources.streaming import signed_out, until_one_ends


async def test_what_else_goes_on_is_cancelled_before_it_returns():
    left = []

    async def going_on() -> None:
        try:
            await asyncio.Future()
        finally:
            left.append("going on")

    await until_one_ends("a stream", going_on(), asyncio.sleep(0), going_on())

    assert left == ["going on", "going on"]


async def test_what_breaks_ends_the_others_and_is_told_to_the_log(caplog):
    async def breaking() -> None:
        raise ValueError("the reader is broken")

    with caplog.at_level(logging.ERROR, "headrace.web"):
        await until_one_ends("a stream", breaking(), asyncio.Future())

    [line] = caplog.records
    assert line.getMessage() == "a stream broke"
    assert str(line.exc_info[1]) == "the reader is broken"


async def test_who_was_let_in_by_what_never_ends_is_never_signed_out():
    waiting = asyncio.ensure_future(signed_out({}))

    await asyncio.sleep(0)

    assert not waiting.done()
    waiting.cancel()
