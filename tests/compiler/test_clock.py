"""The clock: one time for timers, coroutines and Rx, real or virtual."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.clock import run_virtual
from tests.compiler.clocked import HOUR, NEW_YEAR, here, work
from tests.rooms import ROOMS
from tests.virtual import virtual

# --- wall time


@virtual(started_at=datetime(2026, 3, 29, 1, 59, 59, 999_999, tzinfo=UTC))
async def test_every_reading_shows_the_same_instant():
    clock = here()

    await clock.sleep(0.25)

    assert clock.now() == datetime(2026, 3, 29, 2, 0, 0, 249_999, tzinfo=UTC)
    assert clock.timestamp() == "2026-03-29T02:00:00.249999+00:00"
    assert clock.seconds() == clock.now().timestamp()
    assert clock.millis() == 1_774_749_600_249
    assert clock.monotonic() == 0.25


@given(
    st.timedeltas(timedelta(0), timedelta(days=2_900_000)),
    st.lists(st.floats(0, 100), max_size=5),
)
def test_a_timestamp_is_rfc_3339_in_utc_with_microseconds(since_1970, pauses):
    async def timestamps():
        clock = here()
        for pause in pauses:
            await clock.sleep(pause)
            assert clock.timestamp() == clock.now().isoformat(timespec="microseconds")

    run_virtual(timestamps, started_at=datetime(1970, 1, 1, tzinfo=UTC) + since_1970)


def test_the_system_is_asked_once_and_the_monotonic_clock_carries_on():
    async def watch():
        shown, system = here().now(), datetime.now(UTC)
        clock = here(started_at=NEW_YEAR)
        first = clock.now()
        await asyncio.to_thread(work)
        return system - shown, first, clock.now()

    behind, first, later = asyncio.run(watch())

    assert timedelta(0) <= behind < timedelta(seconds=1)
    assert NEW_YEAR <= first < later < NEW_YEAR + timedelta(seconds=10)


@virtual
async def test_a_wall_time_without_a_zone_is_refused():
    with pytest.raises(TypeError, match="offset-naive"):
        here(started_at=NEW_YEAR.replace(tzinfo=None))


def test_time_is_finer_than_the_milliseconds_of_uvloop():
    async def readings():
        clock = here()
        return [clock.monotonic() for _ in range(100)], clock.timestamp()

    ticks, _ = uvloop.run(readings())

    assert len(set(ticks)) > 50
    assert ticks == sorted(ticks)


def test_deadlines_and_delays_hold_on_a_real_loop():
    async def both():
        clock, rung = here(), asyncio.Event()
        began = clock.monotonic()
        clock.call_at(began + 0.01, rung.set)
        clock.call_later(HOUR, work).cancel()
        with clock.outside():
            async with clock.timeout(5):
                await rung.wait()
        return clock.monotonic() - began

    for run in (asyncio.run, uvloop.run):
        assert 0.009 < run(both()) < 5


# --- nobody else


ELSEWHERE = re.compile(
    r"^\s*(import time\b|from time import)"
    r"|\b(datetime\.(now|utcnow|today)|date\.today|asyncio\.sleep)\((?!0\))",  # 0 gives a turn
    re.MULTILINE,
)


def test_no_other_file_asks_for_the_time_or_sleeps():
    root = Path(__file__).parents[2]
    files = [
        path
        for room in ROOMS
        for path in (root / room).rglob("*.py")
        if path != root / "compiler" / "clock.py"
    ]

    found = {
        f"{path.relative_to(root)}: {match[0].strip()}"
        for path in files
        for match in ELSEWHERE.finditer(path.read_text(encoding="utf-8"))
    }

    assert files
    assert not found
