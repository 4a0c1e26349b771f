"""From a config to the whole chain of a pipeline, one cold observable.

Neighbouring transforms that are pure are fused, the rest is lifted. Fused and unfused chains give the same
batches and the same failures. Production runs the fused one; a dry run, which shows every stage, the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import NamedTuple, Protocol, TypeVar

from reactivex import Observable

from headrace.compiler.batchloops import USUAL, loop_source
from headrace.compiler.code import GLOBALS, Code, FunctionTooLong, compile_source
from headrace.compiler.component.buildcontext import Context, Operator, PacedStep, Step
from headrace.compiler.component.failingmessages import skipping
from headrace.compiler.component.families import (
    Component,
    Fusible,
    Input,
    PerBatch,
    PerMessage,
    Transform,
)
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.delivery import Batch, Delivery
from headrace.compiler.errors import BuildRefused
from headrace.compiler.lowering.apart import Apart, unheard
from headrace.compiler.lowering.chainends import Counters, PassWatch, entering
from headrace.compiler.lowering.lifting import fused, optimistic, per_batch
from headrace.compiler.lowering.lines import Pacing, Report

_LOOP = "fused"
"""What the function of a generated loop is called, in tracebacks as well."""

_C = TypeVar("_C", bound=Component)
_T = TypeVar("_T")


class TransformContext(Context, Protocol):
    """A context that also takes what its component raised."""

    pacing: Pacing
    """How its large batches share the loop."""

    def report(self, cause: BaseException, lost: Batch) -> None:
        """Count it and the messages that are lost by it, log it, tell whoever listens."""


PlacedTransform = tuple[Transform, TransformContext]
RefusedTransforms = list[tuple[int, BuildRefused]]
"""Which transforms cannot be built, by index; the rest is built nevertheless, to hear all of it."""
TellLoop = Callable[[Sequence[PlacedTransform], Callable[[Batch], Batch]], None]
"""Is told which transforms became one generated loop, and of the loop."""


class Assembling(Protocol):
    """What a chain is assembled in: it lends the components what they need, and takes their refusals."""

    counters: Counters
    """What the pipeline counts."""
    watch: PassWatch
    """Who is shown its passes."""

    def each(
        self, family: str, components: Iterable[_C], make: Callable[[_C, int], _T]
    ) -> list[_T]:
        """Return what is made of each component, by its index; refuse those that cannot be built."""

    def place(self, family: str, index: int) -> TransformContext:
        """Return the context of a component."""

    def arriving(self, component: Input, index: int) -> Observable[Delivery]:
        """Return what an input delivers: cold.

        Raises:
            BuildRefused: it cannot be built.
        """

    def lower(
        self, stages: Sequence[PlacedTransform], refusals: RefusedTransforms
    ) -> list[Operator]:
        """Return the operators of the transforms, as `lower` does; add what cannot be built."""

    def refuse(self, family: str, index: int, cause: BuildRefused) -> None:
        """Take why a component cannot be built."""


def assemble(config: PipelineConfig, context: Assembling) -> Observable[Delivery]:
    """Return all of a pipeline but its outputs: inputs merged and counted, then the transforms.

    Nothing runs before it is subscribed, to one observer. If anything was refused it is not to be used:
    the rest is built nevertheless, to hear all of it.
    """

    def placed(transform: Transform, index: int) -> PlacedTransform:
        return transform, context.place("transforms", index)

    refusals: RefusedTransforms = []
    operators = context.lower(context.each("transforms", config.transforms, placed), refusals)
    for index, cause in refusals:
        context.refuse("transforms", index, cause)
    inputs = context.each("inputs", config.inputs, context.arriving)
    return entering(inputs, context.counters, context.watch).pipe(*operators)


def lower(
    stages: Sequence[PlacedTransform],
    refusals: RefusedTransforms,
    generated: TellLoop | None = None,
) -> list[Operator]:
    """Return the operators of a chain, neighbours that can be one loop fused.

    Whatever cannot be built is added to ``refusals``; the chain is not to be used then. Who asks for
    what is ``generated`` is told of each loop.
    """
    operators: list[Operator] = []
    for run in _runs(stages):
        if _fuses(run[0][0]):
            operators += _fuse(run, refusals, generated)
        else:
            operators += plainly(run, refusals)
    return operators


def _runs(stages: Sequence[PlacedTransform]) -> list[list[PlacedTransform]]:
    """Return what becomes one operator each: a fused run ends behind what gathers messages.

    What is not pure is alone: a loop that starts again would see what it has done itself. Where a message
    may be left out, what gathers begins anew: it is not to have gathered half of one.
    """
    runs: list[list[PlacedTransform]] = []
    goes_on = gathers = False
    for stage in stages:
        transform = stage[0]
        joins = (goes_on and isinstance(transform, PerMessage)) or (
            gathers and isinstance(transform, PerBatch)
        )
        if joins and _fuses(transform):
            runs[-1].append(stage)
        else:
            runs.append([stage])
        goes_on = isinstance(transform, PerMessage) and transform.fuses
        gathers = goes_on and not any(each.skips_failing for each, _ in runs[-1])
    return runs


def _fuses(transform: Transform) -> bool:
    return isinstance(transform, Fusible) and transform.fuses


def plainly(stages: Sequence[PlacedTransform], refusals: RefusedTransforms) -> list[Operator]:
    """Return the operators of a chain, one per transform and nothing fused."""
    return list(_each(stages, lambda transform, ctx: transform.operator(ctx), refusals))


def _fuse(
    run: Sequence[PlacedTransform], refusals: RefusedTransforms, generated: TellLoop | None
) -> list[Operator]:
    """Return one operator for a run; several where that would be too much source."""
    plain = list(_each(run, _plain, refusals))
    if refusals:
        return []
    sources = [
        partial(transform.generate, ctx=ctx)
        for transform, ctx in run
        if isinstance(transform, Fusible)
    ]
    pacing = run[0][1].pacing
    slow_parts = sum(transform.slow_parts for transform, _ in run)
    try:
        loop, paced, takes_long = fuse(sources, _named(run), _apart(run), slow_parts)
    except FunctionTooLong:
        if len(run) == 1:
            [(step, report)], [(transform, ctx)] = plain, run
            return [per_batch(step, report, pacing.one_by_one(), transform.paced(ctx))]
        half = len(run) // 2
        parts = run[:half], run[half:]
        return [each for part in parts for each in _fuse(part, refusals, generated)]
    if takes_long:
        pacing = pacing.slower(slow_parts)
    if generated is not None:
        generated(run, loop)
    plainly_paced = [
        (transform.paced(ctx), ctx.report)
        for transform, ctx in run
        if isinstance(transform, Fusible)
    ]
    return [fused(loop, plain, pacing, optimistic(paced, plainly_paced))]


def _plain(transform: Transform, ctx: TransformContext) -> tuple[Step, Report]:
    """Return the plain step on a batch, and who is told if it fails."""
    if transform.skips_failing:
        return skipping(transform.for_each_batch(ctx), ctx.lose), ctx.report
    return transform.step(ctx), ctx.report


def _apart(run: Sequence[PlacedTransform]) -> Apart | None:
    """Return what does to a message by itself what a run does; None: no message is left out."""
    losing = [ctx.lose if transform.skips_failing else None for transform, ctx in run]
    if not any(losing):
        return None
    return Apart([_in_slices(transform, unheard(ctx)) for transform, ctx in run], losing)


def _in_slices(transform: Transform, ctx: TransformContext) -> PacedStep:
    """Return the plain step on one message, in slices."""
    begin = transform.paced_for_each_batch(ctx)
    return lambda batch: begin()(batch)


def _each(
    stages: Sequence[PlacedTransform],
    make: Callable[[Transform, TransformContext], _T],
    refusals: RefusedTransforms,
) -> Iterator[_T]:
    for transform, ctx in stages:
        try:
            yield make(transform, ctx)
        except BuildRefused as cause:
            refusals.append((ctx.index, cause))


def _named(run: Sequence[PlacedTransform]) -> str:
    """Return what a traceback calls the loop: the pipeline and the places it was made from."""
    first, last = run[0][1], run[-1][1]
    more = "" if last is first else f"..{last.index}"
    return f"{first.pipeline} {first.place.removesuffix(']')}{more}]"


class Fused(NamedTuple):
    """Generated functions over a batch. Whatever they raise means: use the plain steps."""

    loop: Callable[[Batch], Batch]
    paced: PacedStep
    """The same for a large batch, in slices. Compiled when the first one comes."""
    takes_long: bool
    """Whether something may take long for a message: also a batch that is not large may need slices."""


def fuse(
    sources: Sequence[Callable[[Code], None]],
    place: str,
    apart: Apart | None = None,
    slow_parts: int = 0,
) -> Fused:
    """Return functions over a batch that do to each message what the sources say, in order.

    ``place`` names them in tracebacks: ``p1 transforms[0..2]``. With ``apart`` a message that raises in the
    careful source is done to by itself there, and the others go on. The more ``slow_parts`` take long for a
    message, the fewer messages are worked on at once.

    Raises:
        FunctionTooLong: it would be too much source.
    """
    constants = dict(GLOBALS)
    hopeful, careful = (
        _written(sources, Code(constants, is_hopeful=hope, slow_parts=slow_parts))
        for hope in (True, False)
    )
    raised = USUAL
    if apart is not None:
        careful.leave_each(apart.alone, apart.alone_in_slices, apart.tell)
        raised = "Exception"  # it knows of each message what to do
    source = loop_source(_LOOP, hopeful.source(), careful.source(), raised)
    paced_source = loop_source(_LOOP, hopeful.paced_source(), careful.paced_source(), raised)
    try:
        loop: Callable[[Batch], Batch] = compile_source(_LOOP, source, constants, place)
    except (RecursionError, MemoryError) as cause:  # an expression of thousands of operators
        raise FunctionTooLong from cause

    @cache
    def compiled() -> PacedStep:
        return compile_source(_LOOP, paced_source, constants, f"{place}, in slices")

    takes_long = hopeful.takes_long or careful.takes_long
    return Fused(loop, lambda batch: compiled()(batch), takes_long)


def _written(sources: Sequence[Callable[[Code], None]], code: Code) -> Code:
    for write in sources:
        write(code)
    return code
