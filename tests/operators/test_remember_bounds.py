"""What a transform `remember` does where its bucket is full, and when it writes."""

from copy import deepcopy

from hypothesis import example, given
from hypothesis import strategies as st

from headrace.compiler.clock import run_virtual
from headrace.compiler.lowering.chain import lower
from headrace.operators.filter import Filter
from headrace.operators.map import Map
from tests.operators.keyed import Keyed
from tests.operators.remembered import FAST, MODE, SPEED, either_way, generated, remember
from tests.virtual import virtual

# --- a bucket that is full


@either_way
@virtual
async def test_the_keys_of_a_batch_go_as_those_of_a_batch_for_each_message_would(lowering):
    it = Keyed(lowering, remember(MODE), max_keys=2)

    it.takes([{"machine": machine, "mode": "auto"} for machine in "abac"])

    assert {*it.holds()} == {"a", "c"}


@either_way
@virtual
async def test_a_key_that_had_to_go_within_a_batch_comes_back_without_its_other_names(lowering):
    it = Keyed(lowering, remember(), max_keys=2)

    it.takes([{"machine": "a", "mode": "off", "speed": 1}])
    it.takes([{"machine": machine, "mode": "auto"} for machine in "bcab"])

    assert it.holds() == {"a": {"mode": "auto"}, "b": {"mode": "auto"}}


@either_way
@virtual
async def test_a_later_batch_displaces_the_key_that_was_written_first_within_an_earlier_one(
    lowering,
):
    it = Keyed(lowering, remember(MODE), max_keys=3)

    it.takes(
        *([{"machine": machine, "mode": "auto"} for machine in some] for some in ("aba", "cd"))
    )

    assert {*it.holds()} == {"a", "c", "d"}


WRITTEN = st.fixed_dictionaries(
    {},
    optional={
        "machine": st.sampled_from(["a", "b", "c", "d", None]),
        "mode": st.sampled_from(["auto", "off", None]),
        "speed": st.integers(4, 8),
    },
)


@either_way
@given(
    batches=st.lists(st.lists(WRITTEN, max_size=8), max_size=3),
    max_keys=st.integers(1, 5),
    is_conditional=st.booleans(),
)
@example(
    batches=[[{"machine": "a"}, {"machine": "b", "mode": "off"}, {"machine": "a", "mode": "off"}]],
    max_keys=1,
    is_conditional=False,
)
def test_a_batch_comes_to_the_same_as_a_batch_for_each_of_its_messages(
    lowering, batches, max_keys, is_conditional
):
    async def main():
        transform = remember(when=[FAST] if is_conditional else [])
        whole, single = (Keyed(lowering, transform, max_keys=max_keys) for _ in range(2))

        whole.takes(*batches)
        single.takes(*([message] for batch in batches for message in batch))

        assert [(key, entry.values) for key, entry in whole.bucket.entries.items()] == [
            (key, entry.values) for key, entry in single.bucket.entries.items()
        ]
        assert whole.ctx.warnings == single.ctx.warnings

    run_virtual(main)


# --- what it hands on


@virtual
async def test_the_batch_is_handed_on_as_the_very_list_and_nothing_in_it_is_changed():
    it = Keyed(lower)
    batch = [{"machine": "m1", "mode": {"is": "auto"}}, {"machine": "m2"}, "x"]
    untouched = deepcopy(batch)

    [out] = remember(MODE).step(it.ctx)(batch)
    kept = generated(it, remember(MODE))(batch[:1])

    assert out is batch
    assert kept == batch[:1]
    assert kept[0] is batch[0]
    assert batch == untouched


@virtual
async def test_the_generated_form_hands_on_the_very_list_too():
    it = Keyed(lower)
    loop = generated(it, remember())
    complete = [{"machine": "m1", "mode": "auto", "speed": 1}] * 2
    incomplete = [*complete, {"machine": "m1", "speed": 2}, {"machine": 5}]

    assert loop(complete) is complete
    assert loop(incomplete) is incomplete
    assert it.holds() == {"m1": {"mode": "auto", "last_speed": 2}}


@either_way
@virtual
async def test_it_remembers_what_the_transforms_before_it_made(lowering):
    double = {"type": "arithmetic", "operator": "multiply", "as": "speed"} | {
        "left": {"type": "field", "field": "speed"},
        "right": {"type": "value", "value": 2},
    }
    fast = {"Numeric": {"field": "speed", "operator": "greater_than", "value": 5}}
    it = Keyed(lowering, Map.load({"mappings": [double]}), Filter.load(fast), remember(SPEED))

    out = it.takes([{"machine": "m1", "speed": 3}, {"machine": "m2", "speed": 2}])

    assert out == [[{"machine": "m1", "speed": 6}]]
    assert it.holds() == {"m1": {"last_speed": 6}}


@either_way
@virtual
async def test_an_empty_batch_writes_nothing(lowering):
    it = Keyed(lowering, remember())

    assert remember().step(it.ctx)([]) == [[]]
    assert it.takes([]) == []
    assert it.holds() == {}


# --- when it writes


@either_way
@virtual
async def test_a_batch_is_written_at_once_when_its_last_message_is_through(lowering):
    it = Keyed(lowering, remember(MODE))
    told = []
    it.bucket.watch("m1", lambda: told.append(deepcopy(it.holds())))

    it.takes([{"machine": machine, "mode": machine} for machine in ("m1", "m2", "m1", "m3")])

    assert told == [{"m3": {"mode": "m3"}, "m2": {"mode": "m2"}, "m1": {"mode": "m1"}}]


@either_way
@virtual
async def test_a_batch_that_fails_before_it_has_written_nothing(lowering):
    demand = Map.load({"mappings": [{"type": "copy", "from": "speed", "as": "v"}]})
    it = Keyed(lowering, demand, remember(MODE))

    out = it.takes(
        [{"machine": "m1", "mode": "auto", "speed": 1}, {"machine": "m1", "mode": "off"}]
    )

    assert out == []
    assert it.ctx.failures == ["mapping 0 ('copy'): field 'speed' is missing or null"]
    assert it.holds() == {}


@either_way
@virtual
async def test_a_batch_that_fails_after_it_has_written(lowering):
    demand = Map.load({"mappings": [{"type": "copy", "from": "speed", "as": "v"}]})
    it = Keyed(lowering, remember(MODE), demand)

    assert it.takes([{"machine": "m1", "mode": "auto"}]) == []
    assert it.ctx.failures == ["mapping 0 ('copy'): field 'speed' is missing or null"]
    assert it.holds() == {"m1": {"mode": "auto"}}


# --- bounds


@either_way
@virtual
async def test_a_new_key_takes_the_place_of_the_one_written_longest_ago(lowering):
    it = Keyed(lowering, remember(MODE), max_keys=3)

    for machines in ("ab", "c", "a", "de", "cfgh"):
        it.takes([{"machine": machine, "mode": machines} for machine in machines])

    assert [*it.bucket.entries] == ["f", "g", "h"]


@either_way
@virtual
async def test_of_a_key_that_has_expired_nothing_is_left_when_it_is_written_again(lowering):
    it = Keyed(lowering, remember(), idle_seconds=10)
    it.takes([{"machine": "m1", "mode": "auto", "speed": 1}])
    await it.clock.sleep(9)
    it.takes([{"machine": "m1", "speed": 2}])
    await it.clock.sleep(9)
    assert it.holds() == {"m1": {"mode": "auto", "last_speed": 2}}

    await it.clock.sleep(1)
    it.takes([{"machine": "m1", "speed": 3}])

    assert it.holds() == {"m1": {"last_speed": 3}}
