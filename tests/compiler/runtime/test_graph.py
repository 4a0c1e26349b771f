"""Pipelines that read other pipelines: the inbox between them, and what becomes of it."""

from __future__ import annotations

import pytest

from headrace.compiler.clock import run_virtual
from headrace.compiler.component.envelopes import Merge
from headrace.compiler.config.program import Program
from headrace.compiler.errors import Refused
from headrace.connectors.pipelineinput import PipelineInput
from tests.promises import promise
from tests.stand_ins import Kept, Slow, Told, batches, engine, pipeline, reads, run, takes


def numbered(count):
    return batches(*([n] for n in range(count)))


def view(it, id):
    return it.graph.pipelines[id]


def test_one_upstream_fans_out_to_many():
    async def main():
        it = engine()
        source, own, one, two = Told(it.clock, [0.5, *[numbered(300)]]), Kept(), Kept(), Kept()
        await run(it, pipeline("up", [reads(source)], [], [takes(own)]))
        await run(it, pipeline("a", [PipelineInput(upstream="up")], [], [takes(one)]))
        await run(it, pipeline("b", [PipelineInput(upstream="up")], [], [takes(two)]))

        await it.clock.sleep(1)

        assert own.batches == one.batches == two.batches == [[n] for n in range(300)]
        await it.close()

    run_virtual(main)


@promise("pipeline.input.waits", "pipeline.input.beyond")
def test_a_full_inbox_makes_the_upstream_wait_and_drops_nothing():
    async def main():
        it = engine()
        source, slow = Told(it.clock, [0.5, numbered(500)]), Slow(it.clock, 1.0)
        await run(it, pipeline("up", [reads(source)]))
        await run(it, pipeline("down", [PipelineInput(upstream="up")], [], [takes(slow)]))

        await it.clock.sleep(10)
        taken = view(it, "up").counters.inbound
        await it.clock.sleep(600)

        assert taken <= 10 + 16 + 16 + 100 + 16  # written, two windows, the inbox, one chunk
        assert slow.batches == [[n] for n in range(500)]
        await it.close()

    run_virtual(main)


@promise("pipeline.input.kill", "delivery.ack.on_delivery")
def test_the_upstream_is_acknowledged_once_the_inbox_has_accepted():
    async def main():
        it = engine()
        source, slow = Told(it.clock, [0.5, numbered(200)]), Slow(it.clock, 1e6)
        given = reads(source, acknowledges=True, ack="on_delivery")
        await run(it, pipeline("up", [given]))
        await run(it, pipeline("down", [PipelineInput(upstream="up")], [], [takes(slow)]))

        await it.clock.sleep(10)

        # What the reader has taken out (its window and one chunk) and what its inbox holds.
        assert 100 <= len(source.acknowledged) <= 100 + 16 + 16
        await it.close()

    run_virtual(main)


@promise("pipeline.input.away")
def test_a_reader_outlives_its_upstream_and_attaches_again():
    async def main():
        it = engine()
        kept = Kept()
        await run(it, pipeline("up", [reads(Told(it.clock, [1, batches(["old"])]))]))
        await run(it, pipeline("down", [PipelineInput(upstream="up")], [], [takes(kept)]))
        await it.clock.sleep(2)

        await it.dispose("up")
        await it.clock.sleep(100)
        assert view(it, "down").status == "running"
        await run(it, pipeline("up", [reads(Told(it.clock, [1, batches(["new"])]))]))
        await it.clock.sleep(2)

        assert kept.batches == [["old"], ["new"]]
        await it.close()

    run_virtual(main)


