"""What pipelines counted when: read every five seconds, by id, as far back as was asked for."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from math import ceil

import pytest

from headrace.compiler.runtime.monitoring.pipelinerecord import PipelineRecord
from headrace.compiler.runtime.monitoring.signatures import MOST_SIGNATURES
from tests.compiler.runtime.counting import Counting, history, rows, seen
from tests.virtual import virtual

BEGAN = 1767225600
DAY = 86_400


@virtual
async def test_a_day_is_counted_by_the_minute_and_its_last_half_hour_by_five_seconds():
    kept = history()
    one = Counting(kept).begin()
    for second in range(0, DAY + 3600, 20):
        one.count(1, second)
        await one._clock.sleep(20)

    minutes, fives = rows(kept), rows(kept, resolution="fine")
    last = BEGAN + DAY + 3600
    assert (len(minutes), len(fives)) == (1440, 360)
    assert minutes == [
        (start, 3, sum(range(start - BEGAN, start - BEGAN + 60, 20)), 0)
        for start in range(last - DAY, last, 60)
    ]
    assert fives == [
        (start, int(start % 20 == 0), start - BEGAN if start % 20 == 0 else 0, 0)
        for start in range(last - 1800, last, 5)
    ]


@virtual
async def test_the_counters_of_a_new_pipeline_are_read_at_once():
    kept = history()
    one = Counting(kept)
    one.fail()  # while it came up
    one.begin()
    one.count(5)

    assert rows(kept) == rows(kept, resolution="fine") == [(BEGAN, 0, 0, 1)]

    await one._clock.sleep(2.5)
    assert rows(kept) == rows(kept, resolution="fine") == [(BEGAN, 5, 0, 1)]


@virtual
async def test_counters_are_read_in_the_middle_of_every_five_seconds():
    kept = history()
    one = Counting(kept).begin()
    await one._clock.sleep(2.5)
    one.count(1)  # just too late
    await one._clock.sleep(4.999)
    assert rows(kept, resolution="fine") == [(BEGAN, 0, 0, 0)]

    await one._clock.sleep(0.001)

    assert rows(kept, resolution="fine") == [(BEGAN, 0, 0, 0), (BEGAN + 5, 1, 0, 0)]


@virtual
async def test_what_happened_in_a_stall_lands_in_the_bucket_of_the_next_reading():
    kept = history()
    one = Counting(kept).begin()
    await one._clock.sleep(3)
    one.count(7)
    kept.close()  # nobody reads for three minutes, as when the process is halted
    await one._clock.sleep(180)

    kept.sample()

    assert rows(kept) == [
        (BEGAN, 0, 0, 0),
        (BEGAN + 60, 0, 0, 0),
        (BEGAN + 120, 0, 0, 0),
        (BEGAN + 180, 7, 0, 0),
    ]


@virtual
async def test_should_time_go_back_it_stands_still_and_nothing_is_lost():
    kept = history()
    record = PipelineRecord("p", Counting(kept)._clock, 600)
    record.add(BEGAN + 100, (1, 0, 0))

    record.add(BEGAN, (2, 0, 0))
    record.add(BEGAN - 10_000, (4, 0, 0))
    record.add(BEGAN + 120, (8, 0, 0))

    told = record.buckets("coarse")
    assert (told.start, list(told.counts)) == (BEGAN + 60, [7, 0, 0, 8, 0, 0])


@virtual
async def test_a_new_run_under_an_id_is_counted_from_zero_and_its_past_goes_on():
    kept = history()
    first = Counting(kept).begin()
    first.count(100, 90)
    first.fail(times=10)
    await first._clock.sleep(63)
    first.count(11)
    first.end()  # two seconds before the next reading: what it counted since is not lost
    await first._clock.sleep(120)
    second = Counting(kept).begin()
    second.count(3, 3)
    second.fail(times=2)
    await first._clock.sleep(5)

    assert rows(kept) == [
        (BEGAN, 100, 90, 10),
        (BEGAN + 60, 11, 0, 0),
        (BEGAN + 120, 0, 0, 0),
        (BEGAN + 180, 3, 3, 2),
    ]
    assert seen(kept) == {"full": 12}


@virtual
async def test_a_run_that_ends_while_the_next_one_counts_is_counted_beside_it():
    kept = history()
    first, second = Counting(kept).begin(), Counting(kept).begin()
    first.count(1)
    second.count(10)
    await first._clock.sleep(5)
    first.count(2)
    first.end()
    first.end()  # which changes nothing
    await first._clock.sleep(55)
    second.count(20)
    await first._clock.sleep(5)

    assert rows(kept) == [(BEGAN, 13, 0, 0), (BEGAN + 60, 20, 0, 0)]


@virtual
async def test_a_past_is_kept_as_long_as_any_pipeline_counts_under_its_id():
    kept = history(retention_seconds=60)
    first, second = Counting(kept).begin(), Counting(kept).begin()
    first.count(1)
    first.end()
    await first._clock.sleep(300)

    second.count(2)
    await first._clock.sleep(5)
    assert rows(kept) == [(BEGAN + 300, 2, 0, 0)]

    second.end()
    await first._clock.sleep(70)
    assert rows(kept) == []


@virtual
async def test_pipelines_have_a_past_each():
    kept = history()
    one, two = Counting(kept, "a").begin(), Counting(kept, "b").begin()
    one.count(1)
    two.count(2)
    two.fail()
    await one._clock.sleep(5)

    assert (rows(kept, "a"), seen(kept, "a")) == ([(BEGAN, 1, 0, 0)], {})
    assert (rows(kept, "b"), seen(kept, "b")) == ([(BEGAN, 2, 0, 1)], {"full": 1})


@virtual
async def test_what_failed_while_a_pipeline_came_up_belongs_to_it_from_when_it_runs():
    kept = history()
    one = Counting(kept)
    one.fail("not there yet", times=3)
    assert seen(kept) == {}

    one.begin()
    one.fail("full")
    await one._clock.sleep(5)

    assert seen(kept) == {"not there yet": 3, "full": 1}
    assert rows(kept) == [(BEGAN, 0, 0, 4)]


@virtual
async def test_the_past_of_a_deleted_pipeline_stands_still_and_is_told_for_as_long_as_history_goes_back():
    kept = history(retention_seconds=600)
    one = Counting(kept).begin()
    await one._clock.sleep(60)
    one.count(4)
    one.fail()
    one.end()
    stood = rows(kept)
    assert stood == [(BEGAN, 0, 0, 0), (BEGAN + 60, 4, 0, 1)]

    await one._clock.sleep(599)
    assert rows(kept) == stood

    await one._clock.sleep(6)
    assert (rows(kept), seen(kept), kept._records) == ([], {}, {})


@virtual
async def test_of_a_pipeline_that_never_did_anything_nothing_is_kept_when_it_is_gone():
    kept = history()
    one = Counting(kept).begin()
    await one._clock.sleep(30)
    one.end()

    await one._clock.sleep(5)

    assert kept._records == {}


@virtual
async def test_the_pasts_of_deleted_pipelines_are_bounded_and_the_first_that_ended_goes():
    kept = history(most_ended_bytes=1_000_000)
    for number in range(600):
        one = Counting(kept, f"p{number}").begin()
        one.count(1)
        one.end()
    await one._clock.sleep(5)

    sizes = sum(record.size for record in kept._records.values())
    assert 990_000 < sizes <= 1_000_000
    left = len(kept._records)
    assert list(kept._records) == [f"p{number}" for number in range(600 - left, 600)]


@virtual
async def test_a_pipeline_that_runs_keeps_its_past_however_many_others_come_and_go():
    kept = history(most_ended_bytes=1_000_000)
    kept_one = Counting(kept, "stays").begin()
    kept_one.count(1)
    again = Counting(kept, "again").begin()
    again.count(1)
    again.end()
    Counting(kept, "again").begin()
    for number in range(600):
        one = Counting(kept, f"p{number}").begin()
        one.count(1)
        one.end()
    await one._clock.sleep(5)

    assert rows(kept, "stays") == rows(kept, "again") == [(BEGAN, 1, 0, 0)]


@virtual
async def test_nobody_reads_when_there_is_nothing_to_read():
    kept = history(retention_seconds=60)
    one = Counting(kept).begin()
    one.count(1)
    one.end()
    assert kept._timer is not None

    await one._clock.sleep(120)
    assert kept._timer is None

    again = Counting(kept).begin()
    again.count(2)
    await one._clock.sleep(5)
    assert rows(kept) == [(BEGAN + 120, 2, 0, 0)]


@virtual
async def test_with_a_retention_of_nothing_nothing_is_recorded_and_no_timer_runs():
    kept = history(retention_seconds=0)
    one = Counting(kept).begin()
    one.count(1)
    one.fail(times=3)
    await one._clock.sleep(60)
    kept.sample()

    assert (rows(kept), rows(kept, resolution="fine"), seen(kept)) == ([], [], {})
    assert (kept._timer, kept._records) == (None, {})
    assert one.failures.total == 3  # which the metrics still tell
    one.end()


@virtual
async def test_an_unknown_id_has_an_empty_past_of_either_resolution():
    kept = history()

    assert (kept.past("x", "coarse").buckets.width, kept.past("x", "fine").buckets.width) == (60, 5)
    assert (rows(kept, "x"), seen(kept, "x"), kept._records) == ([], {}, {})


@pytest.mark.parametrize("retention", [1, 59, 61, 600, 1799, 1803, 604_800])
@virtual
async def test_there_are_as_many_buckets_as_the_retention_has_minutes_and_five_seconds(retention):
    record = PipelineRecord("p", Counting(history())._clock, retention)
    for second in range(0, retention + 7200, 5):
        record.add(BEGAN + second, (1, 0, 0))

    coarse, fine = record.buckets("coarse"), record.buckets("fine")
    assert len(coarse) == ceil(retention / 60)
    assert len(fine) == ceil(min(1800, retention) / 5)
    assert list(coarse.counts[:-3:3]) == [12] * (len(coarse) - 1)
    assert list(fine.counts[::3]) == [1] * len(fine)


def memory_of(make: Callable[[], PipelineRecord]) -> int:
    """Return how many bytes a record takes."""
    tracemalloc.start()
    record = make()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < record.size * 1.2  # which is what the records of the deleted are bounded by
    return taken


def idle(record: PipelineRecord) -> PipelineRecord:
    record.add(BEGAN, (0, 0, 0))
    return record


def fill(record: PipelineRecord, count: int = 2**24) -> PipelineRecord:
    for second in (*range(0, DAY, 60), *range(DAY, DAY + 2000, 5)):
        record.add(BEGAN + second, (count, count, 1))
    return record


def fail(record: PipelineRecord) -> PipelineRecord:
    for number in range(MOST_SIGNATURES):
        record.signatures.count("output", 0, f"{number:02}" + "x" * 2046)
    return record


@virtual
async def test_a_record_of_a_whole_day_takes_less_than_64_kib_and_an_idle_one_less_than_two():
    kept = history()
    clock = Counting(kept)._clock

    assert memory_of(lambda: idle(PipelineRecord("p", clock, DAY))) < 2048
    assert memory_of(lambda: fill(PipelineRecord("p", clock, DAY))) < 32 * 1024  # 21.6 KB of counts
    assert memory_of(lambda: fill(PipelineRecord("p", clock, DAY), 2**40)) < 64 * 1024
    # The worst there is: 64 texts of two kilobytes as well.
    assert memory_of(lambda: fail(fill(PipelineRecord("p", clock, DAY)))) < 192 * 1024


@virtual
async def test_what_is_sampled_of_a_thousand_pipelines_is_exact():
    kept = history()
    every = [Counting(kept, f"p{number}").begin() for number in range(1000)]
    for turn in range(1, 4):
        for number, one in enumerate(every):
            one.count(number, turn)
        await one._clock.sleep(60)

    for number in range(1000):
        assert rows(kept, f"p{number}") == [
            (BEGAN + 60 * turn, number, turn + 1, 0) for turn in range(3)
        ]
