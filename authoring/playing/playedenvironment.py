"""What pipelines run in while they are played: scripted ends, no chance, no log."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from reactivex import operators

from headrace.authoring.playing.answers import WrittenExchange
from headrace.authoring.playing.ends import ScriptedSource, scripted_sink, scripted_source
from headrace.authoring.playing.outside import Outside
from headrace.authoring.playing.played import END, BatchTimeline, Played, SaidAt
from headrace.authoring.playing.scenario import ComponentAt, Replies, Scenario, ScriptedReply
from headrace.compiler.clock import Clock
from headrace.compiler.component.branches import FAILED, WRITTEN
from headrace.compiler.component.buildcontext import Context, Operator
from headrace.compiler.component.families import Connection, Input, Output, Stage
from headrace.compiler.component.pipelineconfig import LIST_OF
from headrace.compiler.component.selection import Selection
from headrace.compiler.delivery import Batch, Delivery
from headrace.compiler.edges import Sink, Source
from headrace.compiler.httpexchange import ExchangeWith
from headrace.compiler.lowering.chain import PlacedTransform, RefusedTransforms, TransformContext
from headrace.compiler.runtime.environment import Environment
from headrace.compiler.schema.redaction import Hidden
from headrace.compiler.schema.secrets import Secret, Secrets
from headrace.compiler.text.diagnostics import Fault, Path

if TYPE_CHECKING:
    from headrace.compiler.store.memorydisk import MemoryDisk

Lowering = Callable[[Sequence[PlacedTransform], RefusedTransforms], list[Operator]]
"""Returns the operators of a chain, as `lowering.chain.lower` does."""

BatchTaker = Callable[[float, Batch], None]
"""Takes a batch that a pipeline hands on, with its moment."""


class NoSecrets(Secrets):
    """Nothing is resolved: whatever asks for a value gets the reference as it is written."""

    def resolve(self, secret: Secret, owner: Hidden | None = None) -> str:
        """Return the template."""
        return secret.template


@dataclass(frozen=True)
class Surroundings:
    """What a play may look at of a server, and does not change."""

    connections: Mapping[str, Connection] = field(default_factory=dict)
    secrets: Secrets = field(default_factory=Secrets)
    base: FilePath | None = None
    """The directory that configs name files from."""


class PlayedEnvironment(Environment):
    """Scripted ends around what runs in production."""

    is_real = False
    is_told = False

    def __init__(
        self,
        scenario: Scenario,
        clock: Clock,
        played: Played,
        tapped: Collection[tuple[str, int]],
        lowering: Lowering,
        taking: Mapping[str, BatchTaker],
        outside: Outside | None = None,
    ) -> None:
        """Take what is recorded in ``played``, how chains are built, and what is ``outside``.

        Of the transforms that are ``tapped``, all is recorded that leaves them. What pipelines hand on
        is recorded, but for those with somebody who takes it.
        """
        self._taking = taking
        self._outside = outside or Outside(scenario)
        self.random = self._outside.random
        self.clock = clock
        self.played = played
        self.sources: dict[tuple[str, int], ScriptedSource] = {}
        self.is_over = False
        """Whether everything is being ended."""
        self.is_killed = False
        """Whether its process is: whatever is done by it yet comes to nobody."""
        self._scenario = scenario
        self._tapped, self._lowering = tapped, lowering
        self._replies = {
            f"{id}.{LIST_OF['transform']}[{index}]": each
            for (id, index), each in scenario.replies.items()
        }

    def disk(self) -> MemoryDisk:
        """Return what outlives the process of what it stores."""
        return self._outside.disk

    def source(self, component: Input, ctx: Context) -> Source:
        """Return the input's own source if no server feeds it, else one that is told what arrives."""
        if component.fed_by != "server" and not self._scenario.feeds_all:
            return component.source(ctx)
        outages = self._scenario.outages.get((ctx.pipeline, "input", ctx.index), ())
        line = self.played.acknowledged[ctx.pipeline, ctx.index]

        def acknowledged(number: int) -> None:
            if not self.is_killed:
                line.append((self._moment(), number))

        broker = self._outside.broker(ctx.pipeline, ctx.index)
        source = scripted_source(component, outages, ctx, broker, acknowledged)
        self.sources[ctx.pipeline, ctx.index] = source
        return source

    def sink(self, component: Output, ctx: Context) -> Sink:
        """Return a sink that keeps what is written."""
        at: ComponentAt = (ctx.pipeline, "output", ctx.index)
        take = self._taker(self.played.written[ctx.pipeline, ctx.index])

        def taken(batch: Batch) -> None:
            take(batch)
            ctx.took(WRITTEN)

        server = self._outside.server(at)
        return scripted_sink(component, component.fits(ctx), server, taken, self.clock)

    def exchange(self, pipeline: str, place: str) -> ExchangeWith | None:
        """Return what answers a transform as it is written."""
        if self._scenario.asks:
            return None
        replies = self._replies.get(f"{pipeline}.{place}")
        asked = None if replies is None else partial(self._asked, replies)
        return partial(WrittenExchange, asked, self.clock)

    def _asked(self, replies: Replies, batch: Batch) -> ScriptedReply | str:
        return "nobody asks" if self.is_killed else replies(batch)

    def lower(
        self, stages: Sequence[PlacedTransform], refusals: RefusedTransforms
    ) -> list[Operator]:
        """Return the operators of a chain, with a look behind each transform that is asked for."""
        operators: list[Operator] = []
        run: list[PlacedTransform] = []
        for stage in stages:
            run.append(stage)
            at = stage[1].pipeline, stage[1].index
            if at in self._tapped:
                operators += [*self._lowering(run, refusals), self._tap(self.played.made[at])]
                run = []
        return [*operators, *self._lowering(run, refusals)]

    def select(self, selection: Selection, place: TransformContext) -> list[Operator]:
        """Return the operators that hand on what a component wants, built as the chains are."""
        return self._lowering([(selection, place)], [])

    def refused(self, pipeline: str, stage: Stage, component: int, fault: Fault) -> None:
        """Record it."""
        self.played.objections.append(((pipeline, stage, component), fault))

    def warned(self, pipeline: str, place: str, text: str) -> None:
        """Record it."""
        if not self.is_killed:
            self.played.warnings.append(SaidAt(self._moment(), f"{pipeline}.{place}", text))

    def needs_somebody(self, pipeline: str, place: str, text: str) -> None:
        """Record it among the warnings."""
        self.warned(pipeline, place, f"waits until somebody acts: {text}")

    def noted(self, pipeline: str, place: str, text: str) -> None:
        """Nobody is told."""

    def took(self, pipeline: str, place: str, branch: str, path: Path) -> None:
        """Count it."""
        if not self.is_killed:
            self.played.taken[pipeline, place, path, branch] += 1

    def failed(self, pipeline: str, stage: Stage, component: int | None, message: str) -> None:
        """Record it."""
        if self.is_killed:
            return
        index = "" if component is None else f"[{component}]"
        place = f"{LIST_OF[stage]}{index}"
        self.took(pipeline, place, FAILED, ())
        self.played.failures.append(SaidAt(self._moment(), f"{pipeline}.{place}", message))

    def crowded(self, text: str) -> None:
        """Record it."""
        if not self.is_killed:
            self.played.warnings.append(SaidAt(self._moment(), "state", text))

    def handed_on(self, pipeline: str) -> Callable[[Delivery], None]:
        """Return what records all that a pipeline hands on."""
        record = self.played.handed_on[pipeline]

        def kept(at: float, batch: Batch) -> None:
            record.append((at, batch))

        take = self._taking.get(pipeline, kept)

        def taken(delivery: Delivery) -> None:
            if not self.is_killed:
                take(self._moment(), delivery.batch)
            delivery.done()

        return taken

    def _moment(self) -> float:
        return END if self.is_over else self.clock.monotonic()

    def _tap(self, line: BatchTimeline) -> Operator:
        take = self._taker(line)

        def look(delivery: Delivery) -> None:
            take(delivery.batch)

        return operators.do_action(look)

    def _taker(self, line: BatchTimeline) -> Callable[[Batch], None]:
        moment = self._moment

        def take(batch: Batch) -> None:
            if not self.is_killed:
                line.append((moment(), batch))

        return take
