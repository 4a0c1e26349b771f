"""Large batches in the several lines of one pipeline."""

from headrace.compiler.delivery import PART
from headrace.compiler.lowering.lifting import per_batch
from headrace.operators.splitter import Splitter
from tests.compiler.lowering.sliced import LARGE, SlicedChain, at_once, doubling
from tests.doubles import StubContext
from tests.virtual import virtual


def noting(log, name):
    """Return a step that notes which batch it has seen, when it is through."""

    def paced(batch):
        for _ in range(0, len(batch), PART):
            yield None
        log.append((name, batch[0]))
        yield batch

    return paced


def at_once_noting(log, name):
    def step(batch):
        log.append((name, batch[0]))
        return [batch]

    return step


@virtual
async def test_a_batch_is_through_all_lines_before_the_next_enters_the_first():
    chain, log = SlicedChain(), []
    first, second = (
        per_batch(at_once_noting(log, name), chain.report, chain.pacing, noting(log, name))
        for name in ("recalled", "remembered")
    )
    chain.runs(lambda source: source.pipe(first, second))

    chain.send(["large", *LARGE], ["small"], ["next", *LARGE], ["last"])
    await chain.settles()

    expected = ["large", "small", "next", "last"]
    assert log == [(name, each) for each in expected for name in ("recalled", "remembered")]
    assert [batch[0] for batch in chain.batches] == expected


@virtual
async def test_what_is_let_go_behind_a_line_waits_for_nobody_before_it():
    chain, other, log = SlicedChain(), SlicedChain(), []
    chain.pacing = other.pacing
    behind = per_batch(
        at_once_noting(log, "behind"), chain.report, chain.pacing, noting(log, "behind")
    )
    before = per_batch(
        at_once_noting(log, "before"), chain.report, chain.pacing, noting(log, "before")
    )
    other.runs(behind)  # subscribed first, as the end of a chain is
    chain.runs(before)

    chain.send(LARGE)
    other.send(["from a timer"])

    assert log == [("behind", "from a timer")]


@virtual
async def test_what_has_not_gone_through_in_time_is_reported_and_counted():
    chain, log = SlicedChain(), []
    subscription = chain.runs(per_batch(at_once, chain.report, chain.pacing, doubling(log)))

    chain.send(LARGE, [1, 2, 3])
    while len(log) < 3:
        await chain.clock.sleep(0)
    lost = chain.pacing.slices.abandon()
    subscription.dispose()

    assert lost == len(LARGE) + 3
    assert chain.failures == ["stopped before everything that was accepted went through"] * 2
    assert chain.pacing.slices.abandon() == 0


@virtual
async def test_of_a_batch_that_is_cut_only_what_is_left_is_lost():
    chain = SlicedChain()
    ctx = StubContext(clock=chain.clock)
    chain.runs(Splitter(out_size=1000).operator(ctx))

    chain.send([*LARGE, *LARGE, *LARGE])
    while len(chain.taken) < 4:
        await chain.clock.sleep(0)

    assert ctx.pacing.slices.abandon() == 3 * len(LARGE) - 4000
