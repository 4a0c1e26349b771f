"""Components: what a config names by `type`, in four families.

    class Splitter(Transform, kind="splitter", listed=2): ...

The family comes from the base class, the kind from the class statement, the options from the body,
and ``listed`` is the place in the reference. Nothing else anywhere lists kinds: the catalogue scans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self, get_args

from headrace.compiler.code import Code
from headrace.compiler.component.bisection import NEVER_BISECTED, Bisection, HowToldApart
from headrace.compiler.component.branches import FAILED, WRITTEN, Branch, Took
from headrace.compiler.component.buildcontext import Context, Operator, PacedStep, Reading, Step
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.conditions import Condition, outcomes, when_taken
from headrace.compiler.component.envelopes import Envelope
from headrace.compiler.component.failureclasses import FailureClasses
from headrace.compiler.component.fieldflow import Demand, FieldUse, Passing
from headrace.compiler.component.inputbuffers import Holder, InputBuffer
from headrace.compiler.component.promises import (
    HOLDS_NOTHING,
    InputPromises,
    OutputPromises,
    Promises,
    TransformPromises,
)
from headrace.compiler.component.retry import RETRY, Retrying, RetryOptions, retry_of
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.edges import Sink, Source
from headrace.compiler.formats import PayloadFormat
from headrace.compiler.largejson import LargeList
from headrace.compiler.schema.fields import Choice
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.variants import VariantOf
from headrace.compiler.text.diagnostics import Fault

Stage = Literal["input", "transform", "output"]
"""The families of the components that a pipeline is made of."""

Fits = Callable[[Batch], object]
"""Raises `BatchFailed` for a batch that could not be written, whatever the other side says."""

FedBy = Literal["server", "posts", "pipeline", "failures", "clock"]
"""What brings an input its messages."""

Origins = Sequence[Sequence[Sequence[int]]]
"""Per batch and per message, the indices of the messages that it came from."""

FAMILIES = (*get_args(Stage), "connection")
"""All families, in the order of the reference."""


class Component(Record):
    """One thing a config can name. A subclass with a ``kind`` is a component; one without, a family."""

    family: ClassVar[str]
    kind: ClassVar[str] = ""
    listed: ClassVar[int] = 1000
    one_of: ClassVar[tuple[str, ...]] = ()
    """Options (wire names) of which exactly one is given: the variants of a component without a tag
    of its own, as the reference and the schema show them."""
    drivers: ClassVar[tuple[str, ...]] = ()
    """Modules that it needs once it runs. They are imported before it is built, off the loop."""
    promises: ClassVar[tuple[Promises, ...]] = ()
    """What it promises about delivery: a row, or several that its options choose among."""
    failure_classes: ClassVar[FailureClasses] = FailureClasses()
    """Which of its failures time heals, for which somebody has to act, and which are of the content."""

    def __init_subclass__(
        cls, family: str | None = None, kind: str = "", listed: int = 1000, **keywords: Any
    ) -> None:
        super().__init_subclass__(**keywords)
        if family is not None:
            cls.family = family
        cls.kind = kind
        cls.listed = listed

    def dump(self, *, masked: bool = True) -> dict[str, Any]:
        """Return the config object, `type` first."""
        return {"type": self.kind, **super().dump(masked=masked)}

    def examine(self, context: CheckContext) -> Iterator[Fault]:
        """Yield what cannot work, or is odd, where the component stands. Asked before it is built."""
        return iter(())

    def claims(self) -> Iterable[str]:
        """Yield what no other component of its family in the pipeline may have as well.

        As a noun phrase that tells one thing from another: ``the topic 'a/b' of 'bus'``.
        """
        return ()

    def field_use(self) -> FieldUse:
        """Return which message fields it touches; a component that cannot tell says so."""
        return FieldUse.unknown()

    @property
    def wanted(self) -> Sequence[Condition]:
        """What its `when` asks of the messages that it takes: others pass it by, before anything waits.

        Most take all. Who runs it looks; it is never handed what it does not want.
        """
        return ()

    def branches(self, context: CheckContext) -> Iterable[Branch]:
        """Yield the ways that it can go, as the config decides them: tests should take each."""
        return outcomes(self.wanted, "when")


class Connection(Component, family="connection"):
    """Named credentials on file. Read once, when a component that names it is built.

    `examine` tells what no build would take, whatever its secrets are: with that it is refused wherever
    it is filed, in a file or over the API.
    """

    def readings(self) -> Iterable[Reading[Any]]:
        """Yield what a component that names it asks its context for: it is read before the build."""
        return ()

    async def reach(self, ctx: Context) -> None:
        """Connect and sign in as a component would that names it, and let go of it again.

        Nothing is written or subscribed, and nothing is left on the other side.

        Raises:
            BuildRefused: it cannot be used as it is configured, or the other side says no.
            Unreachable: nobody answers, or not now.
        """
        raise NotImplementedError


class Input(Component, family="input"):
    """Where messages come from."""

    acknowledges: ClassVar[bool] = False
    """Whether there is a broker to tell, so that ``ack: on_delivery`` means something."""
    unacknowledged: ClassVar[str] = ""
    """Why there is nobody to tell, where that may surprise, as a clause: ``a channel keeps nothing``."""
    is_only: ClassVar[bool] = False
    """Whether a pipeline may have at most one of this kind."""
    of_itself: ClassVar[str] = "reads its own output"
    """What a pipeline does that names itself in one."""

    fed_by: ClassVar[FedBy] = "server"
    """What brings it messages: a server that it connects to, posts over the API, another pipeline, what
    fails in others, or the time alone."""
    is_raw: ClassVar[bool] = True
    """Whether what arrives is bytes, one message each, as `Source.is_raw` has it."""
    attaches: ClassVar[Mapping[str, str]] = {}
    """Metadata of this kind under an envelope: key to one sentence."""
    usual: ClassVar[Mapping[str, Any]] = {}
    """Of that metadata, what it is where nothing is special and no option says it: null, if not here."""
    unsampled: ClassVar[str] = ""
    """Why no sample can be taken of it, as a clause: ``nothing is there to read``. Most: one can."""
    promises: ClassVar[tuple[InputPromises, ...]] = ()

    ack: str = option(
        Choice(
            "on_receipt",
            "on_delivery",
            elsewhere={"on_receipt": "auto early receive", "on_delivery": "end_to_end late manual"},
        ),
        "When a message is acknowledged to its broker: as it arrives, or when all of it has left the"
        " outputs.",
        default="on_receipt",
        elsewhere="acknowledge acknowledgement",
    )
    buffer: InputBuffer | None = option(
        VariantOf(InputBuffer),
        "Batches messages before the transforms see them.",
        default=None,
        elsewhere="batch batching window",
    )
    envelope: Envelope | None = option(
        VariantOf(Envelope),
        "Attaches metadata to each message.",
        default=None,
        elsewhere="metadata",
    )

    @property
    def is_acknowledged_late(self) -> bool:
        """Whether somebody is told of a message when all of it has left the outputs."""
        return self.ack == "on_delivery"

    @property
    def is_durable(self) -> bool:
        """Whether what arrives is kept on the disk until it has left the outputs."""
        return False

    def source(self, ctx: Context) -> Source:
        """Build what the pump reads. May refuse; opens nothing yet."""
        raise NotImplementedError

    def sample_source(self, ctx: Context) -> tuple[Source, Sequence[str]]:
        """Build what a sample reads, and tell what it does differently.

        It reads what a pipeline would, and leaves no trace: nobody else misses a message, and the other
        side keeps nothing of it. It is never told to acknowledge anything. Override where `source` takes
        part in something that outlives it, or that others have a share in.
        """
        return self.source(ctx), ()

    def hears_all(self) -> bool:
        """Return whether it reads failures of all pipelines that get nothing from its own."""
        return False

    def payload_format(self) -> PayloadFormat | None:
        """Return what makes messages of what arrives; None: it is JSON, or messages already."""
        return None

    def is_kept(self) -> bool:
        """Return whether what is sent while the connection is lost comes afterwards."""
        return False

    def hands_on(self) -> Iterable[str] | None:
        """Return every field its messages can have, before the envelope; None when it cannot know."""
        return None

    def promised(self) -> InputPromises:
        """Return what it promises with the options that it has."""
        [only] = self.promises
        return only

    def starved_by(self, holder: Holder) -> Fault | None:
        """Return the warning about what holds messages for longer than its broker can wait.

        Asked of each that holds as many messages as came in, and longer than a moment.
        """
        return None

    def branches(self, context: CheckContext) -> Iterable[Branch]:
        """Each limit of its `buffer` lets go; each condition is true and false."""
        yield from super().branches(context)
        if self.buffer is not None:
            for name in self.buffer.triggers:
                yield Branch(name, f"'{name}' of its buffer never let go", ("buffer",))

    def is_batching(self) -> bool:
        """Return whether a batch can hold more than one message."""
        return self.buffer is not None or getattr(self, "max_batch", 1) > 1


class Transform(Component, family="transform"):
    """A step of the chain: batches in, batches out."""

    is_gathering: ClassVar[bool] = False
    """Whether it can hand on larger batches than it was given."""
    multiplies: ClassVar[bool] = False
    """Whether it can make several messages of one."""
    remembers: ClassVar[bool] = False
    """Whether it may write into the pipeline's bucket what messages hold."""
    recalls: ClassVar[bool] = False
    """Whether it may hand on what is in the pipeline's bucket."""
    asks: ClassVar[bool] = False
    """Whether it asks a server over HTTP, of its context's `exchange`."""
    promises: ClassVar[tuple[TransformPromises, ...]] = ()
    acts: ClassVar[str] = ""
    """What it does to the world outside, also in a dry run: ``posts every batch ...``. Most: nothing."""
    slow_parts: ClassVar[int] = 0
    """How many of its parts take microseconds for a message, or longer for a long one: the more of them
    there are, the smaller are the batches that a fused run takes in slices. A property where the options
    decide."""

    def passes(self, before: Passing) -> Passing:
        """Return what is known of what it hands on, from what is known of what comes in.

        Nothing uncertain: a warning may follow from it. Override where more can be said than which
        fields it uses and whether it gathers.
        """
        after = before.surely(each.path for each in self.demands()).after(self.field_use())
        return after.at_most(None) if self.is_gathering else after

    def demands(self) -> Iterator[Demand]:
        """Yield the fields without which it fails a batch, null being none."""
        yield from ()

    def oddities(self, before: Passing) -> Iterator[Fault]:
        """Yield what is odd about where it stands, from what is known of what comes in. Warnings."""
        return iter(())

    def holder(self) -> Holder | None:
        """Return how many messages it holds on purpose and how long; most hold none."""
        return None

    def step(self, ctx: Context) -> Step:
        """Return the pure core; `operator` lifts it."""
        raise NotImplementedError

    def for_each_batch(self, ctx: Context) -> Callable[[], Step]:
        """Return what gives, when a batch comes, the step on its messages, some or all of them at a time.

        Override where something is settled then that is the same for all of them.
        """
        step = self.step(ctx)
        return lambda: step

    def paced_for_each_batch(self, ctx: Context) -> Callable[[], PacedStep]:
        """Return what gives, when a batch comes, the step on one of its messages at a time, in slices.

        In one go: override where several things are done to a message, each of which may take long.
        """
        begin = self.for_each_batch(ctx)

        def begun() -> PacedStep:
            step = begin()
            return lambda batch: iter(step(batch))

        return begun

    def operator(self, ctx: Context) -> Operator:
        """Return the Rx operator. Override only for what remembers across batches and knows time."""
        return ctx.lift(self.step(ctx), self.paced(ctx))

    def paced(self, ctx: Context) -> PacedStep | None:
        """Return the same core for a large batch, in slices; None: one that takes no time anyway."""
        return None

    @property
    def takes_each_alone(self) -> bool:
        """Whether its step makes of a batch what it makes of each message by itself, as one batch."""
        return False

    @property
    def skips_failing(self) -> bool:
        """Whether a batch goes on without the messages that fail (`failingmessages.FailsByMessage`)."""
        return False

    def failing_alone(self) -> Self:
        """Return it as it is where messages that fail are kept: they fail alone, unless its config says."""
        return self

    def origins(self, batch: Batch, made: Sequence[Batch]) -> Origins:
        """Return from which messages of a batch came each message that its step made of it.

        For dry runs, of a step that does not take each alone. Unless it knows better, everything came
        from everything. What holds messages is not asked: it hands them on as they came, in order.
        """
        everything = [*range(len(batch))]
        return [[everything] * len(each) for each in made]

    def counting(self, took: Took) -> Self:
        """Return a transform that does the same, plainly, and tells of each branch that it takes.

        Override where that is decided for each message. Who decides once a batch tells its context, and
        of failures nobody has to tell.
        """
        return self

    def reason(self, message: JsonValue, ctx: Context) -> str:
        """Return why it let go of a message; of one that it still holds, until when. For dry runs."""
        return f"'{self.kind}' made nothing of it"

    def fills_at(self, ctx: Context) -> int | None:
        """Return how many messages leave together because more of them came. For dry runs.

        What holds messages is asked before they come; None: whatever comes goes straight through.
        """
        return None


