"""When the `file` output closes a part, and what is on the disk by then."""

import asyncio
import os
import threading

import pytest

from headrace.connectors.file import FileOutput
from tests.file_sides import FIRST, MORNING, context, opened, parts
from tests.promises import promise
from tests.rotating import write_for_a_minute_each
from tests.virtual import virtual


@pytest.fixture
def synced(monkeypatch) -> list[threading.Thread]:
    """Give the threads that synced something to the disk, in order."""
    threads = []
    real = os.fsync

    def spy(descriptor: int) -> None:
        threads.append(threading.current_thread())
        real(descriptor)

    monkeypatch.setattr(os, "fsync", spy)
    return threads


# Rotation


@virtual(started_at=MORNING)
async def test_a_part_is_closed_after_the_batch_that_fills_it(tmp_path):
    sink = opened(tmp_path, rotate={"max_rows": 3})

    for batch in ([1, 2], [3, 4, 5, 6], [7], [8], [9], [10]):
        await sink.write(batch)
    await sink.finish()

    assert parts(tmp_path) == {
        "2026-03-01T08-00-00Z-000001.ndjson": b"1\n2\n3\n4\n5\n6\n",
        "2026-03-01T08-00-00Z-000002.ndjson": b"7\n8\n9\n",
        "2026-03-01T08-00-00Z-000003.ndjson": b"10\n",
    }


@virtual(started_at=MORNING)
async def test_no_rows_are_read_as_one(tmp_path):
    sink = opened(tmp_path, rotate={"max_rows": 0}, format="json_array")

    await sink.write([1])
    await sink.write([2, 3])
    await sink.finish()

    assert list(parts(tmp_path).values()) == [b"[1]", b"[2,3]"]


@virtual(started_at=MORNING)
async def test_a_part_is_closed_on_time_also_while_nothing_arrives(tmp_path, synced):
    ctx = context(tmp_path)
    config = {"connection": "disk", "path": "readings", "rotate": {"interval_secs": 60}}
    sink = FileOutput.load(config).open(ctx)

    await ctx.clock.sleep(10)
    await sink.write([1])
    await ctx.clock.sleep(59)
    await sink.write([2])
    before = len(synced)
    await ctx.clock.sleep(2)
    after = len(synced)
    await ctx.clock.sleep(3600)
    await sink.write([3])
    await sink.finish()

    assert (before, after) == (0, 2)  # the file and its directory
    assert parts(tmp_path) == {
        "2026-03-01T08-00-10Z-000001.ndjson": b"1\n2\n",
        "2026-03-01T09-01-11Z-000002.ndjson": b"3\n",
    }


@virtual(started_at=MORNING)
async def test_the_time_runs_from_the_opening_of_each_part(tmp_path):
    ctx = context(tmp_path)
    rotate = {"interval_secs": 60, "max_rows": 2}
    sink = FileOutput.load({"connection": "disk", "path": "readings", "rotate": rotate}).open(ctx)

    await write_for_a_minute_each(sink, ctx.clock)

    assert list(parts(tmp_path).values()) == [b"1\n2\n", b"3\n4\n", b"5\n"]


@virtual(started_at=MORNING)
async def test_without_limits_a_part_lasts_as_long_as_the_run(tmp_path):
    ctx = context(tmp_path)
    config = {"connection": "disk", "path": "readings", "rotate": {}}
    sink = FileOutput.load(config).open(ctx)

    for n in range(50):
        await sink.write([n])
        await ctx.clock.sleep(86400)
    await sink.finish()

    assert list(parts(tmp_path)) == [FIRST]


# Closing


@promise("file.output.written", "delivery.case.killed")
@virtual
async def test_what_is_closed_is_on_the_disk_and_the_loop_did_not_wait_for_that(tmp_path, synced):
    sink = opened(tmp_path, rotate={"max_rows": 1})

    await sink.write([1])
    await sink.finish()

    assert len(synced) == 2  # the file and its directory
    assert threading.main_thread() not in synced


async def test_a_disk_that_does_not_keep_up_holds_up_its_own_output(tmp_path, monkeypatch):
    disk = threading.Event()
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: disk.wait(30) and real(descriptor))
    sink = opened(tmp_path, rotate={"max_rows": 1})

    for n in range(4):
        await sink.write([n])
    fifth = asyncio.create_task(sink.write([4]))
    for _ in range(100):
        await asyncio.sleep(0)
    waited = not fifth.done()
    disk.set()
    await fifth
    await sink.finish()

    assert waited
    assert list(parts(tmp_path).values()) == [b"0\n", b"1\n", b"2\n", b"3\n", b"4\n"]


async def test_no_descriptor_is_left_open(tmp_path):
    sink = opened(tmp_path, rotate={"max_rows": 2})  # which holds the data directory
    before = os.listdir("/dev/fd")

    for n in range(7):
        await sink.write([n])
    await sink.finish()

    assert os.listdir("/dev/fd") == before


async def test_a_part_that_cannot_be_synced_is_reported(tmp_path, monkeypatch):
    def broken(_: int) -> None:
        raise OSError(5, "never shown")

    monkeypatch.setattr(os, "fsync", broken)
    ctx = context(tmp_path)
    sink = FileOutput.load({"connection": "disk", "path": "readings"}).open(ctx)

    await sink.write([1])
    await sink.finish()

    assert ctx.failures == ["closing a part of 'readings': input/output error"]
