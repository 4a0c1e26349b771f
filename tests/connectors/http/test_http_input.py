"""The `http` input: its queue, its pipeline and what an envelope shows. The endpoint is the web's."""

import asyncio
import weakref

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.component.envelopes import Merge
from headrace.compiler.edges import AwaitingSink, InlineSink
from headrace.compiler.errors import UnknownPipeline
from headrace.compiler.runtime.engine import Engine
from headrace.connectors.http import HttpInput
from tests.doubles import refusals
from tests.http_sides import HEADER, posts
from tests.promises import promise
from tests.stand_ins import Kept, Slow, pipeline, run, takes
from tests.virtual import virtual


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"capacity": 0}, "capacity: expected an integer of at least 1, found 0"),
        (
            {"auth": {**HEADER, "name": "  "}},
            "auth.name: this must not be blank",
        ),
        (
            {"auth": {**HEADER, "name": "x key"}},
            'auth.name: "x key" cannot be the name of a header',
        ),
        (
            {"auth": {**HEADER, "name": "x-key\r\nx-other"}},
            'auth.name: "x-key\\r\\nx-other" cannot be the name of a header',
        ),
        *(
            (
                {"auth": {**HEADER, "name": name}},
                f"auth.name: an envelope shows the header '{name}', "
                "so it cannot carry a credential",
            )
            for name in (
                "content-type",
                "User-Agent",
                "x-request-id",
                "X-Correlation-Id",
                "traceparent",
            )
        ),
        ({"auth": {"type": "bearer"}}, "auth.token: this key is required"),
        (
            {"auth": {"type": "bearer", "token": 12345}},
            "auth.token: expected a string, usually a ${NAME} reference, found a number",
        ),
        ({"auth": {"type": "basic"}}, 'auth.type: unknown type "basic"'),
    ],
)
def test_what_it_refuses(options, refusal):
    assert refusals(HttpInput, options) == [refusal]


def test_a_full_queue_takes_nothing():
    source = posts({"capacity": 2})

    answers = [source.offer([n], None) for n in range(4)]

    assert answers == [True, True, False, False]


def test_a_pipeline_has_only_one_and_its_batches_may_be_large():
    assert HttpInput.is_only
    assert HttpInput().is_batching()
    assert HttpInput().capacity == 1024


def test_one_post_that_waits_is_not_behind_however_few_may() -> None:
    source = posts({"capacity": 3})
    told = [source.offer([number], None) and source.is_behind for number in range(3)]

    assert told == [False, True, True]


def test_a_source_that_is_stopped_says_so() -> None:
    source = posts({})
    before = source.is_stopped
    source.stop()

    assert (before, source.is_stopped, source.offer([1], None)) == (False, True, False)


def test_a_sixteenth_of_what_may_wait_is_to_be_caught_up_with_first() -> None:
    source = posts({"capacity": 64})
    told = []
    for number in range(6):
        source.offer([number], None)
        told.append(source.is_behind)

    assert told == [False] * 4 + [True] * 2


@virtual
async def test_posts_are_read_in_order_and_few_at_a_time():
    source = posts({})
    for n in range(40):
        source.offer([n], f"origin {n}")

    reader = source.read()
    chunks = [await anext(reader) for _ in range(3)]
    await reader.aclose()

    assert [len(chunk) for chunk in chunks] == [16, 16, 8]
    assert [arrival for chunk in chunks for arrival in chunk] == [
        ([n], f"origin {n}") for n in range(40)
    ]


@virtual
async def test_a_reader_that_waits_is_woken_by_a_post():
    source = posts({})
    reader = source.read()
    waiting = asyncio.ensure_future(anext(reader))
    await asyncio.sleep(0)

    source.offer(["a"], None)
    source.offer(["b"], None)

    assert await waiting == [(["a"], None), (["b"], None)]
    await reader.aclose()


@virtual
async def test_a_reader_that_was_cancelled_is_not_in_the_way():
    source = posts({})
    waiting = asyncio.ensure_future(anext(source.read()))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.sleep(0)

    assert source.offer(["a"], None)
    assert await anext(source.read()) == [(["a"], None)]


@virtual
async def test_when_stopped_it_refuses_and_hands_out_what_it_accepted():
    source = posts({})
    for n in range(20):
        source.offer([n], None)

    owes = source.stop()
    late = source.offer(["late"], None)
    read = [batch async for arrivals in source.read() for batch, _ in arrivals]

    assert (owes, late, read) == (True, False, [[n] for n in range(20)])


@virtual
async def test_a_reader_that_waits_ends_when_it_is_stopped():
    source = posts({})
    waiting = asyncio.ensure_future(anext(source.read(), "ended"))
    await asyncio.sleep(0)

    source.stop()

    assert await waiting == "ended"


@virtual
async def test_when_closed_it_forgets_what_nobody_will_read():
    source = posts({})
    source.offer([1], None)

    source.close()

    assert not source.offer([2], None)
    assert [arrivals async for arrivals in source.read()] == []


def test_it_asks_where_a_post_came_from_only_for_an_envelope():
    assert not posts({}).wants_origin
    assert posts({"envelope": {"type": "wrap"}}).wants_origin


