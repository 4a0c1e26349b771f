"""The `failures` input, between real pipelines in virtual time."""

from __future__ import annotations

import asyncio
from itertools import chain
from typing import Any

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import WantedFailures
from headrace.compiler.errors import BatchFailed, Refused, Unreachable
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.failureinbox import (
    MOST_MESSAGES,
    MOST_PAYLOAD,
    MOST_VALUES,
    FailureInbox,
)
from headrace.compiler.runtime.monitoring.losses import ComponentLoss, LostMessages
from headrace.connectors.failuresinput import FailuresInput
from headrace.connectors.pipelineinput import PipelineInput
from headrace.operators.map import Map
from tests.doubles import refusals
from tests.promises import promise
from tests.stand_ins import (
    Kept,
    RawTold,
    Slow,
    Told,
    batches,
    formatted,
    pipeline,
    reads,
    run,
    running,
    takes,
)
from tests.stopwatch import Stopwatch
from tests.virtual import virtual

AT = "2026-01-01T00:00:00.500000+00:00"
TEXT = "mapping 0 ('cast'): field 'n': cannot read a string as an integer: " + (
    "expected a whole number, or its digits in a string"
)


def casting(**options: Any) -> Map:
    return Map.load({"mappings": [{"type": "cast", "from": "n", "to": "integer"}], **options})


def engine() -> Engine:
    return Engine(Clock(asyncio.get_running_loop()))


def failures(*upstream: str, **options: Any) -> FailuresInput:
    return FailuresInput.load({**({"upstream": [*upstream]} if upstream else {}), **options})


async def heard(
    *arrivals: Any, reader: FailuresInput | None = None, **policy: Any
) -> list[dict[str, Any]]:
    """Return what is told of a pipeline `orders` that reads this and maps it."""
    it, kept = engine(), Kept()
    source = Told(it.clock, [0.5, *arrivals])
    await run(it, pipeline("orders", [reads(source)], [casting(**policy)], [takes(Kept())]))
    await run(it, pipeline("faults", [reader or failures("orders")], [], [takes(kept)]))
    await it.clock.sleep(10)
    await it.close()
    return [message for batch in kept.batches for message in batch]


def failed(**more: Any) -> dict[str, Any]:
    """Return a failure of the map, but for its message."""
    where = {"pipeline_id": "orders", "stage": "transform", "component": 0, "input_index": None}
    about = {"kind": "map", "error": TEXT, "class": "invalid", "reason": "batch"}
    about |= {"at_fault": None, "at": AT}
    return {**where, **about, **more, "left_out": 0}


def lost(it: Engine) -> list[ComponentLoss]:
    """Return what `orders` has lost."""
    return [each for each in running(it, "orders").failures.losses if each.count]


@virtual
async def test_a_message_that_is_skipped_comes_as_it_came_to_what_failed() -> None:
    told = await heard(batches([{"n": "x"}, {"n": 1}, {"n": "y"}]), on_error="skip")

    assert told == [failed(reason="error", at_fault=True, message={"n": text}) for text in "xy"]


@virtual
async def test_of_a_batch_that_fails_each_message_comes() -> None:
    told = await heard(batches([{"n": "x"}, {"n": 1}]))

    assert told == [failed(message={"n": "x"}), failed(message={"n": 1})]


@virtual
async def test_a_failure_of_an_output_tells_which_and_its_kind() -> None:
    it, kept = engine(), Kept()
    source = Told(it.clock, [0.5, batches([{"n": 1}])])
    await run(it, pipeline("orders", [reads(source)], [], [takes(Kept()), takes(Kept(fails=True))]))
    await run(it, pipeline("faults", [failures()], [], [takes(kept)]))
    await it.clock.sleep(1)

    [[told]] = kept.batches
    assert (told["stage"], told["component"], told["error"]) == ("output", 1, "the disk is full")
    assert told["message"] == {"n": 1}
    await it.close()


@promise("delivery.failed.at_fault", "delivery.failed.done")
@virtual
async def test_of_a_batch_that_an_output_refuses_in_part_what_is_lost_comes_and_which_are_at_fault() -> (
    None
):
    it, kept = engine(), Kept()
    source = Told(it.clock, [0.5, batches([{"n": n} for n in range(4)])])
    cause = BatchFailed("1 of 4 is refused", done=[0], refused={2: "too large"})
    await run(it, pipeline("orders", [reads(source)], [], [takes(Slow(it.clock, 0, [cause]))]))
    await run(it, pipeline("faults", [failures()], [], [takes(kept)]))
    await it.clock.sleep(1)

    told = [
        (each["message"]["n"], each["at_fault"], each["error"], each["reason"])
        for each in chain(*kept.batches)
    ]
    assert told == [
        (1, False, "1 of 4 is refused", "batch"),
        (2, True, "too large", "batch"),
        (3, False, "1 of 4 is refused", "batch"),
    ]
    assert [(each.reason, each.count) for each in lost(it)] == [("batch", 3)]
    await it.close()


