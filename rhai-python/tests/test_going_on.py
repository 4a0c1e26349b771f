"""Runs of a list that go on where one of them fails: `failed` is told, and nothing runs twice."""

import pytest
from rhai import BudgetError, RunError, Script

DIVIDES = "emit(10 / msg); emit(msg)"


def going_on(script, values, *, seconds=None):
    """Return what was emitted, and the index of each value that failed; in slices of ``seconds``."""
    failed = []

    def tell(error):
        failed.append(error.index)

    if seconds is None:
        return script.run_each(values, failed=tell), failed
    made = script.start(values, seconds, failed=tell)
    emitted = made if isinstance(made, list) else None
    while emitted is None:
        emitted = made.resume(seconds)
    return emitted, failed


@pytest.mark.parametrize("seconds", [None, 10.0, 0.0])
@pytest.mark.parametrize("many", [1, 31, 32, 33, 200])
def test_the_others_are_emitted_in_their_order(seconds, many):
    values = [number % 3 for number in range(many)]

    emitted, failed = going_on(Script(DIVIDES), values, seconds=seconds)

    assert emitted == [each for value in values if value for each in (10 // value, value)]
    assert failed == [index for index, value in enumerate(values) if not value]


@pytest.mark.parametrize("seconds", [None, 0.0])
def test_what_a_failing_run_had_emitted_is_discarded_and_of_the_others_nothing(seconds):
    script = Script("emit(msg); if msg == 2 { throw `no` }")

    assert going_on(script, [1, 2, 3, 2, 4], seconds=seconds) == ([1, 3, 4], [1, 3])


def test_each_value_runs_once():
    seen = []
    script = Script("note_it(msg); emit(10 / msg)", functions={"note_it": (1, seen.append)})

    going_on(script, [1, 0, 2, 0, 5] * 20)

    assert seen == [1, 0, 2, 0, 5] * 20


@pytest.mark.parametrize("at", [0, 1, 40])
def test_a_value_that_cannot_enter_fails_alone(at):
    values = [1] * 50
    values[at] = {1, 2}

    emitted, failed = going_on(Script("let all = msg; emit(all)"), values)

    assert (emitted, failed) == ([1] * 49, [at])


@pytest.mark.parametrize("seconds", [None, 0.0])
def test_so_does_a_large_one_in_which_something_cannot(seconds):
    large = [0] * 10_000
    large[9_999] = {1}

    emitted, failed = going_on(Script("let all = msg; emit(all)"), [1, large, 2], seconds=seconds)

    assert (emitted, failed) == ([1, 2], [1])


def test_each_has_its_own_limits_and_one_that_passes_them_fails_alone():
    told = []
    script = Script("let n = 0; while n < msg { n += 1 } emit(n)", max_operations=1_000)

    assert script.run_each([5, 10**6, 6, 10**6, 7], failed=told.append) == [5, 6, 7]
    assert [(type(each), each.index, each.limit) for each in told] == [
        (BudgetError, 1, "max_operations"),
        (BudgetError, 3, "max_operations"),
    ]


def test_what_is_raised_by_who_is_told_fails_all_and_ends_the_runs():
    seen = []
    script = Script("note_it(msg); emit(10 / msg)", functions={"note_it": (1, seen.append)})

    def tell(error):
        if error.index > 1:
            raise error

    with pytest.raises(RunError) as caught:
        script.run_each([1, 0, 2, 0, 5], failed=tell)

    assert caught.value.index == 3
    assert seen == [1, 0, 2, 0]
    assert script.run_each([5]) == [2]


def test_an_interrupt_of_a_host_function_is_no_failure_of_a_value():
    def interrupted(_):
        raise KeyboardInterrupt

    script = Script("stop(msg)", functions={"stop": (1, interrupted)})

    with pytest.raises(KeyboardInterrupt):
        script.run_each([1, 2], failed=lambda error: None)


def test_an_error_of_a_host_function_is_the_cause_of_that_of_its_value():
    told = []

    def refuses(value):
        if value == 2:
            raise ValueError("not two")

    script = Script("refuses(msg); emit(msg)", functions={"refuses": (1, refuses)})

    assert script.run_each([1, 2, 3], failed=told.append) == [1, 3]
    assert [type(each.__cause__) for each in told] == [ValueError]
