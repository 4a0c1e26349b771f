"""Two pages that move things in one layout: who has read an older version replaces nothing."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

MOVED = {"version": 1, "pipelines": {"p1": {"x": 40, "y": 80}}}
ELSEWHERE = {"version": 1, "pipelines": {"p1": {"x": 0, "y": 0}}}
CHANGED = {"error": "the layout has changed since it was read: read it again"}


async def put(client: Any, layout: Any, if_match: str | None = None) -> Any:
    headers = {} if if_match is None else {"If-Match": if_match}
    return await client.simulate_put("/api/layout", json=layout, headers=headers)


async def version(client: Any) -> str:
    etag: str = (await client.simulate_get("/api/layout")).headers["ETag"]
    return etag


async def test_who_has_read_what_is_there_replaces_it_and_learns_the_new_version(client):
    first = await version(client)

    answer = await put(client, MOVED, first)

    assert answer.status_code == 204
    assert answer.headers["ETag"] == await version(client) != first


async def test_who_has_read_another_version_replaces_nothing(client):
    old = await version(client)
    await put(client, MOVED)

    answer = await put(client, ELSEWHERE, old)

    assert (answer.status_code, answer.json) == (412, CHANGED)
    assert (await client.simulate_get("/api/layout")).json == MOVED


async def test_equal_layouts_are_one_version(client):
    await put(client, MOVED)
    once = await version(client)
    await put(client, ELSEWHERE)
    await put(client, json.loads(json.dumps(MOVED)))

    assert await version(client) == once


async def test_who_names_no_version_replaces_any(client):
    await put(client, MOVED)

    assert (await put(client, ELSEWHERE)).status_code == 204


@pytest.mark.parametrize("form", ["*", "{}", '"other", {}', "W/{}, {}"])
async def test_any_of_several_versions_may_be_the_one(client, form):
    now = await version(client)

    assert (await put(client, MOVED, form.format(now, now))).status_code == 204


@pytest.mark.parametrize("form", ['""', "W/{}", '"x{}"', '"a", "b"'])
async def test_a_version_that_is_another_or_weak_is_none(client, form):
    now = await version(client)

    assert (
        await put(client, MOVED, form.format(now.strip('"') if "x" in form else now))
    ).json == CHANGED


@pytest.mark.parametrize("header", ["", " ", ",", "older"])
async def test_a_header_that_names_nothing_is_refused(client, header):
    answer = await put(client, MOVED, header)

    assert answer.status_code == 400
    assert "expected an ETag in double quotes" in answer.json["error"]


async def test_of_two_who_have_read_the_same_version_one_replaces_it(client):
    read = await version(client)

    answers = await asyncio.gather(put(client, MOVED, read), put(client, ELSEWHERE, read))

    assert sorted(each.status_code for each in answers) == [204, 412]


async def test_versions_are_described(client):
    described = (await client.simulate_get("/api/openapi.json")).json

    operations = described["paths"]["/api/layout"]
    assert [each["name"] for each in operations["put"]["parameters"]] == ["If-Match"]
    assert "parameters" not in operations["get"]
    for operation, status in (("get", "200"), ("put", "204")):
        assert "ETag" in operations[operation]["responses"][status]["headers"]
