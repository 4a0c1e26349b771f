"""What the server says of itself to whoever is signed in."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from headrace.web.app import Application
from headrace.web.auth.access import Access
from headrace.web.auth.credentials import Verified
from headrace.web.service import Service
from tests.web.auth.people import ADMIN, Issued, basic, guarded
from tests.web.exchange import Exchange


async def test_it_tells_version_start_and_limits_as_described(client, engine) -> None:
    described = (await client.simulate_get("/api/openapi.json")).json

    told = (await client.simulate_get("/api/server")).json

    Draft202012Validator({**described, "$ref": "#/components/schemas/ServerDto"}).validate(told)
    assert [*told] == ["version", "started_at", "writes_files", "sign_in", "limits"]
    assert told["version"] == version("headrace")
    assert 0 <= engine.clock.millis() - told["started_at"] < 60_000
    assert told["writes_files"] is True
    assert told["sign_in"] == {"password": False, "token": False}
    assert (
        told["limits"].keys()
        == described["components"]["schemas"]["ServerLimits"]["properties"].keys()
    )
    assert told["limits"]["body_bytes"] == 2 * 1024 * 1024
    assert min(told["limits"].values()) > 0


@pytest.mark.parametrize("takes_tokens", [False, True])
async def test_it_tells_how_one_signs_in(service: Service, takes_tokens: bool) -> None:
    tokens: Any = Issued({"good": Verified("ann", Access.ADMIN, 9e9)}) if takes_tokens else None
    service.authenticator = guarded(service.clock, tokens=tokens)
    headers = [(name.lower().encode(), text.encode()) for name, text in basic(ADMIN).items()]
    asked = Exchange(Application(service), "GET", "/api/server", headers=headers)
    await asked.run()

    assert asked.json["sign_in"] == {"password": True, "token": takes_tokens}
