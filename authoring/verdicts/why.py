"""Why a batch never came: the chain once more, its stages watched as in a dry run.

What `when` of an output or of a reader does not let through is watched as a stage as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headrace.authoring.dryrun.stage import Course
from headrace.authoring.dryrun.watchedchain import ProbedChain
from headrace.compiler.component.buildcontext import Operator
from headrace.compiler.component.families import FAMILIES, Stage
from headrace.compiler.lowering.chain import PlacedTransform, RefusedTransforms


@dataclass(frozen=True, slots=True)
class Dropped:
    """A message that a component made nothing of, or did not want. Units: seconds since the play began."""

    at: float
    pipeline: str
    stage: Stage
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

    def before(
        self, pipeline: str, at: float, most: int, output: int | None = None
    ) -> Iterator[Dropped]:
        """Yield what a pipeline dropped last, up to a moment: one of each reason.

        Of what outputs did not want, that which the one did not that is asked about, if one is.
        """
        lost = [
            Dropped(each.seconds, pipeline, stage.stage, stage.index, each.why)
            for stage in self._chain.stages
            if stage.pipeline == pipeline and (stage.stage != "output" or stage.index == output)
            for each in stage.lost
            if each.seconds <= at
        ]
        latest = dict[tuple[Stage, int, str], Dropped]()
        for each in sorted(lost, key=_course, reverse=True):
            latest.setdefault((each.stage, each.index, each.reason), each)
        yield from [*latest.values()][:most]


def _course(dropped: Dropped) -> tuple[float, int, int]:
    """Return what puts drops in the order in which messages come to them."""
    return dropped.at, FAMILIES.index(dropped.stage), dropped.index
