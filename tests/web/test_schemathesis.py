"""Requests that Schemathesis makes up from the served description: none may end in a fault of ours."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, assume, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from headrace.authoring.configfiles import catalogue
from headrace.compiler.buckets import Bounds
from headrace.compiler.clock import Clock
from headrace.compiler.runtime.engine import Engine
from headrace.web.app import Application
from headrace.web.asgi import AsgiMessage, Receive, Send
from headrace.web.files.reading import Files
from headrace.web.resources import ENDPOINTS
from headrace.web.resources.capture import CAPTURE_PATH
from headrace.web.resources.events import EVENTS_PATH
from headrace.web.service import Service
from tests.clients import PATIENCE
from tests.web.auth.people import ADMIN, basic, guarded
from tests.web.declaring import declare
from tests.web.jsonengine import JsonEngine

pytestmark = pytest.mark.long

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


class Hosted:
    """A server that lives as long as its host says: the engine belongs to the host's own loop."""

    def __init__(self, *, has_accounts: bool = False) -> None:
        self._has_accounts = has_accounts

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self._application(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        with tempfile.TemporaryDirectory() as folder:
            await self._serve(Path(folder), receive, send)

    async def _serve(self, folder: Path, receive: Receive, send: Send) -> None:
        components = catalogue()
        engine = JsonEngine(Engine(Clock(asyncio.get_running_loop())), components)
        declare(engine, {"machines": Bounds(), "0": Bounds(1, 60)})
        config = folder / "plant.json"  # to go back to, and where saves land
        config.write_text('{"pipelines": [], "state": {"machines": {}, "0": {}}}')
        files = Files(config=config)
        service = Service(engine, components, engine.clock, is_ready=True, files=files)
        if self._has_accounts:
            service.authenticator = guarded(engine.clock)
        self._application = Application(service)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await engine.close()
        await send({"type": "lifespan.shutdown.complete"})


SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


@schemathesis.hook
def before_load_schema(_: Any, raw_schema: dict[str, Any]) -> None:
    """Leave one kind of condition: collecting takes 4 GB and minutes with all, which hold each other."""
    schemas = raw_schema["components"]["schemas"]
    schemas["Condition"] = {"$ref": "#/components/schemas/ExistsCondition"}


schema = schemathesis.openapi.from_asgi("/api/openapi.json", Hosted())
guarded_schema = schemathesis.openapi.from_asgi("/api/openapi.json", Hosted(has_accounts=True))
# Thirty thousand requests, which are made up as the tests are collected: once is enough.
guarded_schema.config.phases.coverage.enabled = False

PROTECTED = {(row.method, row.path) for row in ENDPOINTS if row.access and not row.takes_anybody}


def posts_somewhere(case: Any) -> bool:
    """Return whether a dry run would really send a request to wherever a made-up url leads."""
    body = case.body if isinstance(case.body, dict) else {}
    transforms = body.get("transforms") if isinstance(body.get("transforms"), list) else []
    kinds = [each.get("type") for each in transforms if isinstance(each, dict)]
    return case.path.endswith("/dry-run") and "http" in kinds


def hasten(case: Any) -> None:
    """Have a sample, or a capture, wait for no longer than anybody does here."""
    if case.path == CAPTURE_PATH:
        asked = (case.query or {}).get("seconds")
        if asked is None or (str(asked).isdecimal() and int(asked) > 0):
            case.query = {**(case.query or {}), "seconds": 1}
    if case.path == "/api/inputs/sample" and isinstance(case.body, dict):
        asked = case.body.get("timeout_ms")
        if asked is None or type(asked) in (int, float):
            case.body["timeout_ms"] = 0 if asked is None else min(asked, 100)


@schema.parametrize()
@settings(max_examples=10, deadline=None, suppress_health_check=SLOW)
def test_no_request_ends_in_a_fault_of_the_server(case: Any) -> None:
    assume(not posts_somewhere(case))
    hasten(case)
    # A stream has no end of its own.
    response = case.call(timeout=0.1 if case.path == EVENTS_PATH else PATIENCE)

    case.validate_response(response, checks=CHECKS)


@guarded_schema.parametrize()
@settings(max_examples=3, deadline=None, suppress_health_check=SLOW)
def test_nor_does_one_of_somebody_who_is_signed_in(case: Any) -> None:
    assume(not posts_somewhere(case))
    hasten(case)
    response = case.call(
        headers=basic(ADMIN), timeout=0.1 if case.path == EVENTS_PATH else PATIENCE
    )

    case.validate_response(response, checks=CHECKS)


@guarded_schema.parametrize()
@settings(max_examples=3, deadline=None, suppress_health_check=SLOW)
def test_nobody_who_is_not_signed_in_is_told_more_than_that(case: Any) -> None:
    response = case.call(timeout=PATIENCE)

    case.validate_response(response, checks=CHECKS)
    if (case.method.upper(), case.path) in PROTECTED:
        assert response.status_code == 401
