"""A writer of a bucket does what `merge` does, for names that are always the same."""

import asyncio

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.compiler.buckets import MOMENT, SPARE, Bounds, Bucket
from headrace.compiler.clock import Clock, run_virtual
from tests.virtual import virtual

READS = {"mode": "m['mode']", "last speed": "m['speed']"}


def clock():
    return Clock(asyncio.get_running_loop())


def bucket(max_keys=10, idle=None):
    return Bucket("machines", Bounds(max_keys, idle), clock())


def content(it):
    """Return what is remembered, in the order of the last write, with the times."""
    return [
        (key, [*entry.values.items()], entry.at)
        for key, entry in it.entries.items()
        if entry.at > it.cutoff()
    ]


def merged(rows):
    """Return rows as `merge` takes them."""
    return {key: {"mode": m["mode"], "last speed": m["speed"]} for key, m in rows.items()}


def backwards(rows):
    """Return rows as a writer takes them: what is written last comes first."""
    return dict(reversed(rows.items()))


def alike(keys, value):
    """Return a row for each key."""
    return {key: {"mode": value, "speed": value} for key in keys}


rows = st.dictionaries(
    st.sampled_from("abcdef"),
    st.fixed_dictionaries({"mode": st.integers(0, 9), "speed": st.integers(0, 9)}),
    max_size=5,
)


@given(
    st.builds(Bounds, st.integers(1, 6), st.sampled_from([None, 1, 3])),
    st.lists(st.tuples(rows, st.booleans(), st.integers(0, 2)), max_size=6),
)
def test_it_does_what_a_merge_does(bounds, steps):
    async def main():
        quick, plain = (bucket(bounds.max_keys, bounds.idle_seconds) for _ in range(2))
        told = []
        quick.watch("a", lambda: told.append("quick"))
        plain.watch("a", lambda: told.append("plain"))
        write = quick.writer(READS)
        for written, has_more, seconds in steps:
            if has_more:
                for it in (quick, plain):
                    it.merge({"a": {"other": 1}, "f": {"mode": -1}})
            write(backwards(written))
            plain.merge(merged(written))
            assert content(quick) == content(plain)
            assert told.count("quick") == told.count("plain")
            await clock().sleep(seconds)

    run_virtual(main)


@pytest.mark.parametrize("count", [MOMENT, MOMENT + 1])
@virtual
async def test_it_writes_any_number_of_keys(count):
    quick, plain = bucket(2 * MOMENT), bucket(2 * MOMENT)
    written = {str(key): {"mode": key, "speed": -key} for key in range(count)}

    quick.writer(READS)(backwards(written))
    plain.merge(merged(written))

    assert content(quick) == content(plain)
    assert len(quick) == count


@virtual
async def test_among_more_expired_keys_than_it_lets_go_of_none_lives_on():
    it = bucket(10 * SPARE, idle=5)
    it.merge({str(key): {"old": key} for key in range(3 * SPARE)})
    await clock().sleep(5)

    it.writer(READS)({str(3 * SPARE - 1): {"mode": 1, "speed": 2}})

    assert it.get(str(3 * SPARE - 1)) == {"mode": 1, "last speed": 2}


@given(rows, rows, st.integers(1, 8))
# The bucket is full with three: in a second round the fourth key would displace the third one.
@example(alike("dec", 0), alike("abcf", 1), 3)
def test_where_a_row_is_incomplete_nobody_is_told_and_to_merge_all_of_it_is_to_merge_it_once(
    before, written, max_keys
):
    async def main():
        quick, plain, told = bucket(max_keys), bucket(max_keys), []
        for it in (quick, plain):
            it.merge({key: {**values, "old": 1} for key, values in merged(before).items()})
        for key in [*written, "z"]:
            quick.watch(key, lambda: told.append("told"))

        with pytest.raises(KeyError):
            quick.writer(READS)(backwards({**written, "z": {"mode": 5}}))
        assert told == []

        for it in (quick, plain):
            it.merge({**merged(written), "z": {"mode": 5}})
        assert content(quick) == content(plain)

    run_virtual(main)


@pytest.mark.parametrize(
    "name", ["", "a.b", "it's", 'a "b"', "a\\", "a\nb", "{m}", "{}", "größe", "\ud800", "x" * 1000]
)
@virtual
async def test_any_name_can_be_written(name):
    it = bucket()

    it.writer({name: "m['mode']"})({"k": {"mode": "auto"}})
    it.writer({name: "m['mode']", "b": "1"})({"k": {"mode": "off"}})

    assert it.get("k") == {name: "off", "b": 1}
