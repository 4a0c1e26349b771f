"""The transforms of a pipeline as operators: neighbours fused, failures blamed on the right one."""

import gc
import linecache
import re
import traceback

import pytest
from reactivex.subject import Subject

from headrace.compiler.component.families import Fusible, PerBatch, PerMessage, Transform
from headrace.compiler.errors import BatchFailed, BuildRefused
from headrace.compiler.lowering.chain import lower, plainly
from headrace.compiler.text.diagnostics import Fault
from tests.doubles import StubContext
from tests.marbles import Broker


class Adding(PerMessage, kind="adding"):
    """Adds one to every message; cannot add to a string, and drops zeros."""

    def step(self, ctx):
        def add(batch):
            ctx.warn("the plain step ran")
            if any(isinstance(message, str) for message in batch):
                raise BatchFailed("cannot add to a string")
            return [[message + 1 for message in batch if message]]

        return add

    def generate(self, code, ctx):
        code.keep_if(code.message)
        code.line("m = m + 1")


class Naming(Adding, kind="naming"):
    """Makes a string of every message."""

    def step(self, ctx):
        return lambda batch: [[str(message) for message in batch]]

    def generate(self, code, ctx):
        code.line("m = str(m)")


class Cutting(Transform, kind="cutting"):
    """Cuts every batch into single messages."""

    def step(self, ctx):
        return lambda batch: [[message] for message in batch]


class Summing(PerBatch, kind="summing"):
    """Makes one message of a batch: the sum."""

    def step(self, ctx):
        return lambda batch: [[sum(batch)]]

    def generate(self, code, ctx):
        code.before("total = 0")
        code.line("total += m")
        code.returns("[total]")


class Noting(Fusible, kind="noting"):
    """Notes every message: that is not pure."""

    def step(self, ctx):
        return lambda batch: [batch]

    def generate(self, code, ctx):
        code.line(f"{code.constant(ctx.warn, 'warn')}(f'noted {{m}}')")
        code.returns("batch")


class Refusing(Adding, kind="refusing"):
    """Cannot be built."""

    def step(self, ctx):
        raise BuildRefused(Fault("conflict", f"{ctx.place} is not possible"))


class Lost(Cutting, kind="lost"):
    """Cannot be built either, and is no per-message transform."""

    def operator(self, ctx):
        raise BuildRefused(Fault("conflict", f"{ctx.place} is lost"))


def stages(*transforms):
    """Return transforms, each with its place."""
    placed = []
    for index, transform in enumerate(transforms):
        ctx = StubContext(place=f"transforms[{index}]")
        ctx.index = index
        placed.append((transform, ctx))
    return placed


def lowered(placed, lowering=lower):
    refusals = []
    operators = lowering(placed, refusals)
    assert refusals == []
    return operators


def run(operators, *batches):
    """Return what a chain hands on."""
    source, taken, broker = Subject(), [], Broker()
    source.pipe(*operators).subscribe(lambda delivery: taken.append(delivery.batch))
    for batch in batches:
        source.on_next(broker.deliver(batch))
    return taken


def said(placed):
    """Return failures and warnings by place."""
    return [(ctx.failures, ctx.warnings) for _, ctx in placed]


def test_neighbours_that_look_at_one_message_at_a_time_are_one_operator():
    placed = stages(Adding(), Adding(), Cutting(), Adding(), Cutting(), Cutting())

    assert len(lowered(placed)) == 5
    assert len(lowered(placed, plainly)) == 6
    assert lowered([]) == []


def test_what_gathers_messages_is_the_last_of_its_operator():
    placed = stages(Adding(), Summing(), Adding(), Summing(), Summing(), Cutting(), Summing())

    assert len(lowered(placed)) == 5
    assert run(lowered(placed), [1, 2], [3]) == [[6], [5]]


def test_what_is_not_pure_has_an_operator_and_a_loop_of_its_own():
    placed = stages(Adding(), Noting(), Noting(), Adding(), Naming(), Adding())

    assert len(lowered(placed)) == 4
    assert run(lowered(placed), [1, 2]) == []
    assert [warnings for _, warnings in said(placed)[:4]] == [
        [],
        ["noted 2", "noted 3"],
        ["noted 2", "noted 3"],
        ["the plain step ran"],
    ]