class Fusible(Transform):
    """A transform that can write what it does as source, one message after the other.

    `step` stays the plain, slow truth: it is what a batch is run through again when the loop raises,
    and what a dry run shows. So what a loop does before it raises may show nowhere.

    Neighbours that are pure are fused into one generated loop per batch: any number that are
    `PerMessage`, and one `PerBatch`. Others have a loop of their own.
    """

    promises: ClassVar = (HOLDS_NOTHING,)
    fuses: ClassVar[bool] = True
    """Whether it is fused at all. A property where the options decide; one that is not is an `operator`."""

    def generate(self, code: Code, ctx: Context) -> None:
        """Write the source for one message."""
        raise NotImplementedError

    def paced(self, ctx: Context) -> PacedStep:
        """Return the plain form for a large batch: one batch in the end, if any.

        In one go: override where that takes long.
        """
        step = self.step(ctx)
        return lambda batch: iter(step(batch))


def one_by_one(step: PacedStep, batch: Batch) -> Iterator[Batch | None]:
    """Yield None behind each message of a batch, and where the step does; then what became of it."""
    made: Batch = LargeList()
    for message in batch:
        for some in step([message]):
            if some is None:
                yield None
            else:
                made += some
        yield None
    yield made


class PerMessage(Fusible):
    """A transform that looks at one message at a time and remembers nothing."""

    def paced(self, ctx: Context) -> PacedStep:
        """Return the step on one message after the other: the last resort, and one may take long."""
        begin = self.paced_for_each_batch(ctx)
        return lambda batch: one_by_one(begin(), batch)

    @property
    def takes_each_alone(self) -> bool:
        """Each message is for itself."""
        return True


