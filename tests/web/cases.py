"""A case for each answer of the table of endpoints."""

from __future__ import annotations

from headrace.compiler.buckets import Bounds
from headrace.web.service import Service
from tests.web.declaring import declare

POST = {"id": "post", "inputs": [{"type": "http", "capacity": 1}]}


def declare_machines(service: Service) -> None:
    """Have one bucket, with an entry in it."""
    for bucket in declare(service.engine, {"machines": Bounds(500, 60)}):
        bucket.merge({"m1": {"mode": "auto"}})
