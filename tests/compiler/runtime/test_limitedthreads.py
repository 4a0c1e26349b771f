"""Work beside the loop: in its own thread, stopped when its time is up, a few at a time."""

import asyncio
import gc
import logging
import sys
import threading

import pytest

from headrace.authoring.dryrun.run import ChainDryRun
from headrace.authoring.playing.playedenvironment import Surroundings
from headrace.compiler.clock import Clock
from headrace.compiler.runtime.limitedthreads import (
    AT_ONCE,
    LimitedThreads,
    TookTooLong,
    TooMany,
)
from headrace.compiler.runtime.switching import SWITCH_SECONDS
from tests.authoring.dryrun.building import builds
from tests.authoring.dryrun.dryrunning import NEW_YEAR, transform
from tests.peer import peer
from tests.stand_ins import does

LOOP = {"type": "inline", "code": "let n = 0; while n < 1000000000 { n += 1; }"}


@pytest.fixture
def aside():
    return lambda seconds=10.0, **most: LimitedThreads(
        Clock(asyncio.get_running_loop()), seconds, **most
    )


def dry_run(*transforms, messages=(1,)):
    """Return the work of a dry run, which returns the run."""

    def work(limit):
        trial = ChainDryRun([transform(each) for each in transforms], Surroundings(), limit)
        trial.perform([(0.0, [*messages])], started_at=NEW_YEAR)
        return trial

    return work


async def test_work_has_a_thread_of_its_own(aside):
    assert await aside().run(lambda _: threading.current_thread().name) == "dry-run"


async def test_the_interpreter_changes_hands_more_often_while_work_is_done(aside):
    usual, it, gate = sys.getswitchinterval(), aside(), threading.Event()

    runs = [asyncio.ensure_future(it.run(lambda _: gate.wait(30))) for _ in range(AT_ONCE)]
    await asyncio.sleep(0)
    meanwhile = sys.getswitchinterval()
    gate.set()
    await asyncio.gather(*runs)

    assert meanwhile == pytest.approx(SWITCH_SECONDS)
    assert sys.getswitchinterval() == usual


async def test_what_work_raises_is_raised(aside):
    def fail(_):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await aside().run(fail)


async def test_a_few_run_at_once_and_the_rest_waits(aside):
    it, gate, began, inside, most = aside(), threading.Event(), threading.Semaphore(0), [], []

    def work(_):
        inside.append(1)
        most.append(len(inside))
        began.release()
        gate.wait(30)
        inside.pop()

    runs = [asyncio.ensure_future(it.run(work)) for _ in range(3 * AT_ONCE)]
    for _ in range(AT_ONCE):
        assert await asyncio.to_thread(began.acquire, timeout=30)
    for _ in range(100):
        await asyncio.sleep(0)
    assert len(inside) == AT_ONCE
    gate.set()
    await asyncio.gather(*runs)

    assert max(most) == AT_ONCE
    assert len(most) == 3 * AT_ONCE


async def test_a_wait_for_a_server_ends_with_the_time(aside):
    async def never(_):
        await asyncio.get_running_loop().create_future()

    async with peer() as server:
        server.answers = [never]
        post = {"type": "http", "verb": "POST", "url": server.url()}
        keep = {"type": "splitter", "out_size": 1}
        trial = await aside(0.2).run(dry_run(keep, post))

    assert (trial.failure.at, trial.failure.phase) == (1, "apply")
    assert trial.failure.message == ("not over after 0.2 seconds, which is all that a dry run gets")
    assert [stage.handed_on[0].batch for stage in trial.completed] == [[1]]


async def test_scripts_that_run_and_run_end_with_the_time(aside):
    looping = {"type": "script", "max_operations": 10**12, "source": LOOP}

    trial = await aside(0.2).run(dry_run(looping, messages=range(200)))

    assert trial.failure.message.startswith("not over after 0.2 seconds")


