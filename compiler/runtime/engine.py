"""The engine: owns the running graph. Everybody else asks it and touches no pipeline's insides.

`compile` builds and starts one pipeline, `load` a whole file, `dispose` ends one, `revert` makes the graph
that of a file (all by `GraphChanges`), `observe` gives the events. Another engine can stand behind the same
interface.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from headrace.compiler.buckets import Buckets
from headrace.compiler.clock import Clock
from headrace.compiler.component.families import Connection, Input
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.component.states import BucketDeclaration
from headrace.compiler.config.program import Program
from headrace.compiler.config.retention import DEFAULT_RETENTION
from headrace.compiler.config.storesettings import AS_USUAL, StoreSettings
from headrace.compiler.datadir import DataDir
from headrace.compiler.errors import HistoryRefused, UnknownPipeline, UnknownReplay
from headrace.compiler.jsontext import encode
from headrace.compiler.largejson import TURN_SECONDS
from headrace.compiler.runtime.capturing.captures import Capture, CaptureRequest
from headrace.compiler.runtime.connectionregistry import Connections
from headrace.compiler.runtime.connectiontest import ConnectionTests, Tried
from headrace.compiler.runtime.environment import REAL, Environment
from headrace.compiler.runtime.graph import Graph, naming
from headrace.compiler.runtime.graphchanges import ENDING_SECONDS, GraphChanges
from headrace.compiler.runtime.inbox import Peek
from headrace.compiler.runtime.letterreplay.letterlook import LetterLook
from headrace.compiler.runtime.letterreplay.replayrequest import ReplayRequest
from headrace.compiler.runtime.monitoring.bucketfigures import (
    BucketContents,
    BucketFigures,
    BucketPage,
    bucket_figures,
    page_of,
)
from headrace.compiler.runtime.monitoring.feed import Feed, Listener
from headrace.compiler.runtime.monitoring.figures import PipelineFigures, figures_of
from headrace.compiler.runtime.monitoring.letterfigures import (
    DeadLetterPage,
    DeadLetterSignature,
    LettersWanted,
    StoredLetter,
)
from headrace.compiler.runtime.monitoring.liveevents import ALL, Change, Event, Interest
from headrace.compiler.runtime.monitoring.pipelinehistory import (
    History,
    LatestFailures,
    Past,
    RecentCounts,
)
from headrace.compiler.runtime.monitoring.pipelinelive import pulse_of
from headrace.compiler.runtime.monitoring.pipelinerecord import Resolution
from headrace.compiler.runtime.monitoring.pulses import Pulses
from headrace.compiler.runtime.monitoring.replayfigures import BegunReplay, ReplayFigures
from headrace.compiler.runtime.monitoring.storedfigures import StoreFigures
from headrace.compiler.runtime.revert.plan import Plan
from headrace.compiler.runtime.revert.reverting import Target
from headrace.compiler.runtime.sampling import Sample, Samples, Unbuilt, Unread
from headrace.compiler.runtime.storage import Storage
from headrace.compiler.runtime.storedletters import StoredLetters
from headrace.compiler.runtime.wayin import WayIn
from headrace.compiler.runtime.world import World
from headrace.compiler.schema.secrets import Secrets
from headrace.compiler.store.storeerrors import StoreRefused

if TYPE_CHECKING:
    from headrace.compiler.runtime.letterreplay.replays import Replays
    from headrace.compiler.runtime.monitoring.durablehistory import DurableHistory

SLICE = 20
"""Pipelines whose figures are told before messages have a turn: the text of each is encoded once."""


class Engine:
    """The running graph of pipelines."""

    def __init__(
        self,
        clock: Clock,
        *,
        connections: Mapping[str, Connection] | None = None,
        secrets: Secrets | None = None,
        data_dir: DataDir | None = None,
        base: Path | None = None,
        retention_seconds: int = DEFAULT_RETENTION,
        store: StoreSettings = AS_USUAL,
        is_history_durable: bool = False,
        environment: Environment = REAL,
    ) -> None:
        self.clock = clock
        self.graph = Graph()
        self._pipelines = self.graph.pipelines
        self.secrets = secrets or Secrets()
        self.state = Buckets(clock, environment.crowded)
        """The declared buckets."""
        self.connections = Connections(
            connections or {}, lambda name: naming(name, self.graph.configs())
        )
        self.history = History(clock, retention_seconds)
        self._is_history_durable = is_history_durable
        self._durable_history: DurableHistory | None = None
        self._feed = Feed(clock)
        self._pulses = Pulses(self._feed, self._pipelines, pulse_of)
        self._storage = Storage(
            clock,
            None if data_dir is None else data_dir.path,
            store,
            is_real=environment.is_real,
            hear=self._feed.publish_named,
            disk=environment.disk,
        )
        self._letters = StoredLetters(self._storage)
        self._world = World(
            clock=clock,
            storage=self._storage,
            connections=self.connections,
            secrets=self.secrets,
            data_dir=data_dir,
            base=base,
            buckets=self.state,
            attach=self.graph.attach,
            owing=self.graph.owing,
            failure_readers=self.graph.failure_readers,
            listen=self.graph.listen,
            environment=environment,
        )
        self.changes = GraphChanges(
            self.graph, self._world, self.connections, self._feed, self.history
        )
        self._tests = ConnectionTests(self._world)
        self.samples = Samples(self._world, partial(self.graph.attach, make=Peek))

    @property
    def data_dir(self) -> Path | None:
        """The root of all files that are written; None if there are none."""
        opened = self._world.data_dir
        return None if opened is None else opened.path

    @property
    def base(self) -> Path | None:
        """The directory that files of a config are named from; None without a config file."""
        return self._world.base

    def move(self, base: Path) -> None:
        """Have files named from another directory, by what is built from now on."""
        self._world.base = base

    @property
    def declarations(self) -> Mapping[str, BucketDeclaration]:
        """The declarations of the buckets, as the config has them."""
        return self.changes.declarations

    async def compile(self, config: PipelineConfig) -> PipelineFigures:
        """Build one pipeline and run it, as `GraphChanges.compile` does."""
        return await self.changes.compile(config)

    async def load(self, program: Program) -> None:
        """Compile all pipelines of a file, or none, as `GraphChanges.load` does.

        Raises:
            HistoryRefused: history is to be durable, and there is no store for it.
        """
        if self._is_history_durable and self._durable_history is None:
            self._durable_history = await self._history_of_before()
        await self.changes.load(program)
        if self._durable_history is not None:
            self._durable_history.begin()

    async def _history_of_before(self) -> DurableHistory:
        """Have history go on where it was when the process before ended."""
        from headrace.compiler.runtime.monitoring.durablehistory import DurableHistory

        try:
            store = await self._storage.opened()
        except StoreRefused as cause:
            raise HistoryRefused(f"history cannot be durable: {cause}") from cause
        kept = DurableHistory(self.clock, self.history, store)
        await kept.load()
        return kept

    async def dispose(self, pipeline: str) -> None:
        """End one pipeline, as `GraphChanges.dispose` does."""
        await self.changes.dispose(pipeline)

    async def plan(self, target: Target) -> Plan:
        """Return what a revert to ``target`` would do. Whether all of it can be built shows then."""
        return await self.changes.plan(target)

    async def revert(self, target: Target) -> Plan:
        """Have ``target`` run and return what changed, as `GraphChanges.revert` does."""
        return await self.changes.revert(target)

    async def exchange(
        self, pipeline: str, config: PipelineConfig, seen: Sequence[str] | None
    ) -> PipelineFigures:
        """Have a pipeline run with another config, as `GraphChanges.exchange` does."""
        return await self.changes.exchange(pipeline, config, seen)

    async def plan_exchange(self, pipeline: str, config: PipelineConfig) -> Plan:
        """Return what `exchange` would do, as `GraphChanges.plan_exchange` does."""
        return await self.changes.plan_exchange(pipeline, config)

    def names(self) -> Collection[str]:
        """Return the ids that are taken, in the order they came, settled or not."""
        return self._pipelines.keys()

    async def pipelines(self) -> list[PipelineFigures]:
        """Return the figures of what runs, in the order it was created; some at a time."""
        told, monotonic = list[PipelineFigures](), self.clock.monotonic
        ends = monotonic() + TURN_SECONDS
        for id in [*self._pipelines]:
            if id in self._pipelines:  # it may have gone meanwhile
                told.append(figures_of(self._pipelines[id]))
                if len(told) % SLICE == 0 or monotonic() >= ends:  # one may have 1,000 inputs
                    await self.clock.sleep(0)
                    ends = monotonic() + TURN_SECONDS
        return told

    def configs(self) -> dict[str, PipelineConfig]:
        """Return the configs of what runs by id, without what may still be refused."""
        return {id: each.config for id, each in self._pipelines.items() if each.is_settled}

    async def pipeline(self, pipeline: str) -> PipelineFigures:
        """Return the figures of one pipeline.

        Raises:
            UnknownPipeline: nobody runs under the id.
        """
        if pipeline not in self._pipelines:
            raise UnknownPipeline(pipeline)
        return figures_of(self._pipelines[pipeline])

    async def past(self, pipeline: str, resolution: Resolution) -> Past:
        """Return what is known of an id, which may be nothing."""
        return self.history.past(pipeline, resolution)

    async def recent(self, resolution: Resolution, most: int) -> RecentCounts:
        """Return what all that runs counted in so many buckets up to now."""
        return await self.history.recent(resolution, most)

    async def failures(self, most: int) -> LatestFailures:
        """Return so many of the failures of all that runs, those that were seen last."""
        return await self.history.failures(most)

    async def buckets(self) -> list[BucketFigures]:
        """Return the declared buckets, in the order of their names."""
        return await bucket_figures(self.state, self.clock)

    async def bucket(self, name: str, page: BucketPage) -> BucketContents | None:
        """Return what was written last to a bucket (`page_of`); None: none of that name is declared."""
        found = self.state.get(name)
        return None if found is None else await page_of(found, self.clock, page)

    async def stored(self) -> StoreFigures | None:
        """Return what is kept on the disk; None: no store is open."""
        figures = await self._storage.figures()
        if figures is None:
            return None
        return replace(
            figures,
            letters=self._letters.stock(),
            letters_dropped=self._storage.dropped_letters,
            letters_replayed=self._replays.gone_through if self._has_replayed else 0,
        )

    async def discard_stored(self, id: int) -> None:
        """Forget a part of what is kept, as `Storage.discard` does."""
        await self._storage.discard(id)

    async def discard_aside(self, id: int) -> None:
        """Forget what was set aside of a part of what is kept, as `Storage.discard_aside` does."""
        await self._storage.discard_aside(id)

    async def letter_signatures(self, pipeline: str | None = None) -> list[DeadLetterSignature]:
        """Return what failed alike of which there are dead letters, as `StoredLetters` does."""
        return await self._letters.signatures(pipeline)

    async def letters(
        self, pipeline: str, wanted: LettersWanted, before: int, limit: int
    ) -> DeadLetterPage:
        """Return some dead letters of a pipeline, as `StoredLetters.page` does."""
        return await self._letters.page(pipeline, wanted, before, limit)

    async def letter(self, pipeline: str, id: int) -> StoredLetter:
        """Return one dead letter, as `StoredLetters` does."""
        return await self._letters.letter(pipeline, id)

    async def delete_letters(self, pipeline: str, ids: Sequence[int]) -> int:
        """Delete dead letters, as `StoredLetters.delete` does."""
        return await self._letters.delete(pipeline, ids)

    async def delete_all_letters(self, pipeline: str, wanted: LettersWanted) -> int:
        """Delete dead letters, as `StoredLetters.delete_all` does."""
        return await self._letters.delete_all(pipeline, wanted)

    @cached_property
    def _replays(self) -> Replays:
        """The replays, of which most servers never have one: they are loaded with the first."""
        from headrace.compiler.runtime.letterreplay.replays import Replays

        return Replays(self._pipelines, self._world)

    @property
    def _has_replayed(self) -> bool:
        return "_replays" in vars(self)

    async def replay(self, request: ReplayRequest, messages: bytes | None = None) -> BegunReplay:
        """Begin to send dead letters through a pipeline again, as `Replays.begin` does.

        ``messages``: a JSON array that goes in the place of what is in the one letter.
        """
        if messages is not None:
            request = await self._replays.edited(request, messages)
        return await self._replays.begin(self._storage.records, request)

    async def look_at_replay(
        self, request: ReplayRequest, messages: bytes | None = None
    ) -> LetterLook:
        """Return what a replay of one letter would send into what, as `Replays.look` does."""
        if messages is not None:
            request = await self._replays.edited(request, messages)
        return await self._replays.look(self._storage.records, request)

    async def replay_figures(self, pipeline: str) -> ReplayFigures | None:
        """Return how far the replay in a pipeline has come, or the last one had; None: there was none."""
        return self._replays.figures(pipeline) if self._has_replayed else None

    async def stop_replay(self, pipeline: str) -> None:
        """Have the replay in a pipeline send no more.

        Raises:
            UnknownReplay: none is under way.
        """
        if not self._has_replayed or not self._replays.stop(pipeline):
            raise UnknownReplay(pipeline)

    async def sample(self, input: Input, most: int, seconds: float) -> Sample | Unbuilt | Unread:
        """Read up to so many messages of an input within so many seconds, and let go of it.

        Raises:
            TooManySamples: too many are being taken already.
        """
        return await self.samples.take(input, most=most, seconds=seconds)

    async def test(self, connection: Connection) -> Tried:
        """Connect and sign in as a component would, and let go of it.

        Raises:
            TooManyTests: too many wait already.
        """
        return await self._tests.take(connection)

    async def files(self) -> set[Path]:
        """Return the files that what runs was built from."""
        built_on = (each.parts.dependencies for each in self._pipelines.values())
        return {path for each in built_on for path, _ in each.files.values()}

    def way_in(self, pipeline: str) -> WayIn | None:
        """Return the way in of a pipeline over the API; None when it has no `http` input.

        Raises:
            UnknownPipeline: nobody runs under the id.
        """
        try:
            return self._pipelines[pipeline].parts.way_in
        except KeyError:
            raise UnknownPipeline(pipeline) from None

    def observe(self, interest: Interest = ALL, *, pulse: bool = False) -> Listener:
        """Return a new reader of the live events that somebody has an interest in, and of the pulse."""
        return self._feed.observe(interest, self._pulses if pulse else None)

    def tell(self, change: Change) -> None:
        """Tell those who want to know what somebody has changed."""
        self._feed.publish_change(Event(encode(change), "changed"))

    def capture(self, request: CaptureRequest) -> Capture:
        """Begin a capture, of which its reader is told line by line.

        Raises:
            UnknownPipeline: nobody runs under one of the ids.
            TooManyCaptures: too many are under way.
        """
        for id in request.pipelines:
            if id not in self._pipelines:
                raise UnknownPipeline(id)
        return self._world.captures.begin(request)

    def hush(self) -> None:
        """End every event stream, every capture, and every sample."""
        self._feed.close()
        self._world.captures.end()
        self.samples.end()

    async def close(self) -> None:
        """End everything, upstream first so that inboxes drain, within one grace for all."""
        deadline = self.clock.monotonic() + ENDING_SECONDS
        self.changes.shut()
        self._world.captures.end()
        await self.samples.close()
        await self.changes.dispose_all(deadline)
        if self._durable_history is not None:
            await self._durable_history.close()
        await self._storage.close()
        self.history.close()
        self._feed.close()
