"""Who follows the events and asks for it is told what others change, and who did."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import falcon.testing
import pytest

from headrace.compiler.component.catalogue import Catalogue
from headrace.web.app import Application
from tests.web.auth.people import ADMIN, READER, basic, guarded
from tests.web.conftest import waited_for
from tests.web.exchange import Exchange
from tests.web.resources.plant import FILE, EventClient, Plant, ingest

DISK = {"id": "other", "type": "file", "root": "x"}


@pytest.fixture
async def plant(tmp_path: Path, components: Catalogue) -> AsyncIterator[Plant]:
    plant = Plant(tmp_path, components)
    plant.write(FILE, {"disk": {"type": "file", "root": "data"}})
    engine = await plant.start()
    application = Application(plant.service)
    async with falcon.testing.ASGIConductor(waited_for(application)) as client:
        plant.client = client
        yield plant
    await engine.close()


def told(what: str, id: str | None = None, by: str | None = None) -> tuple[str, object]:
    return "changed", {"what": what, "id": id, "by": by}


async def test_what_is_created_deleted_saved_and_arranged_is_told_in_order(plant: Plant) -> None:
    listener = await EventClient(Application(plant.service), "named=changed").begin()
    client = plant.client

    await client.simulate_post("/api/pipelines", json=ingest("new"))
    await client.simulate_delete("/api/pipelines/b")
    await client.simulate_post("/api/connections", json=DISK)
    await client.simulate_delete("/api/connections/other")
    await client.simulate_put("/api/layout", json={"pipelines": {"a": {"x": 1, "y": 2}}})
    await client.simulate_post("/api/config/save", json={"name": "plant.json"})

    assert [await listener.next() for _ in range(6)] == [
        told("pipelines", "new"),
        told("pipelines", "b"),
        told("connections", "other"),
        told("connections", "other"),
        told("layout"),
        told("config"),
    ]
    await listener.leave()


async def test_a_revert_may_have_changed_everything(plant: Plant) -> None:
    listener = await EventClient(Application(plant.service), "named=changed").begin()

    assert (await plant.revert()).status_code == 204

    everything = ("pipelines", "connections", "layout", "config")
    assert [await listener.next() for _ in everything] == [told(what) for what in everything]
    await listener.leave()


async def test_what_is_refused_has_changed_nothing(plant: Plant) -> None:
    listener = await EventClient(Application(plant.service), "named=changed").begin()
    client = plant.client

    refused = [
        await client.simulate_post("/api/pipelines", json=ingest("a")),
        await client.simulate_delete("/api/pipelines/nobody"),
        await client.simulate_post("/api/connections", json={"id": "x"}),
        await client.simulate_delete("/api/connections/nobody"),
        await client.simulate_put("/api/layout", json={"pipelines": []}),
        await client.simulate_post("/api/config/save", json={"name": "../x.json"}),
    ]
    plant.write("{")
    refused.append(await plant.revert())
    await client.simulate_delete("/api/pipelines/c")

    assert [each.status_code for each in refused] == [409, 404, 422, 404, 422, 422, 500]
    assert await listener.next() == told("pipelines", "c")
    await listener.leave()


async def test_who_may_read_is_told_who_did_it(plant: Plant) -> None:
    plant.service.authenticator = guarded(plant.service.clock)
    application = Application(plant.service)
    listener = await EventClient(application, "named=changed", basic(READER)).begin()

    credential = basic(ADMIN)["Authorization"].encode()
    deleting = Exchange(
        application, "DELETE", "/api/pipelines/b", headers=[(b"authorization", credential)]
    )
    await deleting.run()

    assert deleting.status == 204
    assert await listener.next() == told("pipelines", "b", ADMIN)
    await listener.leave()


async def test_who_does_not_ask_for_it_is_told_nothing_of_it(plant: Plant) -> None:
    plain = await EventClient(Application(plant.service)).begin()

    await plant.client.simulate_delete("/api/pipelines/b")
    await plant.post("a", 1)

    name, event = await plain.next()
    assert (name, event["pipeline_id"], event["seq"]) == ("", "a", 1)
    await plain.leave()
