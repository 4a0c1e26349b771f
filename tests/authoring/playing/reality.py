"""Graphs of pipelines in both worlds: played, and run by the installed command on a real loop.

The real server is a process of its own with all the graphs of a round. What it wrote, warned of and
counted as failed is read from what it prints; its buckets are asked for as its time is over.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any
from urllib.parse import quote

from headrace.authoring.playing.played import END
from headrace.authoring.playing.player import play
from headrace.authoring.playing.scenario import Arriving, BucketLook, GivenArrival, Scenario
from headrace.compiler.component.pipelineconfig import LIST_OF
from headrace.compiler.jsontext import encode
from tests.authoring.playing.answering import replies_of
from tests.authoring.playing.drawngraphs import UNTIL, DrawnArrival, DrawnGraph
from tests.clients import Gone
from tests.server import Server, serving
from tests.stopwatch import Stopwatch

VOLATILE = {"received_at": "then", "at": "then", "remote_addr": "somewhere"}
"""What no two runs have in common, in an envelope or a failure."""
NEAR = 0.6
"""Seconds by which a batch may come later, on a machine that is busy: less than any window lasts."""
Batches = list[tuple[float, str]]
"""What a pipeline wrote: moments, and batches as text."""


@dataclass
class CameOf:
    """What came of one graph."""

    batches: dict[str, Batches] = field(default_factory=dict)
    """By pipeline; a batch as text tells 1 from 1.0, and has its fields in order."""
    failures: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often, by place and text."""
    warnings: Counter[tuple[str, str]] = field(default_factory=Counter)
    states: dict[str, Any] = field(default_factory=dict)
    """By bucket, what it held just before the end."""
    owed: dict[str, list[bytes]] = field(default_factory=dict)
    """By pipeline, what its broker still has: not acknowledged, in the order in which it arrived."""

    def content(self) -> dict[str, Any]:
        """Return all of it but the moments."""
        texts = {id: [text for _, text in each] for id, each in self.batches.items() if each}
        owed = {id: each for id, each in self.owed.items() if each}
        return {**vars(self), "batches": texts, "owed": owed}

    def late(self, played: CameOf) -> Iterator[tuple[str, float, float]]:
        """Yield what came at another moment than when the same was played: pipeline, moment, and that one.

        What is let go at the end has no moment in a play.
        """
        for id, batches in self.batches.items():
            for (at, _), (meant, _) in zip(batches, played.batches[id], strict=True):
                if abs(at - meant) > NEAR and not (meant == END and at > UNTIL - NEAR):
                    yield id, at, meant


def simulated(graph: DrawnGraph, *, is_ended: bool = True) -> CameOf:
    """Return what comes of a graph that is played; unless it ``is_ended``, up to its end."""
    program = graph.program()
    assert program is not None
    given = [GivenArrival(each.at, (each.to, 0), _arriving(each)) for each in graph.arrivals]
    looks = [BucketLook(UNTIL, bucket) for bucket in graph.buckets]
    played = play(program, Scenario([*given, *looks], UNTIL, replies=replies_of(program)))
    last = END if is_ended else UNTIL
    came = CameOf()
    for pipeline in graph.pipelines:
        written = played.written[pipeline["id"], 0]
        came.batches[pipeline["id"]] = [
            (moment, batch_text(json.loads(encode(batch), **EXACT)))
            for moment, batch in written
            if moment <= last
        ]
    came.failures.update((each.place, each.text) for each in played.failures if each.at <= last)
    came.warnings.update((each.place, each.text) for each in played.warnings if each.at <= last)
    came.states = {
        bucket: json.loads(encode(dict(held)), **EXACT)
        for (bucket, _), held in played.states.items()
    }
    for (id, _), line in played.acknowledged.items():
        done = {number for at, number in line if at <= last}
        arrived = [each.payload for each in graph.arrivals if each.to == id]
        came.owed[id] = [each for number, each in enumerate(arrived) if number not in done]
    return came


def _arriving(arrival: DrawnArrival) -> Arriving:
    payload = arrival.payload
    return Arriving(payload if isinstance(payload, bytes | list) else [payload])


EXACT: dict[str, Any] = {
    "parse_float": "float {}".format,
    "parse_int": "int {}".format,
}
"""Options with which JSON is read so that numbers stay as they are written."""


def batch_text(batch: Any) -> str:
    """Return a batch as text, without what no two runs have in common."""
    return json.dumps(_settled(batch))


def _settled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: VOLATILE.get(key) or _settled(each) for key, each in value.items()}
    return [*map(_settled, value)] if isinstance(value, list) else value


