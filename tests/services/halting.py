"""Servers that do nothing, while the system still takes what is sent to them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.clients import PATIENCE, Gone
from tests.stopwatch import Stopwatch

_STILL = frozenset("TtZX")
"""States of a thread that does nothing: stopped, traced, ended."""
_ENDED = "X"


def children(process: int) -> list[int]:
    """Return the processes that a process has started; none of one that has ended."""
    return [
        int(each) for thread in _threads(process) for each in _read(thread / "children").split()
    ]


@contextmanager
def halted(process: int) -> Iterator[None]:
    """Halt a process and all that it has started while a block lasts, which begins when none runs any more.

    A signal is only noted by the call that sends it. One thread has to have its turn to take it; until
    then the others go on, and on a busy machine may well answer somebody.
    """
    numbers = [process]
    try:
        for number in numbers:
            _signal(number, signal.SIGSTOP)
            _wait_until_still(number)
            numbers += children(number)  # from now on it starts no more
        yield
    finally:
        for number in reversed(numbers):
            _signal(number, signal.SIGCONT)


def _signal(process: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, number)


def _wait_until_still(process: int) -> None:
    watch = Stopwatch()
    while not all(_state(thread) in _STILL for thread in _threads(process)):
        if watch.seconds > PATIENCE:
            raise Gone(f"process {process} does not stop")
        os.sched_yield()


def _threads(process: int) -> list[Path]:
    with suppress(FileNotFoundError, ProcessLookupError):
        return [*Path(f"/proc/{process}/task").iterdir()]
    return []


def _state(thread: Path) -> str:
    # The name before it is in brackets, and may have any character itself.
    _, _, fields = _read(thread / "stat").rpartition(")")
    return fields.split()[0] if fields else _ENDED


def _read(file: Path) -> str:
    """Return what the system tells of a thread; nothing of one that has ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return file.read_text()
    return ""
