"""An OPC UA server dies and comes back: its nodes say so, and go on."""

from __future__ import annotations

import re
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from tests.clients import PATIENCE
from tests.promises import promise
from tests.server import serving
from tests.services.opcua import Opcua
from tests.whole.arrived import Printed
from tests.whole.figures import Figure
from tests.whole.linking import linked, statuses
from tests.whole.stores.kinds.kind import Json
from tests.whole.stores.outages import GOES_ON, Outage
from tests.whole.stores.told import reasons

pytestmark = [pytest.mark.long, pytest.mark.timed]

RATE = 20
"""How often a second a value changes."""
GAP = '"value":null,"status":"Bad'


class Plant(threading.Thread):
    """Writes 1000, 1001, ... into a variable of an OPC UA server, as long as it is there."""

    def __init__(self, server: Opcua) -> None:
        super().__init__(daemon=True)
        self._server, self._stopping = server, threading.Event()
        self.written = 1000  # other numbers than those that the server begins with
        self.start()

    def run(self) -> None:
        """Write."""
        while not self._stopping.wait(1 / RATE):
            with suppress(OSError, ValueError):  # it is away, or has just died
                self._server.tell(f"write('Temp', {float(self.written)})")
                self.written += 1

    def stop(self) -> None:
        """Write no more."""
        self._stopping.set()
        self.join(PATIENCE)


FROM_PLANT: Json = {
    "id": "from opcua",
    "inputs": [
        {
            "type": "opcua",
            "connection": "opcua",
            "nodes": [{"node_id": "ns=2;s=Temp"}],
            "publish_interval_ms": 100,
        }
    ],
    "transforms": [
        {
            "type": "map",
            "on_missing": "null",
            "mappings": [{"type": "copy", "from": "value", "as": "n"}],
        }
    ],
    "outputs": [{"type": "stdout"}],
}


@promise("opcua.input.away", "opcua.input.twice", "delivery.case.plant_back")
def test_a_plant_that_dies_is_read_again_when_it_is_back(tmp_path: Path, figure: Figure) -> None:
    with Opcua(tmp_path / "opcua") as server_of_plant:
        folder = tmp_path / "headrace"
        connection = {"type": "opcua", "endpoint": server_of_plant.url}
        with serving(folder, [FROM_PLANT], *linked(folder, {"opcua": connection})) as server:
            printed = Printed(server.out)["from opcua"]
            plant = Plant(server_of_plant)
            printed.wait_until_more(RATE)

            outage, last = Outage(server_of_plant), plant.written
            back = outage.ended()
            printed.wait_from(last + 1)
            took = min(when for n, when in printed.first.items() if n > last) - back
            plant.stop()

            figure("opcua: on after", took)
            told = reasons(server, "from opcua", "inputs")
            marks = len(re.findall(GAP, str(server.out)))
            figure("opcua", f"{plant.written} written, {printed.duplicates} twice, {told}")
            assert took < GOES_ON
            assert marks == 1
            assert len(told) == 1
            assert statuses(server) == {"from opcua": "running"}
