"""What an input reads is made of a payload once more: by its format, and with its envelope on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.compiler.clock import Clock
from headrace.compiler.component.families import Input
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.formats import FormatMisfit, Intake
from headrace.compiler.jsontext import Decoding, NotJson
from headrace.compiler.largejson import WritingTurn
from headrace.compiler.runtime.letterbody import DeadArrival, messages_of_json


class ArrivingAgain:
    """Makes messages of payloads as one input of a pipeline does now."""

    def __init__(
        self,
        pipeline: str,
        component: Input,
        decoding: Decoding,
        clock: Clock,
        warn: Callable[[str], None],
    ) -> None:
        """Take whose input it is, how it reads, and who is told what may be wrong with an envelope."""
        self._pipeline, self._component, self._decoding = pipeline, component, decoding
        self._clock, self._warn = clock, warn
        self._format = component.payload_format()
        self._skipped: str | None = None

    async def messages(self, arrival: DeadArrival) -> Batch | str:
        """Return the messages that are made of an arrival, at least one; or why none can be."""
        self._skipped = None
        try:
            batch = self._enclosed(await self._decoded(arrival), arrival.metadata)
        except NotJson as cause:
            return f"it is not JSON: {cause}"
        except FormatMisfit as cause:
            return str(cause)
        return self._skipped or batch or "no message can be made of it"

    async def _decoded(self, arrival: DeadArrival) -> Batch:
        decoding = self._decoding
        if arrival.is_json:
            return await messages_of_json(arrival.payload, decoding)
        if self._format is None and self._component.fed_by == "posts":
            posted = await messages_of_json(arrival.payload, decoding)
            return posted if isinstance(posted, list) else [posted]
        if self._format is None:
            return [decoding.decode(arrival.payload)]
        into, turn = Intake(len(arrival.payload)), WritingTurn(self._clock)
        for _ in self._format.slices(arrival.payload, into, decoding):
            await turn.end()
        return into.batch

    def _enclosed(self, batch: Batch, metadata: dict[str, Any]) -> Batch:
        """Put the envelope on, if there is one."""
        if (envelope := self._component.envelope) is None:
            return batch
        about = {"pipeline": self._pipeline, "input": self._component.kind, **metadata}
        put_on = envelope.putting(self._warn, self._skip, is_added=False)
        enclosed: Batch = put_on(batch, about)
        return enclosed

    def _skip(self, why: str, message: JsonValue, about: dict[str, Any]) -> None:
        self._skipped = why