class PerBatch(Fusible):
    """A transform that gathers the messages of one batch into another: the last of a fused loop."""


class Output(Component, family="output"):
    """Where batches go."""

    promises: ClassVar[tuple[OutputPromises, ...]] = ()
    bisection: ClassVar[Bisection] = NEVER_BISECTED
    """How it is found out which messages are at fault of a batch that is refused."""

    when: tuple[Condition, ...] = when_taken(
        "Conditions that all have to hold for a message that goes here. The others take no place in what "
        "waits for it; where none of a batch goes here, nothing is written."
    )

    retry: Retrying = option(
        RETRY,
        "Batches that fail because the other side is away, or because somebody has to act, wait and are"
        " tried again, in order; true is the same as `{}`. While they do, an input has at most as"
        " many batches on their way as ever, so it waits as well.",
        default=None,
        additive=True,
        elsewhere="retries max_retries retry_policy backoff",
    )

    @property
    def wanted(self) -> Sequence[Condition]:
        """Its `when`."""
        return self.when

    @property
    def is_queued(self) -> bool:
        """Whether what is not written is kept on the disk."""
        return False

    @property
    def leaves_parts(self) -> bool:
        """Whether what it has gathered and cannot hand over is kept on the disk, where there is a place.

        It opens the store then, with `Context.parts_keep`.
        """
        return False

    def retrying(self) -> RetryOptions | None:
        """Return how outages are bridged; None: they are not."""
        return retry_of(self.retry)

    def promised(self) -> OutputPromises:
        """Return what it promises with the options that it has."""
        [only] = self.promises
        return only

    def keeps_digits(self) -> bool:
        """Return whether numbers have to reach it as they were written: ``1.10``, thirty digits."""
        return False

    def told_apart(self) -> HowToldApart:
        """Return how messages at fault are told apart with the options that it has."""
        return self.bisection.how

    def fits(self, ctx: Context) -> Fits | None:
        """Return what looks at a batch before anything is sent; None: whatever comes may be sent."""
        return None

    def branches(self, context: CheckContext) -> Iterable[Branch]:
        """Each condition is true and false; a batch is written; a batch fails."""
        yield from super().branches(context)
        yield Branch(WRITTEN, "nothing was ever written")
        yield Branch(FAILED, "no write ever failed")

    def outlasts_seconds(self) -> float:
        """Return how long a batch waits for a server that does not answer before it is lost."""
        return 0.0

    def open(self, ctx: Context) -> Sink:
        """Build what the output worker writes to. May refuse; opens nothing yet."""
        raise NotImplementedError
