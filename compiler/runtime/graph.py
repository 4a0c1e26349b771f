"""The graph: which pipelines run, who reads whom, and who may change that now.

Bookkeeping only: it starts and ends nothing.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.edges import Source
from headrace.compiler.errors import BuildRefused
from headrace.compiler.lint.rings import Configs, fed_by_hearers, read_by, rings
from headrace.compiler.lint.rules import missing_upstream
from headrace.compiler.lowering.chainends import Outlet
from headrace.compiler.runtime.failureinbox import FailureInbox, FailureReaders
from headrace.compiler.runtime.inbox import Inbox
from headrace.compiler.runtime.owinginbox import InboxOwner, OwingInbox, OwingInboxes
from headrace.compiler.runtime.pipeline import Pipeline
from headrace.compiler.runtime.selecting import Select
from headrace.compiler.text.diagnostics import Diagnostic

InboxKind = Callable[
    [str, Callable[[Inbox], None], Callable[[str], str | None], Select | None], Inbox
]
"""Makes an inbox of an upstream; is given what detaches it, tells why nothing comes, and selects."""


class Graph:
    """The pipelines by id, in the order they came, and the inboxes that read each of them.

    Inboxes are kept by the id they read, so they outlive a pipeline that goes and comes again.
    """

    def __init__(self) -> None:
        self.pipelines: dict[str, Pipeline] = {}
        self.outlets: defaultdict[str, Outlet] = defaultdict(Outlet)
        """By id, what inboxes subscribe to: whoever runs under the id hands on to them."""
        self.failure_readers = FailureReaders()
        self.owing = OwingInboxes()

    def attach(
        self,
        upstream: str,
        select: Select | None = None,
        owner: InboxOwner | None = None,
        make: InboxKind = Inbox,
    ) -> Source:
        """Return a new inbox that what ``upstream`` hands on is put into from now on."""
        inbox = self.inbox(upstream, self.pipelines, select, owner, make)
        self.join(inbox)
        return inbox

    def inbox(
        self,
        upstream: str,
        running: Iterable[str],
        select: Select | None = None,
        owner: InboxOwner | None = None,
        make: InboxKind = Inbox,
    ) -> Inbox:
        """Return a new inbox that nothing is put into yet.

        With an ``owner`` the upstream waits until what is put into it is written.

        Raises:
            BuildRefused: nobody of those ``running`` has the id that it is to read.
        """
        if upstream not in running:
            raise BuildRefused(missing_upstream(upstream, list(running)))
        if owner is not None:
            return OwingInbox(upstream, self._detach, self._waits_for, select, owner, self.owing)
        return make(upstream, self._detach, self._waits_for, select)

    def join(self, inbox: Inbox) -> None:
        """Have an inbox take what its upstream hands on."""
        inbox.subscription = self.outlets[inbox.upstream].subscribe(inbox.take)

    def listen(self, inbox: FailureInbox) -> None:
        """Have an inbox take failures from now on.

        Raises:
            BuildRefused: nobody runs under an id whose failures it is to read.
        """
        for index, upstream in enumerate(inbox.wanted.upstreams):
            if upstream not in self.pipelines:
                missing = missing_upstream(upstream, list(self.pipelines))
                raise BuildRefused(replace(missing, path=("upstream", index)))
        self.failure_readers.join(inbox)

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

    def objections(self, id: str, config: PipelineConfig) -> list[Diagnostic]:
        """Return why a config cannot run under an id among these pipelines: what it reads, or a ring."""
        missing = [
            config.diagnose(missing_upstream(upstream, self.pipelines), path)
            for path, upstream in config.readings()
            if upstream not in self.pipelines
        ]
        return [*missing, *rings(id, {**self.configs(), id: config})]

    def settle(self) -> None:
        """Have those pipelines keep the digits of numbers whose messages reach who wants them.

        And those be told of failures who get nothing back from where they come from.
        """
        configs = self.configs()
        self.failure_readers.fed_by_them = fed_by_hearers(configs)
        keeping = keeping_digits(configs)
        for id, each in self.pipelines.items():
            each.parts.decoding.keep_digits(keeps=id in keeping)

    def _waits_for(self, upstream: str) -> str | None:
        if (pipeline := self.pipelines.get(upstream)) is None:
            return f"no pipeline named '{upstream}' runs"
        return None if pipeline.status == "running" else f"'{upstream}' is {pipeline.status}"

    def _detach(self, inbox: Inbox) -> None:
        inbox.subscription.dispose()
        self.forget(inbox.upstream)


def keeping_digits(pipelines: Configs) -> set[str]:
    """Return the pipelines that have to decode numbers as they are written.

    That is those with an output that wants it, those that hand on to one of them, and those that
    remember in a bucket what one of them recalls.
    """
    keeping = {
        id
        for id, config in pipelines.items()
        if any(output.keeps_digits() for output in config.outputs)
    }
    remembering = defaultdict[str, list[str]](list)  # who remembers, by bucket
    for id, config in pipelines.items() if keeping else ():
        if config.state is not None and any(each.remembers for each in config.transforms):
            remembering[config.state.bucket].append(id)
    found, fed = [*keeping], fed_by_hearers(pipelines)
    for config in map(pipelines.__getitem__, found):
        # Where its messages come from, and the values that it puts into them.
        feeding = {
            upstream for upstream in read_by(config, fed, pipelines) if upstream in pipelines
        }
        if config.state is not None and any(each.recalls for each in config.transforms):
            feeding |= {*remembering[config.state.bucket]}
        found += feeding - keeping
        keeping |= feeding
    return keeping


def naming(connection: str, configs: Configs) -> list[str]:
    """Return the pipelines that name a connection, whatever their status and wherever they run."""
    return [id for id, config in configs.items() if connection in config.connections]


async def upstream_first(
    ending: Mapping[str, Pipeline], end: Callable[[Sequence[Pipeline]], Awaitable[None]]
) -> None:
    """End pipelines in layers, so that what one hands on as it ends is still read by the next."""
    if len(ending) < 2:
        await end([*ending.values()])
        return
    configs = {id: each.config for id, each in ending.items()}
    fed = fed_by_hearers(configs)
    order = TopologicalSorter(
        {
            id: [up for up in read_by(each, fed, configs) if up in ending]
            for id, each in configs.items()
        }
    )
    left = dict(ending)
    with suppress(CycleError):  # those that are in one are ended last, and together
        order.prepare()
    while left:
        ready = order.get_ready()
        await end([left.pop(id) for id in ready or tuple(left)])
        order.done(*ready)


class ChangeLock:
    """The gate before the graph: single changes pass, and wait while all of it changes at once.

    Open, unless somebody has it closed. One at a time does; the next one waits.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._open = asyncio.Event()
        self._open.set()
        self._leaving = 0
        self._left = asyncio.Event()

    async def passed(self) -> None:
        """Wait until it is open. What comes next without waiting is done before it closes."""
        while not self._open.is_set():
            await self._open.wait()

    @contextmanager
    def leaving(self) -> Iterator[None]:
        """Have nobody close the gate before this is over: something is still ending."""
        self._leaving += 1
        try:
            yield
        finally:
            self._leaving -= 1
            self._left.set()

    @asynccontextmanager
    async def closed(self) -> AsyncIterator[None]:
        """Have nobody pass; begins when nothing is ending any more."""
        async with self._turn:
            self._open.clear()
            try:
                while self._leaving:
                    self._left.clear()
                    await self._left.wait()
                yield
            finally:
                self._open.set()
