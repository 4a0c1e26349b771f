"""Scenarios inside one process: a supply, the real pump and chain, a sink that counts.

Pipelines are configs that are loaded, compiled by the engine and run, as the server does it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from typing import Any

import reactivex

from bench import limits, messages, standins
from bench.measuring import Compared, Effort, Work, compare, on_one_core
from bench.table import Row, ratio_row
from headrace.compiler.clock import Clock
from headrace.compiler.config.program import Program, load_program
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.text import documents
from headrace.web.commands.collecting import collect_less

Config = dict[str, Any]
ByHand = Callable[[Any], object]

FILTER1: list[Config] = [
    {"type": "filter", "Numeric": {"field": "temp", "operator": "greater_than", "value": 20.5}}
]
FILTER5: list[Config] = [
    *FILTER1,
    {"type": "filter", "Numeric": {"field": "pressure", "operator": "less_than", "value": 9.5}},
    {"type": "filter", "Numeric": {"field": "humidity", "operator": "greater_than", "value": 10.5}},
    {"type": "filter", "Numeric": {"field": "rpm", "operator": "greater_than", "value": 100}},
    {"type": "filter", "Numeric": {"field": "temp", "operator": "less_than", "value": 97.5}},
]
MAP1: list[Config] = [
    {
        "type": "map",
        "mappings": [
            {
                "type": "arithmetic",
                "operator": "multiply",
                "left": {"type": "field", "field": "temp"},
                "right": {"type": "value", "value": 1.8},
                "as": "scaled",
            }
        ],
    }
]
REDUCER: list[Config] = [
    {
        "type": "reducer",
        "group_by": ["machine"],
        "aggregations": [
            {"function": "avg", "field": "scaled", "as": "mean"},
            {"function": "max", "field": "scaled", "as": "hottest"},
            {"function": "count", "as": "n"},
        ],
    }
]
EXPLODE: list[Config] = [
    {
        "type": "explode",
        "from": "order.lines",
        "keep": {"order_id": "order.id", "customer": "customer.id"},
    }
]
CHAIN = [*FILTER1, *MAP1, *REDUCER]
NAMES = {"temp": "last_temp", "rpm": "last_rpm"}
REMEMBER: list[Config] = [
    {"type": "remember", "remember": [{"field": f, "as": name} for f, name in NAMES.items()]}
]
RECALL: list[Config] = [{"type": "recall", "recall": [*NAMES.values()]}]
BUCKETS: Config = {"machines": {"idle_timeout_secs": 3600}}


class Bed:
    """An engine that runs pipelines between stand-ins: ``run(n)`` sends n batches through."""

    def __init__(
        self,
        pipelines: Sequence[Config],
        given: Sequence[Any],
        buckets: Config | None = None,
        *,
        engine: Engine | None = None,
    ) -> None:
        self.engine = engine or Engine(Clock(asyncio.get_running_loop()))
        self._program = program(pipelines, buckets or {})
        self._given = given
        self._supplies: list[standins.Supply] = []
        self._sinks: list[standins.Counting] = []

    async def __aenter__(self) -> Bed:
        standins.supplies.clear()
        standins.sinks.clear()
        await self.engine.load(self._program)
        self._supplies = list(standins.supplies.values())
        self._sinks = list(standins.sinks.values())
        for supply in self._supplies:
            supply.give(self._given)
        collect_less()  # as the server does when it is up
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.engine.close()

    async def run(self, batches: int) -> None:
        """Send so many batches through, shared out among the pipelines."""
        each, rest = divmod(batches, len(self._supplies))
        used = len(self._supplies) if each else rest
        for number, (supply, sink) in enumerate(zip(self._supplies, self._sinks, strict=True)):
            if share := each + (number < rest):
                sink.expect(share)
                supply.hand_out(share)
        for sink in self._sinks[:used]:
            await sink.expected()


def program(pipelines: Sequence[Config], buckets: Config) -> Program:
    """Return configs as the server loads them."""
    text = json.dumps({"state": buckets, "pipelines": pipelines})
    document = documents.read(text, None, "json")
    loaded, said = load_program(document, standins.catalogue())
    if loaded is None:
        raise ValueError("; ".join(f"{each.path}: {each.message}" for each in said))
    return loaded


def one(transforms: Sequence[Config] = (), raw: str = "", sink: str = "counting") -> list[Config]:
    """Return the config of one pipeline between stand-ins."""
    return [
        {
            "id": "p1",
            "inputs": [{"type": f"{raw}supply"}],
            "transforms": list(transforms),
            "outputs": [{"type": sink}],
        }
    ]


def batch1(effort: Effort) -> list[Row]:
    """An empty chain, one message a batch."""
    return _empty(1, effort, least=0.25)


def batch10(effort: Effort) -> list[Row]:
    """An empty chain, ten messages a batch."""
    return _empty(10, effort)


def batch100(effort: Effort) -> list[Row]:
    """An empty chain, a hundred messages a batch."""
    return _empty(100, effort)


def batch1000(effort: Effort) -> list[Row]:
    """An empty chain, a thousand messages a batch."""
    return _empty(1000, effort)


def _empty(size: int, effort: Effort, least: float | None = None) -> list[Row]:
    compared = on_one_core(_beside_a_subject(size, effort))
    limit = "a bare Subject, one observer"
    return [ratio_row(f"batch{size}", compared, limit, unit="passes/s", least=least)]


async def _beside_a_subject(size: int, effort: Effort) -> Compared:
    given = messages.batches(size)
    bare, counting = reactivex.Subject[Any](), standins.Counting()
    bare.subscribe(counting.write)
    async with Bed(one(), given) as bed:
        return await compare(bed.run, limits.over(given, bare.on_next), effort)


def filter1(effort: Effort) -> list[Row]:
    """One filter."""
    return _steps("filter1", FILTER1, limits.filter1, effort)


def filter5(effort: Effort) -> list[Row]:
    """Five filters: against a comprehension, and against one filter."""
    compared = on_one_core(_beside(one(FILTER5), one(FILTER1), 100, effort))
    against_one = ratio_row("filter5", compared, "filter1", unit="msg/s", per=100, least=0.35)
    return [*_steps("filter5", FILTER5, limits.filter5, effort), against_one]


def map1(effort: Effort) -> list[Row]:
    """One map with one mapping."""
    return _steps("map1", MAP1, limits.map1, effort)


def explode(effort: Effort) -> list[Row]:
    """Fifty orders of ten lines: a message for each line."""
    compared = on_one_core(_exploding(effort))
    limit = "a loop by hand"
    return [ratio_row("explode", compared, limit, unit="msg/s", per=500, least=0.2)]


async def _exploding(effort: Effort) -> Compared:
    lines = [{"sku": f"s{at}", "n": at, "price": 1.5} for at in range(10)]
    orders = [{"order": {"id": n, "lines": lines}, "customer": {"id": f"c{n}"}} for n in range(50)]
    async with Bed(one(EXPLODE), [orders]) as bed:
        return await compare(bed.run, limits.over([orders], limits.explode), effort)


def _steps(name: str, transforms: list[Config], by_hand: ByHand, effort: Effort) -> list[Row]:
    """Hold transforms at 100 a batch against a comprehension that does the same."""
    compared = on_one_core(_against(transforms, by_hand, effort))
    limit = "a comprehension by hand"
    return [ratio_row(name, compared, limit, unit="msg/s", per=100, least=0.85)]


async def _against(transforms: list[Config], by_hand: ByHand, effort: Effort) -> Compared:
    given = messages.batches(100)
    async with Bed(one(transforms), given) as bed:
        return await compare(bed.run, limits.over(given, by_hand), effort)


async def _beside(ours: list[Config], other: list[Config], size: int, effort: Effort) -> Compared:
    given = messages.batches(size)
    async with Bed(ours, given) as bed, Bed(other, given) as beside:
        return await compare(bed.run, beside.run, effort)


def remember10(effort: Effort) -> list[Row]:
    """Remember two fields, of ten machines in a batch."""
    return _with_state("remember10", REMEMBER, limits.remember, messages.MACHINES, effort)


def remember100(effort: Effort) -> list[Row]:
    """Remember two fields, of a hundred machines in a batch: every message has a key of its own."""
    return _with_state("remember100", REMEMBER, limits.remember, 100, effort)


def recall10(effort: Effort) -> list[Row]:
    """Recall two fields, of ten machines in a batch."""
    return _with_state("recall10", RECALL, limits.recall, messages.MACHINES, effort)


def recall100(effort: Effort) -> list[Row]:
    """Recall two fields, of a hundred machines in a batch."""
    return _with_state("recall100", RECALL, limits.recall, 100, effort)


def _with_state(
    name: str, transforms: list[Config], by_hand: ByHand, machines: int, effort: Effort
) -> list[Row]:
    """Hold transforms with state at 100 a batch against a loop over a dict."""
    compared = on_one_core(_keyed(transforms, by_hand, machines, effort))
    limit = "a loop over a dict by hand"
    return [ratio_row(name, compared, limit, unit="msg/s", per=100, least=0.6)]


async def _keyed(
    transforms: list[Config], by_hand: ByHand, machines: int, effort: Effort
) -> Compared:
    given = [
        [{**each, "machine": f"press-{at % machines:02d}"} for at, each in enumerate(batch)]
        for batch in messages.batches(100)
    ]
    keyed = {**one(transforms)[0], "state": {"bucket": "machines", "key": "machine"}}
    async with Bed([keyed], given, BUCKETS) as bed:
        bucket = bed.engine.state.get("machines")
        assert bucket is not None
        for message in given[0]:  # there is something to recall
            kept = {name: message[field] for field, name in NAMES.items()}
            bucket.merge({message["machine"]: kept})
        limits.remember(given[0])
        return await compare(bed.run, limits.over(given, by_hand), effort)


def pipelines10(effort: Effort) -> list[Row]:
    """Ten pipelines at once."""
    return _many(10, effort)


def pipelines100(effort: Effort) -> list[Row]:
    """A hundred pipelines at once."""
    return _many(100, effort)


def pipelines1000(effort: Effort) -> list[Row]:
    """A thousand pipelines at once."""
    return _many(1000, effort)


def _many(count: int, effort: Effort) -> list[Row]:
    many = [{**one()[0], "id": f"p{number}"} for number in range(count)]
    compared = on_one_core(_beside(many, one(), 1, effort))
    return [ratio_row(f"pipelines{count}", compared, "batch1", unit="passes/s")]


def depth3(effort: Effort) -> list[Row]:
    """Three pipelines, each reading the one before."""
    chained = [
        {"id": "p1", "inputs": [{"type": "supply"}]},
        {"id": "p2", "inputs": [{"type": "pipeline", "upstream": "p1"}]},
        {
            "id": "p3",
            "inputs": [{"type": "pipeline", "upstream": "p2"}],
            "outputs": [{"type": "counting"}],
        },
    ]
    compared = on_one_core(_beside(chained, one(), 1, effort))
    return [ratio_row("depth3", compared, "batch1", unit="passes/s", least=0.2)]


def watched(effort: Effort) -> list[Row]:
    """An empty chain whose events somebody reads."""
    compared = on_one_core(_watched(effort))
    return [ratio_row("watched", compared, "batch100", unit="passes/s", least=0.9)]


async def _watched(effort: Effort) -> Compared:
    given = messages.batches(100)
    async with Bed(one(), given) as bed, Bed(one(), given) as beside:
        reading = asyncio.ensure_future(_read_events(bed.engine))
        await asyncio.sleep(0)
        compared = await compare(bed.run, beside.run, effort)
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading
    return compared


async def _read_events(engine: Engine) -> None:
    listener = engine.observe()
    async with aclosing(aiter(listener)) as events:  # type: ignore[type-var]
        async for _ in events:
            pass


def chain(effort: Effort) -> list[Row]:
    """Bytes in, bytes out: decode, filter, map, reduce, encode."""
    compared = on_one_core(_chain(effort))
    return [ratio_row("chain", compared, "a tight loop", unit="msg/s", per=100, least=0.85)]


async def _chain(effort: Effort) -> Compared:
    given = messages.payloads(100)
    async with Bed(one(CHAIN, raw="raw_", sink="writing"), given) as bed:
        return await compare(bed.run, _tight_loop(given), effort)


def _tight_loop(given: list[list[bytes]]) -> Work:
    written = bytearray()

    def write(payloads: list[bytes]) -> None:
        nonlocal written
        written += limits.chain_of_payloads(payloads)
        if len(written) > standins.MOST_WAITING:
            written.clear()

    return limits.over(given, write)