def test_an_upstream_that_is_created_again_cannot_read_what_waits_for_it():
    async def main():
        it = engine()
        await run(it, pipeline("a", [reads(Told(it.clock, []))]))
        await run(it, pipeline("b", [PipelineInput(upstream="a")]))
        await run(it, pipeline("c", [PipelineInput(upstream="b")]))
        await it.dispose("a")

        with pytest.raises(Refused) as refused:
            await it.compile(
                pipeline("a", [reads(Told(it.clock, [])), PipelineInput(upstream="c")])
            )

        assert str(refused.value) == (
            "pipeline 'a' could not be started: inputs[1].upstream: these pipelines feed each other"
            " in a circle: a -> b -> c -> a (expected a pipeline that does not read this one)"
        )
        assert [*it.names()] == ["b", "c"]
        await it.close()

    run_virtual(main)


def test_a_deleted_reader_frees_its_upstream():
    async def main():
        it = engine()
        source, kept, stuck = Told(it.clock, [0.5, numbered(500)]), Kept(), Slow(it.clock, 1e6)
        await run(it, pipeline("up", [reads(source)], [], [takes(kept)]))
        await run(it, pipeline("down", [PipelineInput(upstream="up")], [], [takes(stuck)]))
        await it.clock.sleep(10)
        assert len(kept.batches) < 500

        await it.dispose("down")
        await it.clock.sleep(10)

        assert kept.batches == [[n] for n in range(500)]
        assert view(it, "up").in_flight == 0
        await it.close()

    run_virtual(main)


def test_shutdown_is_upstream_first_so_that_inboxes_drain():
    async def main():
        it = engine()
        source, slow = Told(it.clock, [0.5, numbered(110)]), Slow(it.clock, 0.02)
        await run(it, pipeline("up", [reads(source)]))
        await run(it, pipeline("mid", [PipelineInput(upstream="up")]))
        await run(it, pipeline("down", [PipelineInput(upstream="mid")], [], [takes(slow)]))
        await it.clock.sleep(0.6)

        await it.close()

        assert slow.batches == [[n] for n in range(110)]
        assert slow.finished == 1

    run_virtual(main)


def test_reading_a_pipeline_that_does_not_run_is_refused():
    async def main():
        it = engine()
        await run(it, pipeline("plant", [reads(Told(it.clock, []))]))

        with pytest.raises(Refused) as refused:
            await it.compile(pipeline("p", [PipelineInput(upstream="plnat")]))

        [diagnostic] = refused.value.diagnostics
        assert diagnostic.code == "missing-upstream"
        assert diagnostic.path == "inputs[0]"
        assert diagnostic.suggestion == "did you mean 'plant'?"
        await it.close()

    run_virtual(main)


def test_a_file_attaches_readers_before_anything_flows():
    async def main():
        it = engine()
        kept = Kept()
        up = pipeline("up", [reads(Told(it.clock, [numbered(3)]))])
        down = pipeline("down", [PipelineInput(upstream="up")], [], [takes(kept)])

        await it.load(Program((up, down)))
        await it.clock.sleep(1)

        assert kept.batches == [[0], [1], [2]]
        await it.close()

    run_virtual(main)


def test_an_envelope_adds_to_the_metadata_of_the_upstream_and_replaces_none_of_it():
    async def main():
        it = engine()
        kept = Kept()
        message = {"v": 1, "_meta": {"pipeline": "up", "input": "kafka", "topic": "t"}}
        await run(it, pipeline("up", [reads(Told(it.clock, [1, batches([message, {"v": 2}])]))]))
        given = PipelineInput(upstream="up", envelope=Merge())
        await run(it, pipeline("down", [given], [], [takes(kept)]))

        await it.clock.sleep(2)

        [[first, second]] = kept.batches
        assert first["_meta"] == {
            "pipeline": "up",
            "input": "kafka",
            "topic": "t",
            "upstream": "up",
            "received_at": second["_meta"]["received_at"],
        }
        assert (second["_meta"]["pipeline"], second["_meta"]["input"]) == ("down", "pipeline")
        assert message["_meta"] == {"pipeline": "up", "input": "kafka", "topic": "t"}
        await it.close()

    run_virtual(main)
