"""The disk is full: what would have to be kept is refused until there is room, and all else goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stopwatch import Stopwatch
from tests.whole.arrived import Printed
from tests.whole.durable.customers import PIPELINE, wait_until
from tests.whole.durable.lives import Lives, pipeline
from tests.whole.figures import Figure
from tests.whole.gate import Gate
from tests.whole.linking import statuses
from tests.whole.stores.cramped import Disk

MEBIBYTES = 48
"""The store keeps twenty in reserve."""
KEPT = range(300)
"""Posted while there is room, with an output that waits."""
MOST_SECONDS = 3.0
"""From when there is room until posts are taken."""
PLAIN = {"id": "plain", "inputs": [{"type": "http"}], "outputs": [{"type": "stdout"}]}


@pytest.mark.skipif("sys.platform != 'linux'", reason="needs namespaces")
@pytest.mark.parametrize("mebibytes", [pytest.param(MEBIBYTES, id=f"tmpfs of {MEBIBYTES} MiB")])
def test_posts_are_refused_until_there_is_room(
    tmp_path: Path, gate: Gate, figure: Figure, mebibytes: int
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    disk = Disk(data, mebibytes)
    config = [pipeline(outputs=[{**gate.output(PIPELINE), "retry": {}}]), PLAIN]
    lives = Lives(tmp_path, config, disk=disk)
    taken = gate.taken[PIPELINE]
    with lives.life() as server:
        client = server.client()
        assert {client.post(PIPELINE, {"n": number}).status for number in KEPT} == {202}

        disk.fill(server.process)
        refused = client.post(PIPELINE, {"n": 1000})
        figure("refused with", f"{refused.status} {refused.body.decode()}")
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert "nothing was taken" in refused.body.decode()
        assert server.get("/readyz").status == 200
        assert server.get("/api/stored").value[0]["state"] == "full"

        assert {client.post("plain", {"n": number}).status for number in range(50)} == {202}
        Printed(server.out)["plain"].wait_for(range(50))
        gate.is_open.set()
        taken.wait_for(KEPT)  # what is kept leaves all the same
        assert client.post(PIPELINE, {"n": 1001}).status == 503
        assert statuses(server) == {PIPELINE: "running", "plain": "running"}

        disk.clear(server.process)
        watch = Stopwatch()
        wait_until(lambda: client.post(PIPELINE, {"n": 2000}).status == 202, "a post is taken")
        figure("taken again after", f"{watch.seconds:.2f} s")
        assert watch.seconds < MOST_SECONDS
        taken.wait_for([2000])
        assert server.stop() == 0
    assert taken.counts.keys() == {*KEPT, 2000}
    assert taken.duplicates == 0
    said = str(server.err)
    assert said.count("ERROR the store takes nothing") == 1
    assert said.count("the store takes entries again") == 1
