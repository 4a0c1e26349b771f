"""A process that is killed: what it confirmed and did not let go of is there, whole, in order, and once."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.store.database import Sync
from headrace.compiler.store.lostcommits import LAST_NOT_WHOLE
from headrace.compiler.store.openstore import Store
from tests.compiler.store.producing import number, payload
from tests.rooms import REPOSITORY

KILLS = int(os.environ.get("KILLS", "10"))
"""How often each process is killed."""
MOST_LINES = 400
"""Lines that are read of what a process says until it is killed, at most."""


class Lives:
    """One folder, and the processes that have it, one after the other."""

    def __init__(self, folder: Path, sync: Sync) -> None:
        self.folder, self.sync = folder, sync
        self.confirmed, self.first = 0, 1
        self.gone: set[int] = set()
        """What was let go of, or was about to be."""
        self.numbers: dict[int, int] = {}
        """Each number that an entry had, and which entry."""
        self.counts = Counter[str]()

    def live(self) -> None:
        """Have a process work, and kill it in the middle of that."""
        command = [sys.executable, "-m", "tests.compiler.store.producing"]
        arguments = [str(self.folder), self.sync, str(self.first)]
        with subprocess.Popen(
            command + arguments, cwd=REPOSITORY, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(random.randint(2, MOST_LINES))]
            process.kill()
            lines += process.stdout.readlines()
        assert process.returncode == -9
        for line in lines:
            if line.endswith(b"\n"):
                self.hear(line.decode().split())

    def hear(self, words: list[str]) -> None:
        match words:
            case ["stored", which]:
                self.counts["confirmed"] += int(which) - max(self.confirmed, self.first - 1)
                self.confirmed = int(which)
            case ["going", *which]:
                self.gone |= set(map(int, which))
            case _:
                raise AssertionError(" ".join(words))

    async def look(self) -> None:
        """Compare what is there with what was said."""
        told: list[str] = []
        clock = Clock(asyncio.get_running_loop())
        store = await Store.open(clock, self.folder, keep_free_bytes=0, tell=told.append)
        queue = await store.queues.open("p", "http", "journal")
        found: list[int] = []
        after = -1
        while True:
            page = await store.rows.page(queue.id, after, queue.next, 2**20)
            for row in page.rows:
                for at, content in enumerate(row.payloads, row.first):
                    which = number(content)
                    assert content == payload(which)
                    assert self.numbers.setdefault(at, which) == which
                    found.append(which)
            after = page.last
            if page.is_last:
                break
        await store.close()

        assert [each for each in told if LAST_NOT_WHOLE not in each] == []
        assert queue.entries == len(found)
        assert found == sorted(found)
        there = set(found)
        confirmed = {which for which in self.expected() if which not in self.gone}
        self.counts["kept"] += len(confirmed)
        self.counts["missing"] += len(confirmed - there)
        self.counts["doubled"] += len(found) - len(there)
        self.counts["there without an answer"] += sum(which > self.confirmed for which in there)
        self.counts["let go of and there"] += len(there & self.gone)
        self.stored = there
        self.first = max([self.confirmed, *there]) + 1

    stored: set[int] = set()
    """What was there after the life before."""

    def expected(self) -> set[int]:
        """Return what was there before, and what was confirmed since."""
        return self.stored | set(range(self.first, self.confirmed + 1))


async def kill(folder: Path, sync: Sync, times: int) -> Counter[str]:
    lives = Lives(folder, sync)
    for _ in range(times):
        lives.live()
        await lives.look()
    return lives.counts


@pytest.mark.parametrize("sync", ["power", "process"])
async def test_what_was_confirmed_is_there_after_a_kill(tmp_path: Path, sync: Sync) -> None:
    counts = await kill(tmp_path / "store", sync, 1)

    assert counts["confirmed"] > 0
    assert (counts["missing"], counts["doubled"]) == (0, 0)


@pytest.mark.long
@pytest.mark.parametrize("sync", ["power", "process"])
async def test_what_was_confirmed_is_there_after_many_kills(
    tmp_path: Path, sync: Sync, record_property: Callable[[str, object], None]
) -> None:
    counts = await kill(tmp_path / "store", sync, KILLS)

    for name, count in counts.items():
        print(f"{sync}, {KILLS} kills: {count:,} {name}")
        record_property(name, count)
    assert counts["confirmed"] > 100 * KILLS
    assert (counts["missing"], counts["doubled"]) == (0, 0)
