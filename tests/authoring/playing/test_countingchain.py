"""A chain that counts does what the fused one does, whatever it is made of, and tells what it takes."""

from copy import deepcopy

from hypothesis import given
from hypothesis import strategies as st

from headrace.authoring.playing.countingchain import counting
from headrace.compiler.buckets import Bounds
from headrace.compiler.lowering.chain import lower, plainly
from headrace.operators.filter import Filter
from tests.compiler.lowering.drawn import arrivals, chains, gathering, keeping, strings
from tests.compiler.lowering.played import exact, run, run_in_slices, run_with_state
from tests.examples import examples

HEAT = Filter.load({"Numeric": {"field": "a", "operator": "greater_than", "value": 80}})


@examples(200)
@given(chains | gathering, arrivals)
def test_it_does_what_the_fused_one_does(transforms, batches):
    untouched = deepcopy(batches)

    fused = run(transforms, batches, lower)

    assert run(transforms, batches, counting) == fused
    assert run_in_slices(transforms, batches, counting) == fused
    assert exact(batches) == exact(untouched)


@examples(100)
@given(
    keeping,
    arrivals,
    st.sampled_from(["b", None]),
    st.dictionaries(strings, st.just({"a": 1, "c": None}), max_size=3),
)
def test_so_it_does_where_something_is_remembered(transforms, batches, key, remembered):
    about = (key, Bounds(3), remembered)

    fused = run_with_state(transforms, batches, lower, *about)

    assert run_with_state(transforms, batches, counting, *about) == fused


@examples(100)
@given(chains | gathering, arrivals)
def test_a_condition_tells_of_each_message_that_reaches_it(transforms, batches):
    taken = []

    def lowering(stages, refusals):
        _, last = stages[-1]
        taken.append(last.taken)
        return counting(stages, refusals)

    reaching = messages(run(transforms, batches, lower))
    passing = messages(run([*transforms, HEAT], batches, lowering))

    [told] = taken
    assert told.count(("true", ("Numeric",))) == passing
    assert told.count(("false", ("Numeric",))) == reaching - passing


@examples(100)
@given(chains | gathering, arrivals, st.sampled_from([lower, plainly]))
def test_in_production_nothing_is_told_for_a_message(transforms, batches, lowering):
    taken = []

    def listening(stages, refusals):
        taken.extend(ctx.taken for _, ctx in stages)
        return lowering(stages, refusals)

    run(transforms, batches, listening)

    assert taken == [[]] * len(transforms)


def messages(log):
    """Return how many messages were handed on."""
    return sum(len(batch) for what, *about in log if what == "handed on" for batch in about)
