"""Who watches a bucket is told what was written, by whom it concerns, and no longer than it watches."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from tests.compiler.bucketed import bucket, write
from tests.virtual import virtual


@virtual
async def test_a_watcher_is_told_when_all_of_a_merge_is_written():
    it, seen = bucket(), []
    it.watch("a", lambda: seen.append({**it.get("a"), **it.get("b")}))

    it.merge({"a": {"n": 1}, "b": {"m": 2}})
    it.merge({"b": {"m": 3}})

    assert seen == [{"n": 1, "m": 2}]


@virtual
async def test_watchers_are_told_by_key_and_then_as_they_came():
    it, told = bucket(), list[str]()
    for name in ("b1", "a1", "b2"):
        it.watch(name[0], lambda name=name: told.append(name))

    it.merge({"b": {"n": 1}, "a": {"n": 1}})

    assert told == ["a1", "b1", "b2"]


@virtual
async def test_a_watcher_that_has_left_is_told_nothing():
    it, told = bucket(), list[int]()
    leave = it.watch("a", lambda: told.append(1))
    it.watch("a", lambda: told.append(2))

    leave()
    leave()
    write(it, "a")

    assert told == [2]


@virtual
async def test_one_that_watches_twice_leaves_once():
    it, told = bucket(), list[int]()

    def watcher() -> None:
        told.append(1)

    leave, _ = it.watch("a", watcher), it.watch("a", watcher)
    leave()
    leave()
    write(it, "a")

    assert told == [1]


@virtual
async def test_one_that_left_long_ago_ends_nobody_elses_watch():
    it, told = bucket(), list[int]()
    leave = it.watch("a", lambda: told.append(1))
    leave()
    it.watch("a", lambda: told.append(2))

    leave()
    write(it, "a")

    assert told == [2]


@virtual
async def test_a_watcher_may_end_another_ones_watch_while_it_is_told():
    it, told = bucket(), list[str]()
    leaves: list[Callable[[], None]] = []

    def first() -> None:
        told.append("first")
        for leave in leaves:
            leave()

    leaves += [it.watch("a", first), it.watch("a", lambda: told.append("second"))]
    write(it, "a", "a")

    assert told == ["first"]


@virtual
async def test_a_watcher_that_comes_while_others_are_told_waits_for_the_next_write():
    it, told = bucket(), list[str]()

    def first() -> None:
        told.append("first")
        if len(told) == 1:
            it.watch("a", lambda: told.append("second"))

    it.watch("a", first)
    write(it, "a")
    assert told == ["first"]

    write(it, "a")
    assert told == ["first", "first", "second"]


@virtual
async def test_a_watcher_may_write():
    it, told = bucket(), list[Any]()

    def count() -> None:
        so_far = (it.get("b") or {}).get("n", 0)
        assert isinstance(so_far, int)
        if so_far < 3:
            it.merge({"b": {"n": so_far + 1}, "a": {"again": True}})

    it.watch("a", count)
    it.watch("b", lambda: told.append(it.get("b")))
    write(it, "a")

    assert it.get("b") == {"n": 3}
    assert len(told) == 3


@virtual
async def test_the_fault_of_a_watcher_is_logged_and_not_the_writers(caplog):
    it, told = bucket(), list[int]()

    def broken() -> None:
        raise ZeroDivisionError

    it.watch("a", broken)
    it.watch("a", lambda: told.append(1))
    with caplog.at_level(logging.ERROR):
        write(it, "a")

    assert told == [1]
    assert [record.getMessage() for record in caplog.records] == [
        "bucket 'machines': a reader of 'a' broke"
    ]


@virtual
async def test_nothing_is_left_of_watchers_that_are_gone():
    it = bucket()

    for leave in [it.watch(key, print) for key in "aab"]:
        leave()

    assert it._watchers == {}
