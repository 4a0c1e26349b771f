"""Scenarios of `on_error: skip`: what it costs where nothing is wrong, and where one message of 100 is."""

from __future__ import annotations

from typing import Any

from bench import messages, passes
from bench.measuring import Compared, Effort, compare, on_one_core
from bench.passes import Bed, Config, one
from bench.scripts import inline
from bench.table import Row, ratio_row

SIZE = 100
TURNING = {"field": "rpm", "operator": "greater_than", "value": 100}
FILTERED: list[Config] = [{"type": "filter", "Numeric": TURNING}, *passes.MAP1]
CODE = "if msg.rpm > 100 { msg.scaled = msg.temp * 1.8; emit(msg); }"


def skipmap(effort: Effort) -> list[Row]:
    """A filter and a map: under `skip` beside `fail`; one bad message of a hundred beside none."""
    return _rows("skipmap", FILTERED, effort)


def skipscript(effort: Effort) -> list[Row]:
    """The same with a script."""
    return _rows("skipscript", [inline(CODE)], effort)


def _rows(name: str, transforms: list[Config], effort: Effort) -> list[Row]:
    good = messages.batches(SIZE)
    bad = [_with_a_bad_one(batch) for batch in good]
    skips, fails = one(_under(transforms, "skip")), one(_under(transforms, "fail"))
    nothing_wrong = on_one_core(_beside((skips, good), (fails, good), effort))
    one_bad = on_one_core(_beside((skips, bad), (skips, good), effort))
    return [
        ratio_row(name, nothing_wrong, "the same under `fail`", unit="msg/s", per=SIZE, least=0.98),
        ratio_row(name, one_bad, "one bad of 100, against none", unit="msg/s", per=SIZE, least=0.4),
    ]


def _under(transforms: list[Config], policy: str) -> list[Config]:
    """Return the transforms, those that may leave out messages under a policy."""
    return [
        each if each["type"] == "filter" else {**each, "on_error": policy} for each in transforms
    ]


def _with_a_bad_one(batch: list[Any]) -> list[Any]:
    """Return a batch of which one message has a text where a number belongs."""
    at = next(index for index, each in enumerate(batch) if each["rpm"] > 100)
    return [*batch[:at], {**batch[at], "temp": "no number"}, *batch[at + 1 :]]


async def _beside(
    ours: tuple[list[Config], list[Any]], other: tuple[list[Config], list[Any]], effort: Effort
) -> Compared:
    async with Bed(*ours) as bed, Bed(*other) as beside:
        return await compare(bed.run, beside.run, effort)
