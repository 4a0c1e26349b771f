"""Values that are too large to cross in one go: in slices, and to the same result."""

import gc
import sys
import weakref
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rhai import BudgetError, Paused, RunError, Script

FAR = {"max_operations": 10**9, "time_limit": 30.0, "max_array": 10**7, "max_emitted": 10**7}
COUNT = 50_000


def slices(script, value):
    """The number of slices that a run takes if each ends as soon as it can, and what it emits."""
    run = got = script.start([value], 0.0)
    count = 1
    while not isinstance(got, list):
        got = run.resume(0.0)
        count += 1
    return count, got


def test_a_long_list_comes_in_in_slices():
    count, got = slices(Script("emit(msg.len())", **FAR), list(range(COUNT)))

    assert got == [COUNT]
    assert count > COUNT / 300


def test_an_object_with_many_keys_comes_in_in_slices():
    count, got = slices(Script("emit(msg.len())", **FAR), {str(n): n for n in range(COUNT)})

    assert got == [COUNT]
    assert count > COUNT / 300


def test_a_long_list_in_a_field_comes_in_in_slices():
    value = {"unread": [None] * COUNT, "parts": [{"items": [[n] for n in range(COUNT)]}]}
    count, got = slices(Script("emit(msg.parts[0].items.len())", **FAR), value)

    assert got == [COUNT]
    assert count > COUNT / 300


def test_a_large_value_is_copied_in_slices():
    value = [{"a": 1} for _ in range(COUNT)]
    unread, _ = slices(Script("1", **FAR), value)
    copied, _ = slices(Script("let b = msg; 1", **FAR), value)

    assert copied > unread + 100


def test_a_long_list_leaves_in_slices():
    made = f"let a = []; a.pad({COUNT}, 7); "
    kept, _ = slices(Script(made, **FAR), None)
    left, got = slices(Script(made + "emit(a)", **FAR), None)

    assert got == [[7] * COUNT]
    assert left > kept + COUNT / 300


def test_many_values_leave_in_slices():
    over = []  # notes are told when the run is over, before what it emitted leaves
    code = f"print(1); for i in 0..{COUNT} {{ emit(i) }}"
    run = got = Script(code, note=lambda *note: over.append(1), **FAR).start([None], 0.0)
    while not isinstance(got, list):
        got = run.resume(0.0)
        over.extend([1] * len(over[:1]))

    assert got == list(range(COUNT))
    assert len(over) > COUNT / 100


def test_the_originals_of_a_large_value_are_let_go_of_in_slices():
    value = [[] for _ in range(COUNT)]
    numbers, _ = slices(Script("1", **FAR), [1] * COUNT)
    lists, _ = slices(Script("1", **FAR), value)

    assert lists > numbers + COUNT / 2_000


@pytest.mark.parametrize("slice_of", [0.0, 1e-5, 1.0], ids=repr)
def test_what_cannot_enter_is_told_with_its_path(finish, slice_of):
    value = [{"a": {"b": [n]}} for n in range(COUNT)] + [{"a": {"b": [1, "\ud800"]}}]
    before = [sys.getrefcount(value), sys.getrefcount(value[0])]

    with pytest.raises(RunError, match="surrogate") as caught:
        finish(Script("1").start([[1], value], slice_of), slice_of)

    assert f"at '[{COUNT}].a.b[1]'" in caught.value.message
    assert caught.value.index == 1
    del caught
    assert [sys.getrefcount(value), sys.getrefcount(value[0])] == before


def test_what_a_refused_value_left_is_dropped_in_slices():
    run = Script("1").start([[[] for _ in range(COUNT)] + ["\ud800"]], 0.0)
    assert isinstance(run, Paused)

    count = 0
    with suppress(RunError):
        while run.resume(0.0) is None:
            count += 1

    assert count > COUNT / 256 + COUNT / 2_000


def test_a_key_that_is_none_is_refused_in_a_large_value():
    value = [{"a": [1] * 100, 1: 2}] * 5_000

    with pytest.raises(RunError, match=r"a key of type int at '\[0\]' cannot enter"):
        Script("1").run(value)


