"""A paused run that nobody wants any more."""

import gc
import time
import weakref

import pytest
from rhai import Paused, RunError, Script

FAR = {"max_operations": 10**9, "time_limit": 30.0}
PAUSED_IN = {
    "a loop": "let h = host(); loop {}",
    "a callback": "let h = host(); [1].map(|x| { loop {} })",
    "a comparator": "let h = host(); let a = [3, 1, 2]; a.sort(|x, y| { loop {} })",
    "a comparator in a try": """
        let h = host();
        loop { try { let a = [3, 1]; a.sort(|x, y| { loop {} }) } catch {} }
    """,
    "a deduplication": "let h = host(); let a = [3, 1, 2]; a.dedup(|x, y| { loop {} })",
    "a reduction": "let h = host(); [1, 2].reduce(|x, y| { loop {} }, 0)",
    "a function": "fn f(x) { loop {} } let h = host(); f(h)",
    "a closure that shares": "let h = host(); let f = || { h.len(); loop {} }; f.call()",
    "a try": "let h = host(); loop { try { loop {} } catch {} }",
    "an interpolation": "let h = host(); `${loop {}}`",
    "a printed value": "let h = host(); loop { print(msg); debug(msg) }",
    "a circle": "let h = host(); let a = #{}; a.m = msg; let f = || a; a.f = f; loop {}",
}


class Held(dict):
    """An object that a message holds, and that shows when it goes."""


@pytest.mark.parametrize("where", PAUSED_IN)
@pytest.mark.parametrize("way", ["closed", "dropped", "collected"])
def test_everything_that_the_run_held_goes(where, way):
    gc.collect()
    gc.freeze()  # what other tests have left would take its time as well
    message = {"a": 1, "held": Held()}
    calls = []

    def host():
        calls.append(1)
        return []

    run = Script(PAUSED_IN[where], functions={"host": (0, host)}, **FAR).start([message], 0.003)
    assert isinstance(run, Paused)
    gone = weakref.ref(message["held"])

    began = time.thread_time()  # of the work: others may have the machine
    if way == "closed":
        run.close()
    elif way == "collected":
        circle = [run]
        circle.append(circle)
        del circle
    del run
    del message
    gc.collect()
    took = time.thread_time() - began

    assert took < 0.5
    assert gone() is None
    assert calls == [1]
    assert Script("emit(1)").run(None) == [1]


def test_closing_runs_nothing_more_of_the_script():
    calls = []
    code = "loop { try { let t = 0; for i in 0..100000 { t += i } } catch { host() } host(); }"
    script = Script(code, functions={"host": (0, lambda: calls.append(1))}, **FAR)
    run = script.start([None], 0.0005)
    before = len(calls)

    run.close()

    assert len(calls) == before


def test_closing_lets_no_exception_out(pause):
    for code in PAUSED_IN.values():
        run = pause(code, functions={"host": (0, lambda: [])})
        assert run.close() is None


def test_what_was_closed_cannot_go_on_and_may_be_closed_again(pause):
    run = pause("loop {}")
    run.close()
    run.close()

    with pytest.raises((ValueError, RuntimeError)) as caught:
        run.resume(0.01)
    assert not isinstance(caught.value, RunError)


def test_the_script_runs_on_after_one_of_its_runs_was_given_up():
    script = Script("if msg == 0 { loop {} } emit(msg)", **FAR)

    for _ in range(50):
        script.start([0], 0.0002).close()
        assert script.run(5) == [5]
        script.start([0], 0.0002)
        assert script.run(6) == [6]


def test_a_paused_run_that_holds_its_owner_is_collected():
    class Owner:
        def __init__(self):
            self.script = Script("f(); loop {}", functions={"f": (0, self.call)}, **FAR)
            self.run = self.script.start([1], 0.001)

        def call(self):
            return 1

    owner = Owner()
    assert isinstance(owner.run, Paused)
    gone = weakref.ref(owner)

    del owner
    gc.collect()

    assert gone() is None


def test_a_run_whose_own_value_holds_it_is_collected(pause):
    message = {"a": 1, "held": Held()}
    message["run"] = pause("let a = msg.a; loop {}", [message])
    gone = weakref.ref(message["held"])

    del message
    gc.collect()

    assert gone() is None
