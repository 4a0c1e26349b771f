"""The replays of an engine: one at a time in each pipeline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
from msgspec import Meta

from headrace.compiler.annotated import Count
from headrace.compiler.delivery import Batch
from headrace.compiler.errors import NoReplayTarget, ReplayUnderWay, UnknownPipeline
from headrace.compiler.runtime.deadletters import FailedPlace, targets_of
from headrace.compiler.runtime.letterreplay.letterreplay import (
    RATE,
    LetterReplay,
    ReplayState,
    ReplayTarget,
    target_of,
)

if TYPE_CHECKING:
    from headrace.compiler.runtime.componentcontext import World
    from headrace.compiler.runtime.pipeline import Pipeline
    from headrace.compiler.store.letterrecords import Records
    from headrace.compiler.store.letterrows import FoundLetter

ABOVE_ALL = 2**63 - 1


class ReplayRequest(NamedTuple):
    """Which letters are to go through a pipeline once more, and how."""

    pipeline: str
    source: str
    """The pipeline whose letters they are."""
    ids: Sequence[int] | None = None
    """None: all of the stage and message."""
    stage: str | None = None
    message: str | None = None
    target: ReplayTarget | None = None
    """Where they go in; None: where each has failed."""
    rate: float = RATE
    """Messages a second."""
    edited: Batch | None = None
    """What goes in the place of the messages of the one letter."""


class BegunReplay(msgspec.Struct, frozen=True):
    """A replay that has begun."""

    replay: Annotated[Count, Meta(description="Its number.")]
    selected: Annotated[Count, Meta(description="How many dead letters are replayed.")]
    config_changed: Annotated[
        bool,
        Meta(description="Whether the pipeline has another config than when one of them failed."),
    ]


class ReplayFigures(msgspec.Struct, frozen=True):
    """How far a replay has come, or had come when it was over."""

    replay: Annotated[Count, Meta(description="Its number.")]
    selected: Annotated[Count, Meta(description="How many dead letters are replayed.")]
    done: Annotated[Count, Meta(description="How many have gone through, and are deleted.")]
    failed: Annotated[
        Count, Meta(description="How many have failed again, or could not be read; they stay.")
    ]
    state: Annotated[
        ReplayState,
        Meta(
            description="`running`; `done`: all have been tried; `stopped`, by somebody or because the"
            " pipeline has ended; `failed`: something is wrong with the pipeline, and the log says what."
        ),
    ]


class Replays:
    """Begins replays, tells of them, stops them."""

    def __init__(self, pipelines: Mapping[str, Pipeline], world: World) -> None:
        self._pipelines, self._world = pipelines, world
        self._numbers = count(1)
        self._last: dict[str, LetterReplay] = {}
        """By pipeline: the replay that is under way, or was last."""
        self.gone_through = Counter[str]()
        """By pipeline, how many letters have gone through in replays that are over."""

    async def begin(self, records: Records, request: ReplayRequest) -> BegunReplay:
        """Begin to send letters through a pipeline again.

        Raises:
            UnknownPipeline: nobody runs under the id.
            ReplayUnderWay: another one has not ended.
            NoReplayTarget: where one of them is to go in is not there.
            StoreFailed: they cannot be read.
        """
        self._look_at(request.pipeline)
        selected = await _selected(records, request)
        pipeline = self._look_at(request.pipeline)
        _look_for_targets(pipeline, request, selected)
        replay = LetterReplay(
            next(self._numbers),
            pipeline,
            self._world,
            records,
            selected.ids,
            target=request.target,
            rate=request.rate,
            edited=request.edited,
        )
        self._last[request.pipeline] = replay
        has_changed = bool(selected.configs - {pipeline.version})
        return BegunReplay(replay.number, replay.selected, has_changed)

    def _look_at(self, id: str) -> Pipeline:
        """Return a pipeline in which a replay may begin."""
        pipeline = self._pipelines.get(id)
        if pipeline is None:
            raise UnknownPipeline(id)
        if pipeline.parts.letters is None:
            raise NoReplayTarget(
                f"pipeline '{id}' has no 'dead_letters', so what fails again would be lost"
            )
        if pipeline.status != "running":
            raise NoReplayTarget(f"pipeline '{id}' does not run: it is {pipeline.status}")
        if (last := self._last.get(id)) is not None and last.state == "running":
            raise ReplayUnderWay(id)
        return pipeline

    def figures(self, id: str) -> ReplayFigures | None:
        """Return how far the replay of a pipeline has come, or the last one had; None: there was none."""
        it = self._last.get(id)
        if it is None:
            return None
        return ReplayFigures(it.number, it.selected, it.done, it.failed, it.state)

    def stop(self, id: str) -> bool:
        """Have the replay of a pipeline send no more; return whether there is one."""
        it = self._last.get(id)
        if it is None or it.state != "running":
            return False
        it.stop()
        return True


class _Selected:
    """The letters that are meant, and what is known of all of them together: there may be many."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.places: set[tuple[ReplayTarget, str | None]] = set()
        """Where they failed, and what that was."""
        self.configs: set[str | None] = set()

    def add(self, found: FoundLetter) -> None:
        self.ids.append(found.id)
        self.places.add((target_of(found.letter), found.letter.target))
        self.configs.add(found.letter.config)


async def _selected(records: Records, request: ReplayRequest) -> _Selected:
    """Return the letters that are meant, oldest first."""
    selected = _Selected()
    wanted, before = None if request.ids is None else set(request.ids), ABOVE_ALL
    while True:
        page = await records.page(request.source, request.stage, request.message, before)
        for each in page.letters:
            if wanted is None or each.id in wanted:
                selected.add(each)
        has_all = wanted is not None and len(selected.ids) == len(wanted)
        if not page.is_truncated or has_all:
            selected.ids.reverse()
            return selected
        before = page.before


def _look_for_targets(pipeline: Pipeline, request: ReplayRequest, selected: _Selected) -> None:
    """Look whether everything is there that letters are to go into.

    Raises:
        NoReplayTarget: it is not.
    """
    there = targets_of(pipeline.config)
    if request.target is not None:
        if FailedPlace(*request.target) not in there:
            stage, at = request.target
            raise NoReplayTarget(f"pipeline '{pipeline.id}' has no {stage} {at}")
        return
    for target, name in sorted(selected.places, key=repr):
        now = there.get(FailedPlace(*target))
        if now is None or (name is not None and now != name):
            had = "" if name is None else f" ({name})"
            has = "is not there any more" if now is None else f"is '{now}' now"
            raise NoReplayTarget(
                f"{target.stage} {target.at}{had} of pipeline '{pipeline.id}' {has}: name a"
                " 'component' or an 'input_index' to replay into"
            )
