"""The two dry runs over HTTP: bodies, outcomes, refusals, and what they leave alone."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import falcon.testing
import jsonschema
import pytest

from headrace.compiler.buckets import Bounds
from headrace.compiler.runtime.dryrun.run import Surroundings
from headrace.compiler.runtime.dryrun.threads import TimeLimit, TookTooLong
from headrace.web.openapi import described
from headrace.web.resources.dryruns import Answered, DryRun, of_chain, of_script
from headrace.web.resources.dryruns import dryrun_answers as dryanswers
from headrace.web.resources.dryruns.dryrun_requests import MOST_TRANSFORMS
from headrace.web.service import Service
from headrace.web.statuses import status_of
from tests.peer import peer, replies
from tests.web.declaring import declare
from tests.web.jsonengine import JsonEngine

Client = falcon.testing.ASGIConductor
Post = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]

ONES = {"type": "filter", "Numeric": {"field": "n", "operator": "equal_to", "value": 1}}
AUTO = [{"type": "string", "field": "mode", "operator": "equal_to", "value": "auto"}]


def inline(code: str) -> dict[str, Any]:
    return {"type": "inline", "code": code}


def script(code: str) -> dict[str, Any]:
    return {"type": "script", "source": inline(code)}


@pytest.fixture
def post(client: Client, service: Service) -> Callable[[str, str, dict[str, Any]], Any]:
    """Post a body, and see that the answer is what the description says."""
    description = described(service.catalogue)

    async def posted(path: str, schema: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = await client.simulate_post(path, json=body)
        assert answer.status_code == 200, answer.text
        reference = {"$ref": f"#/components/schemas/{schema}", **description}
        jsonschema.Draft202012Validator(reference).validate(answer.json)
        said: dict[str, Any] = answer.json
        return said

    return posted


@pytest.fixture
def dry_run(post: Any) -> Post:
    async def run(body: dict[str, Any]) -> dict[str, Any]:
        said: dict[str, Any] = await post("/api/pipelines/dry-run", "PipelineDryRunResponse", body)
        return said

    return run


@pytest.fixture
def try_script(post: Any) -> Post:
    async def run(body: dict[str, Any]) -> dict[str, Any]:
        said: dict[str, Any] = await post("/api/scripts/dry-run", "DryRunResponse", body)
        return said

    return run


# A chain of transforms.


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


async def test_of_many_messages_the_first_are_used(
    dry_run: Post, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "headrace.web"):
        said = await dry_run(
            {"messages": [*range(203)], "transforms": [{"type": "splitter", "out_size": 100}]}
        )

    assert said["stages"][0]["batches"] == [[*range(100)], [*range(100, 200)]]
    assert said["notes"] == ["only the first 200 of 203 messages were used"]
    assert caplog.messages == ["dry run: the first 200 of 203 messages are used"]


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


ONES_OR_ALL = {"type": "splitter", "out_size": 1}


async def test_a_server_that_refuses_is_a_failure_of_its_stage(dry_run: Post) -> None:
    async with peer() as server:
        server.answers = [replies("no", 403)]
        post = {"type": "http", "url": server.url(), "verb": "POST"}
        said = await dry_run({"messages": [1], "transforms": [post]})

    assert (said["at"], said["phase"]) == (0, "apply")
    assert said["message"] == f"POST {server.url()}: 403 Forbidden: no"
    assert len(said["notes"]) == 1


async def test_of_a_long_stage_the_beginning_is_shown(
    dry_run: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dryanswers, "MOST_SHOWN", 3)
    pairs = {"type": "splitter", "out_size": 2}

    said = await dry_run({"messages": [*range(8)], "transforms": [pairs], "attribution": True})

    assert said["stages"][0]["batches"] == [[0, 1], [2]]
    assert said["stages"][0]["origins"] == [[[0], [1]], [[2]]]
    assert said["notes"] == ["transforms[0]: 5 more messages are not shown"]


async def test_an_answer_has_a_size(dry_run: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dryanswers, "MOST_BYTES", 1000)
    pairs = {"type": "splitter", "out_size": 2}
    large = ["x" * 400, "x" * 400, "x" * 400, "y"]

    said = await dry_run(
        {
            "messages": large,
            "transforms": [pairs],
            "state": {"bucket": "b"},
            "buckets": {"k": {"v": 1}},
        }
    )

    assert said["stages"][0]["batches"] == [["x" * 400, "x" * 400]]
    assert said["buckets"] == {}
    assert said["notes"] == [
        "transforms[0]: 2 more messages are not shown",
        "bucket 'b': 1 more keys are not shown",
    ]


async def test_of_the_many_reasons_of_one_message_some_are_told_and_every_message_has_one(
    dry_run: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dryanswers, "MOST_REASONS", 2)
    many = script("for n in 2..7 { emit(#{ n: n }) }")

    said = await dry_run({"messages": [1, 2], "transforms": [many, ONES], "attribution": True})

    assert [(each["message"], each["why"][:8]) for each in said["left"]] == [
        (0, "'n' is 2"),
        (0, "'n' is 3"),
        (1, "'n' is 2"),
        (1, "'n' is 3"),
    ]
    assert said["notes"] == ["'left': 6 more reasons are not shown"]


async def test_reasons_take_their_part_of_the_size_of_an_answer(
    dry_run: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dryanswers, "MOST_BYTES", 500)
    messages = [{"n": n} for n in range(2, 102)]

    said = await dry_run({"messages": messages, "transforms": [ONES], "attribution": True})

    assert 0 < len(said["left"]) < 20
    assert said["notes"] == [f"'left': {100 - len(said['left'])} more reasons are not shown"]


@pytest.mark.long
async def test_a_message_that_doubles_and_doubles_is_not_written_out(dry_run: Post) -> None:
    # Each mapping is small, and so is what is held; written out it would fill the machine.
    doubled = [
        {"type": "copy", "from": f"a{level}", "as": f"a{level + 1}.{side}"}
        for level in range(60)
        for side in "lr"
    ]

    said = await dry_run(
        {
            "messages": [{"a0": 1}, {}],
            "transforms": [{"type": "map", "mappings": doubled, "on_missing": "omit"}],
        }
    )

    assert said["outcome"] == "ran"
    assert said["stages"][0]["batches"] == []
    assert said["notes"] == ["transforms[0]: 2 more messages are not shown"]


async def test_at_most_200_entries_of_the_bucket_come_back(dry_run: Post) -> None:
    entries = {f"k{n}": {"n": n} for n in range(250)}

    said = await dry_run({"messages": [], "state": {"bucket": "b"}, "buckets": entries})

    assert len(said["buckets"]) == 200
    assert said["notes"] == ["bucket 'b': 50 more keys are not shown"]


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
        ([], "expected an object with 'messages', found a list"),
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

    assert (await client.simulate_delete("/api/pipelines/dry-run")).status_code == 204
    assert (await client.simulate_get("/api/pipelines/dry-run")).status_code == 405


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


# One script.


async def test_a_script_shows_what_it_emits_warns_and_remembers(try_script: Post) -> None:
    code = "if msg.n > 1 { warn(`b`); warn(`a`); emit(msg); } remember(`k`, #{ last: msg.n });"

    said = await try_script(
        {
            "source": inline(code),
            "messages": [{"n": 1}, {"n": 2}, {"n": 3}],
            "state": {"m1": {"mode": "auto"}},
        }
    )

    assert said == {
        "outcome": "emitted",
        "batches": [[{"n": 2}, {"n": 3}]],
        "warnings": ["a", "b"],
        "state": {"k": {"last": 3}, "m1": {"mode": "auto"}},
        "notes": [],
    }


async def test_a_script_can_be_about_the_batch(try_script: Post) -> None:
    said = await try_script(
        {
            "source": inline("emit(batch); emit([batch.len()]);"),
            "messages": [1, 2],
            "scope": "batch",
        }
    )

    assert said["batches"] == [[1, 2], [2]]


async def test_without_messages_a_script_is_only_compiled(try_script: Post) -> None:
    assert await try_script({"source": inline("throw `never`")}) == {
        "outcome": "emitted",
        "batches": [],
        "warnings": [],
        "state": {},
        "notes": [],
    }


async def test_there_is_always_a_bucket(try_script: Post) -> None:
    said = await try_script({"source": inline("emit(recall(`k`) ?? `none`)"), "messages": [1]})

    assert said["batches"] == [["none"]]


async def test_a_script_that_does_not_compile_tells_where(try_script: Post) -> None:
    said = await try_script({"source": inline("let a = 1;\nemit(a +;"), "messages": [1]})

    assert (said["outcome"], said["stage"]) == ("failed", "compile")
    assert (said["line"], said["column"]) == (2, 9)
    assert said["message"].startswith("the script does not compile: ")
    assert "line" not in said["message"].replace("newline", "")


async def test_a_run_that_fails_tells_where(try_script: Post) -> None:
    said = await try_script({"source": inline("emit(msg);\n  1 / 0;"), "messages": [1]})

    assert said == {
        "outcome": "failed",
        "stage": "runtime",
        "message": "Division by zero: 1 / 0",
        "line": 2,
        "column": 5,
    }


@pytest.mark.parametrize(
    ("code", "options", "message"),
    [
        (
            "loop {}",
            {},
            "stopped after 100000 operations: raise 'max_operations' if it needs more",
        ),
        (
            "loop {}",
            {"max_operations": 10},
            "stopped after 10 operations: raise 'max_operations' if it needs more",
        ),
        (
            "remember(1, #{})",
            {},
            "'remember' takes a string as its key, not an int: use to_string()",
        ),
    ],
)
async def test_a_budget_and_a_refusal_have_no_place(
    try_script: Post, code: str, options: dict[str, Any], message: str
) -> None:
    said = await try_script({"source": inline(code), "messages": [1], **options})

    assert said == {
        "outcome": "failed",
        "stage": "runtime",
        "message": message,
        "line": None,
        "column": None,
    }


async def test_a_failure_in_a_module_names_it(
    try_script: Post, engine: JsonEngine, tmp_path: Path
) -> None:
    (tmp_path / "main.rhai").write_text('import "lib" as lib;\nemit(lib::half(msg));')
    (tmp_path / "lib.rhai").write_text("fn half(n) {\n  throw `odd`;\n}")
    engine.move(tmp_path)

    said = await try_script({"source": {"type": "file", "path": "main.rhai"}, "messages": [1]})

    assert said == {
        "outcome": "failed",
        "stage": "runtime",
        "message": "lib.rhai: odd",
        "line": 2,
        "column": 3,
    }


async def test_a_script_keeps_its_budget_per_message(try_script: Post) -> None:
    count = "let n = 0; while n < 100 { n += 1; } emit(n);"

    said = await try_script({"source": inline(count), "messages": [1] * 50, "max_operations": 2000})

    assert said["batches"] == [[100] * 50]


async def test_at_most_200_keys_come_back(try_script: Post) -> None:
    said = await try_script(
        {"source": inline("emit(1)"), "state": {f"k{n}": {"n": n} for n in range(201)}}
    )

    assert len(said["state"]) == 200
    assert said["notes"] == ["bucket 'dry-run': 1 more keys are not shown"]


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


def test_the_description_says_what_a_bucket_may_hold_at_the_start(service: Service) -> None:
    request = {"$ref": "#/components/schemas/PipelineDryRunRequest"}
    validator = jsonschema.Draft202012Validator({**request, **described(service.catalogue)})

    def is_valid(buckets: Any) -> bool:
        return bool(validator.is_valid({"messages": [], "buckets": buckets}))

    assert is_valid({"": {"shift": 2}, "m1": {}})
    assert not is_valid({"m1": 2})
