"""The dead letters that are on the disk of a play."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.authoring.playing.played import PlayedLetter
from headrace.compiler.clock import Clock, VirtualLoop
from headrace.compiler.component.families import Stage
from headrace.compiler.component.pipelineconfig import LIST_OF
from headrace.compiler.config.program import Program
from headrace.compiler.config.storesettings import AS_USUAL
from headrace.compiler.delivery import Batch
from headrace.compiler.jsontext import Decoding, NotJson
from headrace.compiler.runtime.letterbody import DeadArrival, arrival_of, messages_of
from headrace.compiler.runtime.storage import Storage

if TYPE_CHECKING:
    from headrace.compiler.store.letterrecords import Records
    from headrace.compiler.store.letterrows import Letter
    from headrace.compiler.store.memorydisk import MemoryDisk


PROCESS = "process"
"""The stage of what has ended the process again and again: it may be messages."""


async def letters_on(disk: MemoryDisk, program: Program, loop: VirtualLoop) -> list[PlayedLetter]:
    """Return all dead letters that a disk has, in the order in which they were put down."""
    storage = Storage(Clock(loop), None, AS_USUAL, is_real=False, disk=lambda: disk)
    await storage.prepare(program.pipelines)
    if (records := storage.records) is None:
        return []
    found = await letters_in(records)
    await storage.close()
    return found


async def letters_in(records: Records) -> list[PlayedLetter]:
    """Return all dead letters of a store, in the order in which they were put down."""
    numbered = [one for id in records.pipelines() for one in await _letters(records, id)]
    return [letter for _, letter in sorted(numbered, key=lambda each: each[0])]


async def _letters(records: Records, pipeline: str) -> list[tuple[int, PlayedLetter]]:
    """Return the letters of a pipeline, each with its id."""
    found: list[tuple[int, PlayedLetter]] = []
    page = await records.page(pipeline)
    while page.letters:
        for each in page.letters:
            whole = await records.letter(each.id)
            if whole is not None and whole.body is not None:  # damaged are none: it is memory
                found.append((each.id, await _played(each.letter, whole.body)))
        if not page.is_truncated:
            break
        page = await records.page(pipeline, before=page.before)
    return found


async def _played(letter: Letter, body: bytes) -> PlayedLetter:
    arrival, decoding = arrival_of(letter, body), Decoding()
    messages, payload = None, b""
    if arrival is None:
        messages = await messages_of(body, decoding)
    else:
        messages = _messages(arrival, letter, decoding)
        payload = arrival.payload if messages is None else b""
    is_input = letter.component is None
    stage: Any = "input" if is_input else letter.stage
    index = letter.input_index if is_input else letter.component
    failure: Any = letter.failure
    said, detail = letter.message, letter.detail
    text = said if detail in (None, said) else f"{said}: {detail}"
    return PlayedLetter(
        _place(letter.pipeline, stage, index), letter.stage, failure, text, messages, payload
    )


def _messages(arrival: DeadArrival, letter: Letter, decoding: Decoding) -> Batch | None:
    """Return what messages an arrival is; None: nobody could make any of it."""
    if not arrival.is_json and letter.stage != PROCESS:
        return None
    try:
        decoded = decoding.decode(arrival.payload)
    except NotJson:  # it is in the format of its input
        return None
    return decoded if isinstance(decoded, list) else [decoded]


def _place(pipeline: str, stage: Stage, index: int | None) -> str:
    return f"{pipeline}.{LIST_OF[stage]}[{index}]"
