"""A capture played through two configs, and what came of it compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from headrace.authoring.configfiles import ConfigFiles, LoadedConfig
from headrace.authoring.language.capturefile import CapturedArrival, CaptureFile
from headrace.authoring.language.givens import taken
from headrace.authoring.language.matchers import literal
from headrace.authoring.language.testtargets import Targets, UnknownTarget
from headrace.authoring.playing.played import END, Played, SaidAt
from headrace.authoring.playing.player import play
from headrace.authoring.playing.playlength import DEFAULT_MAX_MOMENTS, PlayTooLong
from headrace.authoring.playing.scenario import BucketLook, GivenArrival, Scenario
from headrace.authoring.replaying.capturedreplies import CapturedReplies, Unanswered
from headrace.authoring.replaying.ownmoments import IgnoredPath, comparable
from headrace.authoring.verdicts.matching import Matching
from headrace.authoring.verdicts.timelinediff import (
    TimelineDifference,
    compare,
    compare_values,
)
from headrace.compiler.component.families import Input
from headrace.compiler.component.pipelineconfig import LIST_OF
from headrace.compiler.config.program import Program
from headrace.compiler.dottedpaths import DottedPath
from headrace.compiler.errors import HeadraceError


@dataclass(frozen=True, slots=True)
class TimelineChange:
    """What a pipeline hands on, or a bucket holds at the end, that is not the same with both."""

    name: str
    difference: TimelineDifference


@dataclass(frozen=True, slots=True)
class SaidChange:
    """A failure or a warning, or posts that are refused, not as often with both."""

    kind: str
    place: str
    text: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class ReplayDifference:
    """What is not the same in two plays of one capture."""

    compared: tuple[str, ...]
    """The pipelines that both have."""
    timelines: tuple[TimelineChange, ...]
    said: tuple[SaidChange, ...]
    unanswered: tuple[Unanswered, ...]
    """Requests of either that the capture has no reply to."""
    unplayed: tuple[tuple[str, int], ...]
    """Inputs that something arrived at and neither has, with how much that was."""
    unfound: tuple[str, ...]
    """Paths to be ignored that no message has which was compared."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs, as far as that is known."""
        return not (self.timelines or self.said or self.unanswered)


class ReplayTooLong(HeadraceError):
    """The play of one config has taken as many moments as it may; its text says which, and what to do."""


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two plays."""

    played: Played
    replies: CapturedReplies
    taken: frozenset[str]
    """Inputs that got what had arrived."""


def replay_difference(
    old: LoadedConfig[ConfigFiles],
    new: LoadedConfig[ConfigFiles],
    capture: CaptureFile,
    ignored: Sequence[DottedPath] = (),
    max_moments: int = DEFAULT_MAX_MOMENTS,
) -> ReplayDifference:
    """Play a capture through both and compare; ``ignored`` are paths in messages that make no difference.

    ``max_moments`` bounds each play as `Scenario` says.

    Raises:
        Refused: one of them cannot be built, with every reason.
        ReplayTooLong: one has taken as many moments as it may.
    """
    assert old.program is not None
    assert new.program is not None
    before, after = (_side(each, capture, max_moments) for each in (old, new))
    both = [id for id in old.program.named if id in new.program.named]
    counts = capture.inputs()
    # The longest first: what a shorter one removes would have none of those below it.
    longest_first = sorted(dict.fromkeys(ignored), key=lambda path: -len(path.segments))
    paths = [*map(IgnoredPath, longest_first)]
    timelines = [*_timelines(both, before.played, after.played, capture, paths)]
    unanswered = {each.of: each for side in (after, before) for each in side.replies.unanswered()}
    return ReplayDifference(
        compared=tuple(both),
        timelines=(
            *timelines,
            *_states(old.program, new.program, before.played, after.played, capture),
        ),
        said=tuple(_said(both, before.played, after.played)),
        unanswered=tuple(unanswered.values()),
        unplayed=tuple(
            (name, count)
            for name, count in counts.items()
            if name not in before.taken | after.taken
        ),
        unfound=tuple(each.path.text for each in paths if not each.is_found),
    )


def _side(config: LoadedConfig[ConfigFiles], capture: CaptureFile, max_moments: int) -> _Side:
    program = config.program
    assert program is not None
    replies = CapturedReplies(capture.replies)
    targets = Targets(program, ())
    inputs = {name: found for name in capture.inputs() if (found := _input(targets, name))}
    steps = [*_steps(capture.arrivals, inputs)]
    asking = {
        (id, index): partial(replies.to, f"{id}.{LIST_OF['transform']}[{index}]")
        for id, index in program.asking()
    }
    scenario = Scenario(
        steps=[*steps, *(BucketLook(END, name) for name in program.buckets)],
        until=capture.ends,
        started_at=capture.started_at,
        replies=asking,
        seed=capture.name,
        max_moments=max_moments,
    )
    try:
        played = play(program, scenario, base=config.base)
    except PlayTooLong as cause:
        raise ReplayTooLong(f"{config.files.config}: {cause}") from cause
    return _Side(played, replies, frozenset(inputs))


def _input(targets: Targets, name: str) -> tuple[tuple[str, int], Input] | None:
    """Return the input that a capture names, None where the config has none that is given anything."""
    try:
        to = targets.input(name)
    except UnknownTarget:
        return None
    id, index = to
    return to, targets.pipelines[id].inputs[index]


def _steps(
    arrivals: Iterable[CapturedArrival], inputs: dict[str, tuple[tuple[str, int], Input]]
) -> Iterator[GivenArrival]:
    for each in arrivals:
        if (found := inputs.get(each.to)) is None:
            continue
        to, component = found
        if (given := taken(each.arriving, component)) is not None:
            yield GivenArrival(each.at, to, given)


def _timelines(
    both: Iterable[str],
    before: Played,
    after: Played,
    capture: CaptureFile,
    ignored: Sequence[IgnoredPath],
) -> Iterator[TimelineChange]:
    matching = Matching(capture.started_at)
    for id in both:
        old, new = (
            comparable(played.handed_on[id], capture.started_at, capture.ends, ignored)
            for played in (before, after)
        )
        expected = [(at, literal(batch)) for at, batch in old]
        if (found := compare(expected, new, matching)) is not None:
            yield TimelineChange(id, found)


def _states(
    old: Program, new: Program, before: Played, after: Played, capture: CaptureFile
) -> Iterator[TimelineChange]:
    matching = Matching(capture.started_at)
    for name in old.buckets:
        if name in new.buckets:
            expected = [(END, literal(dict(before.states[name, END])))]
            held = [(END, dict(after.states[name, END]))]
            if (found := compare_values(expected, held, matching)) is not None:
                yield TimelineChange(f"state.{name}", found)


def _said(both: Sequence[str], before: Played, after: Played) -> Iterator[SaidChange]:
    for kind, old, new in (
        ("failures", before.failures, after.failures),
        ("warnings", before.warnings, after.warnings),
    ):
        counts = _counted(old), _counted(new)
        for place, text in {**counts[0], **counts[1]}:
            told = counts[0][place, text], counts[1][place, text]
            if told[0] != told[1]:
                yield SaidChange(kind, place, text, *told)
    for id in both:
        if before.refused[id] != after.refused[id]:
            told = before.refused[id], after.refused[id]
            yield SaidChange("refused", id, "posts that were not taken", *told)


def _counted(said: Iterable[SaidAt]) -> Counter[tuple[str, str]]:
    return Counter((each.place, each.text) for each in said)