class Round:
    """Graphs that run on one real server, all at once."""

    def __init__(self, folder: Path, graphs: Sequence[DrawnGraph]) -> None:
        self._folder, self._graphs = folder, graphs
        self.late = 0.0
        """Seconds by which something was later than it was meant to be, at most."""

    def came(
        self,
        connections: Mapping[str, Any],
        feed: Callable[[Server, DrawnArrival], None],
        end: Callable[[Server], None],
        *,
        is_ended: bool = True,
    ) -> list[CameOf]:
        """Run them, ``feed`` them, have the server end; return what came of each, in their order.

        If the server does not end in order, not ``is_ended``, failures are those that it told of itself
        when its time was over.
        """
        self._folder.mkdir(parents=True)
        (self._folder / "config.connections.json").write_text(json.dumps(connections))
        config = {
            "state": {name: each for graph in self._graphs for name, each in graph.buckets.items()},
            "pipelines": [each for graph in self._graphs for each in graph.pipelines],
        }
        with serving(self._folder, config, "--log-format", "json") as server:
            began = self._fed(server, feed)
            states = {name: _held(server, name) for name in config["state"]}
            counted = server.get("/api/failures?limit=1000").value["failures"]
            end(server)
            printed, logged = server.out.all(), server.err.all()
        said = [each for each in map(json.loads, logged) if "place" in each]
        failures = (
            _added((_place(each), _text(each), each["count"]) for each in said if "count" in each)
            if is_ended
            else _added((_counted_place(each), each["message"], each["count"]) for each in counted)
        )
        warnings = _added((_place(each), _text(each), 1) for each in said if "count" not in each)
        return [self._of(each, began, printed, failures, warnings, states) for each in self._graphs]

    def _fed(self, server: Server, feed: Callable[[Server, DrawnArrival], None]) -> float:
        """Have everything arrive at its moment, wait until the time is over; return when it began."""
        arrivals = [each for graph in self._graphs for each in graph.arrivals]
        began, watch = datetime.now(UTC).timestamp(), Stopwatch()
        for arrival in sorted(arrivals, key=lambda each: each.at):
            self._wait(server, watch, arrival.at)
            feed(server, arrival)
            self.late = max(self.late, watch.elapsed - arrival.at)
        self._wait(server, watch, UNTIL)
        return began

    def _wait(self, server: Server, watch: Stopwatch, moment: float) -> None:
        """Let real time pass up to a moment, while the server goes on."""
        with suppress(TimeoutExpired):
            server.process.wait(max(0.0, moment - watch.elapsed))
            raise Gone("the server has ended")

    def _of(
        self,
        graph: DrawnGraph,
        began: float,
        printed: Sequence[str],
        failures: Told,
        warnings: Told,
        states: Mapping[str, Any],
    ) -> CameOf:
        """Return what is of one graph."""
        ids = [each["id"] for each in graph.pipelines]
        came = CameOf({id: [] for id in ids})
        for line in printed:
            told = json.loads(line, **EXACT)
            if told["pipeline"] in came.batches:
                moment = datetime.fromisoformat(told["ts"]).timestamp() - began
                came.batches[told["pipeline"]].append((moment, batch_text(told["batch"])))
        came.failures = Counter(
            {at: n for at, n in failures.items() if at[0].partition(".")[0] in ids}
        )
        came.warnings = Counter(
            {at: n for at, n in warnings.items() if at[0].partition(".")[0] in ids}
        )
        came.states = {bucket: states[bucket] for bucket in graph.buckets}
        return came


Told = Counter[tuple[str, str]]


def _added(told: Iterable[tuple[str, str, int]]) -> Told:
    added = Told()
    for place, text, count in told:
        added[place, text] += count
    return added


_MORE = re.compile(r"[\d,]+ more: ")


def _place(entry: Mapping[str, Any]) -> str:
    return f"{entry['pipeline']}.{entry['place']}"


def _text(entry: Mapping[str, Any]) -> str:
    """Return what an entry of the log says, without of what and how often."""
    said = entry["message"].removeprefix(f"pipeline '{entry['pipeline']}' {entry['place']}: ")
    return _MORE.sub("", said, count=1) if "count" in entry else said


def _counted_place(failure: Mapping[str, Any]) -> str:
    component = failure["component"]
    index = "" if component is None else f"[{component}]"
    return f"{failure['pipeline_id']}.{LIST_OF[failure['stage']]}{index}"


def _held(server: Server, bucket: str) -> Any:
    """Return what a bucket holds: names and values, by key."""
    told = json.loads(server.get(f"/api/state/{quote(bucket)}?limit=1000").body, **EXACT)
    return {each["key"]: each["values"] for each in told["entries"]}
