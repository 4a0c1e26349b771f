"""What tells a message on which a broker hangs up from a broker that goes away: on a model of one."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import cast

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.errors import BatchFailed
from headrace.connectors.mqtt.lonepublishing import LonePublishing
from headrace.connectors.mqtt.sink import Publisher
from headrace.connectors.mqtt.unconfirmedbatch import UnconfirmedBatch
from tests.virtual import virtual

CONFIRMED_AFTER = 0.01
Ends = Callable[[float, float], bool]
"""Returns whether a connection ends that has been open since a time, at another."""
Condition = Callable[[float], bool]
"""Returns whether something is so at a time. Units: seconds since the beginning."""


class Connection:
    """Confirms what is published, or ends."""

    def __init__(self, broker: Broker) -> None:
        self._broker, self._opened_at = broker, broker.clock.monotonic()
        self.unconfirmed: list[int] = []
        self.is_hung_up, self.has_taken = not broker.is_silent, broker.takes
        self._is_over = False

    @property
    def seconds(self) -> float:
        return self._broker.clock.monotonic() - self._opened_at

    @property
    def is_lost(self) -> bool:
        return self._is_over or self._broker.ends(self._opened_at, self._broker.clock.monotonic())

    def publish(self, payloads: Sequence[bytes]) -> None:
        self.unconfirmed = [0]
        self._is_over = self._broker.hangs_up_on(payloads[0])

    async def confirmed(self) -> None:
        await self._broker.clock.sleep(CONFIRMED_AFTER)
        if not self.is_lost:
            self.unconfirmed = []


class Broker:
    """Lets everybody in but while it is away, and hangs up on what is bad."""

    where = "broker"

    def __init__(
        self,
        bad: Collection[bytes] = (),
        ends: Ends = lambda since, now: False,
        away: Condition = lambda now: False,
        refuses: Condition = lambda now: False,
    ) -> None:
        self.clock = Clock(asyncio.get_running_loop())
        self.bad, self._ends, self._away, self._refuses = bad, ends, away, refuses
        self._began = self.clock.monotonic()
        self.tried: list[bytes] = []
        self.absences = 0
        self.is_silent = self.takes = False
        """Whether connections end because it says nothing; and whether it has what it does not confirm."""
        self._connection: Connection | None = None

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return self.clock.monotonic() - self._began

    def hangs_up_on(self, payload: bytes) -> bool:
        """Return whether it ends the connection over which this is published."""
        self.tried.append(payload)
        return payload in self.bad or self._refuses(self.now)

    def ends(self, since: float, now: float) -> bool:
        return self._ends(since - self._began, now - self._began)

    async def connected(self) -> Publisher:
        while self._away(self.now):
            self.absences += 1
            await self.clock.sleep(0.25)
        if self._connection is None or self._connection.is_lost:
            self._connection = Connection(self)
        return cast(Publisher, self._connection)

    async def publish(
        self, batch: UnconfirmedBatch, seconds: float | None = None
    ) -> BatchFailed | None:
        """Have all of a batch published alone; return why not all of it is told, if it is not."""
        batch.taken(len(batch.payloads))
        batch.cut_off = len(batch.left)
        try:
            async with self.clock.timeout(seconds):
                await LonePublishing(batch, self, self.clock).publish()
        except (BatchFailed, TimeoutError) as cause:
            return cause if isinstance(cause, BatchFailed) else BatchFailed("in no time", "unclear")
        return None


def lettered(letters: str) -> UnconfirmedBatch:
    """Return a batch of messages of a letter each."""
    return UnconfirmedBatch([each.encode() for each in letters])


@virtual
async def test_one_is_at_fault_after_three_losses_and_another_one_between_two_that_pass() -> None:
    broker, batch = Broker([b"c"]), lettered("abcdef")

    failed = await broker.publish(batch)

    assert (failed, batch.left, [*batch.refused]) == (None, [], [2])
    # The first loss of it does not count: the connection was a new one.
    assert b"".join(broker.tried) == b"ab" + b"c" + b"ccc" + b"d" + b"c" + b"ef"


@virtual
async def test_several_are_told_apart_from_each_other() -> None:
    broker, batch = Broker([b"b", b"c", b"f"]), lettered("abcdefghi")

    failed = await broker.publish(batch)

    assert (failed, batch.left, [*batch.refused]) == (None, [], [1, 2, 5])
    assert batch.done() == [0, 3, 4, 6, 7, 8]


@pytest.mark.parametrize("letters", ["x", "xa", "abx", "xxx"])
@virtual
async def test_where_too_few_others_pass_nobody_is_at_fault(letters: str) -> None:
    broker, batch = Broker([b"x"]), lettered(letters)

    failed = await broker.publish(batch)

    assert failed is not None
    assert (failed.failure, failed.refused, failed.was_alone) == ("unclear", {}, True)
    assert [letters[index] for index in failed.done] == [each for each in letters if each != "x"]


@virtual
async def test_a_broker_that_hangs_up_on_everything_for_a_while_costs_no_message() -> None:
    """As one whose disk is full, or that nobody may publish to for now."""
    for tenths in range(150):
        until = tenths / 10
        broker, batch = Broker(refuses=lambda now, until=until: now < until), lettered("abcd")

        failed = await broker.publish(batch)

        assert batch.refused == {}
        assert batch.left == [] if failed is None else failed.was_alone


@virtual
async def test_a_connection_that_ends_with_nothing_on_the_wire_makes_counting_begin_anew() -> None:
    broker = Broker([b"x"], ends=lambda since, now: 2.02 < since < 2.5 and now - since >= 0.5)
    batch = lettered("xab")

    failed = await broker.publish(batch)

    assert (failed, [*batch.refused]) == (None, [0])
    assert b"".join(broker.tried) == b"x" + b"xx" + b"x" + b"xxx" + b"a" + b"x" + b"b"


@virtual
async def test_connections_that_end_by_chance_cost_no_message() -> None:
    """Where a connection lasts about as long as a confirmation takes, as with two of one client id."""
    chance, lasting = Random(1), defaultdict[float, float](lambda: chance.expovariate(70))
    for _ in range(100):
        lasting.clear()
        broker, batch = (
            Broker(ends=lambda since, now: now - since >= lasting[since]),
            lettered("abcd" * 3),
        )

        await broker.publish(batch, 30)

        assert batch.refused == {}


@pytest.mark.parametrize("lasting", [0.005, 0.5, 0.999, 1.005, 1.5, 2.5])
@virtual
async def test_connections_that_end_by_themselves_cost_no_message(lasting: float) -> None:
    """As where another client takes the client id again and again."""
    broker, batch = Broker(ends=lambda since, now: now - since >= lasting), lettered("abcd" * 5)

    await broker.publish(batch, 600)

    assert batch.refused == {}


@virtual
async def test_an_absence_in_between_makes_suspicion_begin_anew() -> None:
    """The message is one that a broker is brought down by, for all that can be told."""
    broker = Broker([b"x"], away=lambda now: int(now / 1.5) % 2 == 1)
    batch = lettered("xabc")

    failed = await broker.publish(batch, 60)

    assert (failed is not None and str(failed), batch.refused) == ("in no time", {})


@pytest.mark.parametrize("how", ["is_silent", "takes"])
@virtual
async def test_a_broker_that_did_not_hang_up_or_had_the_message_says_nothing_of_it(
    how: str,
) -> None:
    broker, batch = Broker([b"x"]), lettered("xabc")
    setattr(broker, how, True)

    failed = await broker.publish(batch, 60)

    assert (failed is not None and str(failed), batch.refused) == ("in no time", {})
