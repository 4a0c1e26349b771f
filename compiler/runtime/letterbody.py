"""What a dead letter has in it: an arrival as it came, or a batch of messages.

An input's is an arrival (`storedarrival`): it has no component, as failures of inputs have none. All others
are batches (`queuedbatch`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from headrace.compiler.delivery import Batch
from headrace.compiler.jsontext import Decoding
from headrace.compiler.largejson import SLICE, decode_large
from headrace.compiler.runtime.queuedbatch import batch_of_entry
from headrace.compiler.runtime.storedarrival import origin_of_entry, payload_of
from headrace.compiler.store.letterrows import Letter


class DeadArrival(NamedTuple):
    """What an input could not make a message of."""

    payload: bytes
    is_json: bool
    """Whether it is an array of messages as JSON, whatever the format of the input says."""
    metadata: dict[str, Any]
    """Where it came from, with `received_at`."""


def arrival_of(letter: Letter, body: bytes) -> DeadArrival | None:
    """Return the arrival that is in a letter; None: it has messages, see `messages_of`."""
    if letter.component is not None:
        return None
    payload, is_json = payload_of(body)
    return DeadArrival(payload, is_json, origin_of_entry(0, body).describe())


async def messages_of(body: bytes, decoding: Decoding) -> Batch:
    """Return the messages of a letter that has no arrival; of many others have their turn meanwhile."""
    return await batch_of_entry(body, decoding)


async def batch_in(letter: Letter, body: bytes, decoding: Decoding) -> Batch:
    """Return the messages that are in a letter as they stand there: of an arrival, what it says as JSON.

    Raises:
        NotJson: an arrival is none.
    """
    arrival = arrival_of(letter, body)
    if arrival is None:
        return await messages_of(body, decoding)
    if arrival.is_json:
        return await messages_of_json(arrival.payload, decoding)
    return [decoding.decode(arrival.payload)]


async def messages_of_json(payload: bytes, decoding: Decoding) -> Batch:
    """Return the messages of a JSON array, or what else it is; of many others have their turn meanwhile.

    Raises:
        NotJson: it is none.
    """
    if len(payload) >= SLICE:
        return await decode_large(payload, decoding)
    batch: Batch = decoding.decode(payload)
    return batch
