"""Pipelines from one topic into all targets, their outage, and what has become of the messages."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic

from tests.clients import Gone
from tests.server import Server
from tests.services.halting import halted
from tests.whole.arrived import Arrived
from tests.whole.bridging.targets import TOGETHER, Target
from tests.whole.brokers.kinds.every import KAFKA
from tests.whole.brokers.kinds.kind import Json
from tests.whole.linking import linked

RATE = 50
"""Messages a second."""
LOOKS_SECONDS = 0.5
PATIENT = 120.0
"""Seconds within which everything is written after an outage: 36 until it is tried, then the backlog."""


def pipeline(target: Target, topic: str) -> Json:
    """Return a pipeline from a topic into a target."""
    reading = KAFKA.input("kafka", topic, group=f"{topic}-{target.name}", max_batch=TOGETHER)
    return {"id": target.name, "inputs": [reading], "outputs": [target.output(retry={})]}


def options(folder: Path, source: object, targets: Sequence[Target]) -> list[str]:
    """Write the connections; return the options of a server."""
    return linked(folder, {"kafka": KAFKA.connection(source), **connections(targets)})


def connections(targets: Sequence[Target]) -> dict[str, Json]:
    """Return the connections to those that are reached by one, by name."""
    named = {each.name: each.connection() for each in targets}
    return {name: found for name, found in named.items() if found is not None}


def leave(targets: Sequence[Target]) -> None:
    """Have all of them go away, at once."""
    with ThreadPoolExecutor(len(targets)) as beside:
        [*beside.map(lambda each: each.leave(), targets)]


def come_back(server: Server, targets: Sequence[Target]) -> None:
    """Have all of them come back, at once; who forgets what nobody hears while ``server`` is halted."""
    with ThreadPoolExecutor(len(targets)) as beside:
        [*beside.map(_return, [each for each in targets if not each.forgets])]
        with halted(server.process.pid):
            [*beside.map(_return, [each for each in targets if each.forgets])]


def _return(target: Target) -> None:
    target.come_back()


def pause(seconds: float) -> None:
    """Let time pass."""
    threading.Event().wait(seconds)


def figure_of(server: Server, name: str, **labels: str) -> int:
    """Return the sum of what `/metrics` tells under a name with these labels."""
    wanted, found = {f'{key}="{value}"' for key, value in labels.items()}, 0.0
    for line in server.get("/metrics").body.decode().splitlines():
        said, _, figure = line.rpartition(" ")
        family, _, described = said.partition("{")
        if family == name and wanted <= set(described.removesuffix("}").split(",")):
            found += float(figure)
    return int(found)


def written(server: Server, pipeline: str) -> int:
    """Return how many messages a pipeline has written, or lost."""
    return figure_of(server, "headrace_messages_total", pipeline=pipeline, stage="output")


def wait_until_written(server: Server, pipeline: str, count: int, seconds: float = PATIENT) -> None:
    """Ask until so many messages were written."""
    until = monotonic() + seconds
    while (found := written(server, pipeline)) < count:
        if monotonic() > until:
            raise Gone(f"'{pipeline}' has written {found} messages and not {count}")
        pause(LOOKS_SECONDS)


def wait_for_all(target: Target, wanted: Collection[int], seconds: float = PATIENT) -> Arrived:
    """Look until all of these messages are there; return what is."""
    until = monotonic() + seconds
    while missing := (arrived := target.arrived()).missing(wanted):
        if monotonic() > until:
            raise Gone(f"{target.name}: {len(missing)} are missing: {missing[:20]}")
        pause(LOOKS_SECONDS)
    return arrived


def late(arrived: Arrived) -> int:
    """Return how many messages came first when a later one was there already."""
    before, found = -1, 0
    for number in arrived.first:
        found += number < before
        before = max(before, number)
    return found


def errors(server: Server, pipeline: str) -> list[str]:
    """Return what the log says of a pipeline as an error."""
    return re.findall(rf"ERROR pipeline '{re.escape(pipeline)}' (.*)", str(server.err))
