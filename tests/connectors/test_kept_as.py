"""The names under which things are kept on the disk: under another one nobody would take them up."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.compiler.component.catalogue import scan
from headrace.compiler.component.durableinput import DurableInput
from headrace.compiler.component.families import Component
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.component.queuedoutput import QueuedOutput
from headrace.compiler.runtime.keptparts import kept_parts

CATALOGUE = scan("headrace.operators", "headrace.connectors")
KEEPING = {
    (each.family, each.kind): each
    for each in CATALOGUE
    if issubclass(each, DurableInput | QueuedOutput)
}
KEPT_AS: dict[tuple[str, str], tuple[dict[str, Any], str]] = {
    ("input", "http"): ({}, "http"),
    ("input", "dummy"): ({"duration": 1}, "dummy"),
    ("input", "nats"): ({"connection": "bus", "subject": "a.*"}, "nats bus a.*"),
    ("input", "redis"): ({"connection": "bus", "channel": "c"}, "redis bus c"),
    ("input", "mqtt"): ({"connection": "bus", "topic": "a/#"}, "mqtt bus a/#"),
    ("input", "opcua"): ({"connection": "plc", "nodes": [{"node_id": "i=1"}]}, "opcua plc"),
    ("output", "http"): ({"url": "https://ann:s3cret@h:1/a?key=s3cret"}, "http https://h:1/a"),
    ("output", "nats"): ({"connection": "bus", "subject": "s"}, "nats bus s"),
    ("output", "redis"): ({"connection": "bus", "channel": "c"}, "redis bus c"),
    ("output", "mqtt"): ({"connection": "bus", "topic": "a/b"}, "mqtt bus a/b"),
    ("output", "kafka"): ({"connection": "bus", "topic": "t"}, "kafka bus t"),
    ("output", "postgres"): ({"connection": "db", "table": "t"}, "postgres db t"),
    ("output", "clickhouse"): ({"connection": "db", "table": "t"}, "clickhouse db t"),
    ("output", "file"): (
        {"connection": "disk", "path": "a/b", "rotate": {"max_rows": 1}},
        "file disk a/b",
    ),
    ("output", "s3"): (
        {"connection": "lake", "prefix": "p", "rotate": {"max_rows": 1}},
        "s3 lake p",
    ),
}
"""Of each component that keeps something: some of its options, and the name. None may ever change."""


def test_each_component_that_keeps_something_is_here() -> None:
    assert KEPT_AS.keys() == KEEPING.keys()


@pytest.mark.parametrize("which", KEPT_AS, ids="-".join)
def test_what_is_kept_of_it_has_this_name_for_ever(which: tuple[str, str]) -> None:
    options, name = KEPT_AS[which]
    component: Component = KEEPING[which].load(options)

    assert isinstance(component, DurableInput | QueuedOutput)
    assert component.kept_as() == name


def test_of_equal_ones_the_later_have_their_number_in_front() -> None:
    options, name = KEPT_AS["output", "redis"]
    redis = KEEPING["output", "redis"].load({**options, "queue": True})
    source = KEEPING["input", "http"].load({"durable": True})

    parts = [*kept_parts("p", PipelineConfig(id="p", inputs=(source,), outputs=(redis,) * 3))]

    assert parts == [
        ("p", "http", "journal"),
        ("p", name, "queue"),
        ("p", f"#2 {name}", "queue"),
        ("p", f"#3 {name}", "queue"),
    ]
