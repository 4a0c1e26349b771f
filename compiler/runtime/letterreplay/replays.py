"""The replays of an engine: one at a time in each pipeline."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from headrace.compiler.delivery import Batch
from headrace.compiler.errors import (
    NoReplayTarget,
    ReplayUnderWay,
    UnclearReplayTarget,
    UnknownDeadLetter,
    UnknownPipeline,
)
from headrace.compiler.jsontext import NotJson
from headrace.compiler.largejson import SLICE, decode_large
from headrace.compiler.runtime.configdigest import changed_since, version_in
from headrace.compiler.runtime.failedparts import FailedPlace, targets_of
from headrace.compiler.runtime.letterbody import arrival_of, batch_in
from headrace.compiler.runtime.letterreplay.arrivingagain import ArrivingAgain
from headrace.compiler.runtime.letterreplay.letterlook import MOST_LOOKED_AT, LetterLook
from headrace.compiler.runtime.letterreplay.letterreplay import LetterReplay, target_of
from headrace.compiler.runtime.letterreplay.replayrequest import ReplayRequest, ReplayTarget
from headrace.compiler.runtime.monitoring.replayfigures import BegunReplay, ReplayFigures
from headrace.compiler.store.storeerrors import StoreFailed

if TYPE_CHECKING:
    from headrace.compiler.runtime.pipeline import Pipeline
    from headrace.compiler.runtime.world import World
    from headrace.compiler.store.letterrecords import Records
    from headrace.compiler.store.letterrows import FoundLetter, Letter

ABOVE_ALL = 2**63 - 1
MOST_REMEMBERED = 1_000
"""Pipelines of which it is known what their last replay came to."""


class Replays:
    """Begins replays, tells of them, stops them."""

    def __init__(self, pipelines: Mapping[str, Pipeline], world: World) -> None:
        self._pipelines, self._world = pipelines, world
        self._numbers = count(1)
        self._under_way: dict[str, LetterReplay] = {}
        """By pipeline."""
        self._over: dict[str, ReplayFigures] = {}
        """By pipeline: what the last replay had come to that is over, those of the last ones that ended."""
        self._gone_before = 0
        """How many letters have gone through in those that are over."""

    @property
    def gone_through(self) -> int:
        """How many letters have gone through, in all replays."""
        return self._gone_before + sum(each.done for each in self._under_way.values())

    async def edited(self, request: ReplayRequest, messages: bytes) -> ReplayRequest:
        """Return a request with messages, a JSON array, as the pipeline reads what is posted to it.

        Raises:
            UnknownPipeline: nobody runs under the id.
            NotJson: they are refused.
        """
        pipeline = self._pipelines.get(request.pipeline)
        if pipeline is None:
            raise UnknownPipeline(request.pipeline)
        decoding = pipeline.parts.decoding
        is_small = len(messages) < SLICE
        batch = decoding.decode(messages) if is_small else await decode_large(messages, decoding)
        return replace(request, edited=batch)

    async def begin(self, records: Records | None, request: ReplayRequest) -> BegunReplay:
        """Begin to send letters through a pipeline again.

        Raises:
            UnknownPipeline: nobody runs under the id.
            ReplayUnderWay: another one has not ended.
            NoReplayTarget: where one of them is to go in is not there.
            UnclearReplayTarget: a component is named for letters that failed in different stages.
            UnknownDeadLetter: the one that is edited is not there.
            StoreFailed: they cannot be read.
        """
        self._look_at(request.pipeline)
        if records is None:
            raise StoreFailed("the store is closed")
        selected = await _selected(records, request)
        pipeline = self._look_at(request.pipeline)
        if request.edited is not None and not selected.ids:
            [id] = request.ids or [0]
            raise UnknownDeadLetter(request.source, id)
        if request.component is not None:
            target = _component_of(selected, request.component)
            request = replace(request, target=target)
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
        self._under_way[request.pipeline] = replay
        replay.when_over(partial(self._is_over, request.pipeline, replay))
        has_changed, changed = changed_config(pipeline, selected.configs)
        return BegunReplay(replay.number, replay.selected, has_changed, changed)

    async def look(self, records: Records | None, request: ReplayRequest) -> LetterLook:
        """Return what a replay of one letter would send into what, and send nothing.

        Raises:
            UnknownPipeline: nobody runs under the id.
            UnknownDeadLetter: there is no such letter, or nothing of it can be read.
            NoReplayTarget: where it is to go in is not there.
            UnclearReplayTarget: a component is named for a letter of an input.
            StoreFailed: it cannot be read.
        """
        if request.pipeline not in self._pipelines:
            raise UnknownPipeline(request.pipeline)
        if records is None:
            raise StoreFailed("the store is closed")
        selected = await _selected(records, request)
        [id] = request.ids or [0]
        whole = await records.letter(id) if selected.ids else None
        if whole is None or whole.found is None or whole.body is None:
            raise UnknownDeadLetter(request.source, id, is_damaged=whole is not None)
        if (pipeline := self._pipelines.get(request.pipeline)) is None:
            raise UnknownPipeline(request.pipeline)
        if request.component is not None:
            request = replace(request, target=_component_of(selected, request.component))
        _look_for_targets(pipeline, request, selected)
        letter = whole.found.letter
        target = request.target or target_of(letter)
        warnings: list[str] = []
        if request.edited is None:
            sent = await self._sent(pipeline, target, letter, whole.body, warnings)
        else:
            sent = request.edited
        changes = changed_config(pipeline, selected.configs)
        failure = sent if isinstance(sent, str) else None
        messages = () if isinstance(sent, str) else [*sent[:MOST_LOOKED_AT]]
        count = 0 if isinstance(sent, str) else len(sent)
        return LetterLook(*target, messages, count, failure, warnings, *changes)

    async def _sent(
        self,
        pipeline: Pipeline,
        target: ReplayTarget,
        letter: Letter,
        body: bytes,
        warnings: list[str],
    ) -> Batch | str:
        """Return what would be sent of a letter, or why nothing can be."""
        decoding, arrival = pipeline.parts.decoding, arrival_of(letter, body)
        if arrival is not None and target.stage == "input":
            component, clock = pipeline.config.inputs[target.at], self._world.clock
            again = ArrivingAgain(pipeline.id, component, decoding, clock, warnings.append)
            return await again.messages(arrival)
        try:
            return await batch_in(letter, body, decoding)
        except NotJson as cause:
            return f"it is not JSON: {cause}"

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
        if id in self._under_way:
            raise ReplayUnderWay(id)
        return pipeline

    def _is_over(self, id: str, replay: LetterReplay) -> None:
        """Keep of a replay what it had come to, and nothing of its pipeline."""
        del self._under_way[id]
        self._gone_before += replay.done
        self._over.pop(id, None)
        self._over[id] = _figures_of(replay)
        if len(self._over) > MOST_REMEMBERED:
            del self._over[next(iter(self._over))]

    def figures(self, id: str) -> ReplayFigures | None:
        """Return how far the replay of a pipeline has come, or the last one had; None: there was none."""
        replay = self._under_way.get(id)
        return self._over.get(id) if replay is None else _figures_of(replay)

    def stop(self, id: str) -> bool:
        """Have the replay of a pipeline send no more; return whether there is one."""
        replay = self._under_way.get(id)
        if replay is None or replay.state != "running":
            return False
        replay.stop()
        return True


def _figures_of(it: LetterReplay) -> ReplayFigures:
    return ReplayFigures(it.number, it.selected, it.done, it.failed, it.state)


def changed_config(pipeline: Pipeline, digests: Collection[str | None]) -> tuple[bool, list[str]]:
    """Return whether a pipeline has another config than letters say, and what is known of where."""
    now = pipeline.digest
    others = {each for each in digests if each is None or version_in(each) != version_in(now)}
    return bool(others), changed_since(others, now)


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
    selected, before = _Selected(), ABOVE_ALL
    source, stage, message = request.source, request.stage, request.message
    if request.ids is not None:
        for each in await records.some(source, request.ids, stage, message):
            selected.add(each)
        return selected
    while True:
        page = await records.page(source, stage, message, before)
        for each in page.letters:
            selected.add(each)
        if not page.is_truncated:
            selected.ids.reverse()
            return selected
        before = page.before


def _component_of(selected: _Selected, component: int) -> ReplayTarget | None:
    """Return what a component is of which the index is named; None: no letter is meant.

    Raises:
        UnclearReplayTarget: letters are meant that failed in different stages, or at inputs.
    """
    stages = sorted({target.stage for target, _ in selected.places})
    if not stages:
        return None
    if stages == ["input"]:
        raise UnclearReplayTarget(
            "'component' is the index of a transform or an output, and the dead letters are of inputs:"
            " name an 'input_index'"
        )
    if len(stages) > 1:
        raise UnclearReplayTarget(
            "'component' is the index of a transform or an output, and the dead letters are of several"
            f" stages: {', '.join(stages)}; name a 'stage' in 'filter', or ids of one stage"
        )
    return ReplayTarget(stages[0], component)


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
