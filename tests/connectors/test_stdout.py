"""The `stdout` output, on real pipes, sockets and terminals."""

import asyncio
import json
import os
import pty
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.errors import BatchFailed
from headrace.connectors.stdout import LineWriter, StdoutOutput, StdoutSink, standard_output
from tests.doubles import StubContext, refusals
from tests.promises import promise
from tests.virtual import virtual

PIPE_SIZE = 65536
LONG = "x" * (2 * PIPE_SIZE)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Give the reading and the writing end."""
    ends = os.pipe()
    yield ends
    for end in ends:
        with suppress(OSError):  # the test has closed it
            os.close(end)


def sink(lines: LineWriter, pipeline: str = "p1") -> StdoutSink:
    return StdoutSink(pipeline, Clock(asyncio.get_running_loop()), lines)


def read(descriptor: int, count: int) -> bytes:
    """Return exactly so many lines."""
    found = b""
    while found.count(b"\n") < count:
        found += os.read(descriptor, PIPE_SIZE)
    return found


def batches(printed: bytes) -> list:
    """Return what the lines hold, in order."""
    return [json.loads(line)["batch"] for line in printed.splitlines()]


@virtual(started_at=datetime(2026, 3, 1, 8, 0, 0, 123999, tzinfo=UTC))
async def test_a_batch_is_one_line_of_json(capfdbinary):
    opened = StdoutOutput.load({}).open(StubContext(pipeline='the "p"'))

    await opened.write([{"n": 1, "s": "ü"}, 2.0])

    assert (
        capfdbinary.readouterr().out
        == (
            '{"ts":"2026-03-01T08:00:00.123Z","pipeline":"the \\"p\\"","count":2,'
            '"batch":[{"n":1,"s":"ü"},2.0]}\n'
        ).encode()
    )


@promise("stdout.output.written", "stdout.output.twice")
@virtual
async def test_a_line_is_out_when_its_batch_is_written(pipe):
    out, into = pipe
    opened = sink(LineWriter(into))

    await opened.write([1])
    first = os.read(out, PIPE_SIZE)
    await opened.write([2])
    second = os.read(out, PIPE_SIZE)

    assert [batches(first), batches(second)] == [[[1]], [[2]]]


@virtual
async def test_an_empty_batch_prints_nothing(pipe):
    out, into = pipe

    await sink(LineWriter(into)).write([])
    os.close(into)

    assert os.read(out, 1) == b""


def test_all_pipelines_share_one_writer():
    assert standard_output() is standard_output()


@promise("stdout.output.away")
async def test_while_nobody_reads_only_who_prints_waits(pipe):
    out, into = pipe
    lines = LineWriter(into)
    first, second = sink(lines, "first"), sink(lines, "second")

    long = asyncio.create_task(first.write([LONG]))
    await asyncio.sleep(0)
    short = asyncio.create_task(second.write(["short"]))
    for _ in range(100):
        await asyncio.sleep(0)  # the loop goes on
    waited = (long.done(), short.done())
    printed = await asyncio.to_thread(read, out, 2)
    await asyncio.gather(long, short)

    assert waited == (False, False)
    assert batches(printed) == [[LONG], ["short"]]


async def test_after_a_stall_lines_are_printed_at_once_again(pipe):
    out, into = pipe
    opened = sink(LineWriter(into))
    stalled = asyncio.create_task(opened.write([LONG]))
    await asyncio.to_thread(read, out, 1)
    await stalled

    await opened.write(["next"])

    assert batches(read(out, 1)) == [["next"]]


async def test_a_line_whose_pipeline_did_not_wait_is_printed_whole(pipe):
    out, into = pipe
    lines = LineWriter(into)
    given_up = asyncio.create_task(sink(lines).write([LONG]))
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.wait([given_up])
    after = asyncio.create_task(sink(lines).write(["after"]))

    printed = await asyncio.to_thread(read, out, 2)
    await after

    assert batches(printed) == [[LONG], ["after"]]


@promise("stdout.output.fails.no_reader")
@virtual
async def test_a_reader_that_is_gone_fails_the_batch(pipe):
    out, into = pipe
    opened = sink(LineWriter(into))
    os.close(out)

    for _ in range(2):
        with pytest.raises(BatchFailed) as failed:
            await opened.write([1])
        assert str(failed.value) == "writing to standard output: broken pipe"
        assert failed.value.failure == "misconfigured"


async def test_a_reader_that_goes_while_a_line_waits_fails_the_batch(pipe):
    out, into = pipe
    writing = asyncio.create_task(sink(LineWriter(into)).write([LONG]))
    await asyncio.sleep(0)

    os.close(out)

    with pytest.raises(BatchFailed) as failed:
        await writing
    assert str(failed.value) == "writing to standard output: broken pipe"


@promise("stdout.output.fails.no_reader")
@virtual
async def test_a_standard_output_that_was_never_open_fails_the_batch(monkeypatch):
    standard_output.cache_clear()
    monkeypatch.setattr(sys, "__stdout__", None)
    try:
        opened = StdoutOutput.load({}).open(StubContext())
        with pytest.raises(BatchFailed) as failed:
            await opened.write([1])
    finally:
        standard_output.cache_clear()

    assert str(failed.value) == "writing to standard output: bad file descriptor"
    assert failed.value.failure == "misconfigured"


@promise("stdout.output.fails.full")
async def test_a_file_on_a_full_disk_is_unavailable():
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        with pytest.raises(BatchFailed) as failed:
            await sink(LineWriter(full)).write([1])
    finally:
        os.close(full)

    assert str(failed.value) == "writing to standard output: no space left on device"
    assert failed.value.failure == "unavailable"


@promise("stdout.output.fails.device")
async def test_a_terminal_that_is_gone_is_unavailable():
    controller, terminal = pty.openpty()
    os.close(controller)
    try:
        with pytest.raises(BatchFailed) as failed:
            await sink(LineWriter(terminal)).write([1])
    finally:
        os.close(terminal)

    assert str(failed.value) == "writing to standard output: input/output error"
    assert failed.value.failure == "unavailable"


async def test_a_socket_that_nobody_reads_holds_up_nobody_else():
    out, into = socket.socketpair()
    with out, into:
        opened = sink(LineWriter(into.fileno()))
        await opened.write(["short"])
        long = asyncio.create_task(opened.write([LONG * 8]))
        for _ in range(100):
            await asyncio.sleep(0)
        waited = long.done()
        printed = await asyncio.to_thread(read, out.fileno(), 2)
        await long

    assert not waited
    assert batches(printed) == [["short"], [LONG * 8]]


async def test_a_terminal_that_nobody_reads_holds_up_nobody_else():
    controller, terminal = pty.openpty()
    opened = sink(LineWriter(terminal))

    long = asyncio.create_task(opened.write([LONG]))
    for _ in range(100):
        await asyncio.sleep(0)
    waited = long.done()
    printed = await asyncio.to_thread(read, controller, 1)
    await long
    os.close(controller)
    os.close(terminal)

    assert not waited
    assert batches(printed) == [[LONG]]


@virtual
async def test_a_file_takes_every_line_at_once(tmp_path: Path):
    with (tmp_path / "out").open("wb") as file:
        opened = sink(LineWriter(file.fileno()))
        await opened.write([LONG])
        await opened.write([2])

    assert batches((tmp_path / "out").read_bytes()) == [[LONG], [2]]


def test_the_process_can_end_while_nobody_reads_its_output(pipe):
    # The pipe is kept open and unread: a write that cannot be given up would never let go.
    script = """
import asyncio
from headrace.connectors.stdout import standard_output

async def main():
    waiting = standard_output().begin(b"x" * 1_000_000)
    await asyncio.wait([waiting], timeout=0.05)
    assert not waiting.done()

asyncio.run(main())
"""
    _, into = pipe

    ended = subprocess.run([sys.executable, "-c", script], stdout=into, timeout=30, check=False)

    assert ended.returncode == 0


def test_it_has_no_options():
    assert refusals(StdoutOutput, {"format": "text"}) == ["format: unknown key 'format'"]


def test_what_it_takes_is_left_out_or_has_a_condition():
    assert refusals(StdoutOutput, {"when": []}) == [
        "when: expected a list of at least one condition, found an empty list"
    ]
