"""Whether requests are wanted: a store that takes nothing changes nothing about it."""

from __future__ import annotations

from typing import get_args

import pytest
from msgspec.structs import replace

from headrace.compiler.runtime.monitoring.storedfigures import StoredState
from headrace.web.service import Service
from tests.web.storing import FIGURES, PARTS, Storing


@pytest.mark.parametrize("state", get_args(StoredState))
@pytest.mark.parametrize(("is_ready", "status"), [(True, 200), (False, 503)])
async def test_a_store_that_takes_nothing_turns_no_traffic_away(
    client, service: Service, state: StoredState, is_ready: bool, status: int
) -> None:
    parts = [replace(each, state=state) for each in PARTS]
    service.engine = Storing(service.clock, replace(FIGURES, state=state, parts=parts))
    service.is_ready = is_ready

    ready = await client.simulate_get("/readyz")
    live = await client.simulate_get("/livez")

    told = (await client.simulate_get("/api/stored")).json
    assert {each["state"] for each in told} == {state}
    assert (ready.status_code, live.status_code) == (status, 200)
