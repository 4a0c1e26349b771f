"""What hinders a dead letter on its way to the disk: a fault of ours, no room at the end of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.runtime.deadletters import DeadLetters
from headrace.compiler.store.letterrecords import Records
from tests.compiler.runtime.durable import Gated, engine_on, post
from tests.compiler.runtime.lettered import lettered, lost, put_down
from tests.compiler.runtime.test_deadletters import Refusing
from tests.compiler.runtime.test_outputqueue import Spooling
from tests.promises import promise
from tests.stand_ins import running, takes, with_attribute
from tests.virtual import virtual


@pytest.mark.parametrize(("of", "name"), [(Records, "append"), (DeadLetters, "_body")])
@virtual
async def test_a_fault_of_ours_costs_the_one_letter_and_holds_up_nobody(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    of: Any,
    name: str,
) -> None:
    inner, fails = getattr(of, name), [True]

    def broken(*given: Any, **options: Any) -> Any:
        if fails and fails.pop():
            raise ZeroDivisionError("division by zero")
        return inner(*given, **options)

    monkeypatch.setattr(of, name, broken)
    async with engine_on(tmp_path, lettered([takes(Refusing(1, 2))])) as it:
        await post(it, [1])
        await post(it, [2])
        await it.clock.sleep(1)

        assert [each.content for each in await put_down(it)] == [[2]]
        assert lost(it) == {("output[0]", "batch"): 1}
        assert running(it, "p").in_flight == 0
    assert "ZeroDivisionError: division by zero" in caplog.text


@promise("delivery.letters.output_full")
@virtual
async def test_at_a_stop_without_room_what_a_queue_has_comes_again_and_is_not_lost(
    tmp_path: Path,
) -> None:
    def config(sink: Any) -> Any:
        output = with_attribute(Spooling.load({"queue": True}), "made", sink)
        return lettered([output], letters={"max_bytes": 1_200})

    out = Gated()
    async with engine_on(tmp_path, config(Refusing(*range(10)))) as it:
        for n in range(10):
            await post(it, n)
            await it.clock.sleep(0.1)
        put, of = await put_down(it), running(it, "p")
    counted = {each.reason: each.count for each in of.failures.losses if each.count}
    async with engine_on(tmp_path, config(out)) as it:
        await it.clock.sleep(5)

    written = [message for each in put for message in each.content] + out.messages
    assert 0 < len(put) < 10
    assert written == [*range(10)]
    assert (counted, of.lost) == ({}, 0)


@virtual
async def test_at_a_stop_without_room_what_nobody_has_is_lost_and_counted(tmp_path: Path) -> None:
    config = lettered([takes(Refusing(*range(10)))], letters={"max_bytes": 1_200})
    async with engine_on(tmp_path, config) as it:
        for n in range(10):
            await post(it, n)
        await it.clock.sleep(1)
        put, of = await put_down(it), running(it, "p")
    counted = {each.reason: each.count for each in of.failures.losses if each.count}

    assert 0 < len(put) < 10
    assert counted == {"stopped": 10 - len(put)}
