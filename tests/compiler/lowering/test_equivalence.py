"""A fused chain does what the same chain does unfused: batches, failures, warnings, settled debts.

So do both where every batch is a large one, which is worked on in slices.
"""

from copy import deepcopy
from unittest.mock import patch

from hypothesis import example, given
from hypothesis import strategies as st

from headrace.compiler import delivery as delivery_module
from headrace.compiler.buckets import Bounds
from headrace.compiler.lowering.chain import lower, plainly
from headrace.operators.filter import Filter
from headrace.operators.map import Map
from headrace.operators.recall import Recall
from headrace.operators.remember import Remember
from tests.compiler.lowering.drawn import (
    COUNT,
    arrivals,
    chains,
    gathering,
    keeping,
    paths,
    strings,
    values,
    weighted,
)
from tests.compiler.lowering.played import exact, in_slices, run, run_in_slices, run_with_state
from tests.examples import examples

HEAT = Filter.load({"Numeric": {"field": "a", "operator": "greater_than", "value": 80}})


def mapped(*mappings, **policy):
    return Map.load({"mappings": [*mappings], **policy})


COPY = {"type": "copy", "from": "a", "as": "b"}
BELOW = {"type": "copy", "from": "c", "as": "a.b"}
INTO = {"type": "copy", "from": "b", "as": "a"}


@examples(300)
@given(chains, arrivals)
# The second stage would warn of the first message, were it not for the first stage and the second.
@example([mapped(COPY), HEAT], [[{"a": "x"}, {}], [{"a": "x"}], [{"a": 81}, {"a": True}]])
# `a` is a scalar by now, but `a.b` goes where the literal key is.
@example([mapped(INTO, BELOW)], [[{"a.b": 1, "b": 5, "c": 2}]])
@example([mapped(INTO, BELOW, keep="mapped")], [[{"a.b": 1, "b": 5, "c": 2}]])
def test_a_fused_chain_does_what_the_unfused_one_does(transforms, batches):
    same_either_way(transforms, batches)


@examples(300)
@given(gathering, arrivals)
# Nothing is left for the reducer; what is left of the batch is less than came in.
@example([HEAT, COUNT], [[{"a": 1}, {"a": 2}]])
@example([HEAT, COUNT], [[{"a": 1}, {"a": 81}]])
def test_so_does_one_that_ends_in_what_gathers_messages(transforms, batches):
    same_either_way(transforms, batches)


def same_either_way(transforms, batches):
    untouched = deepcopy(batches)

    fused = run(transforms, batches, lower)
    plain = run(transforms, batches, plainly)

    assert fused == plain
    assert run_in_slices(transforms, batches, lower) == plain
    assert run_in_slices(transforms, batches, plainly) == plain
    assert exact(batches) == exact(untouched)


A_AS_C = Remember.load({"remember": [{"field": "a", "as": "c"}, {"field": "b", "as": "b"}]})
C = Recall.load({"recall": ["c", "b"], "on_missing": "skip"})


@examples(400)
@given(
    transforms=keeping,
    batches=arrivals,
    key=weighted(st.just("b"), st.just("b"), st.none(), paths),
    bounds=st.builds(Bounds, st.sampled_from([1, 2, 3, 10]), st.sampled_from([None, 1, 2])),
    remembered=st.dictionaries(
        weighted(strings, st.sampled_from(["1", "80", "true"])),
        st.dictionaries(st.sampled_from(["a", "c", "a.b"]), values, min_size=1),
        max_size=3,
    ),
)
# The last message with a key lacks a field that an earlier one has; a new key comes first.
@example(
    [A_AS_C], [[{"b": "y", "a": 1}, {"b": "x", "a": 1}, {"b": "x"}]], "b", Bounds(), {"x": {"a": 1}}
)
# One batch has more keys than the bucket, and the last one of them is incomplete.
@example(
    [A_AS_C],
    [[*({"b": key, "a": 1} for key in "uvxw"), {"b": "z"}]],
    "b",
    Bounds(3),
    {"p": {"a": 1}, "q": {"a": 1}, "x": {"a": 1}},
)
# Names come in the order of the config; keys in that of their last write.
@example([A_AS_C], [[{"b": "x"}, {"a": 1, "b": "x"}]], "b", Bounds(), {})
@example([A_AS_C], [[{"a": 1, "b": "x"}]], "b", Bounds(), {"x": {"a": 1}, "y": {"a": 1}})
# The second batch comes when what was remembered has expired.
@example([A_AS_C], [[{"b": key, "a": 1}] for key in "yx"], "b", Bounds(10, 1), {"x": {"a": 1}})
@example([C], [[{"b": "x"}]] * 2, "b", Bounds(10, 1), {"x": {"c": 0, "b": 0}})
# A later message fails the batch before anything is remembered; another one after it.
@example([mapped(COPY), A_AS_C], [[{"a": 1, "b": "x"}, {"b": "x"}]], "b", Bounds(), {})
@example([A_AS_C, mapped(COPY)], [[{"a": 1, "b": "x"}, {"b": "x"}]], "b", Bounds(), {})
# What is written in part, because a field is missing, is not recalled before it.
@example(
    [Recall.load({"recall": ["c"]}), A_AS_C],
    [[{"b": "x", "a": 1}, {"b": "y", "a": 1}], [{"b": "x", "a": 2}, {"b": "y"}]],
    "b",
    Bounds(),
    {"x": {"c": 0}, "y": {"c": 0}},
)
# What one remembers the next one recalls, but not the one before it.
@example([C, A_AS_C, C], [[{"a": 1, "b": "x"}]] * 2, "b", Bounds(), {"x": {"c": 0, "b": 0}})
# A message without a key is warned about once, and then no more.
@example([A_AS_C], [[{"a": 1, "b": None}], [{"a": 1}, {"a": 2, "b": "x"}]], "b", Bounds(), {})
def test_so_does_one_that_remembers_and_recalls_and_so_are_the_buckets(
    transforms, batches, key, bounds, remembered
):
    untouched = deepcopy(batches)

    fused = run_with_state(transforms, batches, lower, key, bounds, remembered)
    plain = run_with_state(transforms, batches, plainly, key, bounds, remembered)

    assert fused == plain
    with patch.object(delivery_module, "PART", 1):
        for lowering in (lower, plainly):
            about = (lowering, key, bounds, remembered, in_slices)
            assert run_with_state(transforms, batches, *about) == plain
    assert exact(batches) == exact(untouched)
