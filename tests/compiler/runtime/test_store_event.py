"""Who asks for it by name is told live how the store is: one event as it begins, and one as it ends."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.monitoring.liveevents import Event, Interest
from headrace.compiler.runtime.wayin import NoRoom
from tests.compiler.runtime.bridged import hear
from tests.compiler.runtime.durable import Gated, durable, engine_on, failing_commits, post
from tests.virtual import virtual


@asynccontextmanager
async def heard_of(it: Engine, interest: Interest) -> AsyncIterator[list[dict[str, Any]]]:
    """Give what somebody with an interest is told of the store until the end, as it comes."""
    events, told = list[Event](), list[dict[str, Any]]()
    listener = it.observe(interest)
    hearing = asyncio.ensure_future(hear(listener, events))
    yield told
    await it.clock.sleep(2)
    listener.close()
    await hearing
    told += [json.loads(each.data) for each in events if each.name == "store"]


STORE = Interest(named=frozenset({"store"}))


@virtual
async def test_a_disk_that_fails_is_one_event_and_one_that_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = failing_commits(monkeypatch)
    async with engine_on(tmp_path, durable(Gated())) as it:
        of_another = Interest(failures=frozenset({"q"}), named=frozenset({"store"}))
        others = Interest(named=frozenset({"waiting"}))
        async with (
            heard_of(it, STORE) as told,
            heard_of(it, of_another) as also,
            heard_of(it, others) as not_told,
        ):
            await it.clock.sleep(10)
            began = it.clock.millis()
            fails[0] = True
            for n in range(20):
                with pytest.raises(NoRoom):
                    await post(it, n)
                await it.clock.sleep(0.05)
            fails[0] = False
            await it.clock.sleep(5)
            assert await post(it, 20) == 1

    assert [each["what"] for each in told] == ["failing", "open"]
    assert "disk I/O error" in told[0]["why"]
    assert 0 <= told[0]["ts"] - began < 50
    assert told[1]["ts"] > told[0]["ts"]
    assert (also, not_told) == (told, [])


@virtual
async def test_damage_that_is_found_is_an_event(tmp_path: Path) -> None:
    async with engine_on(tmp_path, durable(Gated(is_open=False))) as it:
        await post(it, 1)
        await post(it, 2)
    with closing(sqlite3.connect(tmp_path / "store" / "0" / "store.db")) as database, database:
        database.execute("UPDATE entries SET crc = crc + 1 WHERE first = 0")
    out = Gated()
    async with engine_on(tmp_path) as it, heard_of(it, STORE) as told:
        await it.compile(durable(out))
        await it.clock.sleep(5)
        figures = await it.stored()

    assert figures is not None
    assert out.messages == [2]
    assert (figures.damaged, figures.parts[0].aside) == (1, 1)
    assert [each["what"] for each in told] == ["damaged"]
    assert "1 entries of queue 1 from 0 on are damaged" in told[0]["why"]
