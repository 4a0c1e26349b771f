"""The running graph, as the web room knows it.

By this interface only, so that another one can stand behind it.
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Collection,
    Mapping,
    Sequence,
)
from pathlib import Path
from typing import Protocol

from headrace.compiler.component.buildcontext import Admits, Origin
from headrace.compiler.component.families import Connection, Input
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.component.states import BucketDeclaration
from headrace.compiler.config.program import Program
from headrace.compiler.runtime.capturing.capturerecords import EndOfCapture
from headrace.compiler.runtime.capturing.captures import CaptureRequest
from headrace.compiler.runtime.connectionregistry import Connections
from headrace.compiler.runtime.connectiontest import Tried
from headrace.compiler.runtime.letterreplay.letterlook import LetterLook
from headrace.compiler.runtime.letterreplay.replayrequest import ReplayRequest
from headrace.compiler.runtime.monitoring.bucketfigures import (
    BucketContents,
    BucketFigures,
    BucketPage,
)
from headrace.compiler.runtime.monitoring.figures import PipelineFigures
from headrace.compiler.runtime.monitoring.letterfigures import (
    DeadLetterPage,
    DeadLetterSignature,
    LettersWanted,
    StoredLetter,
)
from headrace.compiler.runtime.monitoring.liveevents import ALL, Change, Interest, Lagged, Run
from headrace.compiler.runtime.monitoring.pipelinehistory import LatestFailures, Past, RecentCounts
from headrace.compiler.runtime.monitoring.pipelinerecord import Resolution
from headrace.compiler.runtime.monitoring.replayfigures import BegunReplay, ReplayFigures
from headrace.compiler.runtime.monitoring.storedfigures import StoreFigures
from headrace.compiler.runtime.revert.plan import Plan
from headrace.compiler.runtime.revert.reverting import Target
from headrace.compiler.runtime.sampling import Sample, Unbuilt, Unread
from headrace.compiler.schema.secrets import Secrets


class Listener(Protocol):
    """One reader of the live events."""

    def __aiter__(self) -> AsyncIterator[Run | Lagged]:
        """Yield events until it is closed, here or by the engine."""

    def close(self) -> None:
        """Leave."""


class CaptureReader(Protocol):
    """Who reads one capture."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield its text, in parts, until it has ended."""

    def end(self, why: EndOfCapture) -> None:
        """Have it end, with what waits."""

    def close(self) -> None:
        """Leave."""


class PostTaker(Protocol):
    """What takes posts of one pipeline."""

    wants_origin: bool
    """Whether it looks at where a post came from."""
    admits: Admits | None
    """Whether the credential of the input is satisfied; None: it has none, and anybody may post."""
    is_behind: bool
    """Whether so many posts waited, when the last one came, that the pipeline is to catch up first."""

    def take(self, body: bytes | bytearray, origin: Origin | None) -> int | Awaitable[int]:
        """Queue the messages of a post and return how many there were; what takes long is awaited.

        Raises:
            NotJson: the body is none.
            FormatMisfit: it does not fit the format that the input has.
            NotUnpacked, UnpacksToMore: it is not in its content coding, or too large.
            NoRoom: nothing was taken; it may be sent again.
        """


class WayIn(PostTaker, Protocol):
    """What takes the posts of one pipeline. It is asked with every post, so of this process."""

    reads_json: bool
    """Whether what is posted is JSON; else it has the format that the input names."""

    def unpacking(self, coding: str, most: int) -> PostTaker:
        """Return what takes one body in a content coding, which unpacks to at most so many bytes."""


