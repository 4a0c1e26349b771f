"""What a server tells of its pipelines: how much went through, how much failed, and why."""

from __future__ import annotations

import re
from time import monotonic

from tests.clients import PATIENCE, Gone
from tests.server import Server


def failed(server: Server, pipeline: str) -> int:
    """Return how many batches the outputs of a pipeline could not write."""
    return int(server.metric("headrace_failures_total", pipeline=pipeline, stage="output"))


def wait_until_failed(server: Server, pipeline: str, count: int) -> None:
    """Ask until so many batches were not written."""
    until = monotonic() + PATIENCE
    while (found := failed(server, pipeline)) < count:
        if monotonic() > until:
            raise Gone(f"pipeline '{pipeline}' had {found} failures, not {count}")


def taken_in(server: Server, pipeline: str) -> int:
    """Return how many messages have been taken in."""
    return _messages(server, pipeline, "input")


def wait_until_taken(server: Server, pipeline: str, count: int) -> None:
    """Ask until so many messages have been taken in."""
    until = monotonic() + PATIENCE
    while (found := taken_in(server, pipeline)) < count:
        if monotonic() > until:
            raise Gone(f"pipeline '{pipeline}' has taken in {found} messages, not {count}")


def wait_until_through(server: Server, pipeline: str, count: int) -> None:
    """Ask until so many messages have been written, or have failed to be."""
    until = monotonic() + PATIENCE
    while (found := _through(server, pipeline)) != (count, 0):
        if monotonic() > until:
            on_their_way = f"{found[0]} messages in outputs, and {found[1]} batches on their way"
            raise Gone(f"pipeline '{pipeline}' has had {on_their_way}; {count} messages were sent")


def reasons(server: Server, pipeline: str, where: str = "outputs[0]") -> set[str]:
    """Return what failed somewhere in a pipeline, as the log has it; values and counts are left out."""
    place = rf"WARNING pipeline '{pipeline}' {re.escape(where)}: "
    lines = re.findall(rf"{place}(?:[\d,]+ more: )?(.*)", str(server.err))
    found = {line.partition("; it is ")[0] for line in lines}
    return {each for each in found if not any(each.startswith(f"{other}: ") for other in found)}


def _through(server: Server, pipeline: str) -> tuple[int, int]:
    in_flight = server.metric("headrace_batches_in_flight", pipeline=pipeline)
    return _messages(server, pipeline, "output"), int(in_flight)


def _messages(server: Server, pipeline: str, stage: str) -> int:
    return int(server.metric("headrace_messages_total", pipeline=pipeline, stage=stage))
