"""Why a batch never came: the chain once more, its stages watched as in a dry run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headrace.authoring.dryrun.stage import Course, DroppedMessage
from headrace.authoring.dryrun.watchedchain import ProbedChain
from headrace.compiler.component.buildcontext import Operator
from headrace.compiler.lowering.chain import PlacedTransform, RefusedTransforms


@dataclass(frozen=True, slots=True)
class Dropped:
    """A message that a transform made nothing of. Units: seconds since the play began."""

    at: float
    pipeline: str
    index: int
    reason: str


class Reasons:
    """What was dropped in one play, where and why."""

    def __init__(self) -> None:
        self._chain = ProbedChain(Course(is_traced=True))

    def lowering(
        self, stages: Sequence[PlacedTransform], refusals: RefusedTransforms
    ) -> list[Operator]:
        """Return the operators of a chain, each telling why it drops what it drops."""
        return self._chain.lower(stages, refusals)

    def before(self, pipeline: str, at: float, most: int) -> Iterator[Dropped]:
        """Yield what a pipeline dropped last, up to a moment: one of each reason."""
        lost = [
            each
            for stage in self._chain.stages
            if stage.pipeline == pipeline
            for each in stage.lost
            if each.seconds <= at
        ]
        latest = dict[tuple[int, str], DroppedMessage]()
        for each in sorted(lost, key=lambda each: (each.seconds, each.at), reverse=True):
            latest.setdefault((each.at, each.why), each)
        for each in [*latest.values()][:most]:
            yield Dropped(each.seconds, pipeline, each.at, each.why)
