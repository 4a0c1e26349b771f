"""Scripts run as the transform runs them, on the virtual loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from reactivex.subject import Subject

from headrace.compiler.buckets import Bounds, Bucket
from headrace.compiler.clock import Clock, run_virtual
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.states import PipelineState
from headrace.compiler.delivery import Delivery, Window
from headrace.compiler.text.diagnostics import Fault
from headrace.operators.script import Script
from tests.doubles import StubContext


@dataclass
class Outcome:
    """What became of batches: those that were handed on, what failed, what was warned of."""

    batches: list[list[Any]]
    failures: list[str]
    warnings: list[str]
    state: dict[str, dict[str, Any]]
    lost: dict[str, int] = field(default_factory=dict)
    """How many messages were skipped, by the failure."""

    @property
    def messages(self) -> list[Any]:
        """The messages of the one batch that was handed on; everything went well."""
        assert self.failures == []
        assert len(self.batches) <= 1
        return self.batches[0] if self.batches else []

    @property
    def failure(self) -> str:
        """Why the one batch failed; nothing was handed on."""
        assert self.batches == []
        [failure] = self.failures
        return failure


def script(code: str, **options: Any) -> Script:
    """Return a transform whose script is written in the config."""
    return Script.load({"source": {"type": "inline", "code": code}, **options})


def script_file(path: str, **options: Any) -> Script:
    """Return a transform whose script is in a file."""
    return Script.load({"source": {"type": "file", "path": path}, **options})


def outcome(
    transform: Script | str,
    *batches: list[Any],
    base: Path | None = None,
    has_state: bool = True,
    state: dict[str, dict[str, Any]] | None = None,
    started_at: datetime | None = None,
    seconds: Sequence[float] = (),
    **options: Any,
) -> Outcome:
    """Run batches through a script, so many seconds of virtual time between them."""
    it = script(transform, **options) if isinstance(transform, str) else transform

    async def main() -> Outcome:
        clock = Clock(asyncio.get_running_loop())
        bucket = Bucket("b", Bounds(), clock)
        bucket.merge(state or {})
        named = PipelineState(bucket="b", key="id") if has_state else None
        ctx = StubContext(
            place="transforms[0]", clock=clock, base=base, state=named, buckets={"b": bucket}
        )
        out = await _through(it, ctx, batches, seconds)
        kept = {key: values for key, values, _ in bucket.newest(100)}
        return Outcome(out, ctx.failures, ctx.warnings, kept, dict(ctx.lost))

    return run_virtual(main, started_at=started_at)


async def _through(
    transform: Script, ctx: StubContext, batches: Sequence[list[Any]], seconds: Sequence[float]
) -> list[list[Any]]:
    window, out, ended = Window(), [], asyncio.Event()

    def take(delivery: Delivery) -> None:
        out.append(delivery.batch)
        delivery.done()

    source: Subject[Delivery] = Subject()
    transform.operator(ctx)(source).subscribe(take, on_completed=ended.set)
    pauses = [*seconds]
    for batch in batches:
        window.take()
        source.on_next(Delivery(batch, window))
        await ctx.clock.sleep(pauses.pop(0) if pauses else 0)
    source.on_completed()
    await ended.wait()
    assert window.used == 0
    return out


def examined(transform: Script | str, base: Path | None = None, **context: Any) -> list[Fault]:
    """Return what a check says of a script."""
    it = script(transform) if isinstance(transform, str) else transform
    return list(it.examine(CheckContext(base, **context)))
