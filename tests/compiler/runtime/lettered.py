"""Pipelines with dead letters, and what is in their letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from headrace.compiler.component.deadletteroptions import DEAD_LETTERS
from headrace.compiler.component.families import Input, Output, Transform
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.jsontext import Decoding
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.letterbody import arrival_of, messages_of
from headrace.connectors.http import HttpInput
from tests.stand_ins import running


class PutDown(NamedTuple):
    """A letter: where, why, and what is in it."""

    place: str
    failure: str
    message: str
    detail: str | None
    content: Any


def lettered(
    outputs: Sequence[Output],
    transforms: Sequence[Transform] = (),
    inputs: Sequence[Input] = (),
    *,
    letters: Any = True,
    id: str = "p",
) -> PipelineConfig:
    """Return a pipeline that keeps what it cannot do; it is posted to, unless it has other inputs."""
    return PipelineConfig(
        id=id,
        inputs=tuple(inputs) or (HttpInput.load({}),),
        transforms=tuple(transforms),
        outputs=tuple(outputs),
        dead_letters=DEAD_LETTERS.deserialize(letters),
    )


async def put_down(it: Engine, id: str = "p") -> list[PutDown]:
    """Return the letters of a pipeline, oldest first."""
    records = it._storage.records
    assert records is not None
    page = await records.page(id)
    letters = []
    for each in reversed(page.letters):
        whole = await records.letter(each.id)
        assert whole is not None
        assert whole.body is not None
        letter = each.letter
        arrival = arrival_of(letter, whole.body)
        content: Any
        if arrival is None:
            content = [*await messages_of(whole.body, Decoding())]
            assert len(content) == letter.messages
        else:
            content = arrival.payload
        index = letter.input_index if letter.component is None else letter.component
        place = f"{letter.stage}[{index}]"
        letters.append(PutDown(place, letter.failure, letter.message, letter.detail, content))
    return letters


def lost(it: Engine, id: str = "p") -> dict[tuple[str, str], int]:
    """Return how many messages are lost, by place and reason, of those of which some are."""
    losses = running(it, id).failures.losses
    return {(f"{x.stage}[{x.component}]", x.reason): x.count for x in losses if x.count}
