"""One case of a test file: played, and what came compared with what was expected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import Any

from headrace.authoring.configfiles import place
from headrace.authoring.language.durations import told
from headrace.authoring.language.processfaults import PlacedKill
from headrace.authoring.language.testcase import TestCase
from headrace.authoring.language.testfile import TestFile
from headrace.authoring.playing.countingchain import counting
from headrace.authoring.playing.played import Played, TakenBranch
from headrace.authoring.playing.playedenvironment import Lowering
from headrace.authoring.playing.player import play
from headrace.authoring.playing.playlength import PlayTooLong
from headrace.authoring.playing.scenario import BucketLook, ProcessKill, Scenario
from headrace.authoring.verdicts.amountdiff import (
    AmountDifference,
    compare_losses,
    compare_posts,
)
from headrace.authoring.verdicts.letterdiff import LetterDifference, compare_letters
from headrace.authoring.verdicts.marblediff import drawn
from headrace.authoring.verdicts.matching import Matching
from headrace.authoring.verdicts.pairing import TimedBatches
from headrace.authoring.verdicts.saiddiff import SaidDifference, SaidKind, compare_said
from headrace.authoring.verdicts.timelinediff import (
    TimelineDifference,
    compare,
    compare_values,
)
from headrace.authoring.verdicts.why import Dropped, Reasons
from headrace.compiler.clock import stopwatch
from headrace.compiler.component.pipelineconfig import LIST_OF, PipelineConfig
from headrace.compiler.config.program import Program
from headrace.compiler.errors import Refused
from headrace.compiler.lowering.chain import lower
from headrace.compiler.text.diagnostics import Diagnostic

MOST_REASONS = 3
"""How many reasons are told of a batch that never came."""


@dataclass(frozen=True, slots=True)
class TimelineVerdict:
    """A timeline that is not as expected. ``line`` is where it is written."""

    name: str
    line: int | None
    difference: TimelineDifference
    came: TimedBatches
    """What came instead; of a bucket, what it held."""
    reasons: tuple[Dropped, ...] = ()
    """Why what never came was dropped, if that is known."""


@dataclass(frozen=True, slots=True)
class CaseVerdict:
    """What came of a case. Units: ``seconds`` of real time."""

    case: TestCase
    line: int | None
    seconds: float
    timelines: tuple[TimelineVerdict, ...] = ()
    said: tuple[SaidDifference, ...] = ()
    letters: tuple[LetterDifference, ...] = ()
    amounts: tuple[AmountDifference, ...] = ()
    survived: tuple[PlacedKill, ...] = ()
    """The kills that did not come about: there were not as many commits."""
    unbuilt: tuple[Diagnostic, ...] = ()
    """Why the config could not be built."""
    too_long: PlayTooLong | None = None
    """That it took more moments than it may: then nothing was compared."""
    taken: Mapping[TakenBranch, int] = field(default_factory=dict)
    """How often which branches of the config were taken, if that was counted."""

    @property
    def has_passed(self) -> bool:
        """Whether everything is as expected."""
        wrong = self.timelines or self.said or self.letters or self.amounts or self.survived
        return not wrong and not self.unbuilt and self.too_long is None


def scenario_of(file: TestFile, case: TestCase) -> Scenario:
    """Return what happens in a case."""
    looks = [
        BucketLook(each.at, bucket)
        for key, bucket in case.buckets.items()
        for each in case.expected[key].moments
    ]
    return Scenario(
        steps=[*case.given, *looks],
        until=case.until,
        started_at=file.start,
        outages=case.outages,
        kills=[kill for kill, _ in case.kills],
        full=case.full,
        matches=Matching(file.start).holds,
        replies=case.answers(),
        seed=case.name,
        max_moments=case.shape.max_moments,
    )


def run_case(
    file: TestFile,
    case: TestCase,
    program: Program,
    base: FilePath | None,
    *,
    lowering: Lowering = lower,
    tells_why: bool = True,
    counts: bool = False,
) -> CaseVerdict:
    """Play a case and compare; ``tells_why``: of what never came, play once more to hear why.

    ``counts``: play once more to count the branches that are taken. The verdict is always on what runs in
    production.
    """
    began = stopwatch()
    line = file.line(case.path)
    try:
        played = _played(file, case, program, base, lowering)
        timelines = [*_timelines(file, case, played)]
        if tells_why and any(_is_missing(each) for each in timelines):
            reasons = Reasons()
            _played(file, case, program, base, reasons.lowering)
            timelines = [_with_reasons(each, case, program, reasons) for each in timelines]
        taken = _played(file, case, program, base, counting).taken if counts else {}
    except Refused as cause:
        return CaseVerdict(case, line, stopwatch() - began, unbuilt=tuple(cause.diagnostics))
    except PlayTooLong as cause:
        return CaseVerdict(case, line, stopwatch() - began, too_long=cause)
    return CaseVerdict(
        case,
        line,
        stopwatch() - began,
        tuple(timelines),
        tuple(_said(case, played)),
        tuple(_letters(file, case, played)),
        tuple(_amounts(case, played)),
        tuple(each for each in case.kills if each[0] in played.survived),
        taken=taken,
    )


def _played(
    file: TestFile, case: TestCase, program: Program, base: FilePath | None, lowering: Lowering
) -> Played:
    tapped = [(id, index) for id, stage, index in case.components.values() if stage == "transform"]
    return play(program, scenario_of(file, case), base=base, tapped=tapped, lowering=lowering)


def _timelines(file: TestFile, case: TestCase, played: Played) -> Iterator[TimelineVerdict]:
    matching = Matching(file.start)
    for key, line in case.expected.items():
        expected = [(each.at, each.what) for each in line.moments]
        if (bucket := case.buckets.get(key)) is not None:
            came = [(each.at, dict(played.states[bucket, each.at])) for each in line.moments]
            difference = compare_values(expected, came, matching)
        else:
            came = _came(case, key, played)
            difference = compare(expected, came, matching)
        if difference is not None:
            yield TimelineVerdict(key, file.line(line.path), difference, came)


def _came(case: TestCase, key: str, played: Played) -> list[tuple[float, Any]]:
    if (pipeline := case.handed_on.get(key)) is not None:
        return played.handed_on[pipeline]
    id, stage, index = case.components[key]
    return (played.made if stage == "transform" else played.written)[id, index]


def _said(case: TestCase, played: Played) -> Iterator[SaidDifference]:
    """Yield what is wrong with failures, which always count, and with warnings, if they are named."""
    came: list[tuple[SaidKind, Any]] = [
        ("failures", played.failures),
        ("warnings", played.warnings),
    ]
    for kind, said in came:
        if kind == "failures" or kind in case.words:
            yield from compare_said(kind, case.words.get(kind, ()), said)


def _letters(file: TestFile, case: TestCase, played: Played) -> Iterator[LetterDifference]:
    """Yield what is wrong with dead letters, if they are named."""
    if case.letters is not None:
        yield from compare_letters(case.letters, played.letters, Matching(file.start))


def _amounts(case: TestCase, played: Played) -> Iterator[AmountDifference]:
    """Yield what is wrong with amounts: of posts, which always count, and of losses, if they are named."""
    yield from compare_posts("refused", case.refused, played.refused)
    yield from compare_posts("unanswered", case.unanswered, played.unanswered)
    if case.lost is not None:
        yield from compare_losses(case.lost, played.lost)


def _is_missing(verdict: TimelineVerdict) -> bool:
    return any(each.kind == "missing" for each in verdict.difference.batches)


def _with_reasons(
    verdict: TimelineVerdict, case: TestCase, program: Program, reasons: Reasons
) -> TimelineVerdict:
    """Return a verdict with why its pipeline dropped something before what never came."""
    component = case.components.get(verdict.name)
    pipeline = component[0] if component else case.handed_on.get(verdict.name)
    missing = [each.at for each in verdict.difference.batches if each.kind == "missing"]
    if pipeline is None or not missing:
        return verdict
    output = component[2] if component and component[1] == "output" else None
    told_of = tuple(reasons.before(pipeline, max(missing), MOST_REASONS, output))
    return replace(verdict, reasons=told_of)


def reason_line(reason: Dropped, program: Program) -> str:
    """Return the line that tells why something was dropped, and where that is written."""
    config = next(each for each in program.pipelines if each.id == reason.pipeline)
    family = LIST_OF[reason.stage]
    kind = getattr(config, family)[reason.index].kind
    where = _written(config, family, reason.index)
    name = f"{reason.pipeline}.{family}[{reason.index}]"
    return f"why  {told(reason.at)}  {name} ({kind}, {where}): {reason.reason}"


def _written(config: PipelineConfig, family: str, index: int) -> str:
    site = config.site.inside(family, index)
    file = None if site.document is None else site.document.file
    return place(None if file is None else FilePath(file).name, site.position())


def lines_of(verdict: CaseVerdict, file: TestFile, program: Program) -> list[str]:
    """Return the lines that tell what is wrong with a case."""
    called = FilePath(file.document.file or "").name
    lines: list[str] = []
    for timeline in verdict.timelines:
        lines += drawn(timeline.difference, timeline.name, place(called, _column(timeline.line)))
        lines += [f"    {reason_line(each, program)}" for each in timeline.reasons]
    differences: list[SaidDifference | LetterDifference] = [*verdict.said, *verdict.letters]
    for each in differences:
        at = "" if each.path is None else f"   {place(called, _column(file.line(each.path)))}"
        lines.append(f"  {each.line()}{at}")
    lines += [f"  {each.line()}" for each in verdict.amounts]
    for kill, path in verdict.survived:
        where = place(called, _column(file.line(path)))
        lines.append(f"  {not_killed(kill)}   {where}")
    if verdict.too_long is not None:
        lines.append(f"  too long: {verdict.too_long}")
    return lines


def not_killed(kill: ProcessKill) -> str:
    """Return what is told of a kill that did not come about."""
    return (
        f"not killed  process at {told(kill.at)}: there was no commit {kill.commit:,} from there on"
    )


def _column(line: int | None) -> Any:
    return None if line is None else (line,)
