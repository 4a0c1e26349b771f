"""A process that is killed: each entry it confirmed is an entry or a letter, and only one of them."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.store.database import Sync
from headrace.compiler.store.letterrecords import Records
from headrace.compiler.store.lostcommits import LAST_NOT_WHOLE
from headrace.compiler.store.openstore import Store
from tests.compiler.store.givingup import TARGETS
from tests.compiler.store.letters import PLAIN
from tests.rooms import REPOSITORY

KILLS = int(os.environ.get("KILLS", "10"))
"""How often each process is killed."""
MOST_LINES = 1_000


def live(folder: Path, sync: Sync, first: int) -> int:
    """Have a process work, and kill it in the middle of that; return the last that it confirmed."""
    command = [sys.executable, "-m", "tests.compiler.store.givingup", str(folder), sync, str(first)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(random.randint(2, MOST_LINES))]
        process.kill()
        lines += process.stdout.readlines()
    assert process.returncode == -9
    said = [line.split() for line in lines if line.endswith(b"\n")]
    assert {word for word, _ in said} == {b"stored"}
    return int(said[-1][1])


async def look(folder: Path, confirmed: int, counts: Counter[str]) -> int:
    """Compare what is there with what was said; return the last that is there."""
    told: list[str] = []
    clock = Clock(asyncio.get_running_loop())
    store = await Store.open(clock, folder, keep_free_bytes=0, tell=told.append)
    entries: list[int] = []
    for target in TARGETS:
        queue = await store.queues.open("p", target, "journal")
        after, is_last = -1, False
        while not is_last:
            read = await store.rows.page(queue.id, after, queue.next, 2**20)
            entries += [int(payload) for row in read.rows for payload in row.payloads]
            after, is_last = read.last, read.is_last
    records = Records(store)
    letters: list[int] = []
    before, is_truncated = 2**62, True
    while is_truncated:
        page = await records.page(PLAIN.pipeline, before=before)
        for one in page.letters:
            whole = await records.letter(one.id)
            assert whole is not None
            assert whole.body is not None
            letters.append(int(whole.body))
        before, is_truncated = page.before, page.is_truncated
    assert page.total == len(letters)
    assert sum(each.letters for each in await records.signatures()) == len(letters)
    await store.close()

    assert [each for each in told if LAST_NOT_WHOLE not in each] == []
    there = Counter(entries + letters)
    counts["confirmed"] = confirmed
    counts["missing"] += len(set(range(1, confirmed + 1)) - there.keys())
    counts["doubled"] += sum(there.values()) - len(there)
    counts["letters"] += len(letters)
    return max(there, default=0)


async def kill(folder: Path, sync: Sync, times: int) -> Counter[str]:
    counts, last = Counter[str](), 0
    for _ in range(times):
        confirmed = live(folder, sync, last + 1)
        last = max(confirmed, await look(folder, confirmed, counts))
    return counts


@pytest.mark.parametrize("sync", ["power", "process"])
async def test_what_goes_along_is_never_lost_nor_there_twice(tmp_path: Path, sync: Sync) -> None:
    counts = await kill(tmp_path / "store", sync, 1)

    assert counts["letters"] > 0
    assert (counts["missing"], counts["doubled"]) == (0, 0)


@pytest.mark.long
@pytest.mark.parametrize("sync", ["power", "process"])
async def test_what_goes_along_is_never_lost_nor_there_twice_after_many_kills(
    tmp_path: Path, sync: Sync
) -> None:
    counts = await kill(tmp_path / "store", sync, KILLS)

    print(f"{sync}, {KILLS} kills: {counts}")
    assert counts["letters"] > KILLS
    assert (counts["missing"], counts["doubled"]) == (0, 0)