@virtual
async def test_a_failure_without_a_message_comes_alone_and_an_input_is_told_by_its_index() -> None:
    told = await heard(Unreachable("b:1 does not answer"), 5)

    assert told == [
        {
            "pipeline_id": "orders",
            "stage": "input",
            "component": None,
            "input_index": 0,
            "kind": told[0]["kind"],
            "error": "b:1 does not answer",
            "class": "unavailable",
            "reason": None,
            "at_fault": None,
            "at": AT,
            "left_out": 0,
        }
    ]


@virtual
async def test_a_payload_that_is_no_json_comes_as_text_and_not_all_of_a_large_one() -> None:
    it, kept = engine(), Kept()
    payloads = [(b'{"n": 1}', 0), (b"\xffno json", 1), (b"x" * 100_000, 2)]
    source = RawTold(it.clock, [0.5, payloads])
    await run(it, pipeline("orders", [reads(source)], [casting()], [takes(Kept())]))
    await run(it, pipeline("faults", [failures("orders")], [], [takes(kept)]))
    await it.clock.sleep(1)

    told = [each for batch in kept.batches for each in batch]
    assert [(each["stage"], each["input_index"], len(each["payload"])) for each in told] == [
        ("input", 0, 8),
        ("input", 0, MOST_PAYLOAD),
    ]
    assert told[0]["payload"] == "\N{REPLACEMENT CHARACTER}no json"
    assert told[0]["error"].startswith("skipped a payload that is not JSON: ")
    assert "message" not in told[0]
    assert running(it, "orders").failures.total == 0
    assert lost(it) == [ComponentLoss("input", 0, "error", 2)]
    await it.close()


LEFT_OUT = [
    ("ndjson", b'{"n": 1}\n{"n":\nno json\n{"n": 2}\n', ['{"n":', "no json"], "not JSON: "),
    ("csv", b'a,b\n1,2\n3\n"4,5",6,7\n', ["3", "4,5,6,7"], "a row with another number of cells"),
    ("csv", b"a,a\n1,2\n", ["a,a\n1,2\n"], "a name stands twice in the header"),
    ("csv", b"a,b\n1," + b"x" * 200_000 + b"\n", [None], "a cell"),
]


@pytest.mark.parametrize(("format", "payload", "texts", "why"), LEFT_OUT)
@virtual
async def test_what_a_format_leaves_out_of_a_payload_comes_as_text_and_is_counted(
    format: str, payload: bytes, texts: list[str | None], why: str
) -> None:
    it, kept = engine(), Kept()
    source = RawTold(it.clock, [0.5, [(payload, 0)]])
    reading = formatted(source, format, {})
    await run(it, pipeline("orders", [reading], [], [takes(Kept())]))
    await run(it, pipeline("faults", [failures("orders")], [], [takes(kept)]))
    await it.clock.sleep(1)

    told = [each for batch in kept.batches for each in batch]
    assert [each.get("payload") for each in told] == texts
    places = {(each["stage"], each["component"], each["input_index"]) for each in told}
    assert places == {("input", None, 0)}
    assert all(f"skipped what does not fit the format: {why}" in each["error"] for each in told)
    assert running(it, "orders").failures.total == 0
    assert lost(it) == [ComponentLoss("input", 0, "error", len(texts))]
    assert {each["reason"] for each in told} == {"error"}
    await it.close()


@virtual
async def test_stages_that_are_not_wanted_are_not_told_of_and_messages_neither() -> None:
    script = (Unreachable("b:1 does not answer"), 5, batches([{"n": "x"}]))

    only = await heard(*script, reader=failures("orders", stages=["input"]))
    bare = await heard(
        *script, reader=failures("orders", stages=["transform", "output"], messages=False)
    )

    assert [each["stage"] for each in only] == ["input"]
    assert [(each["stage"], "message" in each) for each in bare] == [("transform", False)]


