"""A chain of production's operators, one for each transform, and each of them watched.

None are fused, because every stage is to be seen. What looks at them is part of them: as operators of their
own, before and behind each, those of a chain of 100 would be deeper than the stack.
"""

from __future__ import annotations

from collections.abc import Sequence

from reactivex import Observable
from reactivex.abc import DisposableBase, ObserverBase, SchedulerBase

from headrace.authoring.dryrun.stage import Course, ProbedStage
from headrace.compiler.component.buildcontext import Operator
from headrace.compiler.delivery import Delivery
from headrace.compiler.lowering.chain import PlacedTransform, RefusedTransforms, plainly


class ProbedChain:
    """The stages of one chain. What `lower` returns is as of `lowering.chain.lower`."""

    def __init__(self, course: Course) -> None:
        self.course = course
        self.stages: list[ProbedStage] = []
        self.is_built = False

    def lower(
        self, placed: Sequence[PlacedTransform], refusals: RefusedTransforms
    ) -> list[Operator]:
        """Return an operator for each transform."""
        operators: list[Operator] = []
        before: ProbedStage | None = None
        for transform, ctx in placed:
            before = stage = ProbedStage(transform, ctx, self.course, before)
            self.stages.append(stage)
            made = plainly([(transform, stage)], refusals)
            operators += made if stage.has_step else map(stage.holding, made)
        self.is_built = True
        return operators

    def lower_without_end(
        self, placed: Sequence[PlacedTransform], refusals: RefusedTransforms
    ) -> list[Operator]:
        """Return one operator whose end passes the stages by: what they hold is shown as held."""
        operators = self.lower(placed, refusals)

        def operator(source: Observable[Delivery]) -> Observable[Delivery]:
            def subscribe(
                observer: ObserverBase[Delivery], scheduler: SchedulerBase | None = None
            ) -> DisposableBase:
                def entrance(
                    first: ObserverBase[Delivery], _: SchedulerBase | None = None
                ) -> DisposableBase:
                    return source.subscribe(
                        first.on_next, first.on_error, observer.on_completed, scheduler=scheduler
                    )

                chain = Observable(entrance).pipe(*operators)
                return chain.subscribe(observer.on_next, observer.on_error, scheduler=scheduler)

            return Observable(subscribe)

        return [operator]
