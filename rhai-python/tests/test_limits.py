"""Every limit: what it stops, and under which name."""

import time

import pytest
from rhai import BudgetError, CompileError, RunError, Script, ScriptError

KIB = 1024
FAR = {"max_operations": 10**9, "time_limit": 20.0}


def stopped(code, value=None, **options):
    with pytest.raises(BudgetError) as caught:
        Script(code, **options).run(value)
    error = caught.value
    # Memory may run out while the text of a value is made, where the engine knows no place.
    assert error.line is not None or error.limit == "max_memory"
    assert error.index == 0
    return error.limit


class TestOperations:
    @pytest.mark.parametrize(
        "code",
        [
            "loop {}",
            "while true {}",
            "do {} while true",
            "let n = 0; for i in 0..9223372036854775807 { n = i }",
            "let n = 9223372036854775807; for i in 0..n {}",
            "let n = 0; for i in 0..1000 { for j in 0..1000 { n += 1 } }",
            "let a = []; a.pad(1000, 0); a.for_each(|x| { let n = 0; for i in 0..1000 { n += 1 } })",
            "let a = []; a.pad(1000, 0); a.map(|x| { let n = 0; while n < 1000 { n += 1 } n })",
            "fn f(n) { let i = 0; while i < n { i += 1 } } for j in 0..1000 { f(1000) }",
            "let f = |n| { let i = 0; while i < n { i += 1 } }; for j in 0..1000 { f.call(1000) }",
        ],
    )
    def test_every_sort_of_loop_is_counted(self, code):
        assert stopped(code) == "max_operations"

    def test_the_count_starts_again_with_every_value(self):
        script = Script("for i in 0..msg {} emit(msg)", max_operations=2_000)

        assert script.run_each([300] * 50) == [300] * 50
        with pytest.raises(BudgetError) as caught:
            script.run_each([300, 300, 5_000])
        assert (caught.value.index, caught.value.limit) == (2, "max_operations")

    def test_a_budget_error_cannot_be_caught(self):
        for code in (
            "try { loop {} } catch { emit(1) }",
            "try { loop {} } catch (e) { } emit(1)",
            "loop { try { loop {} } catch {} }",
            "fn f() { try { loop {} } catch { f() } } f()",
        ):
            assert stopped(code) == "max_operations"

    @pytest.mark.parametrize(
        "code",
        [
            "let a = [3, 1, 2]; a.sort(|x, y| { loop {} }); emit(1)",
            "let a = [3, 1, 2]; emit(a.order(|x, y| { loop {} }))",
            "let a = [1, 1, 1]; a.dedup(|x, y| { loop {} }); emit(a)",
        ],
    )
    def test_a_budget_error_is_not_lost_in_a_callback(self, code):
        assert stopped(code) == "max_operations"

    def test_it_can_be_raised_and_lowered(self):
        code = "let n = 0; for i in 0..10000 { n += i } emit(n)"

        assert Script(code, max_operations=200_000).run(None) == [49_995_000]
        assert stopped(code, max_operations=1_000) == "max_operations"


BUILDING_STRINGS = [
    "let s = `ab`; loop { s += s }",
    "let s = `ab`; loop { s = s + s }",
    "let s = `ab`; loop { s = `${s}${s}` }",
    "let s = `ab`; s.pad(300000, 'x')",
    "let s = `ab`; s.pad(300000, `xyz`)",
    "let s = ``; s.pad(600, `x`); let t = s; s.replace(`x`, t); emit(s.len())",
    "let s = ``; s.pad(600, `x`); let t = s; s.replace(``, t)",
    "let s = ``; s.pad(200000, `€`)",
    "let a = []; a.pad(90000, `xyz`); a.to_string()",
    "let m = #{}; let s = ``; s.pad(9000, `x`); for i in 0..100 { m[`k${i}`] = s } m.to_json()",
    "let s = ``; s.pad(200000, `ŉ`); s.to_upper()",
    "let s = ``; s.pad(150000, `\\\\`); let t = s.to_debug(); emit(t.len())",
]


@pytest.mark.parametrize("code", BUILDING_STRINGS)
def test_strings_that_a_script_builds_are_limited(code):
    assert stopped(code, **FAR) == "max_string"


