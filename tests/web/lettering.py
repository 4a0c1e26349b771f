"""Engines with dead letters, as far as the web asks for them: they tell of one, and write nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.errors import (
    NoReplayTarget,
    UnclearReplayTarget,
    UnknownDeadLetter,
    UnknownPipeline,
    UnknownReplay,
)
from headrace.compiler.runtime.letterreplay.letterlook import LetterLook
from headrace.compiler.runtime.letterreplay.replayrequest import ReplayRequest
from headrace.compiler.runtime.monitoring.letterfigures import (
    DeadLetterEntry,
    DeadLetterPage,
    DeadLetterSignature,
    LettersWanted,
    StoredLetter,
    StoredPayload,
)
from headrace.compiler.runtime.monitoring.replayfigures import BegunReplay, ReplayFigures
from headrace.compiler.store.storeerrors import StoreFailed
from headrace.connectors.stdout import StdoutOutput
from tests.web.storing import AT, Storing

SAID = "'temp' is no number"
SIGNATURE = DeadLetterSignature("p", "output", 0, SAID, "invalid", 2, 3, 1_000, AT, AT + 1)
ENTRY = DeadLetterEntry(
    *(1, "p", "output", 0, None, "postgres db/t", "invalid", SAID, None, AT, AT + 1, 1),
    maybe_written=False,
    received_at=None,
    config="0123",
    message_count=2,
    bytes=7,
)
MESSAGES = StoredLetter(ENTRY, b"....[1,2.50]", 4, None)
PAYLOAD = StoredLetter(ENTRY, b"....{", 4, StoredPayload(False, b'{"received_at":"now"}'))


class Lettering(Storing):
    """An engine with one dead letter in pipeline `p`, which is being replayed."""

    letter_told = MESSAGES

    async def letter_signatures(self, pipeline: str | None = None) -> list[DeadLetterSignature]:
        return [SIGNATURE]

    async def letters(self, pipeline: str, *_: Any) -> DeadLetterPage:
        return DeadLetterPage(1, 1_000, truncated=False, next=None, damaged=(), entries=[ENTRY])

    async def letter(self, pipeline: str, id: int) -> StoredLetter:
        if id != 1:
            raise UnknownDeadLetter(pipeline, id)
        return self.letter_told

    async def delete_letters(self, pipeline: str, ids: Sequence[int]) -> int:
        return len(ids)

    async def delete_all_letters(self, pipeline: str, wanted: LettersWanted) -> int:
        return 1

    async def replay(self, request: ReplayRequest, messages: bytes | None = None) -> BegunReplay:
        if request.pipeline != "p":
            raise UnknownPipeline(request.pipeline)
        if request.target is not None:
            raise NoReplayTarget("pipeline 'p' has no input 7")
        if request.component is not None:
            raise UnclearReplayTarget("name a stage")
        return BegunReplay(1, 1, config_changed=False)

    async def look_at_replay(
        self, request: ReplayRequest, messages: bytes | None = None
    ) -> LetterLook:
        return LetterLook("output", 0, [1], 1, None, (), has_changed=False, changed=())

    def configs(self) -> dict[str, PipelineConfig]:
        return {"p": PipelineConfig(id="p", inputs=(), outputs=(StdoutOutput.load({}),))}

    async def replay_figures(self, pipeline: str) -> ReplayFigures | None:
        return ReplayFigures(1, 2, 1, 0, "running")

    async def stop_replay(self, pipeline: str) -> None:
        if pipeline != "p":
            raise UnknownReplay(pipeline)


class NoDisk(Storing):
    """One whose disk cannot be read or written."""

    async def letter_signatures(self, pipeline: str | None = None) -> Any:
        raise StoreFailed("disk I/O error")

    async def letters(self, *_: Any) -> Any:
        raise StoreFailed("disk I/O error")

    async def letter(self, *_: Any) -> Any:
        raise StoreFailed("disk I/O error")

    async def delete_letters(self, *_: Any) -> Any:
        raise StoreFailed("disk I/O error")

    async def replay(self, *_: Any) -> Any:
        raise StoreFailed("disk I/O error")


class BrokenLetters(Storing):
    """One with a fault of its own."""

    async def delete_letters(self, *_: Any) -> Any:
        raise ZeroDivisionError("a secret is in here")

    async def replay(self, *_: Any) -> Any:
        raise ZeroDivisionError("a secret is in here")

    async def stop_replay(self, *_: Any) -> Any:
        raise ZeroDivisionError("a secret is in here")
