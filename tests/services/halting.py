"""Servers that do nothing, while the system still takes what is sent to them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.clients import PATIENCE, Gone
from tests.stopwatch import Stopwatch

_STILL = frozenset("TtZX")
"""States of a thread that does nothing: stopped, traced, ended."""


def family(process: int) -> list[int]:
    """Return a process and what it has started, each before what it started itself."""
    found = [process]
    for parent in found:
        with suppress(FileNotFoundError, ProcessLookupError):
            for thread in Path(f"/proc/{parent}/task").iterdir():
                found += map(int, (thread / "children").read_text().split())
    return found


@contextmanager
def halted(processes: Iterable[int]) -> Iterator[None]:
    """Halt processes while a block lasts; it begins when none of their threads runs any more.

    A signal is only noted by the call that sends it. One thread has to have its turn to take it; until
    then the others go on, and on a busy machine may well answer somebody.
    """
    numbers = [*processes]
    try:
        for number in numbers:
            _signal(number, signal.SIGSTOP)
        _wait_until_still(numbers)
        yield
    finally:
        for number in reversed(numbers):
            _signal(number, signal.SIGCONT)


def _signal(process: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, number)


def _wait_until_still(processes: Iterable[int]) -> None:
    watch = Stopwatch()
    while not all(_is_still(number) for number in processes):
        if watch.seconds > PATIENCE:
            raise Gone(f"processes {processes} do not stop")
        os.sched_yield()


def _is_still(process: int) -> bool:
    try:
        threads = [*Path(f"/proc/{process}/task").iterdir()]
        return all(_state(thread) in _STILL for thread in threads)
    except (FileNotFoundError, ProcessLookupError):
        return True


def _state(thread: Path) -> str:
    # The name before it is in brackets, and may have any character itself.
    return (thread / "stat").read_text().rpartition(")")[2].split()[0]
