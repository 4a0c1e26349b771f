"""A file of tests: `config.tests.yaml`, read with positions and checked whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path as FilePath
from typing import Any, ClassVar

from headrace.authoring.language.durations import (
    END,
    Duration,
    as_start,
    not_a_time,
    seconds,
)
from headrace.authoring.language.faultspans import outages
from headrace.authoring.language.givens import arriving, plain
from headrace.authoring.language.marbles import name_fault
from headrace.authoring.language.matchers import faults as faults_of_matchers
from headrace.authoring.language.replies import replies
from headrace.authoring.language.said import ExpectedWords, SaidShape, words
from headrace.authoring.language.testtargets import Targets, UnknownTarget, name_of
from headrace.authoring.language.timelines import Moment, Timeline, TimelineReader, type_fault
from headrace.authoring.playing.scenario import (
    START,
    ComponentAt,
    GivenArrival,
    GivenState,
    Replies,
    ServerOutage,
)
from headrace.compiler.component.drafts import loaded
from headrace.compiler.config.program import Program
from headrace.compiler.delivery import JsonValue
from headrace.compiler.schema.fields import AnyJson, Integer, Name, Text
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import AnyObject, ListOf, ObjectOf, RecordOf
from headrace.compiler.text.composing import FAULTS
from headrace.compiler.text.diagnostics import (
    Codes,
    Diagnostic,
    Fault,
    Path,
    Severity,
    in_file_order,
)
from headrace.compiler.text.documents import Document, Site
from headrace.compiler.timestamps import rfc3339

CODES: Codes = {
    "checks-nothing": "A test expects nothing, so that only a failure could fail it.",
    "never-used": "A name of 'messages' is in no line of marbles, or nobody can be answered with a reply.",
    "past-the-end": "A moment of a test is after its end.",
}

LATER = {"process": "faults", "store": "faults", "dead_letters": "expect", "lost": "expect"}
"""Words that come with durability."""
WORDS_OF = ("failures", "warnings")


class AnyName(ObjectOf):
    """An object by names that may be whatever text."""

    names: ClassVar[Text] = Name()


class Expected(AnyName):
    """What is expected, by where it comes; and what is said, and refused."""

    words: ClassVar = {
        "failures": (
            ListOf(RecordOf(SaidShape), noun="failure"),
            "Failures, all of them: one that is not expected fails the test.",
        ),
        "warnings": (
            ListOf(RecordOf(SaidShape), noun="warning"),
            "Warnings, all of them, if any are named here; `[]`: none.",
        ),
        "refused": (
            AnyName(Integer(min=0), noun="count"),
            "Posts that were answered with 503, by pipeline.",
        ),
    }


class TestShape(Record):
    """What is given when, what is expected then, and what goes wrong meanwhile."""

    __test__: ClassVar[bool] = False

    given_: Mapping[str, Any] | None = option(
        AnyName(AnyJson(), noun="timeline"),
        "Timelines of what arrives: by `PIPELINE`, `PIPELINE.inputs[N]`, or `state.BUCKET` for what is "
        "written to a bucket.",
        default=None,
        elsewhere="inputs input when",
    )
    expect: Mapping[str, Any] | None = option(
        Expected(AnyJson(), noun="timeline"),
        "Timelines of what comes: by `PIPELINE` (what leaves its last transform), "
        "`PIPELINE.transforms[N]`, `PIPELINE.outputs[N]` (what is written), or `state.BUCKET` (what it "
        "holds then). Lists `failures` and `warnings` of `{at, says, times}`; `refused` has posts that "
        "were answered with 503, by pipeline. All of what is named is compared.",
        default=None,
        elsewhere="expected outputs output then assert",
    )
    replies: Mapping[str, Any] | None = option(
        AnyName(AnyJson(), noun="reply"),
        "What servers answer, by `PIPELINE.transforms[N]`: a status, `down`, or `$body` or `$echo` with "
        "`$status` and `$after`. A list is used up in turn.",
        default=None,
        elsewhere="mocks responses",
    )
    faults: Mapping[str, Any] | None = option(
        AnyName(AnyObject(), noun="fault"),
        "What is wrong with servers, by `PIPELINE.inputs[N]`, `PIPELINE.outputs[N]` or "
        "`connections.NAME`: spans such as `2m..12m`, each `down`, `slow 2s` or `refuses`.",
        default=None,
    )
    until: str | None = option(
        Duration(),
        "When everything is ended, as at the stop of a server. Left out: at the last moment that is "
        "written.",
        default=None,
        elsewhere="duration end",
    )
    frame: str = option(Duration(above_zero=True), "How long a column of marbles is.", default="1s")
    tags: tuple[str, ...] = option(
        ListOf(Name(), noun="tag"), "Words to select tests by.", default=()
    )
    skip: str | None = option(Name(), "Why it is not run.", default=None, elsewhere="skipped")


class TestFileShape(Record):
    """Tests of the config beside it."""

    __test__: ClassVar[bool] = False

    config: str | None = option(
        Name(),
        "The config, named from this file. Left out: the one beside it, `config.yaml` beside "
        "`config.tests.yaml`.",
        default=None,
    )
    start: str | None = option(
        Text(),
        "What the wall shows at 0s: RFC 3339, with its offset. Left out: 2026-01-01T00:00:00Z.",
        default=None,
    )
    messages: Mapping[str, Any] | None = option(
        AnyName(AnyJson(), noun="message"), "Names for marbles.", default=None, elsewhere="names"
    )
    tests: Mapping[str, TestShape] = option(
        AnyName(RecordOf(TestShape), noun="test"), "The tests, by name.", elsewhere="cases"
    )


@dataclass(frozen=True)
class TestCase:
    """One test, ready to be played and compared."""

    __test__: ClassVar[bool] = False

    name: str
    path: Path
    shape: TestShape
    given: tuple[GivenArrival | GivenState, ...]
    expected: Mapping[str, Timeline]
    """By what is named as it is written."""
    handed_on: Mapping[str, str]
    """Of what is named, the pipelines."""
    components: Mapping[str, ComponentAt]
    """Of what is named, the components."""
    buckets: Mapping[str, str]
    """Of what is named, the buckets."""
    words: Mapping[str, tuple[ExpectedWords, ...]]
    """The failures and the warnings that are expected, where they are named."""
    refused: Mapping[str, int] | None
    outages: Mapping[ComponentAt, Sequence[ServerOutage]]
    replies: Mapping[tuple[str, int], JsonValue]
    """As they are written: a list is used up by one play."""
    until: float

    def answers(self) -> dict[tuple[str, int], Replies]:
        """Return what answers in one play."""
        return {at: replies(value)[0] for at, value in self.replies.items()}


@dataclass(frozen=True)
class TestFile:
    """The tests of a file."""

    __test__: ClassVar[bool] = False

    document: Document
    start: datetime
    cases: tuple[TestCase, ...] = field(default=())

    def line(self, path: Path) -> int | None:
        """Return the line at which a key stands."""
        position = self.document.position(path, on_key=True)
        return position and position[0]


def load_tests(
    document: Document,
    program: Program,
    connections: Mapping[str, Any],
    folder: FilePath | None = None,
) -> tuple[TestFile | None, list[Diagnostic]]:
    """Read a file of tests of a program; tell all that is wrong with it, in its order.

    The file is there if nothing is wrong with it but warnings. ``folder`` is where files are named from.
    """
    shape, valid, faults = loaded(TestFileShape, document.value)
    reading = _Reading(document, Targets(program, connections), valid, folder)
    cases = [reading.case(name, each) for name, each in _tests(document.value)]
    faults += [*reading.faults()]
    said = in_file_order(map(Site(document).diagnose, faults))
    if shape is None or any(each.severity is Severity.ERROR for each in said):
        return None, said
    return TestFile(document, reading.start, tuple(filter(None, cases))), said


def _tests(value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    """Yield the tests as they are written, those with faults as well."""
    tests = value.get("tests") if isinstance(value, dict) else None
    yield from tests.items() if isinstance(tests, dict) else ()


class _Reading:
    """One file being read."""

    def __init__(
        self,
        document: Document,
        targets: Targets,
        valid: Mapping[str, Any],
        folder: FilePath | None,
    ) -> None:
        self._targets = targets
        self._faults: dict[Fault, None] = {}
        written = document.value.get("messages") if isinstance(document.value, dict) else None
        self._names: Mapping[str, JsonValue] = written if isinstance(written, dict) else {}
        self._timelines = TimelineReader(self._names, folder)
        self.start = self._started(valid.get("start"))

    def faults(self) -> Iterator[Fault]:
        """Yield all that is wrong."""
        yield from self._faults
        yield from self._timelines.faults
        for name in self._names:
            if (fault := name_fault(name)) is not None:
                yield replace(fault, path=("messages", name), on_key=True)
            elif self._timelines.is_legible and name not in self._timelines.used:
                said = f"no line of marbles names '{name}'"
                yield Fault(
                    "never-used",
                    said,
                    path=("messages", name),
                    on_key=True,
                    severity=Severity.WARNING,
                )

    def case(self, name: str, value: JsonValue) -> TestCase | None:
        """Read one test; None where it has not the shape of one."""
        shape, valid, _ = loaded(TestShape, value)
        known = TestShape.options()
        right = {known[key].attribute: each for key, each in valid.items() if key in known}
        shape = shape or TestShape(**right)
        return _CaseReading(self, name, shape).read()

    def _started(self, text: str | None) -> datetime:
        if text is None:
            return START
        try:
            if len(text) == len("2026-03-02"):
                raise ValueError("a date alone")
            return as_start(datetime.fromisoformat(rfc3339(text)))
        except ValueError:
            expected = "a timestamp such as 2026-03-02T06:00:00Z"
            self.refuse(replace(not_a_time(text, expected), suggestion=None), ("start",))
            return START

    # What each test is read with.

    @property
    def targets(self) -> Targets:
        """What there is to be named."""
        return self._targets

    def timeline(self, value: JsonValue, path: Path, frame: float, to: str | None) -> Timeline:
        """Read a timeline; ``to`` is the input that is given it."""
        return self._timelines.read(value, path, frame, to)

    def refuse(self, fault: Fault, path: Path = ()) -> None:
        """Take what is wrong; what several moments have in common is told once."""
        if len(self._faults) < FAULTS:
            self._faults[replace(fault, path=(*path, *fault.path))] = None


class _CaseReading:
    """One test being read."""

    def __init__(self, reading: _Reading, name: str, shape: TestShape) -> None:
        self._reading, self._name, self._shape = reading, name, shape
        self._path: Path = ("tests", name)
        self._frame = seconds(shape.frame)
        self._expected: dict[str, Timeline] = {}
        self._pipelines: dict[str, str] = {}
        self._components: dict[str, ComponentAt] = {}
        self._buckets: dict[str, str] = {}
        self._words: dict[str, tuple[ExpectedWords, ...]] = {}
        self._refused: Mapping[str, int] | None = None
        self._lines: list[Timeline] = []
        self._fed = set[str]()

    def read(self) -> TestCase:
        """Read it."""
        shape = self._shape
        given = [
            step for key, value in (shape.given_ or {}).items() for step in self._given(key, value)
        ]
        for key, value in (shape.expect or {}).items():
            self._expect(key, value, (*self._path, "expect", key))
        if not shape.expect:
            said = "this test expects nothing: only a failure could fail it"
            fault = Fault("checks-nothing", said, on_key=True, severity=Severity.WARNING)
            self._reading.refuse(fault, self._path)
        replied = dict(self._replied())
        away = self._outages()
        last = max((line.last for line in self._lines), default=0.0)
        until = last if shape.until is None else seconds(shape.until)
        self._look_behind(until)
        return TestCase(
            name=self._name,
            path=self._path,
            shape=shape,
            given=tuple(given),
            expected=self._expected,
            handed_on=self._pipelines,
            components=self._components,
            buckets=self._buckets,
            words=self._words,
            refused=self._refused,
            outages=away,
            replies=replied,
            until=until,
        )

    def _given(self, key: str, value: JsonValue) -> Iterator[GivenArrival | GivenState]:
        path = (*self._path, "given", key)
        try:
            bucket = self._reading.targets.bucket(key)
            to = None if bucket is not None else self._reading.targets.input(key)
        except UnknownTarget as cause:
            self._reading.refuse(replace(cause.fault, on_key=True), path)
            return
        if to is not None:
            self._fed.add(to[0])
        line = self._line(value, path, None if to is None else name_of(*to))
        for moment in line.moments:
            if moment.at == END:
                said = "nothing can be given at the end"
                fault = Fault("past-the-end", said, "end", "a moment before it")
                self._reading.refuse(line.fault_of(moment, fault))
            elif moment.is_loss and (bucket is not None or to is None or not self._can_lose(to)):
                said = f"'{key}' has no connection to lose"
                self._reading.refuse(line.fault_of(moment, Fault("not-an-input", said, "#")))
            elif bucket is not None:
                yield from self._written(moment, bucket)
            elif to is not None:
                yield from self._arrives(moment, to)

    def _can_lose(self, to: tuple[str, int]) -> bool:
        """Return whether an input has a connection."""
        id, index = to
        return self._reading.targets.pipelines[id].inputs[index].fed_by == "server"

    def _written(self, moment: Moment, bucket: str) -> Iterator[GivenState]:
        what = moment.what
        if isinstance(what, dict) and all(isinstance(each, dict) for each in what.values()):
            yield GivenState(moment.at, bucket, plain(what))
        else:
            expected = "an object of keys, each with an object of values by name"
            self._reading.refuse(type_fault(what, expected, moment.path))

    def _arrives(self, moment: Moment, to: tuple[str, int]) -> Iterator[GivenArrival]:
        id, index = to
        component = self._reading.targets.pipelines[id].inputs[index]
        if moment.is_loss:
            yield GivenArrival(moment.at, to, None)
            return
        arrives, faults = arriving(moment, component)
        for fault in faults:
            self._reading.refuse(fault)
        if arrives is not None:
            yield GivenArrival(moment.at, to, arrives)

    def _expect(self, key: str, value: JsonValue, path: Path) -> None:
        targets = self._reading.targets
        if key in WORDS_OF:
            found, faults = words(value, path)
            self._words[key] = found
            for fault in faults:
                self._reading.refuse(fault)
            for each in found:
                try:
                    targets.saying(each.said.at)
                except UnknownTarget as cause:
                    self._reading.refuse(cause.fault, (*each.path, "at"))
            return
        if key == "refused":
            self._expect_refused(value, path)
            return
        if LATER.get(key) == "expect":
            self._not_yet(key, path)
            return
        try:
            bucket = targets.bucket(key)
            component = None if bucket is not None else targets.component(key)
            if bucket is not None:
                self._buckets[key] = bucket
            elif component is None:
                targets.pipeline(key)
                self._pipelines[key] = key
            elif component[1] == "input":
                said = f"what arrives at '{key}' is given, not expected"
                raise UnknownTarget(Fault("not-an-input", said, key, "a transform or an output"))
            else:
                self._components[key] = component
        except UnknownTarget as cause:
            self._reading.refuse(replace(cause.fault, on_key=True), path)
            return
        line = self._line(value, path)
        self._expected[key] = line
        for moment in line.moments:
            if moment.is_loss:
                fault = Fault("not-marbles", "a connection is not lost by what is expected", "#")
                self._reading.refuse(line.fault_of(moment, fault))
            for fault in faults_of_matchers(moment.what):
                self._reading.refuse(fault, moment.path)

    def _expect_refused(self, value: JsonValue, path: Path) -> None:
        if not isinstance(value, dict):
            self._reading.refuse(type_fault(value, "an object of counts by pipeline", path))
            return
        for id, count in value.items():
            try:
                self._reading.targets.posted(id)
            except UnknownTarget as cause:
                self._reading.refuse(replace(cause.fault, on_key=True), (*path, id))
            if not isinstance(count, int) or isinstance(count, bool) or count < 0:
                self._reading.refuse(type_fault(count, "how many posts are refused", (*path, id)))
        self._refused = value

    def _replied(self) -> Iterator[tuple[tuple[str, int], JsonValue]]:
        reached = self._reading.targets.reached(self._fed)
        for key, value in (self._shape.replies or {}).items():
            path = (*self._path, "replies", key)
            try:
                at = self._reading.targets.asking(key)
            except UnknownTarget as cause:
                self._reading.refuse(replace(cause.fault, on_key=True), path)
                continue
            wrong = replies(value)[1]
            for fault in wrong:
                self._reading.refuse(fault, path)
            if at[0] not in reached and not wrong:
                said = f"nothing comes to '{at[0]}' in this test, so nobody is answered"
                fault = Fault("never-used", said, on_key=True, severity=Severity.WARNING)
                self._reading.refuse(fault, path)
            yield at, value

    def _outages(self) -> dict[ComponentAt, list[ServerOutage]]:
        found: dict[ComponentAt, list[ServerOutage]] = {}
        for key, value in (self._shape.faults or {}).items():
            path = (*self._path, "faults", key)
            if LATER.get(key) == "faults":
                self._not_yet(key, path)
                continue
            try:
                reached = self._reading.targets.reaching(key)
            except UnknownTarget as cause:
                self._reading.refuse(replace(cause.fault, on_key=True), path)
                continue
            told: dict[Fault, None] = {}
            for at in reached:
                spans, faults = outages(value, at[1])
                found.setdefault(at, []).extend(spans)
                told |= dict.fromkeys(faults)
            for fault in told:
                self._reading.refuse(fault, path)
        return found

    def _not_yet(self, key: str, path: Path) -> None:
        said = f"'{key}' is not known yet: it comes with durability"
        self._reading.refuse(Fault("not-known-yet", said, key, on_key=True), path)

    def _line(self, value: JsonValue, path: Path, to: str | None = None) -> Timeline:
        line = self._reading.timeline(value, path, self._frame, to)
        self._lines.append(line)
        return line

    def _look_behind(self, until: float) -> None:
        """Refuse what is written for a moment after the end."""
        told = str(self._shape.until)
        said = f"this is after the end of the test, which is at {told}"
        fault = Fault("past-the-end", said, None, f"a moment up to {told}, or a later 'until'")
        for line in self._lines:
            past = [each for each in line.moments if until < each.at < END]
            # Of a line of marbles the first says it all.
            for moment in past[:1] if line.line is not None else past:
                self._reading.refuse(line.fault_of(moment, fault))
