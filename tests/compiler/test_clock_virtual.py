"""Virtual time: all that waits jumps together, and what is not on the loop takes none of it."""

import asyncio
import re
import socket
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from reactivex import interval
from reactivex import operators as ops

from headrace.compiler.clock import Stalled, run_virtual
from tests.compiler.clocked import HOUR, NEW_YEAR, here, work
from tests.virtual import virtual

# --- virtual time


@virtual
async def test_all_that_waits_jumps_together():
    clock, seen = here(), []

    def note(what):
        seen.append((what, clock.monotonic(), clock.now() - NEW_YEAR))

    async def sleeper():
        await asyncio.sleep(60)
        note("asyncio.sleep")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 60)
        note("asyncio.wait_for")
        with pytest.raises(TimeoutError):
            async with clock.timeout(60):
                await clock.sleep(HOUR)
        note("timeout")

    clock.call_later(90, lambda: note("call_later"))
    clock.call_at(150, lambda: note("call_at"))
    clock.scheduler.schedule_relative(30, lambda *_: note("rx relative"))
    clock.scheduler.schedule_absolute(
        NEW_YEAR + timedelta(seconds=75.5), lambda *_: note("rx absolute")
    )
    await sleeper()

    assert seen == [
        (what, seconds, timedelta(seconds=seconds))
        for what, seconds in [
            ("rx relative", 30.0),
            ("asyncio.sleep", 60.0),
            ("rx absolute", 75.5),
            ("call_later", 90.0),
            ("asyncio.wait_for", 120.0),
            ("call_at", 150.0),
            ("timeout", 180.0),
        ]
    ]


def test_an_hour_of_windows_takes_less_than_a_second():
    windows = []

    async def hour():
        clock, source = here(), asyncio.get_running_loop().create_future()
        scheduler = clock.scheduler

        def release(*_):
            windows.append(clock.monotonic())
            if clock.monotonic() < HOUR:
                scheduler.schedule_relative(60, release)

        async def idle():
            await asyncio.wait_for(source, 1800)

        scheduler.schedule_relative(60, release)
        waiter = asyncio.ensure_future(idle())
        for _ in range(20_000):
            await clock.sleep(0.18)
        with pytest.raises(TimeoutError):
            await waiter
        return clock.monotonic()

    began = time.thread_time()
    ended = run_virtual(hour)

    assert ended == HOUR
    assert windows == [60.0 * count for count in range(1, 61)]
    assert time.thread_time() - began < 1


@pytest.mark.long
@virtual
async def test_sums_of_fractions_do_not_drift():
    clock = here()

    for _ in range(36_000):
        await clock.sleep(0.1)

    assert clock.monotonic() == HOUR
    assert clock.timestamp() == "2026-01-01T01:00:00.000000+00:00"


@virtual
async def test_a_wait_of_a_year_ends_to_the_microsecond():
    clock = here()

    await clock.sleep(365 * 86_400 + 0.000_001)

    assert clock.monotonic() == 365 * 86_400 + 0.000_001
    assert clock.timestamp() == "2027-01-01T00:00:00.000001+00:00"


@virtual
async def test_a_wait_shorter_than_a_tick_still_moves_time():
    clock = here()

    while clock.monotonic() < 0.0001:
        await clock.sleep(1e-9)

    assert clock.monotonic() == 0.0001


@virtual
async def test_what_is_ready_runs_before_time_moves():
    clock, order = here(), []

    async def busy():
        for _ in range(1000):
            await clock.sleep(0)
        order.append(("busy", clock.monotonic()))

    clock.call_later(0.000_001, lambda: order.append(("timer", clock.monotonic())))
    await asyncio.gather(busy(), clock.sleep(1))

    assert order == [("busy", 0.0), ("timer", 0.000_001)]


@virtual
async def test_a_cancelled_timer_does_not_move_time():
    clock = here()

    clock.call_later(10, work).cancel()
    clock.scheduler.schedule_relative(20, lambda *_: None).dispose()
    await clock.sleep(5)

    assert clock.monotonic() == 5


@virtual
async def test_the_clocks_of_one_virtual_loop_agree():
    early = here()
    await early.sleep(HOUR)
    late, own = here(), here(started_at=datetime(2000, 1, 1, tzinfo=UTC))

    await early.sleep(HOUR)

    assert early.now() == late.now() == NEW_YEAR + timedelta(hours=2)
    assert own.now() == datetime(2000, 1, 1, 1, tzinfo=UTC)


# --- Rx


@virtual
async def test_the_scheduler_shows_the_time_of_the_clock():
    clock = here()

    await clock.sleep(HOUR)

    assert clock.scheduler.now == clock.now() == NEW_YEAR + timedelta(hours=1)
    assert clock.scheduler is clock.scheduler


@virtual
async def test_operators_that_know_time_run_on_the_scheduler():
    clock, seen, over = here(), [], asyncio.Event()
    minutes = interval(60, scheduler=clock.scheduler)

    minutes.pipe(ops.take(3), ops.timestamp(scheduler=clock.scheduler)).subscribe(
        seen.append, on_completed=over.set
    )
    await over.wait()

    assert [(item.value, item.timestamp - NEW_YEAR) for item in seen] == [
        (0, timedelta(minutes=1)),
        (1, timedelta(minutes=2)),
        (2, timedelta(minutes=3)),
    ]