def test_the_limit_of_strings_counts_bytes():
    assert Script("let s = ``; s.pad(100, `€`); emit(s.bytes)", max_string=300).run(None) == [300]
    assert stopped("let s = ``; s.pad(101, `€`); emit(s)", max_string=300) == "max_string"


BUILDING_ARRAYS = [
    "let a = []; loop { a.push(1) }",
    "let a = [1]; loop { a += a }",
    "let a = [1]; loop { a = a + a }",
    "let a = [1]; loop { a.append(a) }",
    "let a = []; a.pad(200000, 0)",
    "let a = []; loop { a.insert(0, 1) }",
    "let a = [1]; loop { a.splice(0, 0, a) }",
    "let s = ``; s.pad(200000, `x`); emit(s.split(``).len())",
    "let s = ``; s.pad(200000, `x`); emit(s.to_chars().len())",
]


@pytest.mark.parametrize("code", BUILDING_ARRAYS)
def test_arrays_that_a_script_builds_are_limited(code):
    assert stopped(code, max_array=20_000, **FAR) == "max_array"


BUILDING_MAPS = [
    "let m = #{}; for i in 0..20000 { m[`k${i}`] = i } m.len()",
    "let m = #{}; for i in 0..20000 { m.set(`k${i}`, i) } m.len()",
    "let m = #{}; for i in 0..20000 { let n = #{}; n[`k${i}`] = i; m += n; } m.len()",
    "let m = #{}; for i in 0..20000 { let n = #{}; n[`k${i}`] = i; m.mixin(n); } m.len()",
    "let m = #{}; for i in 0..20000 { let n = #{}; n[`k${i}`] = i; m.fill_with(n); } m.len()",
]


@pytest.mark.parametrize("code", BUILDING_MAPS)
def test_maps_that_a_script_builds_are_limited(code):
    assert stopped(code, **FAR) in ("max_map", "max_memory")


@pytest.mark.parametrize(
    ("code", "limit"),
    [
        ("let s = ``; s.pad(11, `x`);", {"max_string": 10}),
        ("let a = []; a.pad(11, 0);", {"max_array": 10}),
        ("let m = #{}; for i in 0..12 { m[`k${i}`] = 1 } m.len();", {"max_map": 10}),
    ],
)
def test_sizes_can_be_lowered(code, limit):
    assert stopped(code, **limit) == next(iter(limit))
    assert Script(code.replace("11", "9").replace("12", "9"), **limit).run(None) == []


class TestNesting:
    EXPRESSIONS = {
        "parentheses": ("(", "1", ")"),
        "arrays": ("[", "1", "]"),
        "maps": ("#{a:", "1", "}"),
        "blocks": ("{", "1", "}"),
        "calls": ("f(", "1", ")"),
        "sums": ("1+(", "1", ")"),
    }

    @pytest.mark.parametrize("name", EXPRESSIONS)
    @pytest.mark.parametrize("template", ["let x = {};", "fn g(f) {{ {} }}", "let h = |f| {};"])
    def test_deep_expressions_do_not_compile(self, name, template):
        before, inner, after = self.EXPRESSIONS[name]

        with pytest.raises(CompileError, match="complex"):
            Script(template.format(before * 100 + inner + after * 100))
        Script(template.format(before * 5 + inner + after * 5))

    def test_long_chains_do_not_compile_either(self):
        for code in (
            "1" + "+1" * 1000,
            "msg" + ".a" * 1000,
            "msg" + "[0]" * 1000,
            "1" + "??1" * 1000,
        ):
            with pytest.raises(CompileError):
                Script(f"let x = {code};")

    def test_the_depth_is_an_option(self):
        code = "let x = " + "(" * 100 + "1" + ")" * 100 + "; emit(x)"

        assert Script(code, max_expression_depth=400).run(None) == [1]
        with pytest.raises(CompileError):
            Script("let x = ((((1))));", max_expression_depth=3)

    @pytest.mark.parametrize(
        "code",
        [
            "fn f(x) { f(x + 1) } f(1)",
            "fn f(x) { g(x) } fn g(x) { f(x) } f(1)",
            "fn f(x) { [x].map(|y| f(y)) } f(1)",
            "fn f() { this.f() } let x = 1; x.f()",
            "fn f(x) { Fn(`f`).call(x) } f(1)",
            "fn f(x) { call(Fn(`f`), x) } f(1)",
            "let f = |g| g.call(g); f.call(f)",
        ],
    )
    def test_calls_nest_only_so_deep(self, code):
        assert stopped(code) == "max_calls"

    def test_calls_down_to_the_limit_are_fine(self):
        code = "fn f(x) { if x == 0 { 0 } else { f(x - 1) + 1 } } emit(f(msg))"

        assert Script(code).run(50) == [50]
        assert stopped(code, 200) == "max_calls"
        assert Script(code, max_calls=20).run(10) == [10]
        assert stopped(code, 30, max_calls=20) == "max_calls"

    @pytest.mark.parametrize(
        "step",
        [
            "a = [a];",
            "a = #{ k: a };",
            "let b = []; b.push(a); a = b;",
            "let b = #{}; b.k = a; a = b;",
            "let b = #{}; b[`k`] = a; a = b;",
            "let b = [0]; b[0] = a; a = b;",
            "let b = [0]; b.insert(0, a); a = b;",
            "let b = #{}; b.set(`k`, a); a = b;",
            "let b = [1]; b.pad(2, a); a = b;",
            "let b = [0]; b += [a]; a = b;",
            "a = [1].map(|x| a);",
            "try { throw [a] } catch (e) { a = e }",
        ],
    )
    def test_what_a_script_nests_too_deep_cannot_be_emitted(self, step):
        code = f"let a = []; for i in 0..msg {{ {step} }} emit(a)"

        (out,) = Script(code).run(100)
        assert str(out).count("[") + str(out).count("{") >= 100
        with pytest.raises(RunError) as caught:
            Script(code, **FAR).run(1_000)
        assert "nest" in caught.value.message or "deep" in caught.value.message


