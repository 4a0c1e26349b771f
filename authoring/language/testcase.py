"""One test of a file: read against its config, with all that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from headrace.authoring.language.amounts import ExpectedLosses, wrong_losses, wrong_posts
from headrace.authoring.language.deadlettershape import ExpectedLetter, expected_letters
from headrace.authoring.language.durations import END, seconds
from headrace.authoring.language.faultspans import outages
from headrace.authoring.language.givens import arriving, plain
from headrace.authoring.language.matchers import faults as faults_of_matchers
from headrace.authoring.language.processfaults import PlacedKill, full_spans, is_down, kills
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

WORDS_OF = ("failures", "warnings")
POSTS = {"refused": "refused", "unanswered": "not answered"}
"""Words for counts of posts, each with what became of them."""


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
    letters: tuple[ExpectedLetter, ...] | None
    """The dead letters that are expected, if any are named, or that there are none."""
    refused: Mapping[str, int] | None
    unanswered: Mapping[str, int] | None
    lost: ExpectedLosses | None
    kills: tuple[PlacedKill, ...]
    full: tuple[tuple[float, float], ...]
    """From when to when the disk is full."""
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
        self._letters: tuple[ExpectedLetter, ...] | None = None
        self._amounts: dict[str, Any] = {}
        """By word, amounts that are expected, where they are named."""
        self._kills: list[PlacedKill] = []
        self._full: list[tuple[float, float]] = []
        self._lines: list[Timeline] = []
        self._state_lines: list[Timeline] = []
        """Those of them that are about buckets."""
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
        self._look_where_nothing_runs()
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
            letters=self._letters,
            refused=self._amounts.get("refused"),
            unanswered=self._amounts.get("unanswered"),
            lost=self._amounts.get("lost"),
            kills=tuple(self._kills),
            full=tuple(self._full),
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
        if bucket is not None:
            self._state_lines.append(line)
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
        if key == "dead_letters":
            self._expect_letters(value, path)
            return
        if key in POSTS or key == "lost":
            self._amounts[key] = value
            for fault in (
                wrong_losses(value, path, self._targets)
                if key == "lost"
                else wrong_posts(value, path, self._targets, POSTS[key])
            ):
                self._refuse(fault)
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
        if bucket is not None:
            self._state_lines.append(line)
        for moment in line.moments:
            if moment.is_loss:
                fault = Fault("not-marbles", "a connection is not lost by what is expected", "#")
                self._refuse(line.fault_of(moment, fault))
            for fault in faults_of_matchers(moment.what):
                self._refuse(fault, moment.path)

    def _expect_letters(self, value: JsonValue, path: Path) -> None:
        self._letters, faults = expected_letters(value, path)
        for fault in faults:
            self._refuse(fault)
        for each in self._letters:
            try:
                id, _, _ = self._targets.failing(each.letter.at)
            except UnknownTarget as cause:
                self._refuse(cause.fault, (*each.path, "at"))
                continue
            if self._targets.pipelines[id].letters is None:
                said = f"'{id}' has no 'dead_letters', so nothing of it becomes one"
                expected = "a pipeline with dead_letters"
                fault = Fault("unknown-pipeline", said, each.letter.at, expected)
                self._refuse(fault, (*each.path, "at"))

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
            if key in ("process", "store"):
                self._process_faults(key, value, path)
                continue
            try:
                reached = self._targets.reaching(key)
            except UnknownTarget as cause:
                self._refuse(replace(cause.fault, on_key=True), path)
                continue
            is_shared = any(stage == "output" for _, stage, _ in reached)
            told: dict[Fault, None] = {}
            for at in reached:
                spans, faults = outages(value, at[1], is_shared=is_shared)
                found.setdefault(at, []).extend(spans)
                told |= dict.fromkeys(faults)
            for fault in told:
                self._refuse(fault, path)
        return found

    def _process_faults(self, key: str, value: JsonValue, path: Path) -> None:
        """Read what is wrong with the process, or with the disk of its store."""
        if key == "store":
            self._full, faults = full_spans(value)
        else:
            found, faults = kills(value)
            self._kills = [(kill, (*path, *where)) for kill, where in found]
        for fault in faults:
            self._refuse(fault, path)

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
        for kill, path in self._kills:
            if kill.at > until:
                self._refuse(replace(fault, on_key=True), path)

    def _look_where_nothing_runs(self) -> None:
        """Refuse what is written to a bucket, or expected of it, while there is no process."""
        killed = [kill for kill, _ in self._kills]
        for line in self._state_lines:
            for moment in line.moments:
                if is_down(killed, moment.at):
                    said = "the process is killed, and does not run at this moment: nobody has a bucket"
                    fault = Fault("conflict", said, None, "a moment at which it runs")
                    self._refuse(line.fault_of(moment, fault))
