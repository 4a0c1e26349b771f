"""What the tests of the operators ask for."""

import asyncio

import pytest
from reactivex.subject import Subject

from headrace.compiler.clock import Clock, run_virtual
from headrace.compiler.lowering.chain import lower, plainly
from headrace.operators.map import Map
from tests.doubles import StubContext
from tests.marbles import over_lists


@pytest.fixture
def ctx():
    return StubContext(place="transforms[0]")


@pytest.fixture(params=[plainly, lower], ids=["plain", "generated"])
def run(request, ctx):
    """Return what runs a batch through a map, in either form: the messages, None if it failed.

    It may take its time, in slices.
    """

    def run(document, batch):
        seen, source = [], Subject()
        untouched = repr(batch)

        async def main():
            [operator] = request.param([(Map.load(document), ctx)], [])
            source.pipe(over_lists(operator)).subscribe(seen.append)
            source.on_next(batch)
            await Clock(asyncio.get_running_loop()).sleep(1)

        run_virtual(main)
        assert repr(batch) == untouched
        return seen[0] if seen else None

    return run


@pytest.fixture
def mapped(run, ctx):
    """Return what runs one message through a map, and gives what fails in its place."""

    def run_one(document, message):
        batch = run(document, [message])
        return ctx.failures[-1] if batch is None else batch[0]

    return run_one
