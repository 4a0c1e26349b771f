"""Captures: what is recorded ahead of decoding, what is dropped, and how each of them ends."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from headrace.compiler.component.envelopes import Merge
from headrace.compiler.delivery import LARGE_BATCH
from headrace.compiler.errors import UnknownPipeline
from headrace.compiler.formats import FormatOptions, PayloadFormat
from headrace.compiler.largejson import LARGE
from headrace.compiler.runtime import turns
from headrace.compiler.runtime.capturing.captures import (
    AT_ONCE,
    MOST_WAITING_BYTES,
    Capture,
    CaptureRequest,
    TooManyCaptures,
)
from headrace.compiler.runtime.engine import Engine
from tests.authoring.playing.playing import program
from tests.compiler.runtime.capturing.capturing import lines_of, said_by, text_of
from tests.stand_ins import (
    Given,
    Kept,
    RawTold,
    Told,
    batches,
    engine,
    pipeline,
    reads,
    run,
    running,
    takes,
    with_attribute,
)
from tests.virtual import virtual

LATER = 1.0
"""When what a script says comes: a capture has begun by then."""


class Lines(Given, kind="lines"):
    """An input that reads lines."""

    def payload_format(self) -> PayloadFormat:
        return PayloadFormat.known["lines"](FormatOptions())


def payloads(*bodies: bytes) -> list[tuple[bytes, int]]:
    return [(each, number) for number, each in enumerate(bodies)]


async def captured(
    source: Any, *, seconds: float = 10, is_told: bool = False, **wanted: Any
) -> list[dict[str, Any]]:
    """Return the lines of what a source hands out, but the first and the last."""
    it = engine()
    options = {"envelope": Merge()} if is_told else {}
    await run(it, pipeline("p", [reads(source(it), **options)]))
    lines = await lines_of(it.capture(CaptureRequest(seconds=seconds, **wanted)))
    await it.close()
    return lines


def raw(*bodies: bytes) -> Any:
    return lambda it: RawTold(it.clock, [LATER, payloads(*bodies)])


@virtual
async def test_payloads_that_come_at_once_are_one_batch_at_its_moment() -> None:
    [line] = await captured(raw(b'{"n":1}', b" 2 ", b'[3,\n"x"]'))

    assert line == {"at": 0.999, "to": "p.inputs[0]", "batch": [{"n": 1}, 2, [3, "x"]]}


@virtual
async def test_what_is_no_json_is_told_as_text_and_what_is_no_text_in_base64() -> None:
    lines = await captured(
        raw(b"1", b"{", b"1e400", b'"\\ud800"', b"\x00\x07\n", b"\xff\xfe", b"\xef\xbb\xbf1", b"2")
    )

    told = [{key: each[key] for key in each.keys() - {"at", "to"}} for each in lines]
    assert told == [
        {"batch": [1]},
        {"raw": "{"},
        {"raw": "1e400"},
        {"raw": '"\\ud800"'},
        {"raw": "\x00\x07\n"},
        {"base64": "//4="},
        {"raw": "\ufeff1"},
        {"batch": [2]},
    ]


@virtual
async def test_what_is_read_in_another_format_stays_as_it_came_also_where_it_is_json() -> None:
    component = Lines()
    it = engine()
    with_attribute(component, "made", raw(b"21.5", b"a\nb")(it))
    await run(it, pipeline("p", [component]))
    lines = await lines_of(it.capture(CaptureRequest(seconds=10)))
    await it.close()

    assert [each["raw"] for each in lines] == ["21.5", "a\nb"]


@virtual
async def test_every_digit_is_as_it_came() -> None:
    it = engine()
    digits = b'{"n":123456789012345678901234567890,"x":1.50,"y":-0.0,"e":1E2}'
    await run(it, pipeline("p", [reads(RawTold(it.clock, [LATER, payloads(digits)]))]))

    text = await text_of(it.capture(CaptureRequest(seconds=2)))

    assert digits in text
    await it.close()


@virtual
async def test_what_is_nested_as_deep_as_messages_may_be_is_a_message() -> None:
    deep = b"[" * 128 + b"]" * 128

    [line, other] = await captured(raw(deep, b"[" + deep + b"]"))

    assert json.dumps(line["batch"][0]).replace(" ", "").encode() == deep
    assert other["raw"].encode() == b"[" + deep + b"]"


@virtual
async def test_what_is_told_of_a_message_is_captured_where_an_envelope_shows_it() -> None:
    def source(it: Engine) -> RawTold:
        made = RawTold(it.clock, [LATER, payloads(b"1", b"2")])
        made.describe = lambda origin: {"offset": origin}  # type: ignore[method-assign]
        return made

    assert [each["meta"] for each in await captured(source, is_told=True)] == [
        {"offset": 0},
        {"offset": 1},
    ]
    assert all("meta" not in each for each in await captured(source))


@virtual
async def test_batches_are_captured_ahead_of_the_envelope() -> None:
    lines = await captured(
        lambda it: Told(it.clock, [LATER, batches([{"n": 1}], [2, 3])]), is_told=True
    )

    assert [each["batch"] for each in lines] == [[{"n": 1}], [2, 3]]


@virtual
async def test_a_large_batch_is_a_line_as_any_other() -> None:
    large = [{"n": number, "text": "x" * 100} for number in range(5 * LARGE_BATCH)]
    message = {"list": [*range(100_000)], "text": "\x01é" * 600_000, "": {"a": [[]], "b": {}}}

    first, second = await captured(
        lambda it: Told(it.clock, [LATER, batches(large), 1, batches([message])])
    )

    assert first["batch"] == large
    assert second["batch"] == [message]


@virtual
async def test_a_large_payload_is_a_message_as_any_other() -> None:
    large = json.dumps([{"n": number} for number in range(100_000)], indent=1).encode()

    [line] = await captured(raw(large))

    assert line["batch"] == [json.loads(large)]


@virtual
async def test_only_what_arrives_at_pipelines_that_are_named_is_captured() -> None:
    it = engine()
    for id in ("one", "two"):
        source = Told(it.clock, [LATER, batches([id])])
        await run(it, pipeline(id, [reads(source)]))

    lines = await lines_of(it.capture(CaptureRequest(("two",), seconds=5)))

    assert [each["to"] for each in lines] == ["two.inputs[0]"]
    with pytest.raises(UnknownPipeline, match="nobody"):
        it.capture(CaptureRequest(("one", "nobody")))
    await it.close()


@virtual
async def test_the_first_line_tells_when_it_began_and_the_last_why_it_ended() -> None:
    it = engine()

    header, end = await said_by(it.capture(CaptureRequest(seconds=5, redact=["a.b"])))

    assert header == {
        "headrace": "capture",
        "version": 1,
        "started_at": "2026-01-01T00:00:00.000000+00:00",
        "pipelines": [],
        "redacted": ["a.b"],
    }
    assert end == {"at": 5.0, "end": "seconds", "records": 0, "dropped": 0}
    await it.close()


@virtual
async def test_it_ends_ahead_of_the_line_that_would_be_too_much() -> None:
    it = engine()
    script = [LATER, *[each for n in range(9) for each in (batches(["x" * 100]), 1)]]
    await run(it, pipeline("p", [reads(Told(it.clock, script))]))

    *_, last = lines = await said_by(it.capture(CaptureRequest(seconds=60, bytes=500)))

    assert (last["end"], last["records"]) == ("bytes", len(lines) - 2)
    assert 2 <= last["records"] <= 3
    await it.close()


@virtual
async def test_it_ends_with_the_server() -> None:
    it = engine()
    capture = it.capture(CaptureRequest())
    reading = asyncio.ensure_future(said_by(capture))
    await it.clock.sleep(1)

    it.hush()

    assert (await reading)[-1]["end"] == "stopped"
    await it.close()


@virtual
async def test_an_idle_one_says_now_and_then_that_it_is_there() -> None:
    it = engine()

    text = await text_of(it.capture(CaptureRequest(seconds=50)))

    assert text.splitlines()[1:-1] == [b""] * 3
    await it.close()


@virtual
async def test_a_few_are_under_way_and_each_gives_its_place_back() -> None:
    it = engine()
    captures = [it.capture(CaptureRequest()) for _ in range(AT_ONCE)]

    with pytest.raises(TooManyCaptures):
        it.capture(CaptureRequest())
    captures[0].close()
    it.capture(CaptureRequest()).close()
    await it.close()


async def slowly(capture: Capture, first: asyncio.Event) -> list[dict[str, Any]]:
    """Read the first part, and the rest when somebody says so."""
    parts = aiter(capture)
    text = await anext(parts)
    await first.wait()
    async for part in parts:
        text += part
    capture.close()
    return [json.loads(line) for line in text.splitlines() if line]


@virtual
async def test_a_slow_reader_loses_records_and_is_told_and_no_pipeline_waits() -> None:
    it = engine()
    payload = json.dumps("x" * (MOST_WAITING_BYTES // 10)).encode()
    script = [LATER, *[each for n in range(30) for each in (payloads(payload), 1)]]
    kept, resumed = Kept(it.clock), asyncio.Event()
    await run(it, pipeline("p", [reads(RawTold(it.clock, script))], [], [takes(kept)]))
    reading = asyncio.ensure_future(slowly(it.capture(CaptureRequest(seconds=60)), resumed))

    await it.clock.sleep(40)
    written = [*kept.times]
    resumed.set()
    lines = await reading

    assert written == [LATER + number for number in range(30)]  # each as it came
    records = [each for each in lines if "to" in each]
    told = [each["gap"] for each in lines if "gap" in each]
    assert 0 < len(records) < 30
    assert sum(told) == lines[-1]["dropped"] == 30 - len(records)
    await it.close()


@virtual
async def test_of_large_batches_one_waits_and_none_is_kept_for_who_reads_slowly() -> None:
    it = engine()
    large = [[number] * (LARGE_BATCH + 1) for number in range(4)]
    resumed = asyncio.Event()
    await run(it, pipeline("p", [reads(Told(it.clock, [LATER, batches(*large)]))]))
    reading = asyncio.ensure_future(slowly(it.capture(CaptureRequest(seconds=60)), resumed))

    await it.clock.sleep(5)
    resumed.set()
    lines = await reading

    assert [each["batch"][0] for each in lines if "to" in each] == [0]
    assert lines[-1]["dropped"] == 3
    await it.close()


@virtual
async def test_who_is_signed_out_gets_nothing_more() -> None:
    it = engine()
    resumed = asyncio.Event()
    source = Told(it.clock, [LATER, batches([1])])
    await run(it, pipeline("p", [reads(source)]))
    capture = it.capture(CaptureRequest(seconds=60))
    reading = asyncio.ensure_future(slowly(capture, resumed))
    await it.clock.sleep(5)

    capture.end("signed out")
    resumed.set()

    assert [each.get("end") for each in await reading] == [None, "signed out"]
    await it.close()


@virtual
async def test_one_that_nobody_reads_any_more_takes_nothing() -> None:
    it = engine()
    capture = it.capture(CaptureRequest())
    source = Told(it.clock, [LATER, batches([1]), 1, batches([2])])
    await run(it, pipeline("p", [reads(source)]))
    await it.clock.sleep(1.5)

    capture.close()
    await it.clock.sleep(5)

    assert [part async for part in capture][1:-1] == []
    await it.close()


@virtual
async def test_what_is_cut_off_while_it_is_recorded_is_counted_as_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("TURN_SECONDS", "LONGEST_SECONDS", "SHORTEST_SECONDS"):
        monkeypatch.setattr(turns, name, -1.0)  # over before it began: each batch waits
    it = engine()
    await it.clock.sleep(1)  # the turn of a pump that has not had one is over as well
    kept = Kept()
    source = Told(it.clock, [batches(*[[number] for number in range(50)])])
    capture = it.capture(CaptureRequest())
    await it.compile(pipeline("p", [reads(source)], [], [takes(kept)]))
    ended = running(it, "p")
    await it.clock.sleep(0)  # some are recorded

    await ended.stop(0)

    assert kept.batches == []
    assert {each.message: each.count for each in ended.failures.table.latest()} == {
        "stopped before everything that was accepted went through": 50
    }
    capture.end("stopped")
    assert 0 < len(await lines_of(capture)) < 50
    await it.close()


@virtual
async def test_a_large_post_that_nobody_reads_on_takes_no_room_from_the_next() -> None:
    it = engine()
    await it.load(program("- {id: p, inputs: [{type: http, max_queued_bytes: 500000}]}"))
    capture = it.capture(CaptureRequest())
    reading = aiter(capture)
    await anext(reading)  # and nothing more
    body = json.dumps([{"n": number} for number in range(30_000)]).encode()
    assert LARGE < len(body) < 500_000 < 2 * len(body)
    way_in = it.way_in("p")
    assert way_in is not None

    for _ in range(3):
        taken = way_in.take(body, None)
        assert not isinstance(taken, int)
        assert await taken == 30_000  # or there would be no room
        await it.clock.sleep(1)

    capture.close()
    await it.close()
