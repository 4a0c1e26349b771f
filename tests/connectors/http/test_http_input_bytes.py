"""How many bytes wait in an `http` input, and until when those of a large post count."""

import asyncio

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.delivery import Acknowledgement, Batch, Several
from headrace.compiler.edges import AwaitingSink, InlineSink
from headrace.compiler.jsontext import Decoding
from headrace.compiler.largejson import LARGE, DecodedBatch, decode_large
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.wayin import LEAST_COUNTED, LargePosts, NoRoom, WayIn
from headrace.connectors.http import HttpInput
from headrace.connectors.http.source import Posts
from headrace.connectors.pipelineinput import PipelineInput
from headrace.operators.buffer import Buffer
from headrace.operators.filter import Filter
from headrace.operators.splitter import Splitter
from tests.doubles import StubContext, refusals
from tests.http_sides import posts
from tests.stand_ins import Kept, Slow, does, pipeline, run, takes
from tests.virtual import virtual


def test_bytes_that_wait_are_bounded_and_one_post_alone_may_have_any() -> None:
    source = posts({"max_queued_bytes": 100})

    alone = source.offer(["a"], None, 1000)
    beside = source.offer(["b"], None, 1)

    assert (alone, beside, source.has_room_for(1)) == (True, False, False)


@pytest.mark.parametrize(
    ("options", "most"), [({}, 64 * 1024 * 1024), ({"max_queued_bytes": 5}, 5)]
)
def test_the_bound_on_bytes_is_met_to_the_byte(options, most) -> None:
    source = posts(options)

    assert source.offer(["a"], None, 1)
    assert not source.offer(["b"], None, most)
    assert source.offer(["c"], None, most - 1)
    assert not source.offer(["d"], None, 1)


