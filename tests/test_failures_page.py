"""The configs on the page of the input `failures` load, and what it says of classes is so."""

from __future__ import annotations

import asyncio
import json
import re
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

from headrace.authoring.configfiles import catalogue
from headrace.compiler.clock import Clock
from headrace.compiler.errors import BatchFailed, Unreachable
from headrace.compiler.runtime.engine import Engine
from headrace.connectors.failuresinput import FailuresInput
from headrace.connectors.pipelineinput import PipelineInput
from headrace.operators.buffer import Buffer
from headrace.operators.reducer import Reducer
from headrace.web.files.reading import Files, load
from tests.stand_ins import (
    Kept,
    Slow,
    Taking,
    Told,
    batches,
    pipeline,
    reads,
    run,
    takes,
    with_attribute,
)
from tests.virtual import virtual

PAGE = (Path(__file__).parent.parent / "docs/components/input/failures.md").read_text()
CONFIGS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
FAULTS, CALLS = yaml.safe_load(CONFIGS[1])


@pytest.mark.parametrize("config", CONFIGS)
def test_each_config_loads_without_a_word(config: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(config)

    assert load(Files(tmp_path / "config.yaml"), catalogue()).diagnostics == []


async def told(*causes: BatchFailed) -> tuple[list[Any], list[Any]]:
    """Return what comes as a ticket and as a call, where batches of two messages fail with these."""
    it, tickets, calls = Engine(Clock(asyncio.get_running_loop())), Kept(), Kept()
    source = Told(it.clock, [0.5, batches(*([2 * n, 2 * n + 1] for n in range(len(causes))))])
    refusing = Slow(it.clock, 0, [*causes])
    [faults], [reader] = FAULTS["inputs"], CALLS["inputs"]
    [ticket], [buffer, reducer] = FAULTS["outputs"], CALLS["transforms"]
    wanted = with_attribute(Taking.load({"when": ticket["when"]}), "made", tickets)
    inputs = (FailuresInput.load(plain(faults)), PipelineInput.load(plain(reader)))
    grouping = [Buffer.load(plain(buffer)), Reducer.load(plain(reducer))]
    await run(it, pipeline("orders", [reads(source)], [], [takes(refusing)]))
    await run(it, pipeline("faults", [inputs[0]], [], [wanted]))
    await run(it, pipeline("calls", [inputs[1]], grouping, [takes(calls)]))
    await it.clock.sleep(100)
    await it.close()
    return [*chain(*tickets.batches)], [*chain(*calls.batches)]


def plain(component: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a component."""
    return {key: value for key, value in component.items() if key != "type"}


@virtual
async def test_what_somebody_has_to_act_on_is_one_call_a_minute_as_it_is_shown() -> None:
    [shown] = json.loads(re.findall(r"^```json\n(\[.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)[0])
    missing = BatchFailed(shown["error"], "misconfigured")

    tickets, calls = await told(missing, Unreachable("away"))

    assert tickets == []
    assert calls == [shown]


@virtual
async def test_what_is_at_fault_is_a_ticket_and_so_is_what_nobody_knows_to_be_none() -> None:
    in_part = BatchFailed("1 of 2 is refused", refused={1: "too large"})
    odd = BatchFailed("odd")

    tickets, calls = await told(in_part, BatchFailed("cut off", "unclear"), odd)

    assert [(each["message"], each["at_fault"]) for each in tickets] == [
        (1, True),
        (4, None),
        (5, None),
    ]
    assert calls == []