@virtual
async def test_a_pipeline_that_is_not_named_is_not_told_of() -> None:
    it, kept = engine(), Kept()
    for name in ("named", "other"):
        source = Told(it.clock, [0.5, batches([{"n": "x"}])])
        await run(it, pipeline(name, [reads(source)], [casting()]))
    await run(it, pipeline("faults", [failures("named")], [], [takes(kept)]))
    await it.clock.sleep(1)

    assert [each["pipeline_id"] for batch in kept.batches for each in batch] == ["named"]
    await it.close()


@virtual
async def test_without_names_it_reads_all_but_those_that_get_something_from_it() -> None:
    it, kept = engine(), Kept()
    await run(it, pipeline("faults", [failures()], [], [takes(Kept(fails=True))]))
    below = PipelineInput.load({"upstream": "faults"})
    fails = Map.load({"mappings": [{"type": "copy", "from": "missing", "as": "c"}]})
    await run(it, pipeline("below", [below], [fails]))
    await run(it, pipeline("more", [failures()], [], [takes(kept)]))
    source = Told(it.clock, [0.5, batches([{"n": "x"}])])
    await run(it, pipeline("orders", [reads(source)], [casting()]))
    await it.clock.sleep(60)

    # `faults` fails, and so does `below`: neither is told of, or it would go round for ever.
    assert [each["pipeline_id"] for batch in kept.batches for each in batch] == ["orders"]
    assert running(it, "faults").failures.total == 1
    assert running(it, "below").failures.total == 1
    await it.close()


@virtual
async def test_a_circle_is_refused_with_the_way_round() -> None:
    it = engine()
    await run(it, pipeline("faults", [reads(Told(it.clock, []))]))
    below = PipelineInput.load({"upstream": "faults"})
    await run(it, pipeline("below", [below]))

    with pytest.raises(Refused) as refused:
        await it.exchange("faults", pipeline("faults", [failures("below")]), None)

    [diagnostic] = refused.value.diagnostics
    assert diagnostic.code == "cycle"
    assert "faults -> below -> faults" in diagnostic.message
    await it.close()


@virtual
async def test_it_may_not_read_its_own_and_whom_it_names_has_to_be_there() -> None:
    it = engine()

    with pytest.raises(Refused) as own:
        await it.compile(pipeline("faults", [failures("faults")]))
    with pytest.raises(Refused) as gone:
        await it.compile(pipeline("faults", [failures("nobody")]))

    [circle] = own.value.diagnostics
    assert (circle.code, circle.message) == ("cycle", "'faults' would be told of its own failures")
    assert [each.code for each in gone.value.diagnostics] == ["missing-upstream"]
    await it.close()


@virtual
async def test_reading_goes_on_when_the_reader_is_exchanged() -> None:
    it, kept = engine(), Kept()
    source = Told(it.clock, [0.5, batches([{"n": "x"}]), 1, batches([{"n": "y"}])])
    await run(it, pipeline("orders", [reads(source)], [casting()]))
    await run(it, pipeline("faults", [failures("orders")], [], [takes(Kept())]))
    await it.clock.sleep(1)
    other = failures("orders", max_queued_bytes=10_000)

    await it.exchange("faults", pipeline("faults", [other], [], [takes(kept)]), None)
    await it.clock.sleep(2)

    assert [each["message"] for batch in kept.batches for each in batch] == [{"n": "y"}]
    await it.close()


class Reader:
    """An inbox by itself."""

    def __init__(self, **wanted: Any) -> None:
        options = {"upstreams": (), "stages": (), "messages": True, "max_queued_bytes": 10_000}
        self.left_out = 0
        self.inbox = FailureInbox(
            WantedFailures(**{**options, **wanted}), self._count, lambda _: None
        )

    def _count(self, count: int) -> None:
        self.left_out += count

    def fail(self, *messages: Any) -> None:
        self.inbox.take({"error": "no"}, LostMessages(messages, "batch") if messages else None)

    async def read(self) -> list[dict[str, Any]]:
        self.inbox.stop()
        return [
            each async for arrivals in self.inbox.read() for batch, _ in arrivals for each in batch
        ]


@promise("failures.input.waits", "failures.input.beyond")
@virtual
async def test_what_has_no_room_is_left_out_counted_and_told_by_the_next_one() -> None:
    reader = Reader()

    for number in range(50):
        reader.fail({"n": number, "text": "x" * 1000})
    taken = len(await reader.read())

    assert 0 < taken < 50
    assert reader.left_out == 50 - taken
    assert reader.inbox.queue() == ("bytes", 0, 10_000)
    reader.fail({"n": 1})
    [last] = await reader.read()
    assert last["left_out"] == 50 - taken
    reader.fail({"n": 1})
    assert [each["left_out"] for each in await reader.read()] == [0]


