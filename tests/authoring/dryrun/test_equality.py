"""What a dry run shows last is what a running pipeline would write, and tracing changes nothing."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.buckets import Bounds
from headrace.compiler.clock import Clock, run_virtual
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.component.states import PipelineState
from headrace.compiler.runtime.engine import Engine
from tests.authoring.dryrun.dryrunning import NEW_YEAR, transform, tried
from tests.authoring.dryrun.staged import chains, messages, seeds, states
from tests.examples import examples
from tests.stand_ins import Kept, Told, batches, reads, running, takes


def ran(documents, batch, state, held, advance):
    """Return what a running pipeline wrote of a batch, and what failed where."""

    async def main():
        clock, kept = Clock(asyncio.get_running_loop()), Kept()
        engine = Engine(clock)
        engine.state.declare({"b": Bounds()})
        engine.state.get("b").merge(held)
        config = PipelineConfig(
            id="p1",
            inputs=(reads(Told(clock, [batches(batch)])),),
            transforms=tuple(map(transform, documents)),
            outputs=(takes(kept),),
            state=PipelineState.load(state),
        )
        await engine.compile(config)
        await clock.sleep(0.5)  # it takes a pipeline a turn or two to begin
        await clock.sleep(advance)
        written = [*kept.batches]
        failed = {
            (each.component, each.message) for each in running(engine, "p1").failures.table.latest()
        }
        left = {key: values for key, values, _ in engine.state.get("b").newest(100)}
        await engine.close()
        return written, failed, left

    return run_virtual(main, started_at=NEW_YEAR)


@examples(300)
@given(chains, messages, states, seeds, st.sampled_from([0, 2, 20]))
def test_a_dry_run_hands_on_what_a_running_pipeline_writes(documents, batch, state, held, advance):
    written, failed, left = ran(documents, batch, state, held, advance)

    for traced in (False, True):
        trial = tried(documents, batch, state=state, seeds=held, advance=advance, traced=traced)

        shown = [lot.batch for lot in trial.stages[-1].handed_on]
        if trial.failure is None:
            assert failed == set()
        else:
            assert (trial.failure.at, trial.failure.message) in failed
        if trial.failure is None or not advance:
            assert shown == written
            assert trial.remembered == left