def test_metadata_is_the_method_the_address_and_few_of_the_headers():
    headers = [
        (b"host", b"example.org"),
        (b"authorization", b"Bearer s3cret"),
        (b"cookie", b"session=1"),
        (b"content-type", b"application/json"),
        (b"user-agent", b"probe/1.0 \xff"),
        (b"x-request-id", b"r1"),
        (b"x-correlation-id", b"c1"),
        (b"x-correlation-id", b"c2"),
        (b"traceparent", "zürich".encode()),
    ]

    about = posts({}).describe(("POST", "10.0.0.7:50123", headers))

    assert about == {
        "method": "POST",
        "remote_addr": "10.0.0.7:50123",
        "headers": {
            "content-type": "application/json",
            "user-agent": "",  # not text
            "x-request-id": "r1",
            "x-correlation-id": "c2",  # a repeated header keeps the last
            "traceparent": "zürich",
        },
    }
    assert set(about) == set(HttpInput.attaches)


def test_a_post_whose_address_is_unknown_says_so():
    assert posts({}).describe(("POST", None, [])) == {
        "method": "POST",
        "remote_addr": None,
        "headers": {},
    }


@virtual
async def test_posts_run_through_a_pipeline_with_their_metadata():
    it, kept = Engine(Clock(asyncio.get_running_loop())), Kept()
    config = HttpInput.load({"envelope": {"type": "merge", "meta": "_m"}})
    assert isinstance(config.envelope, Merge)
    await run(it, pipeline("p", [config], [], [takes(kept)]))

    it.way_in("p").ingress.offer([{"n": 1}], ("POST", "10.0.0.7:1", [(b"x-request-id", b"r")]))
    await it.clock.sleep(1)

    assert kept.batches == [
        [
            {
                "n": 1,
                "_m": {
                    "pipeline": "p",
                    "input": "http",
                    "method": "POST",
                    "remote_addr": "10.0.0.7:1",
                    "headers": {"x-request-id": "r"},
                    "received_at": "2026-01-01T00:00:00.001000+00:00",
                },
            }
        ]
    ]
    await it.close()


@promise("http.input.waits", "http.input.beyond")
@virtual
async def test_what_waits_is_bounded_and_what_was_accepted_is_delivered_before_the_end():
    it = Engine(Clock(asyncio.get_running_loop()))
    slow = Slow(it.clock, 0.01)
    await run(it, pipeline("p", [HttpInput.load({"capacity": 50})], [], [takes(slow)]))
    ingress = it.way_in("p").ingress

    accepted = []
    for n in range(500):
        if ingress.offer([n], None):
            accepted.append([n])
        await asyncio.sleep(0)
    delivered_meanwhile = len(slow.batches)
    await it.dispose("p")

    # The queue, the chunk that the pump works on, and the window.
    assert len(accepted) - delivered_meanwhile <= 50 + 16 + 16
    assert len(accepted) < 500
    assert slow.batches == accepted


class Watched(list):
    """A batch whose end can be seen."""


@virtual
async def test_a_pipeline_lets_go_of_its_last_batch_when_it_is_through():
    class Awaiting(AwaitingSink):
        async def write(self, batch) -> None:
            await it.clock.sleep(1)
            self.length = len(batch)

    class Inline(InlineSink):
        def write(self, batch) -> None:
            self.length = len(batch)

    it = Engine(Clock(asyncio.get_running_loop()))
    sinks = [Awaiting(), Inline()]
    listener = it.observe()
    await run(it, pipeline("p", [HttpInput.load({})], [], [takes(sink) for sink in sinks]))
    batch = Watched([{"n": 1}, {"n": 2}])
    watched = weakref.ref(batch)

    it.way_in("p").ingress.offer(batch, None, 10)
    del batch
    await it.clock.sleep(5)

    assert [sink.length for sink in sinks] == [2, 2]
    assert watched() is None
    listener.close()
    await it.close()


@virtual
async def test_posts_are_queued_while_the_outputs_come_up():
    class Late(Kept):
        async def start(self) -> None:
            if it.clock.monotonic() < 20:
                raise OSError("connection refused")

    it, late = Engine(Clock(asyncio.get_running_loop())), Late()
    await run(it, pipeline("p", [HttpInput.load({"capacity": 2})], [], [takes(late)]))
    (figures,) = await it.pipelines()
    ingress = it.way_in("p").ingress

    accepted = [ingress.offer([n], None) for n in range(3)]
    await it.clock.sleep(60)

    assert figures.status == "starting"
    assert accepted == [True, True, False]
    assert late.batches == [[0], [1]]
    await it.close()


@virtual
async def test_the_way_in_is_gone_as_soon_as_the_pipeline_is_to_end():
    it = Engine(Clock(asyncio.get_running_loop()))
    slow = Slow(it.clock, 1.0)
    await run(it, pipeline("p", [HttpInput.load({})], [], [takes(slow)]))
    ingress = it.way_in("p").ingress
    taken = ingress.offer([1], None)
    await it.clock.sleep(0.1)

    ending = asyncio.ensure_future(it.dispose("p"))
    await asyncio.sleep(0)

    with pytest.raises(UnknownPipeline):
        it.way_in("p")
    assert (taken, ingress.offer([2], None), slow.batches) == (True, False, [])
    await ending
    assert slow.batches == [[1]]
