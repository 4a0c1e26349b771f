"""What can go wrong, as classes that carry the facts and know nothing of HTTP.

    HeadraceError
    ├── Refused             a config is refused: carries every diagnostic
    │   └── PipelineExists  the id is taken by a running pipeline
    ├── BuildRefused        one component cannot be built as configured
    │   ├── UnresolvedSecret
    │   └── OutsideRoot
    ├── UnknownPipeline     nobody runs under that id
    ├── PipelineDeleted     it was deleted before it ran
    ├── HistoryRefused      history cannot be kept as the settings say
    ├── UnknownStored       nothing is stored under that id
    ├── StoredInUse         what is stored has somebody who reads it
    ├── UnknownDeadLetter   no dead letter has that id, or nothing of it can be read
    ├── UnknownReplay       no dead letters are being replayed in that pipeline
    ├── ReplayUnderWay      dead letters go through a pipeline already, one replay at a time
    ├── NoReplayTarget      where dead letters are to go in is not there
    ├── UnclearReplayTarget where dead letters are to go in cannot be told
    ├── Ended               a source is gone for good: its input ends
    ├── NotJson             a payload is not JSON and is skipped (jsontext.py)
    ├── FormatMisfit        a payload, or a line of it, does not fit a format (formats/format.py)
    ├── NotUnpacked         a body is not in its content coding (contentcodings.py)
    ├── UnpacksToMore       a body unpacks to more than is taken (contentcodings.py)
    ├── Stalled             a virtual clock has nothing left to wait for (clock.py)
    ├── TooManyMoments      a virtual clock has been moved on as often as it may (clock.py)
    └── BatchFailed         a batch is dropped and reported; later batches go on
        ├── Stopped             there was no time left for it before its pipeline ended
        ├── NotWritable     what is written to takes nothing now; the next batch tries it
        └── Unreachable     the other side does not answer: worth waiting before the next try

Config is *refused*, a batch *fails*, a payload is *skipped*. What fails has a class, which says what would
help: time, somebody, other content, or a look at the other side.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    from headrace.compiler.text.diagnostics import Diagnostic, Fault


FailureClass = Literal["unavailable", "misconfigured", "invalid", "unclear"]
"""Why something failed: time heals it; somebody has to act; it is the content, which will never do; or it
was cut off after it was sent, and nobody knows."""


class HeadraceError(Exception):
    """Root of everything headrace raises on purpose."""


class Refused(HeadraceError):
    """A config is refused; ``diagnostics`` lists every reason, in file order."""

    def __init__(self, diagnostics: Sequence[Diagnostic], subject: str | None = None) -> None:
        reasons = "; ".join(_reason(d) for d in diagnostics if d.severity == "error")
        super().__init__(f"{subject}: {reasons}" if subject else reasons)
        self.diagnostics = list(diagnostics)


def _reason(diagnostic: Diagnostic) -> str:
    """Return where, what, and what would be accepted, unless the message says so itself."""
    said = ": ".join(filter(None, (diagnostic.path, diagnostic.message)))
    expected = diagnostic.expected
    return said if not expected or expected in said else f"{said} (expected {expected})"


class PipelineExists(Refused):
    """A pipeline already runs under the id."""

    def __init__(self, pipeline: str) -> None:
        super().__init__([], None)
        self.pipeline = pipeline
        self.args = (f"a pipeline named '{pipeline}' is already running",)


class HistoryRefused(HeadraceError):
    """History is to go on after a restart, and there is no store that could keep it."""


class BuildRefused(HeadraceError):
    """A component cannot be built as configured; ``fault`` says where inside it and what would do."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class UnresolvedSecret(BuildRefused):
    """A ``${NAME}`` reference that neither the environment nor the secrets file answers."""


class OutsideRoot(BuildRefused):
    """A path that leaves the directory it has to stay in."""


class UnknownPipeline(HeadraceError):
    """No pipeline runs under the id."""

    def __init__(self, pipeline: str) -> None:
        super().__init__(f"no pipeline named '{pipeline}'")
        self.pipeline = pipeline


class PipelineDeleted(HeadraceError):
    """A pipeline was deleted while it was being created: nothing is left of it."""

    def __init__(self, pipeline: str) -> None:
        super().__init__(f"pipeline '{pipeline}' was deleted while it was being created")
        self.pipeline = pipeline


class UnknownStored(HeadraceError):
    """Nothing is stored under the id, or nothing of it was set aside, where that is asked for."""

    def __init__(self, id: int | str, *, is_aside: bool = False) -> None:
        what = "nothing that was set aside" if is_aside else "nothing"
        super().__init__(f"{what} is stored under the id '{id}'")
        self.id = id


