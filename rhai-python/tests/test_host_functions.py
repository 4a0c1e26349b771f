"""Python functions that a script may call."""

import gc
import weakref

import pytest
from rhai import BudgetError, CompileError, RunError, Script


def script(code, **functions):
    arities = {name: (f.__code__.co_argcount, f) for name, f in functions.items()}
    return Script(code, functions=arities)


def test_arguments_and_results_cross_like_values():
    seen = []

    def host(a, b):
        seen.append((a, b))
        return {"z": [a], "a": b}

    s = script("emit(host(msg.x, #{ k: 'c' })); emit(host((), 1.0).z[0])", host=host)

    assert s.run({"x": [1, None]}) == [{"z": [[1, None]], "a": {"k": "c"}}, None]
    assert seen == [([1, None], {"k": "c"}), (None, 1.0)]


def test_an_untouched_argument_is_the_same_object():
    seen = []
    message = {"part": {"deep": [1]}}

    script("host(msg.part); host(msg)", host=lambda v: seen.append(v)).run(message)

    assert seen[0] is message["part"]
    assert seen[1] is message


def test_what_a_host_function_gives_comes_out_as_the_same_object():
    price = {"amount": 10**30, "names": ["z", "a"]}

    (out,) = script("emit(host())", host=lambda: price).run(None)

    assert out == price
    assert list(out) == ["amount", "names"]
    assert out is price


def test_two_calls_do_not_mix_up_what_they_gave():
    given = [{"b": 1, "a": 2}, {"y": 1, "x": 2}]

    s = script(
        "let one = host(0); let two = host(1); emit(two); emit(one)", host=lambda i: given[i]
    )

    one, two = s.run(None)
    assert one is given[1]
    assert two is given[0]


def test_the_script_changes_a_copy_of_what_it_was_given():
    kept = {"n": 1}

    assert script("let k = host(); k.n = 2; emit(k)", host=lambda: kept).run(None) == [{"n": 2}]
    assert kept == {"n": 1}


@pytest.mark.parametrize("count", range(8))
def test_a_function_has_the_arity_it_was_given_with(count):
    code = f"emit(host({', '.join(str(i) for i in range(count))}))"
    s = Script(code, functions={"host": (count, lambda *args: list(args))})

    assert s.run(None) == [list(range(count))]


def test_a_call_with_another_number_of_arguments_finds_nothing():
    s = script("\n  host(1, 2)", host=lambda a: a)

    with pytest.raises(RunError, match="host") as caught:
        s.run(None)
    assert (caught.value.line, caught.value.column) == (2, 3)


def test_methods_closures_and_pointers_reach_a_host_function():
    double = lambda x: x * 2  # noqa: E731

    for code in (
        "emit(5.double())",
        "emit([5].map(Fn(`double`))[0])",
        "emit([5].map(|x| double(x))[0])",
        "emit(Fn(`double`).call(5))",
        "fn f(x) { double(x) } emit(f(5))",
    ):
        assert script(code, double=double).run(None) == [10], code


class Missing(KeyError):
    pass


def test_an_exception_becomes_a_run_error_with_its_cause_and_place():
    def host(key):
        raise Missing("no such key")

    s = script("let x = 1;\n  host(x)", host=host)

    with pytest.raises(RunError) as caught:
        s.run(None)
    assert isinstance(caught.value.__cause__, Missing)
    assert "no such key" in caught.value.message
    assert (caught.value.line, caught.value.column) == (2, 3)
    assert caught.value.index == 0


def test_an_exception_in_a_callback_has_its_cause_too():
    def host(x):
        raise Missing("deep")

    for code in (
        "[1].map(|x|\n host(x))",
        "fn f(x) {\n host(x) } f(1)",
        "[[1]].map(|l| l.map(|x|\n host(x)))",
    ):
        with pytest.raises(RunError) as caught:
            script(code, host=host).run(None)
        assert isinstance(caught.value.__cause__, Missing), code
        assert (caught.value.line, caught.value.column) == (2, 2)


def test_a_script_can_catch_what_a_host_function_raises():
    def host():
        raise Missing("x")

    s = script("try { host() } catch (e) { emit(`caught`) } emit(1)", host=host)

    assert s.run(None) == ["caught", 1]


def test_an_error_after_a_caught_one_has_no_cause_of_it():
    def host():
        raise Missing("x")

    with pytest.raises(RunError) as caught:
        script("try { host() } catch {} 1 / 0", host=host).run(None)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupt_is_not_an_error_a_script_may_catch(stop):
    def host():
        raise stop

    with pytest.raises((stop, RunError)) as caught:
        script("try { host() } catch {} emit(1)", host=host).run(None)
    assert isinstance(caught.value, stop) or isinstance(caught.value.__cause__, stop)


def test_a_result_that_no_script_can_read_is_an_error_at_the_call():
    with pytest.raises(RunError, match="set") as caught:
        script("let x = 1;\nhost()", host=lambda: {1, 2}).run(None)
    assert (caught.value.line, caught.value.column) == (2, 1)


def test_an_argument_that_cannot_leave_is_an_error_at_the_call():
    with pytest.raises(RunError, match="function") as caught:
        script("let x = 1;\nhost(|x| x)", host=lambda x: x).run(None)
    assert (caught.value.line, caught.value.column) == (2, 1)


