"""The option `retry`: true, or an object; what else is written is told how it is meant."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from marshmallow import ValidationError

from headrace.compiler.component.catalogue import scan
from headrace.compiler.component.retry import RetryOptions, retry_of
from headrace.compiler.describe.editors import config_schema
from headrace.compiler.schema.records import faults_of
from headrace.connectors.stdout import StdoutOutput
from headrace.operators.httptransform import HttpTransform
from tests.doubles import StubContext
from tests.virtual import virtual


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({}, None),
        ({"retry": None}, None),
        ({"retry": True}, RetryOptions()),
        ({"retry": {}}, RetryOptions()),
        ({"retry": {"seconds": 1.5}}, RetryOptions(seconds=1.5)),
    ],
)
def test_true_is_the_same_as_an_object_that_says_nothing(written: Any, meant: Any) -> None:
    output = StdoutOutput.load(written)

    assert retry_of(output.retry) == meant
    said = {} if written == {"retry": None} else written
    assert output.dump() == {"type": "stdout", **said}  # as it was written


@pytest.mark.parametrize(
    ("wrong", "message", "remedy"),
    [
        (
            False,
            "expected true, or an object with any of 'seconds', found a boolean",
            "leave it out",
        ),
        (
            60,
            "expected true, or an object with any of 'seconds', found a number",
            "write { seconds: 60 }",
        ),
        ({"seconds": 0}, "expected a number above 0, found 0", None),
        ({"second": 5}, "unknown key 'second'", "did you mean 'seconds'?"),
    ],
)
def test_what_else_is_written_is_refused_with_what_may_be_meant(
    wrong: Any, message: str, remedy: str | None
) -> None:
    with pytest.raises(ValidationError) as refused:
        StdoutOutput.load({"retry": wrong})

    [fault] = faults_of(refused.value)
    assert (fault.message, fault.suggestion) == (message, remedy)


@virtual
async def test_a_transform_hands_it_to_whoever_runs_it() -> None:
    ctx = StubContext()
    HttpTransform.load({"url": "http://127.0.0.1:9/", "verb": "POST", "retry": True}).operator(ctx)

    assert ctx.retry == RetryOptions()


def test_the_schema_for_editors_takes_both_forms() -> None:
    schema = config_schema(scan("headrace.operators", "headrace.connectors"))

    def takes(retry: Any) -> bool:
        output = {"type": "stdout", "retry": retry}
        config = [{"inputs": [{"type": "http"}], "outputs": [output]}]
        return Draft202012Validator(schema).is_valid(config)

    assert [takes(each) for each in (True, {}, {"seconds": 5})] == [True] * 3
    assert [takes(each) for each in (False, 5, {"seconds": 0})] == [False] * 3
