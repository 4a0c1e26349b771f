"""What the servers of these tests run: a plant in small, where something of everything happens.

Presses report over HTTP, means and alarms are made of that, orders fail for want of a field.
"""

from __future__ import annotations

from typing import Any

HTTP = {"type": "http"}


def reads(*upstreams: str) -> list[dict[str, Any]]:
    """Return the inputs of a pipeline that reads others."""
    return [{"type": "pipeline", "upstream": upstream} for upstream in upstreams]


def above(field: str, value: float) -> dict[str, Any]:
    """Return a filter."""
    return {
        "type": "filter",
        "Numeric": {"field": field, "operator": "greater_than", "value": value},
    }


PIPELINES: list[dict[str, Any]] = [
    {
        "id": "press-readings",
        "inputs": [{**HTTP, "envelope": {"type": "merge"}}],
        "state": {"bucket": "machines", "key": "press"},
        "transforms": [
            above("temp", -40),
            {"type": "remember", "remember": [{"field": "temp", "as": "last_temp"}]},
        ],
        "outputs": [],
    },
    {
        "id": "press-means",
        "inputs": reads("press-readings"),
        "transforms": [
            {"type": "buffer", "seconds": 5, "max_messages": 5000},
            {
                "type": "reducer",
                "group_by": ["press"],
                "aggregations": [
                    {"function": "count", "as": "readings"},
                    {"function": "avg", "field": "temp", "as": "mean"},
                ],
            },
        ],
        "outputs": [{"type": "file", "connection": "archive", "path": "means"}],
    },
    {
        "id": "press-alarms",
        "inputs": reads("press-readings"),
        "state": {"bucket": "machines", "key": "press"},
        "transforms": [
            above("temp", 88),
            {"type": "recall", "recall": ["last_temp"], "on_missing": "null"},
        ],
        "outputs": [{"type": "file", "connection": "archive", "path": "alarms"}],
    },
    {
        "id": "line-pressure",
        "inputs": [HTTP],
        "transforms": [
            {
                "type": "map",
                "mappings": [{"type": "cast", "from": "bar", "to": "float", "as": "bar"}],
            }
        ],
        "outputs": [],
    },
    {
        "id": "pressure-windows",
        "inputs": reads("line-pressure"),
        "transforms": [
            {"type": "buffer", "size": 50, "seconds": 10},
            {
                "type": "reducer",
                "aggregations": [{"function": "avg", "field": "bar", "as": "mean"}],
            },
        ],
        "outputs": [{"type": "stdout"}],
    },
    {
        "id": "heartbeat",
        "inputs": [{"type": "dummy", "duration": 1, "amplitude": 10, "period": 30}],
        "transforms": [],
        "outputs": [],
    },
    {
        "id": "fusion",
        "inputs": reads("press-alarms", "pressure-windows", "heartbeat"),
        "transforms": [{"type": "buffer", "size": 200, "seconds": 3}],
        "outputs": [{"type": "file", "connection": "archive", "path": "fusion"}],
    },
    {
        "id": "orders",
        "inputs": reads("press-readings"),
        "transforms": [
            {
                "type": "map",
                "on_missing": "error",
                "mappings": [{"type": "copy", "from": "order.id", "as": "order"}],
            }
        ],
        "outputs": [{"type": "file", "connection": "archive", "path": "orders"}],
    },
    {
        "id": "audit",
        "inputs": reads("orders", "fusion"),
        "transforms": [],
        "outputs": [{"type": "file", "connection": "archive", "path": "audit"}],
    },
    {
        "id": "readings-copy",
        "inputs": reads("press-readings"),
        "transforms": [],
        "outputs": [{"type": "file", "connection": "archive", "path": "copy"}],
    },
]
CONNECTIONS = {"archive": {"type": "file", "root": "data"}}
CONFIG: dict[str, Any] = {
    "state": {"machines": {"max_keys": 500, "idle_timeout_secs": 86400}},
    "pipelines": PIPELINES,
}
IDS = [pipeline["id"] for pipeline in PIPELINES]
