"""What a component may ask while it is built, and the shapes of what it gives.

The runtime hands in the real one, a test a double. It is one component's own: it knows the pipeline
and the component's place in it, so no component has to say who it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from headrace.compiler.buckets import Bucket
from headrace.compiler.datadir import DataDir
from headrace.compiler.delivery import Batch, Delivery
from headrace.compiler.edges import Source
from headrace.compiler.formats import PayloadFormat
from headrace.compiler.httpexchange import ExchangeWith
from headrace.compiler.jsontext import Decoding
from headrace.compiler.schema.secrets import Secret

if TYPE_CHECKING:
    from reactivex import Observable

    from headrace.compiler.clock import Clock
    from headrace.compiler.component.conditions import Condition
    from headrace.compiler.component.families import Connection
    from headrace.compiler.component.partsbridge import PartsBridge
    from headrace.compiler.component.partskeep import PartsKeep
    from headrace.compiler.component.retry import RetryOptions
    from headrace.compiler.component.states import PipelineState
    from headrace.compiler.errors import FailureClass

Step = Callable[[Batch], list[Batch]]
"""The pure core of a transform: one batch in, zero or more out. Never changes what it is handed."""
AwaitingStep = Callable[[Batch], Awaitable[list[Batch]]]
"""A step that waits for somebody. Runs one batch at a time, in order."""
PausingStep = Callable[[Batch, float], "list[Batch] | Paused"]
"""A step that may take long: it works for so many seconds and goes on later, in order."""
PacedStep = Callable[[Batch], Iterator[Batch | None]]
"""A step on a large batch: yields each batch that it makes, and None wherever others may have a turn.
Where it makes one batch at the end and raises before, it has made nothing."""
FailedMessages = Mapping[str, tuple[Exception, Batch]]
"""Messages of a batch that failed, as they came: by what is told of it, with the first that was raised."""
Operator = Callable[["Observable[Delivery]"], "Observable[Delivery]"]
"""A step lifted onto deliveries, or an Rx operator that remembers across batches and knows time."""

_C = TypeVar("_C", bound="Connection")
_R = TypeVar("_R")


Release = Callable[[], None]
"""Has what is held go, as if its time were over."""


class Paused(Protocol):
    """What a `PausingStep` has begun and could not finish in its time."""

    def resume(self, seconds: float) -> list[Batch] | None:
        """Go on for so long; return what became of the batch, None when it is not over yet."""

    def close(self) -> None:
        """Give it up."""


Headers = Iterable[tuple[bytes, bytes]]
Origin = tuple[str, str | None, Headers]
"""Method, ``ip:port`` when it is known, and the headers of a post, names in lower case."""


Admits = Callable[[Callable[[str], str | None]], bool]
"""Says whether somebody may post; is given what looks a header up."""


class Keep(Protocol):
    """Has a post stored before it is answered."""

    def __call__(
        self,
        batch: Batch,
        origin: Origin | None,
        size: int,
        body: bytes | bytearray,
        *,
        is_json: bool,
    ) -> Awaitable[int]:
        """Have a post stored whose body has become ``batch``; await how many messages that are.

        It counts as ``size`` bytes. ``is_json``: the body is JSON, whatever the format of the input is.

        Raises:
            NoRoom: at once or as it is awaited: it was not taken.
        """


class Ingress(Protocol):
    """What an input gives whoever wants to post to its pipeline over the API."""

    wants_origin: bool
    """Whether it looks at where a post came from."""
    decoding: Decoding
    """How what is posted is decoded."""
    format: PayloadFormat | None
    """What makes messages of it; None: it is JSON."""
    admits: Admits | None
    """Whether the input's own credential is satisfied; None: it has none, and anybody may post."""
    is_behind: bool
    """Whether so many posts waited, when the last one came, that the pipeline is to catch up first."""

    @property
    def keep(self) -> Keep | None:
        """Has a post stored, instead of `offer`; None: posts are queued in memory."""

    @property
    def is_stopped(self) -> bool:
        """Whether its pipeline ends, so that nothing more is taken."""

    def has_room_for(self, size: int) -> bool:
        """Return whether a body of so many bytes may wait beside those that do."""

    def offer(self, batch: Batch, origin: Origin | None, size: int = 0) -> bool:
        """Queue one batch, of a body of ``size`` bytes; False when it was not taken: there is no room."""


class KeepBounds(NamedTuple):
    """How much of an input may be kept."""

    max_bytes: int
    """On the disk."""
    most_arrivals: int | None = None
    """That are being stored at a time; None: any number."""
    most_bytes: int | None = None
    """In memory, of those and of large ones that are on their way; None: any number."""


