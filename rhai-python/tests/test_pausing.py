"""A run in slices: started, set aside, gone on with."""

import asyncio
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rhai import BudgetError, Paused, RunError, Script

LONG = "let n = 0; for i in 0..200000 { n += i } emit(n + msg)"
SUM = sum(range(200_000))
FAR = {"max_operations": 10**9, "time_limit": 30.0}


def test_a_short_run_is_over_at_once():
    assert Script("emit(msg + 1)").start([1, 2, 3], 1.0) == [2, 3, 4]
    assert Script("emit(msg + 1)").start([], 1.0) == []


def test_a_long_run_comes_back_in_between_and_gives_the_same():
    got = run = Script(LONG, **FAR).start([1, 2, 3], 0.002)
    pauses = 0
    while not isinstance(got, list):
        pauses += 1
        got = run.resume(0.002)

    assert got == [SUM + 1, SUM + 2, SUM + 3]
    assert pauses > 3


LOOP = "let b = []; b.pad(5000, 2); b.for_each(|x| { let c = []; c.pad(50000, x); });"
SLOW = {
    "a bare loop": "loop {}",
    "reversing": "let a = []; a.pad(99999, 0); loop { a.reverse(); }",
    "comparing": "let a = []; a.pad(99999, 1); let b = a; loop { a == b; }",
    "splitting": "let s = ``; s.pad(60000, `x`); loop { s.split(``); }",
    "sorting by a function": "let a = []; a.pad(5000, 1); loop { a.sort(|x, y| x - y); }",
    "sorting": "let a = []; for i in 0..90000 { a.push(i * 7919 % 9973) } loop { let b = a; b.sort(); }",
    "callbacks": "let a = []; a.pad(5000, 1); loop { a.map(|x| x); }",
    "natives in callbacks": f"loop {{ {LOOP} }}",
    "searching": "let a = []; a.pad(99999, 0); loop { a.contains(1); a.index_of(2); 3 in a }",
    "texts": "let a = []; a.pad(9999, 0); loop { a.to_string(); `${a}`; }",
}


@pytest.mark.timed
@pytest.mark.parametrize("name", SLOW)
def test_a_slice_takes_about_as_long_as_it_may(pause, name):
    run = pause(SLOW[name], seconds=0.02)
    took = []
    for _ in range(9):
        began = time.thread_time()  # of the work: others may have the machine
        assert run.resume(0.02) is None
        took.append(time.thread_time() - began)
    run.close()

    assert sorted(took)[4] < 0.06


CODES = [
    "emit(msg)",
    "msg.n += 1; emit(msg)",
    LONG.replace("200000", "3000").replace("+ msg)", "+ msg.n)"),
    "let a = []; for i in 0..300 { a.push((i * 7919) % 307) } a.sort(|x, y| x - y); emit(a)",
    "for i in 0..50 { let m = msg; m.i = i; emit(m) }",
    "emit([1, 2, 3].map(|x| { let s = 0; for i in 0..500 { s += i * x } s }))",
    "let r = []; for i in 0..40 { r.push(host(i + msg.n)) } emit(r)",
    "if msg.n > 3 { throw `too big` } let t = 0; for i in 0..1000 { t += i } emit(msg)",
    "fn fib(n) { if n < 2 { n } else { fib(n - 1) + fib(n - 2) } } emit(fib(12) + msg.n)",
    "let f = |x| { let t = 0; for i in 0..x { t += i } t }; emit(f.call(900)); emit(msg.part)",
    "let p = msg.part; for i in 0..500 { p.b.push(i) } emit(p); emit(msg.part); print(p)",
]
SCRIPTS = [
    Script(code, functions={"host": (1, lambda x: [x])}, note=lambda *note: None, **FAR)
    for code in CODES
]


def ended(work):
    try:
        return work()
    except RunError as error:
        return type(error), error.message, error.line, error.column, error.index