def test_a_deep_result_is_refused():
    deep = []
    for _ in range(1000):
        deep = [deep]

    with pytest.raises(RunError, match="nested"):
        script("host()", host=lambda: deep).run(None)


def test_a_host_function_may_run_another_script():
    inner = Script("emit(msg + 1)")
    s = Script("emit(1); emit(host(msg)[0]); emit(msg)", functions={"host": (1, inner.run)})

    assert s.run(4) == [1, 5, 4]


def test_a_host_function_may_run_the_same_script():
    holder = []
    s = Script(
        "if msg > 0 { for v in host(msg - 1) { emit(v) } } emit(msg)",
        functions={"host": (1, lambda n: holder[0].run(n))},
    )
    holder.append(s)

    assert s.run(3) == [0, 1, 2, 3]


def test_an_error_of_a_nested_run_is_the_cause_of_the_outer_one():
    inner = Script("1 / 0")

    with pytest.raises(RunError) as caught:
        Script("\n\nhost()", functions={"host": (0, lambda: inner.run(None))}).run(None)

    assert caught.value.line == 3
    assert isinstance(caught.value.__cause__, RunError)
    assert caught.value.__cause__.line == 1


def test_the_budgets_of_nested_runs_are_their_own():
    inner = Script("loop {}", max_operations=1_000)

    def host():
        with pytest.raises(BudgetError):
            inner.run(None)
        return 1

    outer = Script("for i in 0..10 { host() } emit(1)", functions={"host": (0, host)})
    assert outer.run(None) == [1]


def test_endless_nesting_of_runs_ends_in_an_error():
    holder = []
    s = Script("host()", functions={"host": (0, lambda: holder[0].run(None))})
    holder.append(s)

    with pytest.raises(RunError):
        s.run(None)
    assert Script("emit(1)").run(None) == [1]


def test_a_host_function_may_shadow_one_of_the_language():
    assert script("emit(len([1, 2]))", len=lambda a: "mine").run(None) in (["mine"], [2])


@pytest.mark.parametrize("name", ["", "a b", "fn", "let", "1a", "emit", "eval", "+"])
def test_a_host_function_needs_a_name_of_the_language(name):
    with pytest.raises((ValueError, TypeError)):
        Script("emit(1)", functions={name: (0, int)})


@pytest.mark.parametrize(
    "functions",
    [
        {"f": len},
        {"f": ("1", len)},
        {"f": (1, 5)},
        {"f": (-1, len)},
        {"f": (1,)},
        [],
        {1: (0, int)},
    ],
    ids=repr,
)
def test_functions_of_another_shape_are_refused(functions):
    with pytest.raises((TypeError, ValueError, OverflowError)):
        Script("emit(1)", functions=functions)


def test_a_call_of_a_name_nobody_gave_is_a_run_error():
    with pytest.raises((RunError, CompileError), match="nobody"):
        Script("nobody(1)").run(None)


class Owner:
    def __init__(self):
        self.script = Script(
            "emit(f())", functions={"f": (0, self.call)}, load=self.load, note=self.note
        )

    def call(self):
        return 1

    def load(self, path):
        return ""

    def note(self, *what):
        pass


def test_a_script_that_holds_its_owner_is_collected():
    owner = Owner()
    assert owner.script.run(None) == [1]
    gone = weakref.ref(owner)

    del owner
    gc.collect()

    assert gone() is None


def test_a_script_is_dropped_without_a_collection_when_nothing_refers_to_it():
    class Thing:
        def __call__(self):
            return 1

    thing = Thing()
    gone = weakref.ref(thing)
    s = Script("emit(f())", functions={"f": (0, thing)})
    s.run(None)

    gc.disable()
    try:
        del s, thing
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.long
def test_a_collection_in_the_middle_of_a_run_breaks_nothing():
    def host(x):
        gc.collect()
        return [x]

    code = "let l = []; for i in 0..3 { l.push(host(msg)) } emit(l.len()); emit(msg)"
    s = Script(code, functions={"host": (1, host)}, time_limit=60.0)  # it is a large process
    message = {"a": [1]}

    assert s.run(message) == [3, message]


def test_a_finalizer_that_runs_a_script_during_a_run_breaks_nothing():
    inner = Script("emit(msg)")
    results = []

    class Cycle:
        def __init__(self):
            self.me = self

        def __del__(self):
            results.append(inner.run({"x": 1}))

    def host():
        Cycle()
        gc.collect()
        return {"y": 2}

    assert script("let a = host(); emit(msg); emit(a)", host=host).run({"z": 3}) == [
        {"z": 3},
        {"y": 2},
    ]
    assert results == [[{"x": 1}]]


def test_a_host_function_that_changes_the_message_does_not_break_the_run():
    message = {"a": 1, "b": [1, 2, 3], "c": {"d": 1}}

    def host():
        message.clear()
        message["new"] = 5
        return None

    for code in (
        "host(); emit(msg)",
        "let all = msg; host(); all.x = 1; emit(all)",
        "msg.b.push(4); host(); emit(msg)",
    ):
        message.clear()
        message.update(a=1, b=[1, 2, 3], c={"d": 1})
        (out,) = script(code, host=host).run(message)
        assert isinstance(out, dict)
