"""The loops that transforms become: the program is built as production builds it, and started nowhere."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from headrace.authoring.playing.player import play
from headrace.authoring.playing.scenario import Scenario
from headrace.compiler.component.selection import Selection
from headrace.compiler.config.program import Program
from headrace.compiler.delivery import Batch
from headrace.compiler.lowering.chain import PlacedTransform, lower


@dataclass(frozen=True, slots=True)
class GeneratedLoop:
    """One function over a batch, and the transforms that it does the work of."""

    transforms: tuple[int, ...]
    source: str
    """Its text, as tracebacks show it."""


def generated_loops(
    program: Program, called: Sequence[str], *, base: Path | None
) -> list[list[GeneratedLoop]]:
    """Return the loops of each pipeline, in the order of the program; ``called`` are the pipelines' ids.

    Connections are not opened and secrets not resolved: the ends are replaced, as for a test.

    Raises:
        Refused: a pipeline cannot be built, with every reason.
    """
    loops: dict[str, list[GeneratedLoop]] = {id: [] for id in called}

    def generated(run: Sequence[PlacedTransform], loop: Callable[[Batch], Batch]) -> None:
        if isinstance(run[0][0], Selection):
            return  # of `when`, before an output or an inbox: the conditions are told in words
        # Now: the text is there while the function lives.
        source = "".join(linecache.getlines(loop.__code__.co_filename))
        indices = tuple(ctx.index for _, ctx in run)
        loops[run[0][1].pipeline].append(GeneratedLoop(indices, source))

    pipelines = (
        replace(config, id=id).standing(config.site)
        for config, id in zip(program.pipelines, called, strict=True)
    )
    play(
        Program(tuple(pipelines), program.buckets),
        Scenario(),
        base=base,
        lowering=partial(lower, generated=generated),
    )
    return [loops[id] for id in called]
