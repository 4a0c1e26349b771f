"""Scripts in several threads at once."""

import sys
import threading

import pytest
from rhai import BudgetError, RunError, Script


def in_threads(count, work):
    """Do ``work(number)`` in ``count`` threads at once; give all results, raise the first error."""
    results, errors = [None] * count, []
    gate = threading.Barrier(count)

    def job(number):
        try:
            gate.wait()
            results[number] = work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=job, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if errors:
        raise errors[0]
    return results


@pytest.fixture
def switching():
    """Threads change places as often as the interpreter lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_a_script_runs_in_a_thread_that_did_not_build_it():
    script = Script("emit(msg * 2)")

    assert in_threads(1, lambda _: script.run(4)) == [[8]]


def test_one_script_runs_in_many_threads_at_once(switching):
    script = Script(
        "let n = host(msg.i); msg.n = n; emit(msg); emit(msg.part)",
        functions={"host": (1, lambda i: i + 1)},
    )

    def work(number):
        for i in range(300):
            part = {"b": number, "a": i}
            out, same = script.run({"i": i, "part": part})
            assert list(out) == ["i", "part", "n"]
            assert (out["i"], out["n"]) == (i, i + 1)
            assert same is part
        return number

    assert in_threads(8, work) == list(range(8))


def test_scripts_are_built_in_many_threads_at_once(switching):
    files = {"m": "fn f(x) { x + 1 }"}

    def work(number):
        for i in range(30):
            s = Script(f'import "m" as m; emit(m::f({number} + {i}))', load=files.__getitem__)
            assert s.run(None) == [number + i + 1]
        return True

    assert all(in_threads(6, work))


def test_errors_stay_with_the_thread_they_happened_in(switching):
    script = Script("emit(10 / msg)")

    def work(number):
        for _ in range(200):
            if number % 2:
                with pytest.raises(RunError, match="zero"):
                    script.run(0)
            else:
                assert script.run(5) == [2]
        return True

    assert all(in_threads(4, work))


def test_a_host_function_may_wait_for_another_thread_that_runs_the_same_script():
    script = None

    def host(n):
        if n == 0:
            return 0
        return in_threads(1, lambda _: script.run(n - 1))[0][0]

    script = Script("emit(host(msg) + 1)", functions={"host": (1, host)})

    assert script.run(5) == [6]


@pytest.mark.parametrize("size", [64 * 1024, 256 * 1024])
def test_a_thread_with_a_small_stack_is_enough(size):
    before = threading.stack_size(size)
    try:
        deep = "fn f(x) { if x == 0 { 0 } else { 1 + (1 + (1 + f(x - 1))) - 2 } } emit(f(50))"
        assert in_threads(1, lambda _: Script(deep).run(None)) == [[50]]

        def endless(_):
            with pytest.raises(BudgetError) as caught:
                Script("fn f(x) { f(x) } f(1)").run(None)
            return caught.value.limit

        assert in_threads(2, endless) == ["max_calls", "max_calls"]
    finally:
        threading.stack_size(before)