@pytest.mark.parametrize(
    ("message", "counted"),
    [(b"{}", LEAST_COUNTED), (b"1", LEAST_COUNTED), (b'"%b"' % (b"x" * 61), 64)],
)
async def test_a_message_counts_as_what_it_takes_at_least(message, counted) -> None:
    some = b"[" + b",".join([message] * 8) + b"]"
    way_in = way_into(posts({"max_queued_bytes": 8 * counted * 2 + 10}))
    large = b"[" + b",".join([message] * (LARGE // len(message))) + b"]"

    taken = [way_in.take(some, None), way_in.take(some, None)]
    with pytest.raises(NoRoom, match="too many bytes are queued"):
        way_in.take(b"[1]", None)
    another = way_into(posts({"max_queued_bytes": len(large) + 1}))
    alone = await another.take(large, None)

    assert taken == [8, 8]
    assert alone == LARGE // len(message)
    assert not another.ingress.has_room_for(2)


def way_into(source: Posts) -> WayIn:
    return WayIn("p", source, LargePosts(), Clock(asyncio.get_running_loop()))


def test_null_is_no_bound_on_bytes_and_is_kept_when_it_is_written() -> None:
    config = HttpInput.load({"max_queued_bytes": None})
    source = config.source(StubContext())

    assert all(source.offer(["a"], None, 2**40) for _ in range(3))
    assert config.dump()["max_queued_bytes"] is None
    assert "max_queued_bytes" not in HttpInput.load({}).dump()


@pytest.mark.parametrize("value", [0, -1, 1.5, "5"])
def test_a_bound_on_bytes_is_an_integer_from_1_or_null(value) -> None:
    (refusal,) = refusals(HttpInput, {"max_queued_bytes": value})

    assert refusal.startswith("max_queued_bytes: ")


async def test_bytes_count_until_a_post_is_taken_and_those_of_a_large_one_until_it_is_gone() -> (
    None
):
    source = posts({"max_queued_bytes": 100})
    large = DecodedBatch(asyncio.get_running_loop())
    large += [1, 2]
    source.offer(["a"], None, 50)
    source.offer(large, None, 50)
    del large
    reader = source.read()

    taken = [await anext(reader)]
    at_first = source.has_room_for(1)
    taken.append(await anext(reader))
    room = [at_first, source.has_room_for(50), source.has_room_for(51)]
    del taken
    for _ in range(5):
        await asyncio.sleep(0)

    assert room == [False, True, False]
    assert source.has_room_for(100)
    await reader.aclose()


def raising(batch: Batch) -> list[Batch]:
    """Fail with the batch in hand, as a script does."""
    raise ValueError(f"{len(batch)} messages are too many")


WAYS_OUT = {
    "written": lambda: ([], Kept()),
    "all of it is filtered": lambda: ([does(lambda batch: [])], Kept()),
    "the batch fails": lambda: ([does(raising)], Kept()),
    "an output fails": lambda: ([], Kept(fails=True)),
    "an output that awaits fails": lambda: (
        [],
        Slow(clock(), 1, [OSError("gone"), OSError("gone")]),
    ),
    "an output never comes back for as long as it takes": lambda: ([], Slow(clock(), 3000)),
    "a buffer holds parts for an hour": lambda: (
        [Splitter(out_size=1), Buffer(seconds=3600, max_messages=10_000)],
        Forgetting(),
    ),
}
"""What becomes of a large post: the steps it meets, and the output behind them."""


def clock() -> Clock:
    """Return the clock of the running loop."""
    return Clock(asyncio.get_running_loop())


class Forgetting(InlineSink):
    """Writes, and keeps nothing."""

    def write(self, batch: Batch) -> None:
        self.length = len(batch)


@pytest.mark.parametrize("way", WAYS_OUT)
@virtual
async def test_the_bytes_of_a_large_post_count_no_more_whatever_became_of_it(way) -> None:
    it = Engine(clock())
    steps, sink = WAYS_OUT[way]()
    listener = it.observe()
    await run(it, pipeline("p", [HttpInput.load(BOUND)], steps, [takes(sink)]))
    ingress = it.way_in("p").ingress

    posted = [await large_post(), await large_post()]
    accepted = [ingress.offer(posted.pop(), None, LENGTH) for _ in range(2)]
    await it.clock.sleep(4 * 3600)
    if isinstance(sink, Kept | Slow):
        sink.batches.clear()
    await settled()

    assert accepted == [True, False]
    assert ingress.has_room_for(LENGTH)
    assert ingress.offer(await large_post(), None, LENGTH)
    listener.close()
    await it.close()


@virtual
async def test_the_bytes_of_a_large_post_that_another_pipeline_reads_count_no_more() -> None:
    it, sinks = Engine(clock()), [Forgetting(), Forgetting()]
    await run(it, pipeline("above", [HttpInput.load(BOUND)], [], [takes(sinks[0])]))
    below = PipelineInput.load({"upstream": "above"})
    await run(
        it, pipeline("below", [below], [Buffer(seconds=60, max_messages=10_000)], [takes(sinks[1])])
    )
    ingress = it.way_in("above").ingress

    ingress.offer(await large_post(), None, LENGTH)
    await it.clock.sleep(120)
    await settled()

    assert [sink.length for sink in sinks] == [MESSAGES, MESSAGES]
    assert ingress.has_room_for(LENGTH)
    await it.close()


@virtual
async def test_a_pipeline_deleted_while_a_large_post_waits_lets_go_of_it_and_its_next_one_is_empty() -> (
    None
):
    class Late(Kept):
        async def start(self) -> None:
            if len(lives) == 1:
                raise OSError("connection refused")

    it, lives, gone = Engine(clock()), [1], []
    config = pipeline("p", [HttpInput.load(BOUND)], [], [takes(Late())])
    await run(it, config)
    batch = await large_post()
    it.way_in("p").ingress.offer(batch, None, LENGTH)
    told = Acknowledgement(lambda: gone.append("gone"))
    batch.there.debt = Several((batch.there.debt, told))
    del batch

    await it.dispose("p")
    await settled()
    lives.append(2)
    await run(it, pipeline("p", [HttpInput.load(BOUND)], [], [takes(Late())]))

    assert gone == ["gone"]
    assert it.way_in("p").ingress.has_room_for(LENGTH)
    await it.close()


LENGTH = 1000
MESSAGES = 40
BOUND = {"max_queued_bytes": LENGTH}


async def large_post() -> DecodedBatch:
    """Return messages as they are decoded in slices, one of which is large itself."""
    text = b"[" + b'{"n":1,"rows":[1,[2],{"a":3}]},' * (MESSAGES - 1) + b'{"s":"x"}]'
    return await decode_large(text, Decoding())


async def settled() -> None:
    """Let what was let go of be cut down."""
    for _ in range(200):
        await asyncio.sleep(0)


async def test_a_large_post_counts_until_its_messages_are_written_whatever_was_made_of_them() -> (
    None
):
    class Hanging(AwaitingSink):
        async def write(self, batch) -> None:
            await released.wait()

    it, released = Engine(Clock(asyncio.get_running_loop())), asyncio.Event()
    hot = Filter.load({"Numeric": {"field": "n", "operator": "greater_than", "value": 0}})
    await run(it, pipeline("p", [HttpInput.load(BOUND)], [hot], [takes(Hanging())]))
    ingress = it.way_in("p").ingress
    assert ingress.offer(await large_post(), None, LENGTH)
    await settled()

    while_written = ingress.has_room_for(1)
    released.set()
    await settled()

    assert (while_written, ingress.has_room_for(LENGTH)) == (False, True)
    await it.close()


async def test_a_large_post_of_which_the_envelope_leaves_nothing_counts_no_more() -> None:
    it, kept = Engine(Clock(asyncio.get_running_loop())), Kept()
    listens = HttpInput.load({**BOUND, "envelope": {"type": "merge"}})
    await run(it, pipeline("p", [listens], [], [takes(kept)]))
    ingress = it.way_in("p").ingress
    numbers = await decode_large(b"[" + b"1," * 5000 + b"1]", Decoding())
    assert ingress.offer(numbers, None, LENGTH)
    del numbers

    await settled()

    assert (ingress.has_room_for(LENGTH), kept.batches) == (True, [])
    await it.close()
