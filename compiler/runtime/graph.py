"""The graph: which pipelines run, and who reads whom. Bookkeeping only: it starts and ends nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter

from headrace.compiler.component.pipelineconfig import PipelineConfig, keeping_digits
from headrace.compiler.edges import Source
from headrace.compiler.errors import BuildRefused
from headrace.compiler.lint.rules import missing_upstream
from headrace.compiler.lowering.chainends import Outlet
from headrace.compiler.runtime.inbox import Inbox
from headrace.compiler.runtime.pipeline import Pipeline

InboxKind = Callable[[str, Callable[[Inbox], None]], Inbox]
"""Makes an inbox of an upstream; is given what detaches it."""


class Graph:
    """The pipelines by id, in the order they came, and the inboxes that read each of them.

    Inboxes are kept by the id they read, so they outlive a pipeline that goes and comes again.
    """

    def __init__(self) -> None:
        self.pipelines: dict[str, Pipeline] = {}
        self.outlets: defaultdict[str, Outlet] = defaultdict(Outlet)
        """By id, what inboxes subscribe to: whoever runs under the id hands on to them."""

    def attach(self, upstream: str, make: InboxKind = Inbox) -> Source:
        """Return a new inbox that what ``upstream`` hands on is put into from now on."""
        inbox = self.inbox(upstream, self.pipelines, make)
        self.join(inbox)
        return inbox

    def inbox(self, upstream: str, running: Iterable[str], make: InboxKind = Inbox) -> Inbox:
        """Return a new inbox that nothing is put into yet.

        Raises:
            BuildRefused: nobody of those ``running`` has the id that it is to read.
        """
        if upstream not in running:
            raise BuildRefused(missing_upstream(upstream, list(running)))
        return make(upstream, self._detach)

    def join(self, inbox: Inbox) -> None:
        """Have an inbox take what its upstream hands on."""
        inbox.subscription = self.outlets[inbox.upstream].subscribe(inbox.take)

    def forget(self, id: str) -> None:
        """Drop the outlet of an id that nobody runs under and nobody reads."""
        if id not in self.pipelines and id in self.outlets and not self.outlets[id].observers:
            del self.outlets[id]

    def remove(self, pipeline: Pipeline) -> None:
        """Have a pipeline run no more, unless another one runs under its id by now."""
        if self.pipelines.get(pipeline.id) is pipeline:
            del self.pipelines[pipeline.id]

    def configs(self) -> dict[str, PipelineConfig]:
        """Return the configs of all pipelines by id, settled or not."""
        return {id: each.config for id, each in self.pipelines.items()}

    def settle_decoding(self) -> None:
        """Have those pipelines keep the digits of numbers whose messages reach who wants them."""
        keeping = keeping_digits(self.configs())
        for id, each in self.pipelines.items():
            each.parts.decoding.keep_digits(keeps=id in keeping)

    def _detach(self, inbox: Inbox) -> None:
        inbox.subscription.dispose()
        self.forget(inbox.upstream)


async def upstream_first(
    ending: Mapping[str, Pipeline], end: Callable[[Sequence[Pipeline]], Awaitable[None]]
) -> None:
    """End pipelines in layers, so that what one hands on as it ends is still read by the next."""
    order = TopologicalSorter(
        {id: [up for up in each.config.upstreams if up in ending] for id, each in ending.items()}
    )
    left = dict(ending)
    with suppress(CycleError):  # those that are in one are ended last, and together
        order.prepare()
    while left:
        ready = order.get_ready()
        await end([left.pop(id) for id in ready or tuple(left)])
        order.done(*ready)
