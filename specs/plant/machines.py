"""The machines of a plant: an OPC UA server with their variables, and the readings that go through them.

    python specs/plant/machines.py serve 4840
    python specs/plant/machines.py read opc.tcp://127.0.0.1:4840/

A plant has a folder with a machine in each object, and in that a variable for each quantity. The pressure
of `press-2` cannot be read now and then: what it has then is a bad status and no value.
"""

from __future__ import annotations

import asyncio
import logging
import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, groupby

from asyncua import Client, Server, ua

HOST = "127.0.0.1"
NAMESPACE = "urn:headrace:plant"
MACHINES = ("press-1", "press-2", "oven-1")
QUANTITIES = {
    "temperature": ua.VariantType.Double,
    "pressure": ua.VariantType.Float,
    "strokes": ua.VariantType.Int64,
}
"""What is measured of each: in °C, in bar, and counted since it was built."""
ROUNDS = 250
FIRST_STROKES = 9_007_199_254_740_993
"""A counter that has outgrown the doubles: every digit of it counts."""


@dataclass(frozen=True)
class Reading:
    """One value of one quantity of a machine; None when it cannot be read."""

    round: int
    machine: str
    quantity: str
    value: float | None

    @property
    def node(self) -> ua.NodeId:
        """The variable that has it: ``ns=2;s=press-1/temperature``."""
        return ua.NodeId(f"{self.machine}/{self.quantity}", 2)

    @property
    def stored(self) -> ua.DataValue:
        """What is written there."""
        now = datetime.now(UTC)
        if self.value is None:
            bad = ua.StatusCode(ua.UInt32(ua.StatusCodes.BadSensorFailure))
            return ua.DataValue(StatusCode=bad, SourceTimestamp=now)
        return ua.DataValue(ua.Variant(self.value, QUANTITIES[self.quantity]), SourceTimestamp=now)


def readings(rounds: int) -> Iterator[Reading]:
    """Yield so many rounds of readings, the same ones every time."""
    return chain.from_iterable(map(one_round, range(1, rounds + 1)))


def one_round(number: int) -> Iterator[Reading]:
    """Yield a reading of each variable; those of round 0 are what they have in the beginning.

    No two neighbours are the same, as a server tells nobody of what has not changed. All but the counters
    are whole sixty-fourths, so that their sums do not depend on an order.
    """
    for place, machine in enumerate(MACHINES):
        drift = (number % 2 + 4 * round(16 * math.sin(number / 20 + place))) / 64
        is_broken = machine == "press-2" and number % 10 == 5
        yield Reading(number, machine, "temperature", 40 + 15 * place + 6 * drift)
        yield Reading(number, machine, "pressure", None if is_broken else 5.5 + drift)
        yield Reading(number, machine, "strokes", FIRST_STROKES + number)


async def serve(port: int) -> None:
    """Run the server until it is ended."""
    server = Server()
    await server.init()
    server.set_endpoint(f"opc.tcp://{HOST}:{port}/")
    server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    await server.register_namespace(NAMESPACE)
    plant = await server.nodes.objects.add_folder(ua.NodeId("plant", 2), "2:plant")
    holders = {
        machine: await plant.add_object(ua.NodeId(machine, 2), f"2:{machine}")
        for machine in MACHINES
    }
    for each in one_round(0):
        value = ua.Variant(each.value, QUANTITIES[each.quantity])
        variable = await holders[each.machine].add_variable(each.node, f"2:{each.quantity}", value)
        await variable.set_writable()
    async with server:
        print(f"the plant is at opc.tcp://{HOST}:{port}/", flush=True)
        await asyncio.Event().wait()


async def send(some: Iterable[Reading], url: str) -> None:
    """Write readings in order, those of a round at once, and return when the server has all of them."""
    async with Client(url) as client:
        for _, of_a_round in groupby(some, lambda each: each.round):
            together = [*of_a_round]
            nodes = [client.get_node(each.node) for each in together]
            await client.write_values(nodes, [each.stored for each in together])


if __name__ == "__main__":
    logging.disable(logging.ERROR)
    verb, where = sys.argv[1:]
    asyncio.run(serve(int(where)) if verb == "serve" else send(readings(ROUNDS), where))
