"""A config as a Unix filter: messages in on lines, what comes of them out on lines, and then the end.

Messages come at once, or at the moments that a field of them tells. It runs in virtual time, so what holds
messages for an hour holds up nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from headrace.authoring.language.durations import LONGEST_DAYS, as_start
from headrace.authoring.playing.played import Played
from headrace.authoring.playing.player import play
from headrace.authoring.playing.playlength import DEFAULT_MAX_MOMENTS
from headrace.authoring.playing.scenario import Arriving, GivenArrival, Replies, Scenario
from headrace.compiler.clock import EPOCH, wall
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.config.program import Program
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.dottedpaths import MISSING, DottedPath
from headrace.compiler.errors import HeadraceError
from headrace.compiler.jsontext import NotJson, decode
from headrace.compiler.text.suggest import meant_or_there, one_of
from headrace.compiler.timestamps import rfc3339


class NotAFilter(HeadraceError):
    """A config has not one way in and one way out, or it is not said which; its text says what there is."""


class NotALine(HeadraceError):
    """A line is no message, or tells no time; its text says which line and why."""


@dataclass(frozen=True, slots=True)
class ConfigFilter:
    """Which pipelines run, which input of them is fed, and whose messages come out."""

    program: Program
    fed: tuple[str, int]
    shown: str


def filter_of(program: Program, id: str | None = None) -> ConfigFilter:
    """Return a pipeline as a filter, with all that it reads; without an id, the one that nobody reads.

    Raises:
        NotAFilter: there is no such pipeline, or several, or none of the inputs is the way in.
    """
    named = program.named
    if id is None:
        read = {name for each in program.pipelines for name in each.upstreams}
        ends = [name for name in named if name not in read]
        if len(ends) != 1:
            there = one_of(ends) if ends else "none with an id"
            raise NotAFilter(f"which pipeline is it whose messages come out? There is {there}")
        [id] = ends
    if id not in named:
        raise NotAFilter(f"there is no pipeline '{id}' ({meant_or_there(id, named)})")
    needed = _with_upstreams(id, named)
    fed = [
        (str(each.id), index)
        for each in needed
        for index, source in enumerate(each.inputs)
        if source.fed_by in ("server", "posts")
    ]
    if len(fed) != 1:
        inputs = ", ".join(f"{pipeline}.inputs[{index}]" for pipeline, index in fed) or "none"
        raise NotAFilter(f"'{id}' has not one input that reads from outside: {inputs}")
    return ConfigFilter(Program(tuple(needed), program.buckets), fed[0], id)


def _with_upstreams(id: str, named: Mapping[str, PipelineConfig]) -> list[PipelineConfig]:
    """Return a pipeline and those it reads, each behind what it reads itself."""
    needed = {id}
    ahead = [id]
    while ahead:
        fresh = {up for up in named[ahead.pop()].upstreams if up in named} - needed
        needed |= fresh
        ahead += fresh
    return [each for name, each in named.items() if name in needed]


def run_filter(
    filter: ConfigFilter,
    lines: Iterable[bytes],
    emit: Callable[[float, Batch], None],
    *,
    base: Path | None = None,
    time: str | None = None,
    replies: Mapping[tuple[str, int], Replies] | None = None,
    asks: bool = False,
    max_moments: int = DEFAULT_MAX_MOMENTS,
) -> Played:
    """Feed lines as they are read, and hand on each batch that comes out; return what else came of it.

    ``time`` is the field that tells when a message comes: RFC 3339, or seconds since 1970. A message
    that is older than the one before it comes together with that one. ``asks``: `http` transforms ask
    their servers; else they get ``replies``. ``max_moments`` bounds it as `Scenario` says.

    Raises:
        NotALine: a line is no JSON, or does not tell its time; what came before it has come out.
        Refused: a pipeline cannot be built, with every reason.
        PlayTooLong: it has taken as many moments as it may; what came before that has come out.
    """
    reading = _Lines(lines, filter.fed, None if time is None else DottedPath(time))
    arrivals = iter(reading)
    first = next(arrivals, None)
    scenario = Scenario(
        started_at=reading.started_at or wall(),
        replies=replies or {},
        seed=filter.shown,
        asks=asks,
        max_moments=max_moments,
    )
    coming = () if first is None else _chain(first, arrivals)
    return play(filter.program, scenario, base=base, coming=coming, taking={filter.shown: emit})


def _chain(first: GivenArrival, rest: Iterator[GivenArrival]) -> Iterator[GivenArrival]:
    yield first
    yield from rest


class _Lines:
    """The lines of a stream as what arrives, in the order of time."""

    def __init__(
        self, lines: Iterable[bytes], to: tuple[str, int], time: DottedPath | None
    ) -> None:
        self._lines, self._to, self._time = lines, to, time
        self.started_at: datetime | None = None
        """What the first message tells as its time."""

    def __iter__(self) -> Iterator[GivenArrival]:
        at = 0.0
        for number, line in enumerate(self._lines, 1):
            if not line.strip():
                continue
            try:
                what = decode(line)
            except NotJson as cause:
                raise NotALine(f"line {number} is no message: {cause}") from cause
            if self._time is not None:
                moment = self._moment(what, self._time, number)
                self.started_at = self.started_at or moment
                later = moment - self.started_at
                if later.days >= LONGEST_DAYS:
                    said = f"its time, {moment.isoformat()}, is {later.days:,} days after the first"
                    raise NotALine(f"line {number}: {said}: expected fewer than {LONGEST_DAYS:,}")
                at = max(at, round(later.total_seconds(), 6))
            yield GivenArrival(at, self._to, Arriving(what if isinstance(what, list) else [what]))

    def _moment(self, what: JsonValue, field: DottedPath, number: int) -> datetime:
        """Return when a message comes; of a batch, its first one."""
        message = what[0] if isinstance(what, list) and what else what
        told = field.read(message)
        try:
            if isinstance(told, str):
                return as_start(datetime.fromisoformat(rfc3339(told)))
            if isinstance(told, int | float) and not isinstance(told, bool):
                return as_start(datetime.fromtimestamp(told, EPOCH.tzinfo))
        except (ValueError, OverflowError, OSError):
            pass
        found = "nothing" if told is MISSING else repr(told)[:60]
        expected = f"RFC 3339 or seconds since 1970 in '{field.text}'"
        raise NotALine(f"line {number} tells no time: expected {expected}, found {found}")