class TestEmitted:
    def test_the_number_is_limited(self):
        assert len(Script("for i in 0..10000 { emit(i) }").run(None)) == 10_000
        assert stopped("for i in 0..10001 { emit(i) }") == "max_emitted"
        assert stopped("loop { emit(msg) }", {"a": 1}) == "max_emitted"
        assert stopped("for i in 0..6 { emit(i) }", max_emitted=5) == "max_emitted"

    def test_the_number_counts_for_each_value_apart(self):
        assert len(Script("for i in 0..5 { emit(i) }", max_emitted=5).run_each([0] * 100)) == 500

    @pytest.mark.parametrize(
        "code",
        [
            "let s = ``; s.pad(262144, `x`); loop { emit(s) }",
            "let s = ``; s.pad(131072, `x`); loop { emit([s, s]) }",
            "let s = ``; s.pad(200000, `x`); loop { emit(#{ s: s }) }",
            "let k = ``; k.pad(262144, `x`); loop { let m = #{}; m[k] = 1; emit(m) }",
            "let a = []; a.pad(99999, 1); loop { emit(a) }",
            "let a = []; let s = ``; s.pad(2000, `x`); a.pad(100, s); loop { emit(a) }",
        ],
    )
    def test_the_bytes_are_limited_however_they_are_shared(self, code):
        assert stopped(code, **FAR) == "max_emitted_bytes"

    def test_the_bytes_are_an_option(self):
        code = "let s = ``; s.pad(1000, `x`); for i in 0..msg { emit(s) }"

        assert len(Script(code, max_emitted_bytes=10 * KIB).run(5)) == 5
        assert stopped(code, 50, max_emitted_bytes=10 * KIB) == "max_emitted_bytes"

    def test_what_came_in_may_go_out_whatever_its_size(self):
        big = {"n": 1, "s": "x" * 40_000_000, "l": ["y" * 100] * 200_000}

        for code in ("emit(msg)", "msg.n = 2; emit(msg)", "let all = msg; all.n = 2; emit(all)"):
            (out,) = Script(code, **FAR).run(big)
            assert out["s"] is big["s"]


