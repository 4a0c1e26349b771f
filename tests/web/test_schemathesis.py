"""Requests that Schemathesis makes up from the served description: none may end in a fault of ours."""

from __future__ import annotations

import asyncio
from typing import Any

import schemathesis
from hypothesis import HealthCheck, assume, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from headrace.compiler.buckets import Bounds
from headrace.compiler.clock import Clock
from headrace.compiler.runtime.engine import Engine
from headrace.web.app import Application
from headrace.web.asgi import Message, Receive, Send
from headrace.web.events import EVENTS_PATH
from headrace.web.reading import catalogue
from headrace.web.service import Service

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


class Hosted:
    """A server that lives as long as its host says: the engine belongs to the host's own loop."""

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self._application(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        engine = Engine(Clock(asyncio.get_running_loop()))
        engine.buckets.declare({"machines": Bounds(), "0": Bounds(1, 60)})
        service = Service(engine, catalogue(), engine.clock, is_ready=True)
        self._application = Application(service)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await engine.close()
        await send({"type": "lifespan.shutdown.complete"})


SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]

schema = schemathesis.openapi.from_asgi("/api/openapi.json", Hosted())


def posts_somewhere(case: Any) -> bool:
    """Return whether a dry run would really send a request to wherever a made-up url leads."""
    body = case.body if isinstance(case.body, dict) else {}
    transforms = body.get("transforms") if isinstance(body.get("transforms"), list) else []
    kinds = [each.get("type") for each in transforms if isinstance(each, dict)]
    return case.path.endswith("/dry-run") and "http" in kinds


@schema.parametrize()
@settings(max_examples=10, deadline=None, suppress_health_check=SLOW)
def test_no_request_ends_in_a_fault_of_the_server(case: Any) -> None:
    assume(not posts_somewhere(case))
    # A stream has no end of its own.
    response = case.call(timeout=0.1 if case.path == EVENTS_PATH else 10)

    case.validate_response(response, checks=CHECKS)