@settings(max_examples=settings().max_examples * 3)
@given(
    st.sampled_from(SCRIPTS),
    st.lists(st.integers(0, 5), max_size=4),
    st.lists(st.sampled_from([1e-9, 1e-6, 1e-5, 5e-5, 2e-4, 1e-3]), min_size=1, max_size=6),
)
def test_random_slices_give_what_one_run_gives(script, numbers, slices):
    values = [{"n": n, "part": {"b": [n], "a": 1}} for n in numbers]

    def in_slices():
        turn = 0
        run = got = script.start(values, slices[0])
        while not isinstance(got, list):
            turn += 1
            got = run.resume(slices[turn % len(slices)])
        return got

    whole, sliced = ended(lambda: script.run_each(values)), ended(in_slices)

    assert repr(whole) == repr(sliced)
    if isinstance(whole, list):
        assert [any(one is m for m in values) for one in whole] == [
            any(one is m for m in values) for one in sliced
        ]


def test_a_failing_value_fails_the_whole_with_its_index(finish):
    script = Script("let n = 0; for i in 0..20000 { n += i } emit(10 / msg)", **FAR)
    run = script.start([1, 2, 0, 3], 0.0005)

    with pytest.raises(RunError, match="zero") as caught:
        finish(run, 0.0005)
    assert caught.value.index == 2
    assert (caught.value.line, caught.value.column) == (1, 49)
    assert script.run(5) == [2]


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({"max_operations": 500_000, "time_limit": 30.0}, "max_operations"),
        ({"max_operations": 10**12, "time_limit": 0.1}, "time_limit"),
    ],
)
def test_limits_hold_across_slices(finish, options, limit):
    run = Script("loop {}", **options).start([None], 0.0005)

    with pytest.raises(BudgetError) as caught:
        finish(run, 0.0005)
    assert caught.value.limit == limit


def test_pauses_do_not_count_as_time():
    # Each pause is longer than a run may take. That is many times what this one needs of a processor, so
    # that it is over in time also where many others want one.
    script = Script(
        "let t = 0; for i in 0..100000 { t += i } emit(1)", max_operations=10**9, time_limit=0.7
    )
    run = got = script.start([None] * 3, 0.0005)
    assert isinstance(run, Paused)

    for seconds in (0.0005, 0.005):
        threading.Event().wait(0.8)  # which nobody sets
        got = run.resume(seconds)
    while not isinstance(got, list):
        got = run.resume(0.005)

    assert got == [1, 1, 1]


def test_what_is_over_cannot_go_on(pause, finish):
    run = pause(LONG)
    finish(run)

    for _ in range(2):
        with pytest.raises((ValueError, RuntimeError)):
            run.resume(0.01)
    run.close()


def test_what_failed_cannot_go_on(pause, finish):
    run = pause("let t = 0; for i in 0..100000 { t += i } 1 / 0")
    with pytest.raises(RunError):
        finish(run)

    with pytest.raises((ValueError, RuntimeError)) as caught:
        run.resume(0.01)
    assert not isinstance(caught.value, RunError)


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), "1", None], ids=repr)
def test_a_slice_is_a_number_of_seconds(pause, seconds):
    with pytest.raises((ValueError, TypeError)):
        Script("emit(1)").start([1], seconds)
    run = pause(LONG)
    with pytest.raises((ValueError, TypeError)):
        run.resume(seconds)
    run.close()


def test_nobody_can_make_a_paused_run_by_hand():
    with pytest.raises(TypeError):
        Paused()


def test_an_event_loop_lives_on_beside_a_long_run():
    async def beside():
        beats = 0
        over = False

        async def heart():
            nonlocal beats
            while not over:
                beats += 1
                await asyncio.sleep(0)

        async def work():
            nonlocal over
            got = run = Script(LONG, **FAR).start([1, 2], 0.002)
            while not isinstance(got, list):
                await asyncio.sleep(0)
                got = run.resume(0.002)
            over = True
            return got

        got, _ = await asyncio.gather(work(), heart())
        return got, beats

    got, beats = asyncio.run(beside())

    assert got == [SUM + 1, SUM + 2]
    assert beats > 3


STILL_PAUSED = """
import sys
from rhai import Script

def start(code):
    return Script(code, max_operations=10**12, time_limit=60.0).start([1], 0.01)

sys.kept = start("let a = [2, 1]; a.sort(|x, y| { loop {} })")
run = start("loop {}")
print(type(run).__name__)
"""


def test_an_interpreter_ends_with_a_run_still_paused():
    ended = subprocess.run(
        [sys.executable, "-c", STILL_PAUSED], capture_output=True, text=True, timeout=60
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "Paused\n", "")
