"""One test of a file: read against its config, with all that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from headrace.authoring.language.durations import END, seconds
from headrace.authoring.language.faultspans import outages
from headrace.authoring.language.givens import arriving, plain
from headrace.authoring.language.matchers import faults as faults_of_matchers
from headrace.authoring.language.replies import replies
from headrace.authoring.language.said import ExpectedWords, words
from headrace.authoring.language.testshape import TestShape
from headrace.authoring.language.testtargets import Targets, UnknownTarget, name_of
from headrace.authoring.language.timelines import Moment, Timeline, TimelineReader, type_fault
from headrace.authoring.playing.scenario import (
    ComponentAt,
    GivenArrival,
    GivenState,
    Replies,
    ServerOutage,
)
from headrace.compiler.delivery import JsonValue
from headrace.compiler.text.diagnostics import Codes, Fault, Path, Severity

CODES: Codes = {
    "checks-nothing": "A test expects nothing, so that only a failure could fail it.",
    "never-used": "A name of 'messages' is in no line of marbles, or nobody can be answered with a reply.",
    "past-the-end": "A moment of a test is after its end.",
}

LATER = {"process": "faults", "store": "faults", "dead_letters": "expect", "lost": "expect"}
"""Words that come with durability."""
WORDS_OF = ("failures", "warnings")


class Refuse(Protocol):
    """Takes what is wrong, below a path."""

    def __call__(self, fault: Fault, path: Path = ()) -> None:
        """Take it."""


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


class CaseReading:
    """One test being read."""

    def __init__(
        self,
        targets: Targets,
        timelines: TimelineReader,
        refuse: Refuse,
        name: str,
        shape: TestShape,
    ) -> None:
        """Take what there is to be named, what reads timelines, and who takes what is wrong."""
        self._targets, self._timelines, self._refuse = targets, timelines, refuse
        self._name, self._shape = name, shape
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
            self._refuse(fault, self._path)
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
            bucket = self._targets.bucket(key)
            to = None if bucket is not None else self._targets.input(key)
        except UnknownTarget as cause:
            self._refuse(replace(cause.fault, on_key=True), path)
            return
        if to is not None:
            self._fed.add(to[0])
        line = self._line(value, path, None if to is None else name_of(*to))
        for moment in line.moments:
            if moment.at == END:
                said = "nothing can be given at the end"
                fault = Fault("past-the-end", said, "end", "a moment before it")
                self._refuse(line.fault_of(moment, fault))
            elif moment.is_loss and (bucket is not None or to is None or not self._can_lose(to)):
                said = f"'{key}' has no connection to lose"
                self._refuse(line.fault_of(moment, Fault("not-an-input", said, "#")))
            elif bucket is not None:
                yield from self._written(moment, bucket)
            elif to is not None:
                yield from self._arrives(moment, to)

    def _can_lose(self, to: tuple[str, int]) -> bool:
        """Return whether an input has a connection."""
        id, index = to
        return self._targets.pipelines[id].inputs[index].fed_by == "server"

    def _written(self, moment: Moment, bucket: str) -> Iterator[GivenState]:
        what = moment.what
        if isinstance(what, dict) and all(isinstance(each, dict) for each in what.values()):
            yield GivenState(moment.at, bucket, plain(what))
        else:
            expected = "an object of keys, each with an object of values by name"
            self._refuse(type_fault(what, expected, moment.path))

    def _arrives(self, moment: Moment, to: tuple[str, int]) -> Iterator[GivenArrival]:
        id, index = to
        component = self._targets.pipelines[id].inputs[index]
        if moment.is_loss:
            yield GivenArrival(moment.at, to, None)
            return
        arrives, faults = arriving(moment, component)
        for fault in faults:
            self._refuse(fault)
        if arrives is not None:
            yield GivenArrival(moment.at, to, arrives)

    def _expect(self, key: str, value: JsonValue, path: Path) -> None:
        if key in WORDS_OF:
            found, faults = words(value, path)
            self._words[key] = found
            for fault in faults:
                self._refuse(fault)
            for each in found:
                try:
                    self._targets.saying(each.said.at)
                except UnknownTarget as cause:
                    self._refuse(cause.fault, (*each.path, "at"))
            return
        if key == "refused":
            self._expect_refused(value, path)
            return
        if LATER.get(key) == "expect":
            self._not_yet(key, path)
            return
        try:
            bucket = self._targets.bucket(key)
            component = None if bucket is not None else self._targets.component(key)
            if bucket is not None:
                self._buckets[key] = bucket
            elif component is None:
                self._targets.pipeline(key)
                self._pipelines[key] = key
            elif component[1] == "input":
                said = f"what arrives at '{key}' is given, not expected"
                raise UnknownTarget(Fault("not-an-input", said, key, "a transform or an output"))
            else:
                self._components[key] = component
        except UnknownTarget as cause:
            self._refuse(replace(cause.fault, on_key=True), path)
            return
        line = self._line(value, path)
        self._expected[key] = line
        for moment in line.moments:
            if moment.is_loss:
                fault = Fault("not-marbles", "a connection is not lost by what is expected", "#")
                self._refuse(line.fault_of(moment, fault))
            for fault in faults_of_matchers(moment.what):
                self._refuse(fault, moment.path)

    def _expect_refused(self, value: JsonValue, path: Path) -> None:
        if not isinstance(value, dict):
            self._refuse(type_fault(value, "an object of counts by pipeline", path))
            return
        for id, count in value.items():
            try:
                self._targets.posted(id)
            except UnknownTarget as cause:
                self._refuse(replace(cause.fault, on_key=True), (*path, id))
            if not isinstance(count, int) or isinstance(count, bool) or count < 0:
                self._refuse(type_fault(count, "how many posts are refused", (*path, id)))
        self._refused = value

    def _replied(self) -> Iterator[tuple[tuple[str, int], JsonValue]]:
        reached = self._targets.reached(self._fed)
        for key, value in (self._shape.replies or {}).items():
            path = (*self._path, "replies", key)
            try:
                at = self._targets.asking(key)
            except UnknownTarget as cause:
                self._refuse(replace(cause.fault, on_key=True), path)
                continue
            wrong = replies(value)[1]
            for fault in wrong:
                self._refuse(fault, path)
            if at[0] not in reached and not wrong:
                said = f"nothing comes to '{at[0]}' in this test, so nobody is answered"
                fault = Fault("never-used", said, on_key=True, severity=Severity.WARNING)
                self._refuse(fault, path)
            yield at, value

    def _outages(self) -> dict[ComponentAt, list[ServerOutage]]:
        found: dict[ComponentAt, list[ServerOutage]] = {}
        for key, value in (self._shape.faults or {}).items():
            path = (*self._path, "faults", key)
            if LATER.get(key) == "faults":
                self._not_yet(key, path)
                continue
            try:
                reached = self._targets.reaching(key)
            except UnknownTarget as cause:
                self._refuse(replace(cause.fault, on_key=True), path)
                continue
            told: dict[Fault, None] = {}
            for at in reached:
                spans, faults = outages(value, at[1])
                found.setdefault(at, []).extend(spans)
                told |= dict.fromkeys(faults)
            for fault in told:
                self._refuse(fault, path)
        return found

    def _not_yet(self, key: str, path: Path) -> None:
        said = f"'{key}' is not known yet: it comes with durability"
        self._refuse(Fault("not-known-yet", said, key, on_key=True), path)

    def _line(self, value: JsonValue, path: Path, to: str | None = None) -> Timeline:
        line = self._timelines.read(value, path, self._frame, to)
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
                self._refuse(line.fault_of(moment, fault))
