"""A thousand nodes change ten times a second, and nobody takes it: memory stays, and the newest is kept."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import pytest

from tests.promises import promise
from tests.server import serving
from tests.services.opcua import Opcua
from tests.whole.figures import Figure
from tests.whole.gate import Gate
from tests.whole.linking import linked, statuses
from tests.whole.memory import MIB, peak, resident

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif("sys.platform != 'linux'", reason="needs /proc"),
]

NODES, ROUNDS, EACH_SECONDS = 1000, 40, 0.1
"""How many nodes there are, how often each changes, and what is between its changes."""
GROWTH = 64 * MIB

PIPELINE = {
    "id": "p",
    "inputs": [
        {
            "type": "opcua",
            "connection": "plant",
            "browse": {"root": "ns=2;s=Many"},
            "publish_interval_ms": 100,
            "queue_size": 2 * ROUNDS,  # so that the server itself drops nothing
            "max_batch": 100,
        }
    ],
    "transforms": [{"type": "map", "mappings": [{"type": "copy", "from": "value", "as": "n"}]}],
}


@promise("opcua.input.waits", "opcua.input.beyond")
def test_memory_is_bounded_and_what_is_dropped_is_the_oldest_and_counted(
    tmp_path: Path, gate: Gate, figure: Figure
) -> None:
    with Opcua(tmp_path / "plant") as plant:
        plant.tell(f"add_many({NODES})")
        folder = tmp_path / "headrace"
        options = linked(folder, {"plant": {"type": "opcua", "endpoint": plant.url}})
        with serving(folder, [{**PIPELINE, "outputs": [gate.output("p")]}], *options) as server:
            gate.wait_until_asked("p")
            before, began = resident(server), monotonic()

            changes = plant.tell(f"change({NODES}, {ROUNDS}, {EACH_SECONDS})")

            took, grown = monotonic() - began, peak(server) - before
            gate.is_open.set()
            taken = gate.taken["p"]
            taken.wait_for_count(ROUNDS, NODES)  # the last change of every node
            dropped = int(server.metric("headrace_messages_skipped_total", pipeline="p"))
            figure("changes a second", round(changes / took))
            figure("MiB more", round(grown / MIB))
            figure("changes", f"{changes}, {taken.counts.total()} taken, {dropped} dropped")
            assert grown < GROWTH
            assert 0 < dropped == NODES + changes - taken.counts.total()
            assert statuses(server) == {"p": "running"}
