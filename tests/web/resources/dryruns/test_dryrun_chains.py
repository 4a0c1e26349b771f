"""The dry run of a chain of transforms over HTTP: outcomes, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.buckets import Bounds
from tests.peer import peer, replies
from tests.web.declaring import declare
from tests.web.jsonengine import JsonEngine
from tests.web.resources.dryruns.bodies import AUTO, ONES, ONES_OR_ALL, Client, Post, script


async def test_every_stage_and_the_bucket_come_back(dry_run: Post) -> None:
    said = await dry_run(
        {
            "messages": [{"m": "a", "n": 1}],
            "state": {"bucket": "b", "key": "m"},
            "buckets": {"a": {"mode": "auto"}},
            "transforms": [{"type": "recall", "recall": ["mode"]}, {"type": "buffer", "size": 2}],
        }
    )

    recalled = {"m": "a", "n": 1, "mode": "auto"}
    assert said == {
        "outcome": "ran",
        "stages": [
            {"index": 0, "kind": "recall", "batches": [[recalled]], "on_flush": []},
            {"index": 1, "kind": "buffer", "batches": [], "on_flush": []},
        ],
        "buckets": {"a": {"mode": "auto"}},
        "warnings": [],
        "notes": [],
    }


async def test_no_transforms_are_no_stages(dry_run: Post) -> None:
    assert await dry_run({"messages": [1]}) == {
        "outcome": "ran",
        "stages": [],
        "buckets": {},
        "warnings": [],
        "notes": [],
    }


async def test_a_message_that_fails_a_stage_ends_it_there(dry_run: Post) -> None:
    copy = {"type": "map", "mappings": [{"type": "copy", "from": "a"}]}

    said = await dry_run({"messages": [{"n": 1}], "transforms": [ONES, copy, ONES]})

    assert said == {
        "outcome": "failed",
        "at": 1,
        "kind": "map",
        "phase": "apply",
        "message": "mapping 0 ('copy'): field 'a' is missing or null",
        "diagnostics": [],
        "stages": [{"index": 0, "kind": "filter", "batches": [[{"n": 1}]], "on_flush": []}],
        "warnings": [],
        "notes": [],
    }


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        (
            {"type": "splitter", "out_size": 0},
            "transforms[1].out_size: expected an integer of at least 1, found 0",
        ),
        (
            {"type": "reducer", "aggregations": []},
            "transforms[1].aggregations: expected a list of at least one aggregation, found an empty list",
        ),
        (
            {"type": "recall", "recall": ["mode"]},
            "transforms[1]: 'recall' needs to know which bucket: the pipeline has no 'state'"
            " (expected 'state' on the pipeline,"
            " such as 'state: { bucket: machines, key: machine_id }')",
        ),
        (
            {
                "type": "buffer",
                "max_messages": 5,
                "until": {"bucket": "other", "conditions": AUTO},
            },
            "transforms[1].until.bucket: there is no bucket 'other' (expected the bucket that 'state'"
            " names: a dry run has no other)",
        ),
        (
            {"type": "script", "source": {"type": "file", "path": "a.rhai"}},
            "transforms[1].source.path: 'a.rhai' cannot be read: without a config file there is no"
            " directory for it (expected an inline script without imports, or a server with a"
            " config file)",
        ),
    ],
    ids=["range", "empty list", "no state", "another bucket", "file"],
)
async def test_a_transform_that_cannot_be_built_is_an_outcome(
    dry_run: Post, transform: dict[str, Any], message: str
) -> None:
    said = await dry_run({"messages": [1], "transforms": [ONES, transform]})

    assert {key: said[key] for key in ("outcome", "at", "kind", "phase", "stages")} == {
        "outcome": "failed",
        "at": 1,
        "kind": transform["type"],
        "phase": "build",
        "stages": [],
    }
    assert said["message"] == message
    [diagnostic] = said["diagnostics"]
    assert message.startswith(diagnostic["path"])


async def test_all_that_cannot_be_built_is_told_and_the_first_is_named(dry_run: Post) -> None:
    mute = {"type": "buffer", "max_messages": 5}
    open_ended = {"type": "buffer", "seconds": 5}

    said = await dry_run({"messages": [], "transforms": [ONES, mute, open_ended]})

    assert said["at"] == 1
    assert [each["code"] for each in said["diagnostics"]] == ["no-trigger", "no-bound"]


async def test_a_script_that_does_not_compile_cannot_be_built(dry_run: Post) -> None:
    said = await dry_run({"messages": [1], "transforms": [script("emit(")]})

    assert (said["at"], said["kind"], said["phase"]) == (0, "script", "build")
    assert said["message"].startswith("transforms[0].source.code: the script does not compile: ")


async def test_a_gate_does_not_see_the_buckets_of_what_runs(
    dry_run: Post, engine: JsonEngine
) -> None:
    declare(engine, {"machines": Bounds()})
    until = {"bucket": "machines", "conditions": AUTO}
    gated = {"type": "buffer", "max_messages": 5, "until": until}

    said = await dry_run({"messages": [1], "transforms": [gated], "state": {"bucket": "b"}})

    assert said["phase"] == "build"
    assert [each["code"] for each in said["diagnostics"]] == ["unknown-bucket"]


async def test_time_moves_on_when_it_is_told_to(dry_run: Post) -> None:
    window = {"type": "buffer", "seconds": 60, "max_messages": 9}
    count = {"type": "reducer", "aggregations": [{"function": "count", "as": "n"}]}

    said = await dry_run({"messages": [1, 2], "transforms": [window, count], "advance_seconds": 60})

    assert [stage["batches"] for stage in said["stages"]] == [[], []]
    assert [stage["on_flush"] for stage in said["stages"]] == [[[1, 2]], [[{"n": 2}]]]


async def test_attribution_tells_where_each_message_came_from_and_went(dry_run: Post) -> None:
    pairs, window = {"type": "splitter", "out_size": 2}, {"type": "buffer", "size": 2, "seconds": 5}

    said = await dry_run(
        {
            "messages": [{"n": 1}, {"n": 2}, {"n": 1}, {"n": 1}],
            "transforms": [ONES, pairs, {"type": "buffer", "size": 3, "seconds": 5}, window],
            "attribution": True,
            "advance_seconds": 5,
        }
    )

    assert [(stage["origins"], stage["on_flush_origins"]) for stage in said["stages"]] == [
        ([[[0], [2], [3]]], []),
        ([[[0], [2]]], []),
        ([], [[[0], [2]]]),
        ([], [[[0], [2]]]),
    ]
    assert said["left"] == [
        {
            "message": 1,
            "at": 0,
            "kind": "filter",
            "why": "'n' is 2, and the condition is equal_to 1",
        },
        {
            "message": 3,
            "at": 1,
            "kind": "splitter",
            "why": "left over behind the last whole batch of 2 ('out_size')",
        },
    ]


async def test_a_failure_has_its_attribution_too(dry_run: Post) -> None:
    failing = await dry_run(
        {"messages": [{}], "transforms": [ONES, script("throw 1")], "attribution": True}
    )
    unbuilt = await dry_run(
        {"messages": [{}], "transforms": [script("emit(")], "attribution": True}
    )

    assert failing["outcome"] == "ran"
    assert [each["at"] for each in failing["left"]] == [0]
    assert unbuilt["left"] == []


async def test_what_a_running_pipeline_would_log_comes_back(dry_run: Post) -> None:
    said = await dry_run(
        {"messages": [{}, {"n": 1}], "transforms": [ONES, script("warn(`odd`); emit(msg)")]}
    )

    assert said["warnings"] == [
        "transforms[0]: dropped a message whose 'n' is not a number",
        "transforms[1]: script: odd",
    ]


async def test_what_is_odd_about_the_chain_is_a_warning(dry_run: Post) -> None:
    said = await dry_run({"messages": [1], "transforms": [script("msg")]})

    assert said["outcome"] == "ran"
    assert said["warnings"] == [
        "transforms[0].source.code: this script never calls 'emit': whatever comes is dropped"
    ]


async def test_entries_without_a_bucket_are_noted(dry_run: Post) -> None:
    said = await dry_run({"messages": [], "buckets": {"": {"n": 1}}})

    assert said["buckets"] == {}
    assert said["notes"] == ["'buckets' counts for nothing without 'state'"]


async def test_a_post_to_a_server_is_noted(dry_run: Post) -> None:
    async with peer() as server:
        server.answers = [replies("[7]")]
        said = await dry_run(
            {
                "messages": [1],
                "transforms": [ONES_OR_ALL, {"type": "http", "url": server.url(), "verb": "POST"}],
            }
        )

    assert server.bodies() == [b"[1]"]
    assert said["stages"][1]["batches"] == [[7]]
    assert said["notes"] == [
        "transforms[1] ('http') posts every batch that reaches it to its url, in a dry run as well"
    ]


async def test_a_server_that_refuses_is_a_failure_of_its_stage(dry_run: Post) -> None:
    async with peer() as server:
        server.answers = [replies("no", 403)]
        post = {"type": "http", "url": server.url(), "verb": "POST"}
        said = await dry_run({"messages": [1], "transforms": [post]})

    assert (said["at"], said["phase"]) == (0, "apply")
    assert said["message"] == f"POST {server.url()}: 403 Forbidden: no"
    assert len(said["notes"]) == 1


async def test_nothing_that_runs_is_touched(
    dry_run: Post, client: Client, engine: JsonEngine
) -> None:
    declare(engine, {"b": Bounds()}).get("b").merge({"": {"mode": "off"}})  # type: ignore[union-attr]
    await client.simulate_post(
        "/api/pipelines",
        json={
            "id": "p",
            "inputs": [{"type": "http"}],
            "transforms": [
                {
                    "type": "buffer",
                    "max_messages": 5,
                    "until": {"bucket": "b", "conditions": AUTO},
                }
            ],
        },
    )
    await client.simulate_post("/api/pipelines/p/messages", json=[1])

    said = await dry_run(
        {
            "messages": [{"mode": "auto"}],
            "state": {"bucket": "b"},
            "transforms": [{"type": "remember", "remember": [{"field": "mode", "as": "mode"}]}],
        }
    )

    assert said["buckets"] == {"": {"mode": "auto"}}
    assert (await client.simulate_get("/api/state/b")).json["entries"][0]["values"] == {
        "mode": "off"
    }
    assert [*engine.names()] == ["p"]
    assert [each.outbound for each in await engine.pipelines()] == [0]


async def test_scripts_of_a_chain_are_found_beside_the_config(
    dry_run: Post, engine: JsonEngine, tmp_path: Path
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "double.rhai").write_text("fn twice(n) { n * 2 }")
    (tmp_path / "main.rhai").write_text('import "lib/double" as d; emit(d::twice(msg));')
    engine.move(tmp_path)

    said = await dry_run(
        {
            "messages": [4],
            "transforms": [{"type": "script", "source": {"type": "file", "path": "main.rhai"}}],
        }
    )

    assert said["stages"][0]["batches"] == [[8]]