class KeptSource(Source):
    """A source of what was stored before anybody was told that it was taken."""

    @property
    @abstractmethod
    def is_stopped(self) -> bool:
        """Whether its pipeline ends, so that nothing more is taken."""

    @abstractmethod
    def has_room_for(self, size: int) -> bool:
        """Return whether so many bytes may be in memory beside those that are."""

    @abstractmethod
    def store(
        self,
        payload: bytes | bytearray,
        about: dict[str, Any],
        batch: Batch,
        size: int,
        *,
        is_json: bool,
    ) -> Awaitable[int]:
        """Have an arrival stored that has become ``batch``; await how many messages that are.

        ``about`` is its metadata, as `describe` returns it. It counts as ``size`` bytes.

        Raises:
            NoRoom: at once or as it is awaited: it was not taken.
        """


class WantedFailures(NamedTuple):
    """Which failures an input reads, and how."""

    upstreams: Sequence[str]
    """Pipelines; none: all that get nothing from who reads the failures of all."""
    stages: Sequence[str]
    """Stages; none: all."""
    messages: bool
    """Whether the message comes along."""
    max_queued_bytes: int
    """What may wait to be read."""

    def wants(self, stage: str) -> bool:
        """Return whether it reads failures of a stage."""
        return not self.stages or stage in self.stages


MOST_BYTES = 1024 * 1024
"""Size of a file that is read. All authorities that a browser trusts take a quarter of it."""


class Reading(ABC, Generic[_R]):
    """What is to be made of some files. Two that are equal make the same; it can be hashed.

    A build happens on the loop. Files are read, and turned into what is made of them, before it, in a
    thread.
    """

    @property
    @abstractmethod
    def files(self) -> tuple[str, ...]:
        """The files, as the config names them."""

    @abstractmethod
    def made(self, base: Path) -> _R:
        """Read them, from a directory, and return what they make.

        Raises:
            BuildRefused: a file cannot be read, is too large, or holds something else.
        """