def test_what_nests_too_deep_is_refused_in_a_large_value():
    deep = []
    for _ in range(20):
        deep = [deep, 1]

    with pytest.raises(BudgetError) as caught:
        Script("1", max_nesting=20).run([[1] * 10_000, deep])
    assert caught.value.limit == "max_nesting"
    assert Script("emit(1)", max_nesting=22).run([[1] * 10_000, deep]) == [1]


def test_what_came_in_never_fails_for_its_own_size():
    value = [{"text": "x" * 50, "number": n} for n in range(COUNT)]

    assert Script("emit(msg.len())", max_memory=100_000).run(value) == [COUNT]


@pytest.mark.long
def test_the_time_of_converting_is_not_that_of_the_run():
    value = [[n] for n in range(COUNT * 10)]

    assert Script("emit(1)", time_limit=0.001).run(value) == [1]


def test_what_is_unchanged_is_the_same_object():
    value = [{"a": [n, [n]]} for n in range(5_000)]
    changed = Script("msg[4000].a[1][0] = `new`; emit(msg)", max_array=10**6, **{"time_limit": 9.0})
    (same,) = Script("emit(msg)").run(value)
    (other,) = changed.run(value)

    assert same is value
    assert other is not value
    assert other[:4_000] == value[:4_000]
    assert other[4_000] == {"a": [4_000, ["new"]]}
    assert [n for n in range(5_000) if other[n] is not value[n]] == [4_000]
    assert value[4_000] == {"a": [4_000, [4_000]]}


def test_lists_in_lists_leave_as_they_are():
    value = [[[n] for n in range(5_000)], [[]], []]
    (same,) = Script("emit(msg)").run(value)
    (longer,) = Script("msg[0].push(1); msg[1][0].push(2); emit(msg)").run(value)

    assert same is value
    assert longer == [[*value[0], 1], [[2]], []]
    assert all(one is other for one, other in zip(longer[0], value[0], strict=False))
    assert longer[2] is value[2]


def test_a_message_with_a_large_field_keeps_its_order_and_its_other_fields():
    value = {"z": object(), "list": [{"n": n} for n in range(5_000)], "a": 1}
    (out,) = Script("msg.a = msg.list[4999].n; msg.more = 2; emit(msg)").run(value)

    assert [*out] == ["z", "list", "a", "more"]
    assert (out["a"], out["more"]) == (4_999, 2)
    assert out["list"] is value["list"]
    assert out["z"] is value["z"]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(-9, 9)
    | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=settings().max_examples * 60 // 100)
@given(JSON, st.integers(1, 40), st.sampled_from([0.0, 1e-6, 1e-4, 1.0]))
def test_a_large_value_is_to_the_script_what_its_parts_are(part, wrapped, slice_of):
    told = Script("emit(#{ all: msg[0] }.to_json()); emit(msg[0])", **FAR)
    value = [part] * wrapped
    small = told.run([value])

    run = got = told.start([[value] + [0] * 5_000], slice_of)
    while not isinstance(got, list):
        got = run.resume(slice_of)

    assert repr(got) == repr(small)
    assert got[1] is value


def test_a_value_that_changes_while_it_is_converted_harms_nobody(finish):
    objects = {str(n): [n] * 40 for n in range(5_000)}
    lists = [[n] * 40 for n in range(5_000)]
    runs = [Script("emit(msg.len())").start([value], 0.0) for value in (objects, lists)]
    objects.clear()
    lists.clear()

    for run in runs:
        (count,) = finish(run)
        assert 0 < count < 5_000


class Holder:
    """Something that may hold what holds it."""


def test_a_half_converted_value_is_given_back():
    value = [{"a": [n]} for n in range(COUNT)]
    before = [sys.getrefcount(value), sys.getrefcount(value[0]), sys.getrefcount(value[0]["a"])]

    run = Script("1").start([value], 0.0)
    assert run.resume(0.0) is None
    assert sys.getrefcount(value[0]) > before[1]
    run.close()
    del run

    after = [sys.getrefcount(value), sys.getrefcount(value[0]), sys.getrefcount(value[0]["a"])]
    assert after == before


def test_the_garbage_collector_finds_a_circle_through_a_half_converted_value():
    holder = Holder()
    value = [[[n] * 40 for n in range(5_000)], holder]
    holder.run = Script("1").start([value], 0.0)
    assert isinstance(holder.run, Paused)
    watched = weakref.ref(holder)

    del holder, value
    gc.collect()

    assert watched() is None
