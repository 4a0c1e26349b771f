"""A dry run of a dead letter: what a replay would send, what would be made of it, and nothing is done."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_asyncio

from headrace.compiler.runtime.storedarrival import packed
from headrace.compiler.store.letterrecords import Records
from headrace.web.service import Service
from tests.compiler.store.letters import put_down as put
from tests.web.cases import declare_machines
from tests.web.jsonengine import JsonEngine
from tests.web.resources.test_dead_letters import AT, PATH, batch

ONE = {"type": "number", "value": 1}
LINE = {
    "id": "press-line",
    "dead_letters": True,
    "inputs": [{"type": "http"}],
    "transforms": [
        {
            "type": "map",
            "mappings": [
                {"type": "constant", "value": {"type": "number", "value": 1}, "as": "first"}
            ],
        },
        {"type": "map", "mappings": [{"type": "cast", "from": "n", "to": "integer"}]},
        {"type": "filter", "Numeric": {"field": "n", "operator": "greater_than", "value": 5}},
    ],
}


async def put_down(records: Records, *bodies: bytes, **fields: Any) -> None:
    """Put letters down that tell of no target."""
    await put(records, *bodies, target=None, **fields)


@pytest_asyncio.fixture
async def records(client: Any, engine: JsonEngine) -> Records:
    """Have a pipeline that keeps dead letters, and no letter yet."""
    made = await client.simulate_post("/api/pipelines", json=LINE)
    assert made.status_code == 201, made.text
    found = engine.inner._storage.records
    assert found is not None
    return found


async def tried(client: Any, **asked: Any) -> Any:
    """Return the answer to a dry run of the first letter, unless something else is said."""
    body = {"ids": [1], "dry_run": True, **asked}
    return await client.simulate_post(f"{PATH}/replay", json=body)


async def test_a_letter_of_a_transform_shows_what_is_made_of_it_from_there_on(
    client: Any, records: Records
) -> None:
    await put_down(
        records, batch({"n": "x"}, {"n": "7"}, {"n": "3"}), stage="transform", component=1
    )

    answer = await tried(client)

    assert answer.status_code == 200
    told = answer.json
    assert (told["stage"], told["component"], told["kind"]) == ("transform", 1, "map")
    assert told["messages"] == [{"n": "x"}, {"n": "7"}, {"n": "3"}]
    assert told["failure"] is None
    ran = told["transformed"]
    assert [(each["index"], each["kind"], each["batches"]) for each in ran["stages"]] == [
        (1, "map", [[{"n": 7}, {"n": 3}]]),
        (2, "filter", [[{"n": 7}]]),
    ]
    [failed, filtered] = ran["left"]
    assert (failed["message"], failed["at"], failed["kind"]) == (0, 1, "map")
    assert failed["why"].startswith("skipped by error: mapping 0 ('cast'): field 'n'")
    assert (filtered["message"], filtered["at"]) == (2, 2)
    assert told["fails"] is True
    assert (told["config_changed"], told["changed"]) == (True, [])


async def counters(client: Any) -> list[str]:
    """Return what is counted of messages and dead letters."""
    lines = (await client.simulate_get("/metrics")).text.splitlines()
    found = [each for each in lines if each.startswith(("headrace_messages", "headrace_dead"))]
    assert len(found) > 8
    return found


async def test_nothing_is_done_and_the_letter_stays_as_it_was(
    client: Any, records: Records
) -> None:
    await put_down(records, batch({"n": "7"}), stage="transform", component=1)
    before = (await client.simulate_get(PATH)).json
    counted = await counters(client)

    await tried(client, messages=[{"n": 8}])

    assert (await client.simulate_get(PATH)).json == before
    assert (await client.simulate_get(f"{PATH}/replay")).json is None
    assert await counters(client) == counted


async def test_edited_messages_are_tried_in_the_place_of_those_it_has(
    client: Any, records: Records
) -> None:
    await put_down(records, batch({"n": "x"}), stage="transform", component=1)

    told = (await tried(client, messages=[{"n": "8"}], component=0)).json

    assert (told["component"], told["messages"]) == (0, [{"n": "8"}])
    assert told["fails"] is False
    assert [each["batches"] for each in told["transformed"]["stages"]] == [
        [[{"n": "8", "first": 1}]],
        [[{"n": 8, "first": 1}]],
        [[{"n": 8, "first": 1}]],
    ]


@pytest.mark.parametrize(
    ("payload", "messages", "failure"),
    [
        (b'[{"n": "8"}]', [{"n": "8"}], None),
        (b"{", [], "it is not JSON: Input data was truncated"),
        (b"[]", [], "no message can be made of it"),
    ],
)
async def test_a_payload_arrives_at_its_input_or_not(
    client: Any, records: Records, payload: bytes, messages: Any, failure: str | None
) -> None:
    body = packed(payload, {}, AT)
    await put_down(records, body, stage="input", component=None, input_index=0)

    told = (await tried(client)).json

    assert (told["stage"], told["component"], told["kind"]) == ("input", 0, "http")
    assert told["messages"] == messages
    if failure is None:
        assert told["transformed"]["stages"][2]["batches"] == [[{"n": 8, "first": 1}]]
    else:
        assert told["transformed"] is None
    assert (told["failure"], told["fails"]) == (failure, failure is not None)


async def test_for_an_output_it_is_what_would_be_written(client: Any, records: Records) -> None:
    line = LINE | {"id": "other", "transforms": [], "outputs": [{"type": "stdout"}]}
    assert (await client.simulate_post("/api/pipelines", json=line)).status_code == 201
    await put_down(records, batch(*range(300)), messages=300)

    path = "/api/pipelines/other/dead-letters/replay"
    asked = {"ids": [1], "from": "press-line", "component": 0, "dry_run": True}
    told = (await client.simulate_post(path, json=asked)).json

    assert (told["stage"], told["kind"], told["transformed"]) == ("output", "stdout", None)
    assert told["fails"] is None
    assert told["messages"] == [*range(200)]
    assert told["notes"] == ["only the first 200 of 300 messages were used"]


async def test_what_is_remembered_is_a_copy(
    client: Any, engine: JsonEngine, service: Service
) -> None:
    line = {
        "id": "press-line",
        "dead_letters": True,
        "inputs": [{"type": "http"}],
        "transforms": [
            {"type": "recall", "recall": ["mode"]},
            {"type": "remember", "remember": [{"field": "n", "as": "n"}]},
        ],
        "state": {"bucket": "machines", "key": "m"},
    }
    declare_machines(service)
    made = await client.simulate_post("/api/pipelines", json=line)
    assert made.status_code == 201, made.text
    records = engine.inner._storage.records
    assert records is not None
    await put_down(records, batch({"m": "m1", "n": 1}), stage="transform", component=0)

    ran = (await tried(client)).json["transformed"]

    assert ran["buckets"] == {"m1": {"mode": "auto", "n": 1}}
    [entry] = (await client.simulate_get("/api/state/machines")).json["entries"]
    assert entry["values"] == {"mode": "auto"}


@pytest.mark.parametrize(
    ("asked", "status", "said"),
    [
        ({"ids": [1, 2]}, 422, "'dry_run' is of one dead letter"),
        ({"ids": None, "filter": {}}, 422, "exactly one id in 'ids'"),
        ({"ids": [9]}, 404, "has no dead letter '9'"),
        ({"component": 7}, 409, "has no transform 7"),
        ({"from": "other"}, 404, "pipeline 'other' has no dead letter '1'"),
    ],
)
async def test_what_no_replay_could_be_is_refused_as_one(
    client: Any, records: Records, asked: Any, status: int, said: str
) -> None:
    await put_down(records, batch({"n": 1}), stage="transform", component=1)
    body = {key: value for key, value in asked.items() if value is not None}
    if "filter" in body:
        refused = await client.simulate_post(f"{PATH}/replay", json=body | {"dry_run": True})
    else:
        refused = await tried(client, **body)

    assert (refused.status_code, said in refused.json["error"]) == (status, True), refused.text


async def test_a_letter_of_which_nothing_can_be_read_is_told(
    client: Any, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put_down(records, batch({"n": 1}), stage="transform", component=1)
    letter = records.letter

    async def damaged(id: int) -> Any:
        whole = await letter(id)
        assert whole is not None
        return whole._replace(body=None)

    monkeypatch.setattr(records, "letter", damaged)
    refused = await tried(client)

    assert (refused.status_code, "is damaged on the disk" in refused.text) == (404, True)