@virtual
async def test_of_one_batch_so_many_messages_are_told_of() -> None:
    reader = Reader(max_queued_bytes=2**30)

    reader.fail(*({"n": number} for number in range(MOST_MESSAGES + 7)))

    assert len(await reader.read()) == MOST_MESSAGES
    assert reader.left_out == 7


@virtual
async def test_failures_of_one_batch_share_what_is_told_and_looked_at_of_it() -> None:
    reader, batch, other = Reader(max_queued_bytes=2**30), object(), object()
    most = [0] * (MOST_VALUES // 2)

    for part in (batch, batch, other):
        reader.inbox.take({"error": "no"}, LostMessages([most, most[1:]], "error", part))
    for part in (batch, batch):
        lost = LostMessages([{}] * MOST_MESSAGES, "error", part)
        reader.inbox.take({"error": "no"}, lost)

    told = ["message" in each for each in await reader.read()]
    assert told == [True, False, False, False, True, False, *[True] * MOST_MESSAGES]
    assert reader.left_out == MOST_MESSAGES


@virtual
async def test_a_message_with_more_values_than_are_looked_at_does_not_come_along() -> None:
    reader = Reader(max_queued_bytes=2**30)

    reader.fail([0] * (MOST_VALUES - 1), {"n": 1})
    reader.fail([[0] * MOST_VALUES], {"n": 1})

    assert ["message" in each for each in await reader.read()] == [True, False, False, False]


@virtual
async def test_what_is_large_holds_nobody_up() -> None:
    reader = Reader(max_queued_bytes=2**30)
    huge = [[0] * 10 for _ in range(300_000)]
    watch = Stopwatch()

    for _ in range(20):
        reader.fail(*[huge] * 100)

    assert watch.seconds < 0.02 * 20
    await reader.read()


@promise("failures.input.twice")
@virtual
async def test_two_readers_are_each_told_once_and_share_the_message() -> None:
    it, kept = engine(), [Kept(), Kept()]
    message = {"n": "x"}
    source = Told(it.clock, [0.5, batches([message])])
    await run(it, pipeline("orders", [reads(source)], [casting()]))
    for number, each in enumerate(kept):
        await run(it, pipeline(f"faults{number}", [failures("orders")], [], [takes(each)]))
    await it.clock.sleep(1)

    for each in kept:
        [[told]] = each.batches
        assert told["message"] is message
    await it.close()


@promise("failures.input.away", "failures.input.kill")
@virtual
async def test_what_fails_while_nobody_reads_is_told_to_nobody_and_counted_all_the_same() -> None:
    it, kept = engine(), Kept()
    source = Told(it.clock, [0.5, batches([{"n": "x"}]), 1, batches([{"n": "y"}])])
    await run(it, pipeline("orders", [reads(source)], [casting()]))
    await it.clock.sleep(1)

    await run(it, pipeline("faults", [failures("orders")], [], [takes(kept)]))
    await it.clock.sleep(1)

    assert [each["message"] for batch in kept.batches for each in batch] == [{"n": "y"}]
    assert running(it, "orders").failures.total == 2
    await it.close()


@virtual
async def test_a_reader_that_is_stuck_makes_nobody_wait() -> None:
    it = engine()
    many = [batches([{"n": "x"}]) for _ in range(500)]
    source = Told(it.clock, [0.5, *many])
    await run(it, pipeline("orders", [reads(source)], [casting()]))
    reader = failures("orders", max_queued_bytes=5_000)
    await run(it, pipeline("faults", [reader], [], [takes(Slow(it.clock, 3600))]))
    await it.clock.sleep(5)

    assert running(it, "orders").failures.total == 500
    assert running(it, "orders").in_flight == 0
    assert running(it, "faults").counters.skipped > 0
    await it.close()


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"upstream": ["a", "a"]}, "upstream[1]: 'a' is named by upstream[0] already"),
        (
            {"stages": ["inputs"]},
            'stages[0]: expected one of input, transform, output, found "inputs"',
        ),
        ({"max_queued_bytes": 0}, "max_queued_bytes: expected an integer of at least 1, found 0"),
        ({"upstream": "a"}, 'upstream: expected a list of at least one pipeline id, found "a"'),
        (
            {"upstream": []},
            "upstream: expected a list of at least one pipeline id, found an empty list",
        ),
        ({"stages": []}, "stages: expected a list of at least one stage, found an empty list"),
    ],
)
def test_what_cannot_be_meant_is_refused(document: dict[str, Any], said: str) -> None:
    assert refusals(FailuresInput, document) == [said]
