"""Payloads of brokers in another format than JSON: batches, acknowledgements, what is left out."""

from __future__ import annotations

import asyncio
import gc
from time import thread_time
from typing import Any

import pytest

from headrace.compiler.clock import run_virtual
from headrace.compiler.component.envelopes import Envelope, Merge, Wrap
from headrace.compiler.formats import MOST_MESSAGES
from headrace.compiler.runtime import turns
from headrace.compiler.runtime.pump import BATCHES_UNDER_WAY, most_under_way
from tests.slowness import slowness
from tests.stand_ins import Kept, RawTold, engine, formatted, pipeline, takes

LONGEST = 0.02
"""Seconds of this thread's CPU time."""


class Reading:
    """What came of payloads that have arrived together."""

    def __init__(
        self,
        word: str,
        *payloads: bytes,
        max_batch: int = 1,
        envelope: Envelope | None = None,
        ack: str = "on_receipt",
        **csv: Any,
    ) -> None:
        self.longest = 0.0

        async def main() -> None:
            it = engine()
            await it.clock.sleep(1)  # the turn of a pump that has not had one is over
            source = RawTold(
                it.clock, [[*zip(payloads, range(len(payloads)), strict=True)]], stays=False
            )
            source.max_batch = max_batch
            kept = Kept()
            component = formatted(source, word, csv, envelope=envelope, ack=ack)
            await it.compile(pipeline("p", [component], [], [takes(kept)]))
            began = thread_time()
            while not kept.finished:
                await asyncio.sleep(0)
                self.longest = max(self.longest, thread_time() - began)
                began = thread_time()
            self.batches = [[*batch] for batch in kept.batches]
            self.acknowledged = source.acknowledged
            await it.close()

        gc.collect()
        gc.disable()  # a search through all that the tests have made would be counted
        try:
            run_virtual(main)
        finally:
            gc.enable()


def test_a_payload_is_a_batch_and_max_batch_counts_payloads() -> None:
    read = Reading("lines", b"a\nb\n", b"c\n", b"d\ne", max_batch=2)

    assert [[each["value"] for each in batch] for batch in read.batches] == [
        ["a", "b", "c"],
        ["d", "e"],
    ]
    assert read.acknowledged == [0, 1, 2]


def test_rows_that_do_not_fit_are_left_out_and_their_payload_is_acknowledged() -> None:
    read = Reading("csv", b"a,b\n1,2\n3\n4,5\n", b"x,x\n1,2\n", b"a\n7\n", ack="on_delivery")

    assert read.batches == [[{"a": "1", "b": "2"}, {"a": "4", "b": "5"}], [{"a": "7"}]]
    assert read.acknowledged == [0, 1, 2]


def test_a_payload_with_too_many_messages_is_left_out_as_a_whole() -> None:
    read = Reading("lines", b"1\n" * (MOST_MESSAGES + 1), b"2\n", max_batch=2)

    assert read.batches == [[{"value": "2"}]]


def test_the_envelope_is_put_on_each_message() -> None:
    merged = Reading("lines", b"a\nb\n", envelope=Merge())
    wrapped = Reading("text", b"21.5", envelope=Wrap(payload="text"))

    assert [each["value"] for each in merged.batches[0]] == ["a", "b"]
    assert {each["_meta"]["input"] for each in merged.batches[0]} == {"formatted"}
    [[message]] = wrapped.batches
    assert message["text"] == "21.5"
    assert {*message} == {"_meta", "text"}


@pytest.mark.parametrize("envelope", [None, Merge()])
def test_large_and_small_payloads_are_one_batch_in_order(envelope: Envelope | None) -> None:
    payloads = [b"1\n", b"2\n" * 60_000, b"3\n" * 140_000, b"4\n", b"5\n" * 99_000]
    read = Reading("ndjson", *payloads[:2], *payloads[3:], max_batch=4)
    large = Reading(
        "lines", b"a\n", b"b" * 40 + b"\n" * 300_000 + b"c\n", max_batch=2, envelope=envelope
    )

    assert read.batches == [[1, *[2] * 60_000, 4, *[5] * 99_000]]
    assert [each["value"] for each in large.batches[0]] == ["a", "b" * 40, "c"]


@pytest.mark.timed
@pytest.mark.parametrize(
    ("word", "payload"),
    [
        ("lines", b"a\n" * 99_000),
        ("lines", b"a\n" * 1_000_000),
        ("ndjson", b"x\n" * 99_000),
        ("csv", b"a,b\n" + b"," * 1_000_000),
        ("csv", b"a,b\n" + b"1\n" * 99_000),
        ("csv", b",".join(b"c%d" % n for n in range(1000)) + b"\n" + (b"," * 999 + b"\n") * 1000),
    ],
    ids=["lines", "a million lines", "no json", "a wide row", "short rows", "wide rows"],
)
def test_no_turn_is_long_whatever_the_payload_is(
    word: str, payload: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bound in ("TURN_SECONDS", "LONGEST_SECONDS", "SHORTEST_SECONDS"):
        monkeypatch.setattr(turns, bound, -1.0)  # over before it began: time stands still here
    for envelope in (None, Merge()):
        read = Reading(word, payload, b"1\n", envelope=envelope)
        assert read.longest < LONGEST * slowness()


def test_a_payload_that_is_a_batch_takes_the_place_of_one() -> None:
    assert most_under_way(is_raw=False, max_batch=1) == BATCHES_UNDER_WAY