@pytest.mark.parametrize("lowering", [lower, plainly])
def test_a_chain_does_what_its_transforms_do_one_after_the_other(lowering):
    placed = stages(Adding(), Adding(), Cutting(), Adding(), Naming())

    assert run(lowered(placed, lowering), [1, 0, 2], [0], [3]) == [["4"], ["5"], ["6"]]


def test_a_fused_chain_asks_no_plain_step_while_nothing_is_unusual():
    placed = stages(Adding(), Adding())

    run(lowered(placed), [1, 2], [0])

    assert said(placed) == [([], []), ([], [])]


@pytest.mark.parametrize("lowering", [lower, plainly])
def test_a_failure_is_reported_under_the_transform_that_failed(lowering):
    placed = stages(Adding(), Naming(), Adding(), Adding())

    assert run(lowered(placed, lowering), [1, 2], [0]) == []
    assert [failures for failures, _ in said(placed)] == [[], [], ["cannot add to a string"], []]


@pytest.mark.parametrize("lowering", [lower, plainly])
def test_every_transform_that_cannot_be_built_is_told_with_its_place(lowering):
    refusals = []

    lowering(stages(Adding(), Refusing(), Refusing(), Lost(), Adding(), Refusing()), refusals)

    assert [(index, cause.fault.message) for index, cause in refusals] == [
        (1, "transforms[1] is not possible"),
        (2, "transforms[2] is not possible"),
        (3, "transforms[3] is lost"),
        (5, "transforms[5] is not possible"),
    ]


def test_a_traceback_shows_the_generated_line_under_the_places_it_was_made_from():
    placed = stages(Cutting(), Adding(), Adding())
    causes = []
    placed[1][1].report = lambda cause, _: causes.append(cause)

    run(lowered(placed), ["x"])

    [shown] = ["".join(traceback.format_exception(cause)) for cause in causes]
    assert re.search(r'File "<headrace p1 transforms\[1\.\.2\]( \(\d+\))?>", line ', shown)
    assert "    m = m + 1\n" in shown


def test_the_generated_source_of_a_single_transform_is_found_under_its_place():
    gc.collect()  # whatever other tests have left there
    operators = lowered(stages(Cutting(), Adding()))

    shown = linecache.getlines("<headrace p1 transforms[1]>")

    assert len(operators) == 2
    assert "    m = m + 1\n" in [line[4:] for line in shown]


def test_the_fused_loop_is_left_for_good_by_no_failure():
    placed = stages(Adding(), Adding())
    operators = lowered(placed)

    assert run(operators, ["x"], [1], ["x"], [2]) == [[3], [4]]
    assert said(placed)[0] == (["cannot add to a string"] * 2, ["the plain step ran"] * 2)


class Verbose(Adding, kind="verbose"):
    """Says in four thousand lines what could be said in one."""

    def generate(self, code, ctx):
        code.line(*["m = m"] * 4000)
        super().generate(code, ctx)


def test_a_run_that_would_be_too_much_source_is_fused_in_pieces():
    placed = stages(*[Verbose() for _ in range(8)])

    operators = lowered(placed)

    assert len(operators) == 4
    assert run(operators, [1, 2]) == [[9, 10]]
    assert said(placed) == [([], [])] * 8


@pytest.mark.parametrize(
    "source", ["m = m\n" * 10_001, f"m = m + 1 {'+ 0' * 100_000}"], ids=["lines", "expression"]
)
def test_a_transform_that_alone_would_be_too_much_source_is_run_plainly(source):
    class Endless(Adding, kind="endless"):
        """Goes on and on."""

        def generate(self, code, ctx):
            code.line(*source.splitlines())

    placed = stages(Adding(), Endless(), Adding())

    assert run(lowered(placed), [1]) == [[4]]  # more would be worked on in slices
    assert said(placed) == [([], []), ([], ["the plain step ran"]), ([], [])]
