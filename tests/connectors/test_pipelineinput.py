"""The `pipeline` input, between real pipelines in virtual time."""

import asyncio

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.errors import Refused
from headrace.compiler.runtime.engine import Engine
from headrace.connectors.pipelineinput import PipelineInput
from tests.doubles import StubContext, refusals
from tests.stand_ins import Kept, Told, batches, pipeline, reads, run, takes
from tests.virtual import virtual


def engine() -> Engine:
    return Engine(Clock(asyncio.get_running_loop()))


async def reading(upstream: list, **options) -> tuple[Engine, list]:
    """Return what a pipeline got that reads another one, in an engine that is still running."""
    it, kept = engine(), Kept()
    below = PipelineInput.load({"upstream": "above", **options})
    source = Told(it.clock, [0.5, *upstream])
    await run(it, pipeline("above", [reads(source)]))
    await run(it, pipeline("below", [below], [], [takes(kept)]))
    await it.clock.sleep(1)
    return it, kept.batches


@virtual
async def test_it_reads_another_pipelines_output_batch_by_batch():
    it, seen = await reading([batches([{"n": 1}, {"n": 2}], [{"n": 3}])])

    assert seen == [[{"n": 1}, {"n": 2}], [{"n": 3}]]
    await it.close()


@virtual
async def test_metadata_names_the_upstream():
    it, seen = await reading([batches([{"n": 1}])], envelope={"type": "wrap"})

    assert seen == [
        [
            {
                "_meta": {
                    "pipeline": "below",
                    "input": "pipeline",
                    "upstream": "above",
                    "received_at": "2026-01-01T00:00:00.500000+00:00",
                },
                "value": {"n": 1},
            }
        ]
    ]
    await it.close()


@virtual
async def test_metadata_of_the_upstream_is_not_replaced_but_added_to():
    arrived = {"n": 1, "_meta": {"pipeline": "above", "input": "dummy", "received_at": "earlier"}}

    it, seen = await reading([batches([arrived])], envelope={"type": "merge"})

    assert seen == [
        [
            {
                "n": 1,
                "_meta": {
                    "pipeline": "above",
                    "input": "dummy",
                    "received_at": "earlier",
                    "upstream": "above",
                },
            }
        ]
    ]
    await it.close()


@virtual
async def test_the_upstream_must_already_run():
    it = engine()
    await run(it, pipeline("above", [reads(Told(it.clock, []))]))

    with pytest.raises(Refused) as refused:
        await it.compile(pipeline("below", [PipelineInput.load({"upstream": "abvoe"})]))

    assert str(refused.value) == (
        "pipeline 'below' could not be started: "
        "inputs[0]: there is no pipeline 'abvoe' to read from (expected one of above, below)"
    )
    assert [each.suggestion for each in refused.value.diagnostics] == ["did you mean 'above'?"]
    await it.close()


@virtual
async def test_what_it_reads_is_the_inbox_of_that_upstream():
    inbox = Told(engine().clock, [])
    ctx = StubContext(upstreams={"above": inbox})

    assert PipelineInput.load({"upstream": "above"}).source(ctx) is inbox


def test_a_batch_of_it_may_hold_many_messages():
    assert PipelineInput.load({"upstream": "above"}).is_batching()


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({}, "upstream: this key is required"),
        ({"upstream": "  "}, "upstream: this must not be blank"),
        ({"upstream": 7}, "upstream: expected a string that is not blank, found 7"),
        (
            {"upstream": "above", "when": []},
            "when: expected a list of at least one condition, found an empty list",
        ),
    ],
)
def test_what_it_refuses(options, refusal):
    assert refusals(PipelineInput, options) == [refusal]
