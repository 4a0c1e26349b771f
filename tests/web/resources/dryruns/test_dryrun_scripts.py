"""The dry run of one script over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from headrace.web.openapi import described
from headrace.web.service import Service
from tests.web.jsonengine import JsonEngine
from tests.web.resources.dryruns.bodies import Post, inline


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


def test_the_description_says_what_a_bucket_may_hold_at_the_start(service: Service) -> None:
    request = {"$ref": "#/components/schemas/PipelineDryRunRequest"}
    validator = jsonschema.Draft202012Validator({**request, **described(service.catalogue)})

    def is_valid(buckets: Any) -> bool:
        return bool(validator.is_valid({"messages": [], "buckets": buckets}))

    assert is_valid({"": {"shift": 2}, "m1": {}})
    assert not is_valid({"m1": 2})
