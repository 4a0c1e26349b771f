"""The loops that transforms become: the program is built as production builds it, and started nowhere."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
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


@dataclass(frozen=True, slots=True)
class GeneratedSelection:
    """The function over a batch that looks at the `when` of an output, or of an input that reads."""

    place: str
    """Whose: `outputs[0]`."""
    source: str


@dataclass(frozen=True, slots=True)
class GeneratedCode:
    """All that is generated for one pipeline."""

    loops: list[GeneratedLoop] = field(default_factory=list)
    selections: list[GeneratedSelection] = field(default_factory=list)


def generated_code(
    program: Program, called: Sequence[str], *, base: Path | None
) -> list[GeneratedCode]:
    """Return the code of each pipeline, in the order of the program; ``called`` are the pipelines' ids.

    Connections are not opened and secrets not resolved: the ends are replaced, as for a test.

    Raises:
        Refused: a pipeline cannot be built, with every reason.
    """
    code = {id: GeneratedCode() for id in called}

    def generated(run: Sequence[PlacedTransform], loop: Callable[[Batch], Batch]) -> None:
        # Now: the text is there while the function lives.
        source = "".join(linecache.getlines(loop.__code__.co_filename))
        first, ctx = run[0]
        if isinstance(first, Selection):
            code[ctx.pipeline].selections.append(GeneratedSelection(ctx.place, source))
            return
        indices = tuple(ctx.index for _, ctx in run)
        code[ctx.pipeline].loops.append(GeneratedLoop(indices, source))

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
    return [code[id] for id in called]