class Engine(Protocol):
    """The running graph."""

    connections: Connections
    """The filed connections, by name."""
    secrets: Secrets
    """What answers references."""

    @property
    def declarations(self) -> Mapping[str, BucketDeclaration]:
        """The declarations of the buckets, as the config has them."""

    @property
    def base(self) -> Path | None:
        """The directory that files of a config are named from; None without a config file."""

    @property
    def data_dir(self) -> Path | None:
        """The root of all files that are written; None if there are none."""

    def move(self, base: Path) -> None:
        """Have files named from another directory, by what is built from now on."""

    async def load(self, program: Program) -> None:
        """Have all pipelines of a file run, or none, and its buckets and no others; or raise `Refused`."""

    async def compile(self, config: PipelineConfig) -> PipelineFigures:
        """Build one pipeline and run it, or raise `Refused`."""

    async def dispose(self, pipeline: str) -> None:
        """End one pipeline, or raise `UnknownPipeline`."""

    async def plan(self, target: Target) -> Plan:
        """Return what a revert to ``target`` would do."""

    async def revert(self, target: Target) -> Plan:
        """Have ``target`` run, and return what changed; or raise `NotReverted`, and change nothing."""

    async def exchange(
        self, pipeline: str, config: PipelineConfig, seen: Sequence[str] | None
    ) -> PipelineFigures:
        """Have a pipeline run with another config, if it has a version that was ``seen``; or raise
        `UnknownPipeline`, `ChangedMeanwhile`, or `Refused` and change nothing."""

    async def plan_exchange(self, pipeline: str, config: PipelineConfig) -> Plan:
        """Return what `exchange` would do, or raise `UnknownPipeline`."""

    def names(self) -> Collection[str]:
        """Return the ids that are taken, also by what may still be refused."""

    async def pipelines(self) -> Sequence[PipelineFigures]:
        """Return what runs now, in the order it was created."""

    async def pipeline(self, pipeline: str) -> PipelineFigures:
        """Return one that runs, or raise `UnknownPipeline`."""

    async def past(self, pipeline: str, resolution: Resolution) -> Past:
        """Return what a pipeline did, of an id that nobody knows: nothing."""

    async def recent(self, resolution: Resolution, most: int) -> RecentCounts:
        """Return what all that runs counted in so many buckets up to now."""

    async def failures(self, most: int) -> LatestFailures:
        """Return so many of the failures of all that runs, those that were seen last."""

    async def buckets(self) -> Sequence[BucketFigures]:
        """Return the declared buckets, in the order of their names."""

    async def bucket(self, name: str, page: BucketPage) -> BucketContents | None:
        """Return what was written last to a bucket, None if none of that name is declared."""

    async def stored(self) -> StoreFigures | None:
        """Return how the store is and what is kept in it; None: no store is open, and nothing is kept.

        It is told without waiting for the disk, so also of a store that fails.
        """

    async def discard_aside(self, id: int) -> None:
        """Forget what was set aside of a part of what is kept on the disk.

        Raises:
            UnknownStored: there is none with that number, or nothing of it was set aside.
            StoreFailed: it cannot be written.
        """

    async def discard_stored(self, id: int) -> None:
        """Discard a part of what is stored, for good; or raise `UnknownStored`, `StoredInUse`, or
        `StoreFailed` where it cannot be written."""

    async def letter_signatures(self, pipeline: str | None = None) -> Sequence[DeadLetterSignature]:
        """Return what failed alike of which there are dead letters, in a pipeline or in all, last seen
        first; or raise `StoreFailed`. It need not run: letters outlive it."""

    async def letters(
        self, pipeline: str, wanted: LettersWanted, before: int, limit: int
    ) -> DeadLetterPage:
        """Return so many of the dead letters of a pipeline that come before an id, newest first; or raise
        `StoreFailed`."""

    async def letter(self, pipeline: str, id: int) -> StoredLetter:
        """Return one dead letter, or raise `UnknownDeadLetter` or `StoreFailed`."""

    async def delete_letters(self, pipeline: str, ids: Sequence[int]) -> int:
        """Delete those of some dead letters that are of a pipeline, and return how many that were; or
        raise `StoreFailed`."""

    async def delete_all_letters(self, pipeline: str, wanted: LettersWanted) -> int:
        """Delete all dead letters of a pipeline that are wanted, and return how many that were; or raise
        `StoreFailed`, when some may be gone."""

    async def replay(self, request: ReplayRequest, messages: bytes | None = None) -> BegunReplay:
        """Begin to send dead letters through a pipeline again; ``messages``, a JSON array, in the place of
        those of the one letter. Or raise `UnknownPipeline`, `UnknownDeadLetter`, `ReplayUnderWay`,
        `NoReplayTarget`, `UnclearReplayTarget`, `NotJson` or `StoreFailed`, and do nothing."""

    async def look_at_replay(
        self, request: ReplayRequest, messages: bytes | None = None
    ) -> LetterLook:
        """Return what a replay of one dead letter would send into what, and send nothing; or raise
        `UnknownPipeline`, `UnknownDeadLetter`, `NoReplayTarget`, `UnclearReplayTarget`, `NotJson` or
        `StoreFailed`."""

    async def replay_figures(self, pipeline: str) -> ReplayFigures | None:
        """Return how far the replay in a pipeline has come, or the last one had; None: there was none."""

    async def stop_replay(self, pipeline: str) -> None:
        """Have the replay in a pipeline send no more, or raise `UnknownReplay`."""

    async def sample(self, input: Input, most: int, seconds: float) -> Sample | Unbuilt | Unread:
        """Read up to so many messages of an input within so many seconds, or raise `TooManySamples`."""

    async def test(self, connection: Connection) -> Tried:
        """Connect and sign in as a component would, and let go of it; or raise `TooManyTests`."""

    def configs(self) -> Mapping[str, PipelineConfig]:
        """Return the configs of what runs by id, without what may still be refused."""

    async def files(self) -> Collection[Path]:
        """Return the files that what runs was built from."""

    def way_in(self, pipeline: str) -> WayIn | None:
        """Return the way in of a pipeline, None where it has none, or raise `UnknownPipeline`."""

    def observe(self, interest: Interest = ALL, *, pulse: bool = False) -> Listener:
        """Return a new reader of the live events that somebody has an interest in, and of the pulse."""

    def capture(self, request: CaptureRequest) -> CaptureReader:
        """Begin a capture, or raise `UnknownPipeline` or `TooManyCaptures`."""

    def tell(self, change: Change) -> None:
        """Tell those who want to know what somebody has changed."""

    def hush(self) -> None:
        """End every event stream, every capture, and every sample."""

    async def close(self) -> None:
        """End everything, upstream first, within one grace for all."""
