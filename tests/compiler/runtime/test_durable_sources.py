"""A durable input that reads a broker: stored, then acknowledged, then written."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.edges import Source
from headrace.compiler.errors import BuildRefused, Refused, Unreachable
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.monitoring.links import LinkState
from headrace.compiler.text.diagnostics import Fault
from headrace.connectors.dummy import DummyInput
from tests.compiler.runtime.connected import Broker
from tests.compiler.runtime.durable import Gated, engine_on, failing_commits, kept
from tests.compiler.runtime.lasting import Batched, Described, Forgetful, Lasting, lasting
from tests.stand_ins import pipeline, run, running, takes
from tests.virtual import virtual


def broker(kind: type[Broker] = Broker, *faults: object) -> Broker:
    """Return a broker on the running loop."""
    return kind(Clock(asyncio.get_running_loop()), *faults)


def link(it: Engine) -> LinkState:
    """Return how the link of the input is."""
    [reader] = running(it, "p").parts.readers
    return reader.link(it.clock.millis())


def numbers(first: int, behind: int) -> list[bytes]:
    """Return payloads."""
    return [b"%d" % n for n in range(first, behind)]


@virtual
async def test_a_message_is_acknowledged_when_it_is_stored_and_not_when_it_is_written(
    tmp_path: Path,
) -> None:
    source, out = broker(), Gated(is_open=False)
    async with engine_on(tmp_path, lasting(source, to=out)) as it:
        source.send(*numbers(0, 3))
        await it.clock.sleep(1)
        before = await kept(it)
        assert source.log == ["connects", *(f"acknowledges {n}" for n in range(3))]
        out.gate.set()
        await it.clock.sleep(1)
        after = await kept(it)

    assert (before, after) == ({("p", False): 3}, {("p", False): 0})
    assert out.messages == [0, 1, 2]
    assert source.log[-2:] == ["stops", "closes"]


@virtual
async def test_what_was_not_written_comes_again_before_what_arrives_then(tmp_path: Path) -> None:
    first, second, stuck, out = broker(), broker(), Gated(is_open=False), Gated()
    async with engine_on(tmp_path, lasting(first, to=stuck)) as it:
        first.send(*numbers(0, 500))
        await it.clock.sleep(1)
    async with engine_on(tmp_path, lasting(second, to=out)) as it:
        second.send(*numbers(500, 600))
        await it.clock.sleep(5)
        left = await kept(it)

    assert out.messages == [*range(600)]
    assert left == {("p", False): 0}


@virtual
async def test_batches_are_made_of_what_is_stored(tmp_path: Path) -> None:
    source, out = broker(), Gated()
    source.max_batch = 100
    async with engine_on(tmp_path, lasting(source, to=out)) as it:
        source.send(*numbers(0, 1000))
        await it.clock.sleep(1)

    assert out.messages == [*range(1000)]
    assert max(map(len, out.batches)) == 100
    assert len(out.batches) < 100


@virtual
async def test_where_it_came_from_and_when_outlasts_a_restart(tmp_path: Path) -> None:
    source, stuck, out, wrap = (
        broker(Described),
        Gated(is_open=False),
        Gated(),
        {"type": "wrap"},
    )
    async with engine_on(tmp_path, lasting(source, to=stuck, envelope=wrap)) as it:
        source.send(b'{"n": 1}')
        await it.clock.sleep(0)
        arrived = it.clock.timestamp()
        await it.clock.sleep(3600)
    async with engine_on(tmp_path, lasting(broker(Described), to=out, envelope=wrap)) as it:
        await it.clock.sleep(5)

    [message] = out.messages
    assert message["value"] == {"n": 1}
    about = {"pipeline": "p", "input": "lasting", "topic": "t0", "received_at": arrived}
    assert message["_meta"] == about


@virtual
async def test_payloads_are_read_as_the_config_says_now(tmp_path: Path) -> None:
    source, stuck, out = broker(), Gated(is_open=False), Gated()
    async with engine_on(tmp_path, lasting(source, to=stuck, format="lines")) as it:
        source.send(b"1.10\n2\n", b"no json\n")
        await it.clock.sleep(1)
    async with engine_on(tmp_path, lasting(broker(), to=out, format="ndjson")) as it:
        await it.clock.sleep(5)
        [figures] = await it.pipelines()
        left = await kept(it)

    assert out.messages == [1.1, 2]
    assert figures.skipped == 1
    assert left == {("p", False): 0}


@pytest.mark.parametrize(
    ("kind", "payload", "options"),
    [(Batched, [], {}), (Broker, b"n\n", {"format": "csv"})],
    ids=["no messages", "a header alone"],
)
@virtual
async def test_what_had_no_message_as_it_arrived_is_none_that_is_skipped(
    tmp_path: Path, kind: type[Broker], payload: Any, options: dict[str, str]
) -> None:
    source, stuck, out = broker(kind), Gated(is_open=False), Gated()
    source.max_batch = 1
    async with engine_on(tmp_path, lasting(source, to=stuck, **options)) as it:
        source.send(payload)
        await it.clock.sleep(0)
    async with engine_on(tmp_path, lasting(broker(kind), to=out, **options)) as it:
        await it.clock.sleep(5)
        [figures] = await it.pipelines()
        left = await kept(it)

    assert (out.messages, figures.skipped) == ([], 0)
    assert [each for each in figures.losses if each.count] == []
    assert left == {("p", False): 0}


@virtual
async def test_what_an_input_drops_is_skipped_and_lost(tmp_path: Path) -> None:
    class Dropping(Lasting, kind="dropping"):
        def source(self, ctx: Context) -> Source:
            ctx.expect_losses("dropped")
            ctx.drop("dropped some", 3)
            return super().source(ctx)

    async with engine_on(tmp_path, lasting(broker(), to=Gated(), kind=Dropping)) as it:
        [figures] = await it.pipelines()

    assert (figures.skipped, sum(figures.failures.values())) == (3, 0)
    found = [(each.stage, each.component, each.reason, each.count) for each in figures.losses]
    assert ("input", 0, "dropped", 3) in found


@virtual
async def test_what_arrives_as_messages_is_kept_as_well(tmp_path: Path) -> None:
    source, stuck, out = broker(Batched), Gated(is_open=False), Gated()
    large = [{"n": n} for n in range(5_000)]
    async with engine_on(tmp_path, lasting(source, to=stuck)) as it:
        source.send([1.5, "two"], large)
        await it.clock.sleep(1)
    async with engine_on(tmp_path, lasting(broker(Batched), to=out)) as it:
        await it.clock.sleep(5)

    assert out.batches == [[1.5, "two"], large]


@virtual
async def test_generated_messages_are_kept(tmp_path: Path) -> None:
    stuck, out = Gated(is_open=False), Gated()

    def config(to: Gated):
        both = [DummyInput.load({"duration": 1, "durable": True, "payload": "text"})] * 2
        return pipeline("p", both, [], [takes(to)])

    async with engine_on(tmp_path, config(stuck)) as it:
        await it.clock.sleep(10.5)
        before = await it.stored()
    assert before is not None
    assert sorted((each.target, each.entries) for each in before.parts) == [
        ("#2 dummy", 10),
        ("dummy", 10),
    ]
    async with engine_on(tmp_path, config(out)) as it:
        await it.clock.sleep(0.5)

    assert len(out.messages) == 20


@virtual
async def test_what_there_is_no_room_for_waits_at_the_broker(tmp_path: Path) -> None:
    source, out = broker(), Gated(is_open=False)
    options = {"durable": {"max_bytes": 2_000}}
    async with engine_on(tmp_path, lasting(source, to=out, **options)) as it:
        source.send(*(b'"%d%b"' % (n, b"x" * 100) for n in range(100, 200)))
        await it.clock.sleep(5)
        told = len(source.log)
        assert 5 < told < 20
        assert link(it).state == "waiting"
        assert "bytes are in use (max_bytes)" in (link(it).why or "")
        out.gate.set()
        await it.clock.sleep(60)
        assert link(it).state == "up"

    assert [message[:3] for message in out.messages] == [str(n) for n in range(100, 200)]
    assert source.log[1:101] == [f"acknowledges {n}" for n in range(100)]


@virtual
async def test_no_more_is_read_than_is_being_stored_and_what_came_meanwhile(tmp_path: Path) -> None:
    source, out = broker(), Gated(is_open=False)
    options = {"durable": {"max_bytes": 2_000}}
    async with engine_on(tmp_path, lasting(source, to=out, **options)) as it:
        for n in range(100):
            source.send(b'"%d%b"' % (n, b"x" * 100))
            await it.clock.sleep(0.1)
        [stored] = (await kept(it)).values()

        assert 5 < stored < 20
        assert source.unread == 100 - stored - 2


@virtual
async def test_what_is_larger_than_all_that_may_be_kept_is_skipped(tmp_path: Path) -> None:
    source, out = broker(), Gated()
    options = {"durable": {"max_bytes": 200}}
    async with engine_on(tmp_path, lasting(source, to=out, **options)) as it:
        source.send(b"1", b'"%b"' % (b"x" * 1_000), b"2")
        await it.clock.sleep(1)
        [figures] = await it.pipelines()

    assert out.messages == [1, 2]
    assert figures.skipped == 1
    assert [(each.reason, each.count) for each in figures.losses if each.count] == [("error", 1)]
    assert source.log[1:4] == [f"acknowledges {n}" for n in range(3)]


@virtual
async def test_nothing_is_acknowledged_that_could_not_be_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = failing_commits(monkeypatch)
    source, out = broker(), Gated()
    async with engine_on(tmp_path, lasting(source, to=out)) as it:
        fails[0] = True
        source.send(*numbers(0, 300))
        await it.clock.sleep(3)
        assert link(it).state == "waiting"
        assert "disk I/O error" in (link(it).why or "")
        assert (source.log, out.messages) == (["connects"], [])
        fails[0] = False
        await it.clock.sleep(5)

    assert out.messages == [*range(300)]
    assert source.log[1:301] == [f"acknowledges {n}" for n in range(300)]


@virtual
async def test_a_connection_that_is_lost_is_made_again(tmp_path: Path) -> None:
    source, out = broker(Broker, None, Unreachable("it does not answer")), Gated()
    async with engine_on(tmp_path, lasting(source, to=out)) as it:
        source.send(b"1")
        await it.clock.sleep(1)
        source.lose(Unreachable("it hung up"))
        await it.clock.sleep(0.01)
        assert (link(it).state, link(it).why) == ("down", "it hung up")
        await it.clock.sleep(5)
        source.send(b"2")
        await it.clock.sleep(1)
        assert link(it).state == "up"

    assert out.messages == [1, 2]


@virtual
async def test_who_is_turned_down_refuses_the_pipeline_and_leaves_nothing(tmp_path: Path) -> None:
    refusing = broker(Broker, BuildRefused(Fault("turned-away", "wrong password")))
    out = Gated()
    async with engine_on(tmp_path) as it:
        with pytest.raises(Refused, match="wrong password"):
            await run(it, lasting(refusing, to=out))
        good = broker()
        await run(it, lasting(good, to=out))
        good.send(b"1")
        await it.clock.sleep(1)

    assert out.messages == [1]


@virtual
async def test_a_stop_stores_what_had_arrived(tmp_path: Path) -> None:
    class Late(Broker):
        """Hands out what it has when it is to stop, and not before."""

        def stop(self) -> bool:
            self.send(*numbers(0, 700))
            super().stop()
            return False

    stuck, out = Gated(is_open=False), Gated()
    async with engine_on(tmp_path, lasting(broker(Late), to=stuck)):
        pass
    async with engine_on(tmp_path, lasting(broker(), to=out)) as it:
        await it.clock.sleep(5)

    assert out.messages == [*range(700)]


@virtual
async def test_a_pipeline_that_is_deleted_works_off_what_it_can(tmp_path: Path) -> None:
    source, out = broker(), Gated(is_open=False)
    async with engine_on(tmp_path, lasting(source, to=out)) as it:
        source.send(*numbers(0, 700))
        await it.clock.sleep(0.01)
        it.clock.call_later(1, out.gate.set)
        await it.dispose("p")
        left = await kept(it)

    assert out.messages == [*range(700)]
    assert left == {}
    assert "forgets" in source.log


@virtual
async def test_what_can_not_be_stored_at_the_end_is_counted_unless_it_comes_again(
    tmp_path: Path,
) -> None:
    lost = {}
    for kind in (Forgetful, Forgetful.__base__):
        source, out = broker(), Gated(is_open=False)
        options = {"durable": {"max_bytes": 400}}
        folder = tmp_path / kind.kind
        folder.mkdir()
        async with engine_on(folder, lasting(source, to=out, kind=kind, **options)) as it:
            source.send(*(b'"%b"' % (b"x" * 100) for _ in range(10)))
            await it.clock.sleep(1)
            running = it.graph.pipelines["p"]
            [stored] = (await kept(it)).values()
        lost[kind.kind] = sum(each.count for each in running.failures.losses), stored

    assert lost == {"forgetful": (8, 2), "lasting": (0, 2)}


@virtual
async def test_where_it_came_from_is_not_asked_for_where_no_envelope_shows_it(
    tmp_path: Path,
) -> None:
    class Silent(Broker):
        def describe(self, origin: object) -> dict[str, object]:
            raise AssertionError("nobody wants to know")

    source, out = broker(Silent), Gated()
    async with engine_on(tmp_path, lasting(source, to=out)) as it:
        source.send(*numbers(0, 3))
        await it.clock.sleep(1)

    assert out.messages == [0, 1, 2]
