"""Bodies that are no dry run: what they are answered, and what may stand in one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.authoring.playing.playedenvironment import Surroundings
from headrace.compiler.runtime.limitedthreads import TimeLimit, TookTooLong
from headrace.web.resources.dryruns import Answered, DryRun, of_chain, of_script
from headrace.web.resources.dryruns.dryrun_requests import MOST_TRANSFORMS
from headrace.web.service import Service
from headrace.web.statuses import status_of
from tests.web.jsonengine import JsonEngine
from tests.web.resources.dryruns.bodies import ONES, Client, Post, inline


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, "messages: this key is required (expected a list of messages)"),
        ({"messages": {}}, "messages: expected a list of messages, found {}"),
        ({"messages": None}, "messages: expected a list of messages, found null"),
        (
            {"messages": [], "transforms": [{"type": "sort"}]},
            'transforms[0].type: unknown type "sort"',
        ),
        (
            {"messages": [], "transforms": [{"out_size": 1}]},
            "transforms[0]: 'type' is required",
        ),
        (
            {"messages": [], "transforms": [{"type": "splitter", "out_size": "1"}]},
            'transforms[0].out_size: expected an integer of at least 1, found "1"',
        ),
        (
            {"messages": [], "transforms": [{"type": "splitter", "teeth": 1}]},
            "transforms[0].out_size: this key is required",
        ),
        ({"messages": [], "transforms": ["splitter"]}, "transforms[0]: expected an object"),
        (
            {"messages": [], "transforms": None},
            "transforms: expected a list of transforms, found null",
        ),
        ({"messages": [], "state": {"key": "m"}}, "state.bucket: this key is required"),
        ({"messages": [], "buckets": {"a": 1}}, "buckets.a: expected an object, found a number"),
        ({"messages": [], "buckets": {"a": None}}, "buckets.a: expected an object, found null"),
        ({"messages": [], "advance_seconds": -1}, "advance_seconds: expected a number"),
        ({"messages": [], "advance_seconds": 1e10}, "advance_seconds: expected a number"),
        ({"messages": [], "attribution": 1}, "attribution: expected true or false, found 1"),
        ({"messages": [], "mesages": []}, "mesages: unknown key 'mesages'"),
        (
            {"messages": [], "transforms": [ONES] * (MOST_TRANSFORMS + 1)},
            "transforms: 101 transforms are more than a dry run takes (expected at most 100)",
        ),
        ([], "expected an object with any of 'messages', "),
    ],
)
async def test_a_body_of_another_shape_is_refused(client: Client, body: Any, error: str) -> None:
    answer = await client.simulate_post("/api/pipelines/dry-run", json=body)

    assert answer.status_code == 400
    assert answer.json["error"].startswith(f"the dry run could not be read: {error}")
    assert answer.json["diagnostics"][0]["severity"] == "error"


async def test_a_wrong_shape_comes_with_all_other_mistakes(client: Client) -> None:
    transforms = [{"type": "splitter", "out_size": 0}, {"type": "sort"}]

    answer = await client.simulate_post(
        "/api/pipelines/dry-run", json={"messages": [], "transforms": transforms}
    )

    assert answer.status_code == 400
    assert [each["code"] for each in answer.json["diagnostics"]] == ["out-of-range", "unknown-kind"]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ('{"messages": [', "the body is not JSON: line 1, column 14: "),
        ('{"messages": [NaN]}', "the body is not JSON: line 1, column 15: "),
        ("", "the body is not JSON: "),
        (
            '{"messages": [], "messages": [1]}',
            "messages: duplicate key 'messages': first given on line 1, column 2",
        ),
    ],
)
@pytest.mark.parametrize("path", ["/api/pipelines/dry-run", "/api/scripts/dry-run"])
async def test_a_malformed_body_is_refused(
    client: Client, path: str, body: str, error: str
) -> None:
    answer = await client.simulate_post(path, body=body)

    assert answer.status_code == 400
    assert error in answer.json["error"]


@pytest.mark.parametrize(
    ("path", "asked", "found"),
    [
        ("/api/pipelines/dry-run", '"transforms": [{"type": "splitter", "out_size": 1}]', "stages"),
        ("/api/scripts/dry-run", '"source": {"type": "inline", "code": "emit(msg)"}', "batches"),
    ],
)
async def test_of_equal_keys_in_a_message_the_last_one_counts(
    client: Client, path: str, asked: str, found: str
) -> None:
    body = f'{{"messages": [{{"a": 1, "a": 2}}], {asked}}}'

    answer = await client.simulate_post(path, body=body)

    assert answer.status_code == 200
    assert '"a": 2' in str(answer.json[found]).replace("'", '"')


async def test_a_pipeline_may_be_called_like_the_dry_run(client: Client) -> None:
    hello = {"id": "dry-run", "inputs": [{"type": "dummy", "duration": 3600}]}
    await client.simulate_post("/api/pipelines", json=hello)

    assert (await client.simulate_get("/api/pipelines/dry-run")).json["id"] == "dry-run"
    assert (await client.simulate_delete("/api/pipelines/dry-run")).status_code == 204
    assert (await client.simulate_get("/api/pipelines/dry-run")).status_code == 404


@pytest.mark.parametrize(
    ("answered", "body"),
    [
        (of_chain, b'{"messages": []}'),
        (of_script, b'{"source": {"type": "inline", "code": "emit(1)"}}'),
    ],
)
async def test_a_body_that_takes_all_the_time_to_read_is_refused(
    service: Service, answered: Answered, body: bytes
) -> None:
    limit = TimeLimit(7)
    limit.expire()

    with pytest.raises(TookTooLong) as refused:
        answered(DryRun(body, service.catalogue, Surroundings(), service.clock.now()), limit)

    assert str(refused.value) == "what was asked for takes more than 7 seconds"
    assert status_of(refused.value) == 400


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (inline(" \n"), "source.code: this script is blank"),
        ({"type": "file", "path": "none.rhai"}, "source.path: there is no script file 'none.rhai'"),
        ({"type": "file", "path": "../up.rhai"}, "source.path: "),
        ({"type": "file", "path": "/up.rhai"}, "source.path: "),
        ({"type": "file", "path": "link.rhai"}, "source.path: a link leads 'link.rhai' out"),
        ({"type": "file", "path": "blank.rhai"}, "source.path: the script 'blank.rhai' is blank"),
        ({"type": "file", "path": "folder"}, "source.path: the script 'folder' cannot be read"),
        ({"type": "url"}, "source.type: unknown type"),
        (None, "source: "),
    ],
)
async def test_a_script_that_cannot_be_read_is_refused(
    client: Client, engine: JsonEngine, tmp_path: Path, source: Any, error: str
) -> None:
    base = tmp_path / "base"
    (base / "folder").mkdir(parents=True)
    (base / "blank.rhai").write_text(" \n")
    (tmp_path / "up.rhai").write_text("emit(1)")
    (base / "link.rhai").symlink_to(tmp_path / "up.rhai")
    engine.move(base)

    answer = await client.simulate_post("/api/scripts/dry-run", json={"source": source})

    assert answer.status_code == 400
    assert answer.json["error"].startswith(f"the dry run could not be read: {error}")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"max_operations": 0}, "max_operations: expected an integer of at least 1, found 0"),
        ({"max_operations": 1.5}, "max_operations: expected an integer"),
        ({"scope": "all"}, "scope: expected one of message, batch"),
        ({"scope": None}, "scope: expected one of message, batch"),
        ({"messages": {}}, "messages: expected a list"),
        ({"state": {"k": []}}, "state.k: expected an object, found a list"),
        ({"states": {}}, "states: unknown key 'states'"),
    ],
)
async def test_another_shape_of_a_script_run_is_refused(
    client: Client, options: dict[str, Any], error: str
) -> None:
    body = {"source": inline("emit(1)"), **options}

    answer = await client.simulate_post("/api/scripts/dry-run", json=body)

    assert answer.status_code == 400
    assert answer.json["error"].startswith(f"the dry run could not be read: {error}")


async def test_null_says_no_more_than_nothing(try_script: Post, dry_run: Post) -> None:
    nothing = await try_script({"source": inline("emit(1)"), "max_operations": None, "state": None})
    ran = await dry_run(
        {
            "messages": [None],
            "state": None,
            "buckets": None,
            "advance_seconds": None,
            "attribution": None,
        }
    )

    assert (nothing["outcome"], ran["outcome"]) == ("emitted", "ran")
