"""The `http` input: its queue, its credential and what an envelope shows. The endpoint is the web's."""

import asyncio
import weakref

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.component.envelopes import Merge
from headrace.compiler.delivery import Acknowledgement, Batch, Several
from headrace.compiler.edges import AwaitingSink, InlineSink
from headrace.compiler.errors import BuildRefused, UnknownPipeline
from headrace.compiler.jsontext import Decoding
from headrace.compiler.largejson import DecodedBatch, decode_large
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.text.diagnostics import Fault
from headrace.connectors.http import HttpInput, Posts
from headrace.connectors.pipelineinput import PipelineInput
from headrace.operators.buffer import Buffer
from headrace.operators.filter import Filter
from headrace.operators.splitter import Splitter
from tests.doubles import StubContext, refusals
from tests.stand_ins import Kept, Slow, does, pipeline, run, takes
from tests.virtual import virtual

BEARER = {"type": "bearer", "token": "${TOKEN}"}
HEADER = {"type": "header", "name": "X-Key", "value": "${KEY}"}


def posts(options: dict, **secrets: str) -> Posts:
    """Return the built source, which is the ingress as well."""
    ctx = StubContext(secrets=secrets)
    source = HttpInput.load(options).source(ctx)
    assert ctx.ingress is source
    return source


def admitted(source: Posts, **headers: str) -> bool:
    """Return whether a post with these headers is admitted."""
    return source.admits(lambda name: headers.get(name.replace("-", "_")))


def test_without_auth_everybody_may_post():
    assert admitted(posts({}))


@pytest.mark.parametrize(
    ("authorization", "is_admitted"),
    [
        ("Bearer s3cret", True),
        ("bearer s3cret", True),
        ("BEARER s3cret", True),
        ("Bearer    s3cret", True),
        ("Bearer S3cret", False),
        ("Bearer s3cret ", True),
        ("\t Bearer s3cret \t", True),
        ("Bearer s3 cret", False),
        ("Bearer s3cret\xa0", False),
        ("Bearer s3cre", False),
        ("Bearer", False),
        ("Bearer ", False),
        ("Bearers3cret", False),
        ("Bearer\ts3cret", False),
        ("Basic s3cret", False),
        ("s3cret", False),
        ("", False),
        ("Bearer s3cret\u20ac", False),
        (None, False),
    ],
)
def test_a_bearer_token_is_exact_its_scheme_in_any_case_after_one_or_more_spaces(
    authorization, is_admitted
):
    source = posts({"auth": BEARER}, TOKEN="s3cret")

    headers = {} if authorization is None else {"authorization": authorization}
    assert admitted(source, **headers) is is_admitted


@pytest.mark.parametrize(
    ("value", "is_admitted"),
    [
        ("two words", True),
        (" \ttwo words\t ", True),
        ("two  words", False),
        ("Two words", False),
        ("two", False),
        ("", False),
        (None, False),
    ],
)
def test_a_header_has_a_name_in_any_case_and_an_exact_value(value, is_admitted):
    source = posts({"auth": HEADER}, KEY="two words")

    assert admitted(source, **({} if value is None else {"x_key": value})) is is_admitted


def test_a_credential_beyond_ascii_is_compared_as_it_came_over_the_wire():
    source = posts({"auth": HEADER}, KEY="schlüssel?")

    assert admitted(source, x_key="schlüssel?".encode().decode("latin-1"))
    assert not admitted(source, x_key="schlüssel?")
    assert not admitted(source, x_key="schlüssel?".encode().decode("latin-1")[:-1] + "\u20ac")
    assert not admitted(source, x_key="\ud800")


@pytest.mark.parametrize("missing", [{}, {"authorization": "Bearer wrong"}])
def test_a_missing_credential_is_compared_as_a_wrong_one_is(missing, monkeypatch):
    compared = []
    monkeypatch.setattr(
        "headrace.connectors.http.hmac.compare_digest", lambda *pair: compared.append(pair)
    )
    source = posts({"auth": BEARER}, TOKEN="s3cret")

    admitted(source, **missing)

    assert [wanted for _, wanted in compared] == [b"Bearer s3cret"]


@pytest.mark.parametrize(
    ("auth", "secrets", "fault"),
    [
        (
            BEARER,
            {"TOKEN": ""},
            Fault("empty-credential", "'token' resolves to nothing", path=("auth", "token")),
        ),
        (
            HEADER,
            {"KEY": ""},
            Fault("empty-credential", "'value' resolves to nothing", path=("auth", "value")),
        ),
        (
            {"type": "bearer", "token": ""},
            {},
            Fault("empty-credential", "'token' resolves to nothing", path=("auth", "token")),
        ),
        (
            BEARER,
            {"TOKEN": "s3cret\n"},
            Fault(
                "illegal-header",
                "'token' resolves to what no header can carry",
                expected="no line breaks or control characters, and no blanks around it",
                path=("auth", "token"),
            ),
        ),
        (
            HEADER,
            {"KEY": " blank"},
            Fault(
                "illegal-header",
                "'value' resolves to what no header can carry",
                expected="no line breaks or control characters, and no blanks around it",
                path=("auth", "value"),
            ),
        ),
        (
            HEADER,
            {},
            Fault(
                "unresolved-secret",
                "nothing resolves '${KEY}': looked in the environment and the secrets file",
                found="${KEY}",
                expected="an environment variable KEY or an entry in the --secrets file",
                path=("auth", "value"),
            ),
        ),
    ],
)
def test_a_credential_that_nobody_could_present_is_refused_at_build(auth, secrets, fault):
    ctx = StubContext(secrets=secrets)

    with pytest.raises(BuildRefused) as refused:
        HttpInput.load({"auth": auth}).source(ctx)

    assert refused.value.fault == fault
    assert ctx.ingress is None


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


def test_the_name_of_a_header_is_trimmed():
    source = posts({"auth": {**HEADER, "name": " X-Key "}}, KEY="k")

    assert admitted(source, x_key="k")


def test_a_full_queue_takes_nothing():
    source = posts({"capacity": 2})

    answers = [source.offer([n], None) for n in range(4)]

    assert answers == [True, True, False, False]


def test_a_pipeline_has_only_one_and_its_batches_may_be_large():
    assert HttpInput.is_only
    assert HttpInput().is_batching()
    assert HttpInput().capacity == 1024


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
    large = DecodedBatch(0, asyncio.get_running_loop())
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