class StoredInUse(HeadraceError):
    """What is stored under the id cannot be discarded: a pipeline reads it, or it is a declared bucket."""

    def __init__(self, id: int, used_by: str, *, is_bucket: bool = False) -> None:
        whom = f"bucket '{used_by}'" if is_bucket else f"pipeline '{used_by}'"
        super().__init__(f"what is stored under the id '{id}' is in use by {whom}")
        self.id, self.used_by = id, used_by


class UnknownDeadLetter(HeadraceError):
    """A pipeline has no dead letter with that id, or it is damaged such that nothing of it is known."""

    def __init__(self, pipeline: str, id: int | str, *, is_damaged: bool = False) -> None:
        said = f"pipeline '{pipeline}' has no dead letter '{id}'"
        if is_damaged:
            said = f"dead letter '{id}' is damaged on the disk: nothing of it is known; delete it"
        super().__init__(said)
        self.pipeline, self.id = pipeline, id


class UnknownReplay(HeadraceError):
    """No dead letters are being replayed in a pipeline."""

    def __init__(self, pipeline: str) -> None:
        super().__init__(f"no dead letters are being replayed in pipeline '{pipeline}'")
        self.pipeline = pipeline


class ReplayUnderWay(HeadraceError):
    """Dead letters are replayed through the pipeline already: one replay at a time."""

    def __init__(self, pipeline: str) -> None:
        super().__init__(
            f"a replay is under way in pipeline '{pipeline}': wait until it is over, or stop it"
        )
        self.pipeline = pipeline


class NoReplayTarget(HeadraceError):
    """Where dead letters are to go in is not there, or is something else by now."""


class UnclearReplayTarget(HeadraceError):
    """Where dead letters are to go in cannot be told: the text says what would tell it."""


class ChangedMeanwhile(HeadraceError):
    """What was to be replaced is another version than the one that was read; it is as it was."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} has changed since it was read: read it again")


class Ended(HeadraceError):
    """A source is gone for good: its input ends, the pipeline's other inputs go on."""


_NONE: Mapping[int, str] = MappingProxyType({})


class BatchFailed(HeadraceError):
    """A batch could not be transformed or written; it is dropped and reported.

    ``done`` are the indices of the messages that are written all the same, ``refused`` those at fault, each
    with what was said of it. Of the others nothing is known: they may do. ``is_answered``: the other side
    has answered, so that a failure that time heals may be of the content all the same. ``took_nothing``: of
    what is neither done nor refused nothing is taken, so that parts of it may be tried, and none is twice.
    ``was_alone``: what is left was tried one message at a time, again and again, such that each may be at
    fault: it is if others pass.
    """

    usually: ClassVar[FailureClass] = "invalid"

    def __init__(
        self,
        message: str = "",
        failure: FailureClass | None = None,
        *,
        done: Collection[int] = (),
        refused: Mapping[int, str] = _NONE,
        is_answered: bool = False,
        took_nothing: bool = False,
        was_alone: bool = False,
    ) -> None:
        super().__init__(message)
        self.is_answered, self.took_nothing = is_answered, took_nothing
        self.was_alone = was_alone
        self.failure: FailureClass = failure or self.usually
        self.done, self.refused = done, refused


class Stopped(BatchFailed):
    """A batch was still on its way when the time of its pipeline to end was over."""

    usually = "unclear"


class NotWritable(BatchFailed):
    """What is written to takes nothing now, whatever it is given: the next batch tries it again."""

    usually = "unavailable"


class Unreachable(BatchFailed):
    """The other side does not answer or asks us to slow down: the next try waits for the backoff."""

    usually = "unavailable"


def class_of(cause: BaseException) -> FailureClass:
    """Return the class of what failed; what nobody knows is about the content."""
    if isinstance(cause, BatchFailed):
        return cause.failure
    if isinstance(cause, BuildRefused | Ended):
        return "misconfigured"
    return "unavailable" if isinstance(cause, OSError | TimeoutError) else "invalid"


def is_foreseen(cause: BaseException) -> bool:
    """Return whether it is what can go wrong, and no fault of ours."""
    return isinstance(cause, HeadraceError | OSError | TimeoutError)


def worded(cause: BaseException) -> str:
    """Return what is told of a cause."""
    if is_foreseen(cause):
        return str(cause) or type(cause).__name__
    return f"{type(cause).__name__}: {cause}"
