"""The dead letters of a real store over the API: listed, read, deleted, replayed, and counted."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest
import pytest_asyncio

from headrace.compiler.jsontext import encode
from headrace.compiler.runtime.queuedbatch import entry_of_batch
from headrace.compiler.runtime.storedarrival import packed
from headrace.compiler.store.letterrecords import Records
from headrace.web.resources.letters import SENT_AT_ONCE
from tests.clients import PATIENCE
from tests.compiler.store.letters import put_down
from tests.web.jsonengine import JsonEngine

LINE = {"id": "press-line", "dead_letters": True, "inputs": [{"type": "http"}]}
PATH = "/api/pipelines/press-line/dead-letters"
AT = 1_767_225_600_000_000


def batch(*messages: Any) -> bytes:
    entry = entry_of_batch([*messages])
    assert entry is not None
    return entry


@pytest_asyncio.fixture
async def records(client: Any, engine: JsonEngine) -> Records:
    """Have a pipeline that keeps dead letters, and no letter yet."""
    made = await client.simulate_post("/api/pipelines", json=LINE)
    assert made.status_code == 201
    found = engine.inner._storage.records
    assert found is not None
    return found


async def ids(client: Any, query: str = "") -> list[int]:
    page = (await client.simulate_get(PATH, query_string=query)).json
    return [each["id"] for each in page["entries"]]


async def test_where_no_store_is_open_there_are_none(client: Any) -> None:
    assert (await client.simulate_get("/api/dead-letters")).json == []
    page = await client.simulate_get(PATH)
    assert (page.status_code, page.json["total"], page.json["entries"]) == (200, 0, [])
    missing = await client.simulate_get(f"{PATH}/1")
    assert (missing.status_code, missing.json) == (
        404,
        {"error": "pipeline 'press-line' has no dead letter '1'"},
    )
    deleted = await client.simulate_delete(PATH, query_string="all=true")
    assert (deleted.status_code, deleted.json) == (200, {"deleted": 0})


async def test_what_failed_alike_is_told_with_how_much_of_it(client: Any, records: Records) -> None:
    await put_down(records, batch(1, 2), batch(3, 4), messages=2)
    await put_down(records, batch(5), pipeline="gone", failure="odd")

    rows = (await client.simulate_get("/api/dead-letters")).json
    [row] = (await client.simulate_get("/api/dead-letters", query_string="pipeline=gone")).json

    alike = next(each for each in rows if each["pipeline_id"] == "press-line")
    assert len(rows) == 2
    assert alike.pop("bytes") > 800
    assert alike == {
        "pipeline_id": "press-line",
        "stage": "output",
        "component": 0,
        "message": "'temp' is no number",
        "class": "invalid",
        "count": 2,
        "message_count": 4,
        "first_seen": 1_767_225_600_500,
        "last_seen": 1_767_225_601_250,
    }
    assert (row["pipeline_id"], row["class"]) == ("gone", "odd")


async def test_pages_are_of_the_newest_and_have_no_messages(client: Any, records: Records) -> None:
    await put_down(records, *map(batch, range(5)))

    first = (await client.simulate_get(PATH, query_string="limit=2")).json
    second = await ids(client, f"limit=200&before={first['next']}")

    assert (first["total"], first["truncated"], first["damaged"]) == (5, True, [])
    assert [each["id"] for each in first["entries"]] == [5, 4]
    assert second == [3, 2, 1]
    [entry, _] = first["entries"]
    assert {"messages", "payload"}.isdisjoint(entry)
    assert (entry["class"], entry["message_count"], entry["config"]) == ("invalid", 1, "0123abcd")


async def test_letters_are_found_by_stage_and_message(client: Any, records: Records) -> None:
    await put_down(records, batch(1), message="a & b = ü")
    await put_down(records, batch(2), stage="transform")

    assert await ids(client, "stage=transform") == [2]
    assert await ids(client, "message=a%20%26%20b%20%3D%20%C3%BC") == [1]
    assert await ids(client, "stage=input") == []
    assert await ids(client, "message=a%0Ab") == []
    assert await ids(client, "message=%ED%A0%80") == []


@pytest.mark.parametrize(
    "query",
    [
        "stage=",
        "stage=queue",
        "message=",
        "message=" + "x" * 5_000,
        "before=-1",
        "before=9223372036854775808",
        "before=1e3",
        "before=%EF%BC%93",
        "limit=0",
        "limit=201",
        "stage=input&stage=output",
    ],
)
async def test_what_no_parameter_takes_is_refused(client: Any, query: str) -> None:
    refused = await client.simulate_get(PATH, query_string=query)

    assert refused.status_code == 400
    assert "expected" in refused.json["error"]
    assert len(refused.json["error"]) < 400


async def test_messages_are_told_as_they_are_stored(client: Any, records: Records) -> None:
    large = "é" * SENT_AT_ONCE
    await put_down(records, b"\x02\0\0\0" + b'[{"n":1.2300},' + encode(large) + b"]", messages=2)

    answer = await client.simulate_get(f"{PATH}/1")

    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert b'"messages":[{"n":1.2300},' in answer.content
    assert answer.json["messages"][1] == large
    assert (answer.json["id"], answer.json["damaged"]) == (1, False)
    assert "payload" not in answer.json


@pytest.mark.parametrize(
    ("payload", "coding"),
    [
        (b"no \x00 json \xf0\x9f\x98\x80", "utf-8"),
        (b"", "utf-8"),
        (b"\xff\xfe", "base64"),
        (b"ab\xc3", "base64"),
        (b"x" * (SENT_AT_ONCE - 1) + "é\n".encode() * 3, "utf-8"),
        (b"\x80" * (SENT_AT_ONCE + 1), "base64"),
    ],
)
async def test_a_payload_is_told_as_text_or_base64(
    client: Any, records: Records, payload: bytes, coding: str
) -> None:
    body = packed(payload, {"topic": "t"}, AT)
    await put_down(records, body, stage="input", component=None, input_index=0)

    told = (await client.simulate_get(f"{PATH}/1")).json

    text = told["payload"]
    found = base64.b64decode(text) if coding == "base64" else text.encode()
    assert (told["payload_encoding"], found == payload) == (coding, True)
    assert told["is_message"] is False
    assert told["metadata"] == {"topic": "t", "received_at": "2026-01-01T00:00:00.000000+00:00"}
    assert "messages" not in told


async def test_a_letter_is_told_to_its_own_pipeline_alone(client: Any, records: Records) -> None:
    await put_down(records, batch(1), pipeline="a/b ü")

    assert (await client.simulate_get(f"{PATH}/1")).status_code == 404
    own = await client.simulate_get("/api/pipelines/a%2Fb%20%C3%BC/dead-letters/1")
    assert (own.status_code, own.json["pipeline_id"]) == (200, "a/b ü")


@pytest.mark.parametrize("id", ["0", "-1", "01", "1.0", "%EF%BC%91", "9" * 19, "9" * 999, "a%0Ab"])
async def test_what_is_no_id_is_not_found(client: Any, records: Records, id: str) -> None:
    await put_down(records, batch(1))

    missing = await client.simulate_get(f"{PATH}/{id}")

    assert missing.status_code == 404
    assert "has no dead letter" in missing.json["error"]


async def test_what_is_damaged_is_named_and_can_be_deleted(
    client: Any, records: Records, engine: JsonEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put_down(records, batch(1), batch(2))
    letter = records.letter

    async def damaged(id: int) -> Any:
        whole = await letter(id)
        assert whole is not None
        return whole._replace(body=None) if id == 1 else whole._replace(found=None, body=None)

    monkeypatch.setattr(records, "letter", damaged)
    without = await client.simulate_get(f"{PATH}/1")
    unknown = await client.simulate_get(f"{PATH}/2")
    deleted = await client.simulate_delete(PATH, query_string="ids=1,2")

    assert (without.status_code, without.json["damaged"]) == (200, True)
    assert {"messages", "payload"}.isdisjoint(without.json)
    assert (unknown.status_code, unknown.json["error"]) == (
        404,
        "dead letter '2' is damaged on the disk: nothing of it is known; delete it",
    )
    assert deleted.json == {"deleted": 2}


async def test_letters_are_deleted_by_id_by_what_they_share_or_all(
    client: Any, records: Records
) -> None:
    await put_down(records, *map(batch, range(4)))
    await put_down(records, batch(5), stage="transform")
    await put_down(records, batch(6), pipeline="other")

    by_id = await client.simulate_delete(PATH, query_string="ids=1,6,9223372036854775807")
    by_stage = await client.simulate_delete(PATH, query_string="stage=transform")
    assert (by_id.json, by_stage.json, await ids(client)) == (
        {"deleted": 1},
        {"deleted": 1},
        [4, 3, 2],
    )
    rest = await client.simulate_delete(PATH, query_string="all=true")
    assert (rest.json, await ids(client)) == ({"deleted": 3}, [])
    assert [each.id for each in (await records.page("other")).letters] == [6]


@pytest.mark.parametrize(
    "query",
    [
        "",
        "ids=",
        "ids=1,",
        "ids=-1",
        "ids=1&ids=2",
        "ids=" + ",".join(["1"] * 1_001),
        "ids=9223372036854775808",
        "ids=1&all=true",
        "stage=output&all=true",
        "all=yes",
        "all=",
        "message=",
        "filter=output",
    ],
)
async def test_nothing_is_deleted_by_accident(client: Any, records: Records, query: str) -> None:
    await put_down(records, batch(1))

    refused = await client.simulate_delete(PATH, query_string=query)

    assert (refused.status_code, await ids(client)) == (400, [1])
    assert "expected" in refused.json["error"]


async def test_a_replay_is_begun_followed_and_counted(client: Any, records: Records) -> None:
    await put_down(records, packed(b"{}", {}, AT), stage="input", component=None, input_index=0)
    none = await client.simulate_get(f"{PATH}/replay")

    begun = await client.simulate_post(f"{PATH}/replay", json={"filter": {}, "input_index": 0})

    assert (none.status_code, none.json) == (200, None)
    assert begun.status_code == 202
    assert begun.json == {"replay": 1, "selected": 1, "config_changed": True, "changed": []}

    async with asyncio.timeout(PATIENCE):
        while (figures := (await client.simulate_get(f"{PATH}/replay")).json)["state"] == "running":
            pass
    assert figures["state"] == "done"
    assert (figures["done"], figures["failed"]) == (1, 0)
    stopped = await client.simulate_delete(f"{PATH}/replay")
    assert stopped.status_code == 404
    text = (await client.simulate_get("/metrics")).text
    assert "headrace_dead_letters_replayed_total 1.0" in text


async def test_figures_have_what_is_stored(client: Any, records: Records) -> None:
    await put_down(records, batch(1), batch(2))
    await put_down(records, batch(3), pipeline="gone", stage="process")

    lines = (await client.simulate_get("/metrics")).text.splitlines()

    assert [each for each in lines if each.startswith("headrace_dead_letters")] == [
        'headrace_dead_letters_total{pipeline="press-line",stage="input"} 0.0',
        'headrace_dead_letters_total{pipeline="press-line",stage="transform"} 0.0',
        'headrace_dead_letters_total{pipeline="press-line",stage="output"} 0.0',
        'headrace_dead_letters_stored{pipeline="press-line",stage="output"} 2.0',
        'headrace_dead_letters_stored{pipeline="gone",stage="process"} 1.0',
        "headrace_dead_letters_replayed_total 0.0",
        "headrace_dead_letters_dropped_total 0.0",
    ]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "or 'filter' in its place"),
        ({"ids": []}, "at least one id"),
        ({"ids": [0]}, "at least 1"),
        ({"ids": [2**63]}, "9223372036854775807"),
        ({"ids": ["1"]}, "an integer"),
        ({"ids": [1], "filter": {}}, "'filter' has no place beside it"),
        ({"filter": {"stage": "queue"}}, "one of input, transform, output, process"),
        ({"filter": {"pipeline": "p"}}, "pipeline"),
        ({"filter": {}, "rate": 0}, "rate"),
        ({"filter": {}, "component": 0, "input_index": 0}, "'input_index' has no place beside it"),
        ({"filter": {}, "messages": [1]}, "exactly one id"),
        ({"ids": [1, 2], "messages": [1]}, "exactly one id"),
        ({"ids": [1], "messages": []}, "at least one message"),
    ],
)
async def test_a_replay_that_says_nothing_clear_is_refused(
    client: Any, records: Records, body: Any, said: str
) -> None:
    refused = await client.simulate_post(f"{PATH}/replay", json=body)

    assert refused.status_code == 422
    assert said in refused.json["error"]


async def test_a_component_is_of_one_stage(client: Any, records: Records) -> None:
    await put_down(records, batch(1))
    await put_down(records, batch(2), stage="transform")

    both = await client.simulate_post(f"{PATH}/replay", json={"filter": {}, "component": 0})
    one = await client.simulate_post(f"{PATH}/replay", json={"ids": [1], "component": 3})
    edited = await client.simulate_post(f"{PATH}/replay", json={"ids": [9], "messages": [1]})

    assert (both.status_code, "several stages: output, transform" in both.text) == (422, True)
    assert (one.status_code, one.json["error"]) == (409, "pipeline 'press-line' has no output 3")
    assert edited.status_code == 404


async def test_messages_of_a_replay_are_refused_where_a_post_is(
    client: Any, records: Records
) -> None:
    await put_down(records, batch(1))

    refused = await client.simulate_post(
        f"{PATH}/replay", body=json.dumps({"ids": [1]})[:-1] + ', "messages": [1e999]}'
    )

    assert refused.status_code in (400, 422)
    assert await ids(client) == [1]
