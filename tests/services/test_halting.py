"""A process that is halted does nothing from the first line of the block on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients import PATIENCE
from tests.server import end_with_parent
from tests.services.halting import children, halted
from tests.stopwatch import Stopwatch

# Two processes that count in a file which they share, as long as who started them lives. Not their first
# threads do: those are who is told of a signal, and the others go on until they have had their turn.
COUNTING = """
import mmap, os, sys, threading
with open(sys.argv[1], "r+b") as file:
    counts = memoryview(mmap.mmap(file.fileno(), 16)).cast("Q")
place = 0 if os.fork() else 1
parent = os.getppid()
def count():
    while os.getppid() == parent: counts[place] += 1
threading.Thread(target=count).start()
"""

Counts = Callable[[], list[int]]
"""Returns how far each of them is."""


@pytest.fixture
def counting(tmp_path: Path) -> Iterator[tuple[int, Counts]]:
    """Give a process that counts, as its child does, and what looks where both are."""
    file = tmp_path / "counts"
    file.write_bytes(bytes(16))
    process = subprocess.Popen(
        [sys.executable, "-c", COUNTING, file], start_new_session=True, preexec_fn=end_with_parent
    )
    try:
        yield process.pid, lambda: memoryview(file.read_bytes()).cast("Q").tolist()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_nothing_is_done_while_a_process_and_its_child_are_halted(counting):
    process, counts = counting
    goes_on(counts)

    for _ in range(50):
        with halted(process):
            before = counts()
            for _ in range(1000):
                os.sched_yield()
            assert counts() == before
        goes_on(counts)


def goes_on(counts: Counts) -> None:
    """Return when both have counted on."""
    watch, before = Stopwatch(), counts()
    while not all(new > old for new, old in zip(counts(), before, strict=True)):
        assert watch.seconds < PATIENCE
        os.sched_yield()


def test_a_process_that_is_over_is_halted_already():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    with halted(process.pid):
        assert children(process.pid) == []