def test_rx_is_imported_when_a_scheduler_is_asked_for():
    asked = "import sys, headrace.compiler.clock; print('reactivex' in sys.modules)"

    answer = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True
    )

    assert answer.stdout == "False\n"


# --- what is not on the loop


@virtual
async def test_work_in_a_thread_takes_no_virtual_time():
    clock, rung = here(), []
    clock.call_later(0.001, lambda: rung.append(clock.monotonic()))

    for _ in range(3):
        assert await asyncio.to_thread(work) == work()
        assert clock.monotonic() == 0
    await clock.sleep(1)

    assert rung == [0.001]


@virtual
async def test_waiting_for_a_thread_with_no_timer_is_no_standstill():
    gate = threading.Event()
    waiting = asyncio.create_task(asyncio.to_thread(gate.wait))

    threading.Thread(target=lambda: (work(), gate.set())).start()

    assert await waiting


@virtual(patience=0.01)
async def test_a_time_limit_ends_the_wait_for_a_thread_that_is_stuck():
    clock, gate = here(), threading.Event()

    try:
        with pytest.raises(TimeoutError):
            async with clock.timeout(30):
                await asyncio.to_thread(gate.wait)
        assert clock.monotonic() == 30
        await clock.sleep(30)  # nobody waits for that thread any more
        assert clock.monotonic() == 60
    finally:
        gate.set()


@virtual
async def test_a_callback_from_a_strange_thread_arrives():
    loop, called = asyncio.get_running_loop(), asyncio.Event()

    thread = threading.Thread(
        target=lambda: (work(), loop.call_soon_threadsafe(called.set)), daemon=True
    )
    thread.start()
    await called.wait()

    assert loop.time() == 0


@virtual
async def test_what_is_awaited_outside_takes_no_virtual_time():
    clock, answer = here(), asyncio.get_running_loop().create_future()
    answered = threading.Thread(
        target=lambda: (
            work(),
            asyncio.run_coroutine_threadsafe(set_result(answer), answer.get_loop()),
        )
    )

    answered.start()
    with clock.outside():
        async with clock.timeout(0.001):
            assert await answer == "pong"

    assert clock.monotonic() == 0


async def set_result(answer):
    answer.set_result("pong")


@virtual
async def test_sockets_between_tasks_of_the_loop_take_no_virtual_time():
    async def echo(reader, writer):
        while line := await reader.readline():
            writer.write(line)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    clock = here()
    with clock.outside():
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        for _ in range(50):
            writer.write(b"ping\n")
            assert await asyncio.wait_for(reader.readline(), 0.001) == b"ping\n"
    assert clock.monotonic() == 0

    # Nobody waits for the connection now: it stays open and holds nothing up.
    await clock.sleep(HOUR)
    assert clock.monotonic() == HOUR
    writer.close()
    await writer.wait_closed()
    server.close()
    await server.wait_closed()


@virtual
async def test_a_server_in_a_thread_is_waited_for():
    clock, listener = here(), socket.create_server(("127.0.0.1", 0))

    def serve():
        with listener, listener.accept()[0] as peer:
            while line := peer.recv(100):
                work()
                peer.sendall(line)

    server = threading.Thread(target=serve)
    server.start()
    with clock.outside():
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        for _ in range(3):
            writer.write(b"ping\n")
            assert await asyncio.wait_for(reader.readline(), 0.001) == b"ping\n"
    writer.close()
    await writer.wait_closed()

    server.join()
    assert clock.monotonic() == 0


# --- standing still, and the end


def test_a_loop_with_nothing_left_to_happen_says_who_waits():
    async def room():
        await asyncio.Event().wait()

    async def standstill():
        pump = asyncio.create_task(room(), name="pump")
        await pump

    with pytest.raises(Stalled) as stalled:
        run_virtual(standstill, patience=0.01)

    (main, pump) = stalled.value.waiting
    nested = "test_a_loop_with_nothing_left_to_happen_says_who_waits.<locals>"
    assert re.fullmatch(rf"Task-\d+ \({nested}.standstill:\d+\)", main)
    assert re.fullmatch(rf"pump \({nested}.room:\d+ > Event.wait:\d+\)", pump)
    assert str(stalled.value) == (
        f"nothing is scheduled and nothing came in; waiting: {main}, {pump}"
    )


def test_tasks_are_ended_and_threads_joined_when_the_run_is_over():
    ended, thread = [], []

    async def endless():
        try:
            await asyncio.sleep(10 * HOUR)
        finally:
            ended.append(True)

    async def main():
        task = asyncio.create_task(endless())
        asyncio.get_running_loop().run_in_executor(None, lambda: thread.append(work()))
        await asyncio.sleep(0)
        return task

    task = run_virtual(main)

    assert ended == [True]
    assert task.cancelled()
    assert thread == [work()]
    assert task.get_loop().is_closed()


def test_a_run_gives_what_its_coroutine_gives():
    async def answer():
        return 42

    async def failing():
        raise LookupError("no such pipeline")

    assert run_virtual(answer) == run_virtual(answer()) == 42
    with pytest.raises(LookupError, match="no such pipeline"):
        run_virtual(failing)