class Context(Protocol):
    """One component's view of the world while it is built."""

    pipeline: str
    """Id of the pipeline it belongs to."""
    place: str
    """Its place in the config, such as ``transforms[2]``."""
    index: int
    """Its index in its list."""
    clock: Clock
    random: Random
    """Chance, of what is made up."""
    data_dir: DataDir | None
    """Root of everything that is written to files; None: the server writes none."""
    base: Path | None
    """Directory that files of a config are named from: that of the config; None without one."""
    state: PipelineState | None
    """The bucket that the pipeline uses, and what its messages are filed under."""
    decoding: Decoding
    """How JSON that comes in is decoded: ask it anew for each batch."""

    @property
    def most_refused(self) -> int | None:
        """How much may be refused in a row and be dead letters; None: nothing ever becomes one."""

    @property
    def exchange(self) -> ExchangeWith | None:
        """What stands for the servers that it asks over HTTP; None: they are asked."""

    def bucket(self, name: str | None = None) -> Bucket:
        """Return a bucket that the component names, or that of the pipeline.

        Raises:
            BuildRefused: the pipeline has no state.
        """

    def connection(self, kind: type[_C], name: str) -> _C:
        """Return the filed connection of that kind, which is there: a component is not built without."""

    def reads(self, file: str) -> None:
        """Tell that a file is about to be read, as the config names it.

        A revert builds the pipeline again once the file holds something else.
        """

    def read(self, reading: Reading[_R]) -> _R:
        """Return what some files make, read before the build if the connection has told of them.

        As with `reads`, a revert builds the pipeline again once they hold something else.

        Raises:
            BuildRefused: as the reading does.
        """

    def resolve(self, secret: Secret) -> str:
        """Return the value of a secret, or raise `UnresolvedSecret`."""

    def hide(self, value: str) -> None:
        """Show this credential in no text of the component, though no reference stands for it."""

    def redact(self, text: str) -> str:
        """Return the text without any value this component has resolved or hidden."""

    def warn(self, text: str) -> None:
        """Log a warning that names pipeline and component."""

    def warn_once(self, text: str) -> None:
        """Log a warning, the first time only: for what every message may repeat."""

    def skip(self, text: str) -> None:
        """Count a payload that is passed over, and warn of it as `warn_once` does."""

    def expect_losses(self, reason: Literal["batch", "dropped", "error", "stopped"]) -> None:
        """Have what the component may lose counted from nothing on."""

    def drop(self, text: str, count: int) -> None:
        """Count messages as skipped, and as lost, for which there is no room, and warn of it once."""

    def has_warned(self, text: str) -> bool:
        """Return whether `warn_once` was told this already."""

    def took(self, branch: str, *path: str | int) -> None:
        """Tell that a branch was taken which the component declares: once a batch at most.

        Nobody listens where a config runs in production.
        """

    def fail(self, message: str, failure: FailureClass = "invalid") -> None:
        """Count and report a failure of this component that no batch carries (a timer's write)."""

    def report(self, cause: BaseException, lost: Batch) -> None:
        """Report a failure that costs the messages of a batch: they are lost, or become a dead letter."""

    def when_kept(self, action: Callable[[], None]) -> None:
        """Do something when what has become a dead letter until now is on the disk: at once, mostly."""

    def lose(self, failed: FailedMessages) -> None:
        """Count the messages of one batch that it goes on without, and report each different failure."""

    def lose_count(
        self,
        message: str,
        count: int,
        failure: FailureClass,
        reason: Literal["batch", "dropped", "stopped"] = "stopped",
    ) -> None:
        """Report that so many messages are lost which are not at hand: there was no time left for them.

        Or what they were in is lost (``batch``).
        """

    def lift(self, step: Step, paced: PacedStep | None = None) -> Operator:
        """Return the operator that runs a step, reports a failing batch and carries on.

        ``paced`` is the same step for a large batch, in slices.
        """

    def in_parts(self, operator: Operator) -> Operator:
        """Return an operator that is handed a large batch part after part, others having their turn.

        For one that holds messages, and does not mind in which batches they come.
        """

    def lift_awaiting(self, step: AwaitingStep, retry: RetryOptions | None = None) -> Operator:
        """Return the operator that awaits a step, one batch at a time and in order."""

    def lift_pausing(self, step: PausingStep) -> Operator:
        """Return the operator that runs a step in slices, one batch at a time and in order."""

    def admit(self, ingress: Ingress) -> None:
        """Offer this input as the pipeline's way in over the API."""

    def keep(self, target: str, bounds: KeepBounds, format: PayloadFormat | None) -> KeptSource:
        """Return what stores what arrives at this input, and is read instead of it.

        ``target`` tells it from other inputs of its pipeline, whatever their order; ``format`` makes
        messages of payloads, None: they are JSON.

        Raises:
            BuildRefused: nothing can be kept here.
        """

    def parts_keep(self, max_bytes: int | None = None) -> PartsKeep | None:
        """Return where an output that `leaves_parts` keeps those that it could not hand over.

        ``max_bytes``: what may be kept there; None: as much as the disk has room for. None is returned
        where there is no directory for it.

        Raises:
            BuildRefused: the store cannot be opened.
        """

    def bridge_parts(self, seconds: float | None) -> PartsBridge:
        """Return what bridges outages of an output with `retry` that tries its parts again by itself.

        ``seconds``: the longest outage that is bridged; None: all are.
        """

    def attach(
        self, upstream: str, wanted: Sequence[Condition] = (), *, on_delivery: bool = False
    ) -> Source:
        """Return the bounded inbox that receives what another pipeline hands on.

        Of that, the messages for which all that is ``wanted`` holds; nothing else is ever in it. They count
        as delivered for the upstream when they are in it, or ``on_delivery`` when they are acknowledged.
        """

    def hear(self, wanted: WantedFailures) -> Source:
        """Return the bounded inbox that receives failures of other pipelines."""

    def holds(
        self, count: Callable[[], int], release: Release | None, most: int | None = None
    ) -> None:
        """Tell how many messages are held on purpose, for the metrics; asked when they are read.

        ``most`` bounds them, if anything does but time. ``release`` lets them go when their input can wait
        no longer; None: they must not go early, as a time or a gate ends the wait.
        """

    def release(self) -> int:
        """Have what those of the pipeline's buffers hold that may let go early go now.

        For an input whose broker sends nothing more until some of it is acknowledged. Returns how many
        messages that were.
        """

    def held(self) -> int:
        """Return how many messages the pipeline's buffers hold on purpose."""

    def claim(self, key: str) -> None:
        """Have something for oneself as long as the pipeline lives: a client id at a broker.

        Raises:
            BuildRefused: another component of this server has it.
        """

    def disconnected(
        self, message: str, seconds: float | None = None, failure: FailureClass = "unavailable"
    ) -> None:
        """Count it as a failure that the other side is not there; tried again in so many seconds.

        For who connects again by itself. Whatever `Source.read` and the methods of a `Sink` raise need not
        be told: who calls them does.
        """

    def reconnected(self, text: str) -> None:
        """Log that the other side is there again."""

    def note(self, text: str) -> None:
        """Log what went well after all, naming pipeline and component."""

    def on_finish(self, action: Callable[[], Awaitable[None]]) -> None:
        """Have something awaited once when the pipeline has ended (a client to close)."""
