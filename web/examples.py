"""Requests that work as they stand: what the description shows of each body, and a test sends.

Sent in the order of the table to a server that asks nobody who they are, each is answered with success:
what one names, one before it has made. Where a server has accounts, `LOGIN` needs one like it.
"""

from __future__ import annotations

from typing import Any

CAPTURED = {"pipeline_id": "press-line", "connection_id": "disk"}
"""What stands in a path, by parameter."""

_READINGS: list[dict[str, Any]] = [
    {"machine": "press", "celsius": 81.5},
    {"machine": "oven", "celsius": 20},
]
_HOT: dict[str, Any] = {
    "type": "filter",
    "Numeric": {"field": "celsius", "operator": "greater_than", "value": 80},
}

PIPELINE = {
    "id": CAPTURED["pipeline_id"],
    "inputs": [{"type": "http"}],
    "transforms": [
        _HOT,
        {
            "type": "map",
            "mappings": [
                {
                    "type": "constant",
                    "as": "site",
                    "value": {"type": "text", "value": "north"},
                }
            ],
        },
    ],
    "outputs": [{"type": "stdout"}],
}
MESSAGES = _READINGS
SCRIPT_DRY_RUN = {
    "source": {"type": "inline", "code": "msg.hot = msg.celsius > 80;\nemit(msg);\n"},
    "messages": _READINGS,
}
PIPELINE_DRY_RUN = {
    "messages": _READINGS,
    "transforms": [
        _HOT,
        {
            "type": "reducer",
            "group_by": ["machine"],
            "aggregations": [{"function": "max", "field": "celsius", "as": "peak"}],
        },
    ],
}
SAMPLE = {"input": {"type": "dummy", "duration": 1}, "max_messages": 1, "timeout_ms": 2000}
CONNECTION = {"id": CAPTURED["connection_id"], "type": "file", "root": "data"}
SAVE = {"name": "plant.yaml"}
LAYOUT = {
    "version": 1,
    "pipelines": {CAPTURED["pipeline_id"]: {"x": 40, "y": 80}},
    "edges": [{"from": CAPTURED["pipeline_id"], "to": "alarms"}],
}
LOGIN = {"username": "ann", "password": "correct horse battery staple"}
TOKEN_LOGIN = {"token": "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl"}