class TestMemory:
    @pytest.mark.parametrize(
        "code",
        [
            "let b = []; b.pad(99999, 0); let a = []; a.pad(1000, 0); for i in 0..1000 { a[i] = b }",
            "let s = ``; s.pad(262000, `x`); let m = #{}; for i in 0..1000 { m[`k${i}`] = s + i }",
            "let m = #{}; for i in 0..1000 { let b = []; b.pad(99999, 0); m[`k${i}`] = b; }",
            "let f = |x| x; for i in 0..60 { f = f.curry(f) }",
            "let f = |x| x; for i in 0..60 { f = Fn(`len`).curry(f, f) }",
            "fn f(n) { let b = []; b.pad(99999, n); if n > 0 { f(n - 1) } b.len() } f(60)",
        ],
    )
    def test_memory_is_limited_where_no_size_is(self, code):
        assert stopped(code, **FAR) in ("max_memory", "max_array", "max_string")

    def test_memory_is_an_option(self):
        code = "let a = []; a.pad(90000, 0); emit(a.len())"

        assert Script(code, max_memory=16 * KIB * KIB).run(None) == [90_000]
        assert stopped(code, max_memory=200 * KIB) == "max_memory"

    def test_memory_that_is_given_back_does_not_count(self):
        code = "for i in 0..500 { let a = []; a.pad(90000, i); } emit(1)"

        assert Script(code, **FAR).run(None) == [1]

    def test_every_run_begins_anew(self):
        script = Script("let a = []; a.pad(90000, 0); emit(a.len())", max_memory=4 * KIB * KIB)

        assert script.run_each([None] * 100) == [90_000] * 100

    def test_what_came_in_does_not_count(self):
        big = [list(range(1000)) for _ in range(2000)]

        script = Script("emit(msg.len()); emit(msg[5][1])", max_memory=KIB * KIB)
        assert script.run(big) == [2000, 1]


class TestTime:
    @pytest.mark.parametrize(
        "code",
        [
            "loop {}",
            "let a = []; a.pad(99999, 0); loop { a.len(); }",
            "let a = []; a.pad(99999, 0); loop { a.reverse(); }",
            "let a = []; a.pad(99999, 1); let b = a; loop { a == b; }",
            "let a = []; a.pad(99999, 1); loop { let b = a; }",
            "let s = ``; s.pad(60000, `x`); loop { s.split(``); }",
            "let a = []; a.pad(1000, 1); loop { a.sort(|x, y| x - y); }",
            "let a = []; a.pad(20000, 1); a.for_each(|x| { let b = []; b.pad(90000, 1); b.reverse(); })",
        ],
    )
    def test_a_run_ends_soon_after_its_time_is_over(self, code):
        began, worked = time.perf_counter(), time.thread_time()

        assert stopped(code, max_operations=10**12, time_limit=0.2) == "time_limit"

        assert time.perf_counter() - began > 0.19
        assert time.thread_time() - worked < 1.0  # others may have the machine

    @pytest.mark.long
    def test_each_value_has_its_own_time(self):
        code = "let t = 0; for i in 0..20000 { t += i } emit(1)"
        script = Script(code, time_limit=1.0, max_operations=10**9)
        began = time.perf_counter()
        script.run_each([None] * 20)
        count = int(20 * 3.0 / (time.perf_counter() - began)) + 1  # together far above the limit

        def is_done():
            try:
                return script.run_each([None] * count) == [1] * count
            except BudgetError:  # a busy machine left one of them no processor for a whole second
                return False

        # If they shared the time it would be over each time.
        assert any(is_done() for _ in range(5))

    def test_without_a_time_limit_only_operations_count(self):
        assert stopped("loop {}", time_limit=None) == "max_operations"


class TestSource:
    def test_a_long_source_is_refused_at_once(self):
        began = time.thread_time()

        for source in (
            "/" * 10_000_000,
            "emit(1);" * 1_250_000,
            " " * 10_000_000,
            "`" + "x" * 10_000_000,
        ):
            with pytest.raises(CompileError, match="bytes"):
                Script(source)
        assert time.thread_time() - began < 1.0

    def test_the_length_counts_bytes_and_is_an_option(self):
        with pytest.raises(CompileError):
            Script("// éééé", max_source=10)
        assert Script("emit(1)", max_source=7).run(None) == [1]
        with pytest.raises(CompileError):
            Script("emit(1) ", max_source=7)


def test_notes_are_bounded():
    kept = []
    script = Script(
        "let s = ``; s.pad(262144, `x`); loop { print(s) }",
        note=lambda *note: kept.append(len(note[1])),
        max_operations=10**9,
        time_limit=0.3,
    )
    with pytest.raises(ScriptError):
        script.run(None)

    assert sum(kept) < 64 * KIB * KIB