async def test_a_step_that_only_computes_is_interrupted(aside, caplog):
    def compute(batch):
        while True:
            pass

    trial = await aside(0.1).run(dry_run(does(lambda batch: [batch]), does(compute)))

    assert trial.failure.at == 1
    assert trial.failure.message.startswith("not over after 0.1 seconds")
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_work_that_heeds_nothing_is_given_up_and_keeps_its_place(aside):
    it, gate = aside(0.1), threading.Event()

    with pytest.raises(TookTooLong):
        await it.run(lambda _: gate.wait(30))  # waits outside of Python: nothing can interrupt it
    others = [asyncio.ensure_future(it.run(lambda _: gate.wait(30))) for _ in range(AT_ONCE)]
    await asyncio.sleep(0)
    gate.set()

    assert await asyncio.gather(*others) == [True] * AT_ONCE


async def test_the_loop_goes_on_meanwhile(aside):
    turns = 0

    async def turn():
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.ensure_future(turn())
    looping = {"type": "script", "max_operations": 10**12, "source": LOOP}
    await aside(0.3).run(dry_run(looping))
    counting.cancel()

    assert turns > 100


async def test_a_request_that_is_gone_stops_its_work(aside):
    looping = {"type": "script", "max_operations": 10**12, "source": LOOP}
    it, began, over, done = aside(), threading.Event(), threading.Event(), []

    def work(limit):
        began.set()
        done.append(dry_run(looping, messages=range(200))(limit))
        over.set()

    request = asyncio.ensure_future(it.run(work))
    assert await asyncio.to_thread(began.wait, 30)
    request.cancel()
    assert await asyncio.to_thread(over.wait, 30)

    assert done[0].failure.message.startswith("not over after")


@pytest.mark.long
async def test_how_the_work_of_a_request_that_is_gone_ends_is_told_nobody(aside):
    it, told, began, ended = aside(), [], threading.Event(), threading.Event()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))

    def work(limit):
        began.set()
        ended.wait(30)
        raise TookTooLong(limit.seconds)

    runs = [asyncio.ensure_future(it.run(work)) for _ in range(AT_ONCE)]
    assert await asyncio.to_thread(began.wait, 30)
    for run in runs:
        run.cancel()
    await asyncio.gather(*runs, return_exceptions=True)
    ended.set()

    assert await it.run(lambda _: 7) == 7  # there is a place again
    del runs, run
    gc.collect()
    assert told == []


async def test_who_comes_when_too_many_wait_is_refused(aside):
    it, gate = aside(most_waiting=2), threading.Event()
    runs = [asyncio.ensure_future(it.run(lambda _: gate.wait(30))) for _ in range(AT_ONCE + 2)]
    await asyncio.sleep(0)

    with pytest.raises(TooMany, match="2 dry runs are waiting already"):
        await it.run(lambda _: 7)
    runs.pop().cancel()
    await asyncio.sleep(0)
    late = asyncio.ensure_future(it.run(lambda _: 7))
    gate.set()

    assert await late == 7
    await asyncio.gather(*runs)


# All that is handed to the first transform is over at once, on a busy machine as well: with more of it the
# time is longer.
@pytest.mark.parametrize(
    ("count", "seconds"), [(2_000, 0.2), pytest.param(10_000, 1.0, marks=pytest.mark.long)]
)
async def test_many_steps_that_are_short_end_with_the_time(aside, count, seconds):
    def busy(batch):
        sum(range(20_000))
        return [batch]

    one_by_one = does(lambda batch: [[message] for message in batch])
    work = dry_run(one_by_one, *[does(busy)] * 90, messages=range(count))
    trial = await aside(seconds).run(work)

    assert trial.failure.at > 0
    assert trial.failure.message.startswith(f"not over after {seconds:g} seconds")


async def test_building_has_to_end_as_well(aside):
    def endless(ctx):
        while True:
            pass

    trial = await aside(0.1).run(dry_run(does(lambda batch: [batch]), builds(endless)))

    assert (trial.failure.at, trial.failure.phase) == (1, "build")


async def test_work_that_begins_too_late_does_not_begin(aside):
    def late(limit):
        limit.expire()
        return dry_run(does(lambda batch: [batch]))(limit)

    trial = await aside().run(late)

    assert trial.failure.phase == "build"
    assert trial.stages == []
