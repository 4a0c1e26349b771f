"""What a sample tells of a broker that does not answer, says no or goes away."""

from __future__ import annotations

import asyncio

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.families import Input
from headrace.compiler.component.inputbuffers import Static
from headrace.compiler.edges import Source
from headrace.compiler.errors import BuildRefused, Ended, Unreachable
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.sampling import (
    Sample,
    Unbuilt,
    Unread,
)
from headrace.compiler.schema.secrets import Secret, Secrets
from headrace.compiler.text.diagnostics import Fault
from tests.compiler.runtime.sampled import DOWN, Broker, taken
from tests.stand_ins import (
    Told,
    engine,
)
from tests.virtual import virtual

NO = BuildRefused(Fault("turned-away", "broker:1 refuses the credential", path=("connection",)))


# What cannot be read.


@virtual
async def test_a_broker_that_does_not_answer_is_tried_until_the_time_is_over():
    it = engine()
    source = Broker(it.clock, DOWN)

    assert await taken(it, source) == Unread(str(DOWN), [])
    assert source.began == source.ended > 4


@virtual
async def test_the_last_of_several_reasons_is_the_one_that_counts():
    it = engine()
    starting = Unreachable("broker:1 says 'LOADING'")

    assert await taken(it, Broker(it.clock, DOWN, starting)) == Unread(str(starting), [str(DOWN)])


@virtual
async def test_a_broker_that_comes_back_in_time_is_read():
    it = engine()

    said = await taken(it, Broker(it.clock, DOWN, DOWN, [[b"1"]]), most=1)

    assert (said.messages, said.notes) == ([1], [str(DOWN)])


@virtual
async def test_a_broker_that_came_back_and_has_nothing_is_an_empty_sample():
    it = engine()

    assert await taken(it, Broker(it.clock, DOWN, [])) == Sample([], [str(DOWN)], 5.0)


@virtual
async def test_a_broker_that_was_there_and_is_gone_is_a_failure():
    it = engine()
    lost = Unreachable("lost the connection to broker:1")

    assert await taken(it, Broker(it.clock, [1.0, lost], lost)) == Unread(str(lost), [])


@virtual
async def test_a_broker_that_says_no_is_not_tried_again():
    it = engine()
    source = Broker(it.clock, NO)
    began = it.clock.monotonic()

    assert await taken(it, source) == Unread(str(NO), [])
    assert (source.began, it.clock.monotonic()) == (1, began)
    assert source.is_closed


@virtual
async def test_a_broker_that_comes_up_and_says_no_is_not_tried_again():
    it = engine()
    source = Broker(it.clock, DOWN, NO)

    assert await taken(it, source) == Unread(str(NO), [str(DOWN)])
    assert (source.began, it.clock.monotonic() < 1) == (2, True)


@virtual
async def test_a_broker_that_says_nothing_at_all_is_told_of():
    it = engine()
    source = Broker(it.clock, 60.0)

    assert await taken(it, source) == Unread(
        "nothing that speaks 'given' has answered after 5.0 s", []
    )
    assert source.ended == 1


@virtual
async def test_what_was_read_before_an_error_is_kept_and_ends_it():
    it = engine()
    source = Broker(it.clock, [[b"1", b"2"], 1.0, DOWN], [[b"1", b"2"]])

    assert await taken(it, source) == Sample([1, 2], [str(DOWN)], 1.0)
    assert source.began == 1


@virtual
async def test_an_input_that_is_gone_for_good_is_not_waited_for():
    it = engine()

    said = await taken(it, Told(it.clock, [1.0, Ended("the topic was deleted")]))

    assert (said, it.clock.monotonic()) == (Unread("the topic was deleted", []), 1.0)


@virtual
async def test_a_fault_of_ours_is_told_by_its_class():
    it = engine()

    said = await taken(it, Broker(it.clock, [[b"1"], ZeroDivisionError("by zero")]), seconds=1)

    assert (said.messages, said.notes) == ([1], ["ZeroDivisionError: by zero"])


class Refusing(Input, kind="refusing"):
    """An input that cannot be built, once it has claimed something."""

    def source(self, ctx: Context) -> Source:
        ctx.claim("the only place")
        raise NO


@virtual
async def test_an_input_that_cannot_be_built_gives_back_what_it_claimed():
    it = engine()

    for _ in range(2):
        said = await it.samples.take(Refusing(), most=1, seconds=1)
        assert said == Unbuilt([NO.fault], [])


class Telling(Input, kind="telling"):
    """An input whose other side tells its password: when it is built, and when it is read."""

    def source(self, ctx: Context) -> Source:
        password = ctx.resolve(Secret("${PASSWORD}"))
        if self.buffer is not None:
            raise BuildRefused(Fault("turned-away", f"no '{password}'", f'"{password}"'))
        ctx.warn(f"it takes '{password}'")
        return Broker(ctx.clock, Unreachable(f"'{password}' is wrong"))


@virtual
async def test_no_secret_is_told(caplog: pytest.LogCaptureFixture):
    clock = Clock(asyncio.get_running_loop())
    it = Engine(clock, secrets=Secrets({"PASSWORD": "open-sesame"}, {}))

    unread = await it.samples.take(Telling(), most=1, seconds=1)
    unbuilt = await it.samples.take(Telling(buffer=Static(size=1)), most=1, seconds=1)

    assert unread == Unread("'${PASSWORD}' is wrong", ["it takes '${PASSWORD}'"])
    assert unbuilt.faults == [Fault("turned-away", "no '${PASSWORD}'", '"${PASSWORD}"')]
    assert "open-sesame" not in caplog.text
