"""What a sample reads of a topic: over a session that ends with it."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.compiler.edges import Arrival
from headrace.connectors.mqtt.source import MqttSource, Receipt, Subscriber

STALL_SECONDS = 0.25
"""How long nothing comes from a broker that waits for a word about what it has sent."""


class MqttSample(MqttSource):
    """Reads one topic, and acknowledges nothing that the broker does not wait for.

    A broker lets a client hold only so many messages unacknowledged, and does not tell how many. What is
    acknowledged then is a copy that was made for this session: nobody else gets or loses any.
    """

    _owed: Sequence[Receipt] = ()

    async def next(self, client: Subscriber) -> Sequence[Arrival]:
        """Return what has come, and have the broker go on where it waits for us."""
        clock = self._ctx.clock
        while True:
            try:
                async with clock.timeout(STALL_SECONDS if self._owed else None):
                    taken = await super().next(client)
            except TimeoutError:
                self.acknowledge(self._owed)
                self._owed = ()
            else:
                self._owed = [*self._owed, *(origin for _, origin in taken)]
                return taken
