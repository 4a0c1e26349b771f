"""Scenarios of scripts: the engine beside its own evaluation, the transform beside the engine.

A message is a reading of six fields (`bench/messages.py`); each has what the conditions ask for.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from bench import ingest, limits, measuring_engine, messages, passes, servers
from bench.load import Outcome, Plan
from bench.measuring import Compared, Effort, compare, on_one_core, own_cpu
from bench.servers import Server
from bench.table import Row, rate, ratio_row
from headrace.compiler.lowering.lines import SLICE_SECONDS

CONDITIONS = """
if msg.temp >= 0.0 && msg.rpm < 3000 && msg.machine != "press-99" { emit(msg) }
"""
TWO_FIELDS = "if msg.temp >= 0.0 { msg.rpm += 1; emit(msg) }"
AT_BUDGET = "let n = 0; while n < 16_600 { n += 1; } emit(msg)"
"""Takes 99,600 of the 100,000 operations that a run has."""

MOST_TIMES_EVALUATION = 1.4
MOST_TIMES_SIX_FIELDS = 1.3
RUST_SERVICE = 103_000
"""Messages a CPU second of the service that this one replaces. A constant: measured elsewhere, once,
on the same class of machine; what the machine of the day does to it nobody knows."""
LEAST_TIMES_RUST_SERVICE = 4

BUSY = 4
POSTS_A_SECOND = 4
"""To each busy pipeline: several times what it gets through, so that it never has nothing to do."""
MOST_MS = 20


def runadd(effort: Effort) -> list[Row]:
    """One assignment and an emit."""
    return _beside_evaluation("runadd", limits.SCRIPT, effort)


def runif3(effort: Effort) -> list[Row]:
    """Three conditions and an emit."""
    return _beside_evaluation("runif3", CONDITIONS, effort)


def _beside_evaluation(name: str, code: str, effort: Effort) -> list[Row]:
    """Hold `run_each` against evaluating, which an engine with the feature `measure` tells."""
    begun, bare = on_one_core(_evaluated(code, effort))
    limit = "its evaluation, from a clone of the value to dropping what was emitted"
    return [
        times_row(name, begun, limit, most=MOST_TIMES_EVALUATION),
        times_row(name, bare, "its evaluation, without the clone and the drop"),
    ]


async def _evaluated(code: str, effort: Effort) -> tuple[Compared, Compared]:
    measuring_engine.prefer()
    [batch] = messages.batches(100, 1)
    run_each = limits.over([batch], limits.script(code))
    begun, bare = _Evaluation(code, batch), _Evaluation(code, batch, is_bare=True)
    return (
        await compare(run_each, begun.evaluate, effort, begun.own_cpu),
        await compare(run_each, bare.evaluate, effort, bare.own_cpu),
    )


class _Evaluation:
    """A script that is evaluated for a batch of values that are in the engine already.

    A run uses its value up, so each evaluation begins with a clone, and the next one has no use for what
    the last one emitted. ``is_bare``: neither counts.
    """

    def __init__(self, code: str, batch: limits.Batch, *, is_bare: bool = False) -> None:
        import rhai

        script = rhai.Script(code)
        told = import_module("rhai._rhai").evaluation_seconds  # no stub knows of it
        self._seconds: Callable[[int], tuple[float, float]]
        self._seconds = lambda times: told(script, batch, times)
        self._is_bare = is_bare
        self._aside = 0.0

    async def evaluate(self, times: int) -> None:
        """Evaluate so many times. Of the time this takes, what was not evaluating is set aside."""
        began = own_cpu()
        evaluating, handing = self._seconds(times)
        counted = evaluating - handing if self._is_bare else evaluating
        self._aside += own_cpu() - began - counted

    def own_cpu(self) -> float:
        """Return the CPU seconds this thread has taken, without what was set aside."""
        return own_cpu() - self._aside


def runnested(effort: Effort) -> list[Row]:
    """A message of twenty fields, most of them nested, of which a script asks for two."""
    compared = on_one_core(_nested(effort))
    limit = "the same with six flat fields"
    return [times_row("runnested", compared, limit, most=MOST_TIMES_SIX_FIELDS)]


async def _nested(effort: Effort) -> Compared:
    run = limits.script(TWO_FIELDS)
    [six] = messages.batches(100, 1)
    twenty = [{**each, **_axes()} for each in six]
    return await compare(limits.over([twenty], run), limits.over([six], run), effort)


def _axes() -> dict[str, Any]:
    return {
        f"axis_{number}": {"position": 0.5 * number, "unit": "mm", "limits": [0, 500]}
        for number in range(14)
    }


def script1(effort: Effort) -> list[Row]:
    """The transform, one message a batch."""
    return _transform(1, effort)


def script100(effort: Effort) -> list[Row]:
    """The transform, a hundred messages a batch."""
    return _transform(100, effort)


def _transform(size: int, effort: Effort) -> list[Row]:
    compared = on_one_core(_by_hand(size, effort))
    limit = "run_each by hand"
    return [ratio_row(f"script{size}", compared, limit, unit="msg/s", per=size)]


async def _by_hand(size: int, effort: Effort) -> Compared:
    given = messages.batches(size)
    async with passes.Bed(passes.one([inline(limits.SCRIPT)]), given) as bed:
        return await compare(bed.run, limits.over(given, limits.script(limits.SCRIPT)), effort)


def chainscript(effort: Effort) -> list[Row]:
    """Bytes in: decode, run a script."""
    compared = on_one_core(_chain(effort))
    limit = "a tight loop that decodes and calls run_each"
    return [ratio_row("chainscript", compared, limit, unit="msg/s", per=100, least=0.75)]


async def _chain(effort: Effort) -> Compared:
    given, by_hand = messages.payloads(100), limits.script_of_payloads(limits.SCRIPT)
    async with passes.Bed(passes.one([inline(limits.SCRIPT)], raw="raw_"), given) as bed:
        return await compare(bed.run, limits.over(given, by_hand), effort)


def ingestscript(effort: Effort) -> list[Row]:
    """A hundred messages a post through a script, whole processes."""
    compared = ingest.beside([inline(limits.SCRIPT)], [], "script", 100, effort)
    limit = "a bare protocol that decodes and calls run_each"
    beside = ratio_row("ingestscript", compared, limit, unit="msg/CPU s", least=0.65)
    times = 1 / compared.ours / RUST_SERVICE
    service = Row(
        "ingestscript",
        beside.measured,
        f"the Rust service, elsewhere: {rate(RUST_SERVICE)} msg/CPU s",
        f"{times:.1f} x",
        f"at least {LEAST_TIMES_RUST_SERVICE}",
        times >= LEAST_TIMES_RUST_SERVICE,
        times,
    )
    return [beside, service]


def livezscript(effort: Effort) -> list[Row]:
    """How long a probe waits while several scripts use the whole budget of every run."""
    names = [f"p{number}" for number in range(BUSY)]
    config = [ingest.pipeline(name, [inline(AT_BUDGET)], []) for name in names]
    with tempfile.TemporaryDirectory() as folder, servers.headrace(config, Path(folder)) as server:
        idle = _p99(_probes(server, effort.span / 10))
        began, cpu = time.monotonic(), server.cpu
        with ThreadPoolExecutor(BUSY) as beside:
            loads = [beside.submit(_post, server, name, effort) for name in names]
            waits = list(_probes(server, effort.span))
            share = (server.cpu - cpu) / (time.monotonic() - began)
        if not all(load.result().accepted for load in loads):
            raise RuntimeError("a script had nothing to do")
    return [_livez_row(waits, idle, share)]


def _livez_row(waits: list[float], idle: float, share: float) -> Row:
    p99 = _p99(waits)
    return Row(
        "livezscript",
        f"{len(waits)} probes; {BUSY} scripts at their budget take turns of {SLICE_SECONDS * 1000:g} ms"
        f" together, {share:.0%} of a core",
        f"GET /livez, idle: p99 {idle:.1f} ms",
        f"p99 {p99:.1f} ms",
        f"at most {MOST_MS} ms",
        p99 <= MOST_MS,
        p99,
    )


def _post(server: Server, name: str, effort: Effort) -> Outcome:
    posts = max(int(POSTS_A_SECOND * effort.span), 1)
    path = ingest.path(name)
    plan = Plan(server.port, path, 100, posts, effort.span, connections=1, rate=POSTS_A_SECOND)
    return servers.load(plan)


def _probes(server: Server, seconds: float) -> Iterator[float]:
    """Yield what each probe took, in milliseconds."""
    until = time.monotonic() + seconds
    while (asked := time.monotonic()) < until:
        server.get("/livez")
        yield (time.monotonic() - asked) * 1000
        time.sleep(0.002)


def _p99(waits: Iterable[float]) -> float:
    ordered = sorted(waits)
    return ordered[int(len(ordered) * 0.99)]


def inline(code: str) -> passes.Config:
    """Return the transform that runs a script."""
    return {"type": "script", "source": {"type": "inline", "code": code}}


def times_row(name: str, compared: Compared, against: str, most: float | None = None) -> Row:
    """Return the row of what costs some times as much as something else, ``most`` where that is asked."""
    times = sorted(1 / ratio for ratio in compared.ratios)
    middle = median(times)
    return Row(
        name,
        f"{rate(100 / compared.ours)} msg/s",
        f"{against}: {rate(100 / compared.limit)} msg/s",
        f"{middle:.2f} x ({times[0]:.2f} to {times[-1]:.2f})",
        "-" if most is None else f"at most {most:g}",
        None if most is None else middle <= most,
        middle,
    )
