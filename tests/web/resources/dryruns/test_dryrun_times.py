"""The dry run of a chain over time: batches one after the other, and a copy of what a bucket holds."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.compiler.buckets import Bounds
from headrace.web.resources import dryruns
from tests.web.declaring import declare
from tests.web.jsonengine import JsonEngine
from tests.web.resources.dryruns.bodies import ONES, Client, Post

WINDOW = {"type": "buffer", "seconds": 5, "max_messages": 100}
SUM = {"type": "reducer", "aggregations": [{"function": "sum", "field": "n", "as": "all"}]}
RECALL = {"type": "recall", "recall": ["mode"]}


def given(*batches: tuple[float, list[Any]]) -> list[dict[str, Any]]:
    return [{"at": at, "messages": messages} for at, messages in batches]


def ones(*numbers: int) -> list[dict[str, int]]:
    return [{"n": number} for number in numbers]


async def refusals(client: Client, **body: Any) -> list[tuple[str, str, str | None]]:
    answer = await client.simulate_post("/api/pipelines/dry-run", json=body)
    assert answer.status_code == 400, answer.text
    return [(one["code"], one["path"], one["expected"]) for one in answer.json["diagnostics"]]


async def test_each_batch_comes_at_its_time_and_leaves_each_stage_at_one(dry_run: Post) -> None:
    said = await dry_run(
        {
            "given": given((0, ones(1, 2)), (2.5, ones(3)), (7, ones(4, 5, 6))),
            "transforms": [
                ONES | {"Numeric": {**ONES["Numeric"], "operator": "less_than", "value": 6}},
                WINDOW,
                SUM,
            ],
            "advance_seconds": 10,
        }
    )

    assert said["stages"] == [
        {
            "index": 0,
            "kind": "filter",
            "batches": [ones(1, 2), ones(3), ones(4, 5)],
            "on_flush": [],
            "at": [0, 2.5, 7],
            "on_flush_at": [],
        },
        {
            "index": 1,
            "kind": "buffer",
            "batches": [],
            "on_flush": [ones(1, 2, 3), ones(4, 5)],
            "at": [],
            "on_flush_at": [5, 12],
        },
        {
            "index": 2,
            "kind": "reducer",
            "batches": [],
            "on_flush": [[{"all": 6}], [{"all": 9}]],
            "at": [],
            "on_flush_at": [5, 12],
        },
    ]


async def test_origins_count_through_all_batches(dry_run: Post) -> None:
    said = await dry_run(
        {
            "given": given((0, ones(1, 2)), (1, []), (2, ones(1)), (2, ones(2, 1))),
            "transforms": [ONES, WINDOW],
            "attribution": True,
            "advance_seconds": 60,
        }
    )

    assert said["stages"][0]["origins"] == [[[0]], [[2]], [[4]]]
    assert said["stages"][0]["at"] == [0, 2, 2]
    assert said["stages"][1]["on_flush_origins"] == [[[0], [2], [4]]]
    why = "'n' is 2, and the condition is equal_to 1"
    assert said["left"] == [
        {"message": 1, "at": 0, "kind": "filter", "why": why, "seconds": 0, "held": False},
        {"message": 3, "at": 0, "kind": "filter", "why": why, "seconds": 2, "held": False},
    ]


async def test_of_what_is_held_it_is_told_since_when(dry_run: Post) -> None:
    said = await dry_run(
        {
            "given": given((1.25, ones(1)), (3, ones(2))),
            "transforms": [WINDOW],
            "attribution": True,
        }
    )

    told = [(each["message"], each["seconds"], each["held"]) for each in said["left"]]
    assert told == [(0, 1.25, True), (1, 3, True)]


async def test_time_is_moved_on_from_when_the_last_one_came(dry_run: Post) -> None:
    asked = {"given": given((4, ones(1)), (8, ones(2))), "transforms": [WINDOW]}

    for seconds, flushed in ((0.999, []), (1, [9]), (5, [9])):
        said = await dry_run({**asked, "advance_seconds": seconds})
        assert said["stages"][0]["on_flush_at"] == flushed


async def test_what_fails_a_stage_ends_it_before_the_next_one_comes(dry_run: Post) -> None:
    copy = {"type": "map", "mappings": [{"type": "copy", "from": "a"}]}

    said = await dry_run({"given": given((0, ones(1)), (1, ones(1))), "transforms": [ONES, copy]})

    assert (said["outcome"], said["at"]) == ("failed", 1)
    assert [stage["at"] for stage in said["stages"]] == [[0]]


async def test_nothing_given_is_nothing_handed_on(dry_run: Post) -> None:
    said = await dry_run({"given": [], "transforms": [ONES]})

    assert said["stages"] == [
        {"index": 0, "kind": "filter", "batches": [], "on_flush": [], "at": [], "on_flush_at": []}
    ]


async def test_who_gives_messages_without_a_time_is_told_none(dry_run: Post) -> None:
    said = await dry_run({"messages": ones(2), "transforms": [ONES, WINDOW], "attribution": True})

    assert all("at" not in stage and "on_flush_at" not in stage for stage in said["stages"])
    assert all("seconds" not in each for each in said["left"])


async def test_of_all_messages_the_first_200_are_used(dry_run: Post) -> None:
    said = await dry_run(
        {
            "given": given((0, ones(*[1] * 150)), (1, ones(*[1] * 150)), (2, ones(1))),
            "transforms": [ONES],
        }
    )

    assert [len(batch) for batch in said["stages"][0]["batches"]] == [150, 50]
    assert said["notes"] == ["only the first 200 of 301 messages were used"]


@pytest.mark.parametrize(
    ("body", "refused"),
    [
        ({}, ("missing-key", "messages", "a list of messages")),
        (
            {"messages": [], "given": []},
            ("conflict", "messages", "one of both"),
        ),
        (
            {"given": given((1, []), (0.5, []))},
            (
                "out-of-range",
                "given[1].at",
                "a number of at least 1: batches come one after the other",
            ),
        ),
        (
            {"given": given((-1, []))},
            ("out-of-range", "given[0].at", "a number of at least 0 and of at most 1000000000"),
        ),
        (
            {"given": [{"at": "1", "messages": []}]},
            ("wrong-type", "given[0].at", "a number of at least 0 and of at most 1000000000"),
        ),
        (
            {"given": [{"messages": []}]},
            ("missing-key", "given[0].at", "a number of at least 0 and of at most 1000000000"),
        ),
        ({"given": [{"at": 1}]}, ("missing-key", "given[0].messages", "a list of messages")),
        ({"given": [[]]}, ("wrong-type", "given[0]", "an object with 'at' and 'messages'")),
        ({"given": None}, ("wrong-type", "given", "a list of objects")),
        (
            {"given": given(*[(0, [])] * 201)},
            ("out-of-range", "given", "at most 200 objects"),
        ),
        (
            {"given": [{"at": 1, "message": []}]},
            ("unknown-key", "given[0].message", "one of at, messages"),
        ),
        (
            {"messages": [], "buckets": "life"},
            (
                "wrong-type",
                "buckets",
                "an object that has an object of values under each key, or 'live'",
            ),
        ),
    ],
)
async def test_a_malformed_request_is_told_what_would_be_accepted(
    client: Client, body: dict[str, Any], refused: tuple[str, str, str]
) -> None:
    assert await refusals(client, **body) == [refused]


async def test_of_equal_keys_in_a_given_message_the_last_one_counts(client: Client) -> None:
    messages = '{"at": 0, "messages": [{"n": 1, "n": 2}]}'
    body = f'{{"given": [{messages}], "transforms": [{{"type": "splitter", "out_size": 1}}]}}'

    said = await client.simulate_post("/api/pipelines/dry-run", body=body)
    twice = await client.simulate_post(
        "/api/pipelines/dry-run", body=body.replace('"at": 0', '"at": 0, "at": 1')
    )

    assert said.json["stages"][0]["batches"] == [[{"n": 2}]]
    assert twice.status_code == 400


async def test_a_live_bucket_is_copied_and_nothing_is_written_back(
    dry_run: Post, engine: JsonEngine
) -> None:
    [bucket] = declare(engine, {"machines": Bounds(500, 60)})
    bucket.merge({"old": {"mode": "manual"}, "m1": {"mode": "auto"}})

    said = await dry_run(
        {
            "messages": [{"m": "m1"}],
            "state": {"bucket": "machines", "key": "m"},
            "buckets": "live",
            "transforms": [
                RECALL,
                {"type": "remember", "remember": [{"field": "m", "as": "mode"}]},
            ],
        }
    )

    assert said["stages"][0]["batches"] == [[{"m": "m1", "mode": "auto"}]]
    assert said["buckets"] == {"m1": {"mode": "m1"}, "old": {"mode": "manual"}}
    assert said["notes"] == []
    assert {key: bucket.get(key) for key in ("old", "m1")} == {
        "old": {"mode": "manual"},
        "m1": {"mode": "auto"},
    }


async def test_of_a_large_bucket_the_latest_keys_are_copied(
    dry_run: Post, engine: JsonEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dryruns, "MOST_COPIED", 2)
    [bucket] = declare(engine, {"machines": Bounds(500, 60)})
    for key in ("a", "c", "b"):
        bucket.merge({key: {"mode": key}})
        await engine.clock.sleep(0)

    said = await dry_run({"messages": [], "state": {"bucket": "machines"}, "buckets": "live"})

    assert [*said["buckets"]] == ["b", "c"]
    assert said["notes"] == ["bucket 'machines': the 2 keys written last are copied, 1 are not"]


async def test_what_is_not_there_cannot_be_copied(client: Client, engine: JsonEngine) -> None:
    declare(engine, {"machines": Bounds(500, 60)})
    asked = {"messages": [], "state": {"bucket": "machine"}}

    assert await refusals(client, **asked, buckets="live") == [
        ("unknown-bucket", "state.bucket", "one of machines")
    ]
    assert (await client.simulate_post("/api/pipelines/dry-run", json=asked)).status_code == 200


async def test_without_state_there_is_nothing_to_copy(dry_run: Post) -> None:
    said = await dry_run({"messages": [], "buckets": "live"})

    assert said["notes"] == ["'buckets' counts for nothing without 'state'"]
