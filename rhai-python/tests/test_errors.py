"""What a script fails with: message, line, column, module, index."""

import pytest
import rhai
from rhai import BudgetError, CompileError, RunError, Script, ScriptError


def failure(code, value=None, **options):
    with pytest.raises(ScriptError) as caught:
        Script(code, **options).run(value)
    return caught.value


def place(error):
    return error.line, error.column, error.module


def test_the_classes():
    assert issubclass(CompileError, ScriptError)
    assert issubclass(RunError, ScriptError)
    assert issubclass(BudgetError, RunError)
    assert issubclass(ScriptError, Exception)


@pytest.mark.parametrize(
    ("code", "line", "column"),
    [
        ("let x = ;", 1, 9),
        ("let x = 1;\nlet y = x +* 2;", 2, 12),
        ("if msg.a {\n  emit(1)\n", 3, 1),
        ("emit(1", 1, 7),
        ("msg msg", 1, 5),
        ('emit("abc', 1, 6),
        ("emit(`a ${1 +}`)", 1, 14),
        ("break;", 1, 1),
        ("fn f() { fn g() {} }", 1, 10),
        ("const A = 1; A = 2;", 1, 14),
        ("let é = 1;", 1, 5),
        ("/* é€😀 */ let x = ;", 1, 19),
        ("\r\nlet x = ;", 2, 9),
        ("\tlet x = ;", 1, 10),
        ("var x = 1;", 1, 1),
        ("emit(#{a: 1, a: 2})", 1, 14),
        ("this.x = 1", 1, 1),
    ],
)
def test_a_compile_error_has_its_place(code, line, column):
    error = failure(code)

    assert type(error) is CompileError
    assert place(error) == (line, column, None)
    assert error.index is None
    assert str(error) == f"line {line}, column {column}: {error.message}"
    assert "position" not in error.message
    assert not error.message.endswith(".")


@pytest.mark.parametrize(
    ("code", "line", "column"),
    [
        ("emit(nope)", 1, 6),
        ("let a = 1;\n\n  emit(a + b)", 3, 12),
        ("fn f() { outside } let outside = 1; f()", 1, 10),
        ("x = 5", 1, 1),
        ("[1].map(|y| y + z)", 1, 17),
        ("{ let inner = 1; } emit(inner)", 1, 25),
        ("emit(`${nope}`)", 1, 9),
    ],
)
def test_an_undefined_variable_is_found_at_compile_time(code, line, column):
    error = failure(code)

    assert type(error) is CompileError
    assert place(error) == (line, column, None)
    assert "ndefined" in error.message or "not found" in error.message


def test_a_function_does_not_see_the_value_of_the_run():
    error = failure("fn f() {\n  msg.a\n}\nf()", {"a": 1})

    assert (error.line, error.column) == (2, 3)
    assert "msg" in error.message


def test_variables_that_are_defined_are_not_refused(run):
    code = """
        const TOP = 1;
        let a = 1;
        fn f(x, y) { let z = x + y; global::TOP + z }
        let g = |p| a + p;
        for (q, i) in [1] { a += q + i }
        try { throw 1 } catch (e) { a += e }
        let s = switch a { 1 => a, _ => { let w = a; w } };
        fn m() { this + 1 }
        emit(f(1, 1) + g.call(1) + s + a.m() + msg);
    """
    assert run(code, 1) == [3 + 4 + 3 + 4 + 1]


@pytest.mark.parametrize(
    ("code", "value", "line", "column"),
    [
        ("1 / 0", None, 1, 3),
        ("let x = 1;\n  x + ()", None, 2, 5),
        ("emit(msg.a.b)", {"a": 1}, 1, 12),
        ("nofn(1)", None, 1, 1),
        ("msg.nofn()", {}, 1, 5),
        ("let a = [1];\na[5]", None, 2, 3),
        ("throw `bad`", None, 1, 1),
        ("if msg { emit(1) }", 1, 1, 4),
        ("/* é€😀 */ 1 / 0", None, 1, 13),
        ("emit(1, 2)", None, 1, 1),
        ("parse_int(`x`)", None, 1, 1),
    ],
)
def test_a_run_error_has_its_place(code, value, line, column):
    error = failure(code, value)

    assert type(error) is RunError
    assert place(error) == (line, column, None)
    assert error.index == 0
    assert str(error) == f"line {line}, column {column}: {error.message}"
    assert "position" not in error.message


@pytest.mark.parametrize(
    ("code", "line", "column"),
    [
        ("fn f(x) {\n  x / 0\n}\nf(1)", 2, 5),
        ("fn f(x) {\n  x / 0\n}\nfn g(x) {\n  f(x)\n}\ng(1)", 2, 5),
        ("fn f(x) {\n  x.nofn()\n}\nf(1)", 2, 5),
        ("fn f() {\n  this / 0\n}\nlet x = 1; x.f()", 2, 8),
        ("fn f(x) {\n  throw x\n}\nf(1)", 2, 3),
    ],
)
def test_an_error_in_a_function_is_told_where_it_happened(code, line, column):
    assert place(failure(code)) == (line, column, None)


@pytest.mark.parametrize(
    ("code", "line", "column"),
    [
        ("let f = |x|\n  x / 0;\nf.call(1)", 2, 5),
        ("[1].map(|x|\n  x / 0)", 2, 5),
        ("[1].filter(|x| [2].map(|y|\n y / 0))", 2, 4),
        ("let z = 0; let f = |x|\n  x / z;\n[1].for_each(|x| f.call(x))", 2, 5),
    ],
)
def test_an_error_in_a_closure_is_told_where_it_happened(code, line, column):
    error = failure(code)

    assert type(error) is RunError
    assert place(error) == (line, column, None)


def test_what_is_thrown_is_in_the_message():
    assert "bad thing" in failure("throw `bad thing`").message
    assert "5" in failure("throw 5").message
    assert "code" in failure("throw #{ code: 5 }").message


def test_a_caught_error_names_itself(run):
    assert run("try { throw `a` } catch (e) { emit(e) }") == ["a"]
    (caught,) = run("try { 1 / 0 } catch (e) { emit(e) }")
    assert "zero" in caught["message"]
    assert caught["line"] == 1


def test_the_index_tells_which_value_failed():
    script = Script("emit(10 / msg)")

    with pytest.raises(RunError) as caught:
        script.run_each([1, 2, 0, 5])

    assert caught.value.index == 2
    assert script.run_each([1, 2]) == [10, 5]


def test_the_index_is_there_for_a_value_that_cannot_be_read_or_cannot_leave():
    with pytest.raises((TypeError, RunError)) as caught:
        Script("let all = msg; emit(all)").run_each([1, 2, {1}])
    assert caught.value.index == 2

    with pytest.raises(RunError) as caught:
        Script("emit(1.0 / msg)").run_each([1.0, 0.0])
    assert caught.value.index == 1


def test_a_script_runs_on_after_an_error():
    script = Script("fn f(x) { 10 / x } emit(f(msg))")

    for _ in range(3):
        with pytest.raises(RunError):
            script.run(0)
        assert script.run(5) == [2]


def test_what_was_emitted_before_the_error_is_not_seen_later():
    script = Script("emit(msg); if msg == 0 { throw `no` }")

    with pytest.raises(RunError):
        script.run(0)
    assert script.run(1) == [1]


def test_blank_code_and_comments_compile():
    assert Script("").run(1) == []
    assert Script("// nothing").run(1) == []
    assert not Script(" \n").emits


def test_an_error_can_be_pickled_and_copied():
    import copy
    import pickle

    error = failure("\n 1 / 0")
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is RunError
        assert (twin.message, twin.line, twin.column) == (error.message, 2, 4)
        assert str(twin) == str(error)
    budget = failure("loop {}")
    assert pickle.loads(pickle.dumps(budget)).limit == "max_operations"


class TestArguments:
    def test_options_are_given_by_name(self):
        with pytest.raises(TypeError):
            Script("emit(1)", "msg")

    def test_an_unknown_option_is_refused(self):
        with pytest.raises(TypeError, match="max_operation"):
            Script("emit(1)", max_operation=5)

    @pytest.mark.parametrize(
        "source", [None, 1, b"emit(1)", ["emit(1)"]], ids=lambda value: type(value).__name__
    )
    def test_the_source_is_a_string(self, source):
        with pytest.raises(TypeError):
            Script(source)

    @pytest.mark.parametrize(
        "value", [0, -1, 2**64, 1.5, "5", None], ids=lambda value: type(value).__name__
    )
    @pytest.mark.parametrize("name", ["max_operations", "max_memory", "max_nesting", "max_string"])
    def test_a_limit_is_a_positive_integer(self, name, value):
        with pytest.raises((ValueError, TypeError, OverflowError)):
            Script("emit(1)", **{name: value})

    @pytest.mark.parametrize(
        "value", [0, -1.0, float("nan"), float("inf"), "1"], ids=lambda value: type(value).__name__
    )
    def test_the_time_limit_is_a_number_of_seconds_above_zero(self, value):
        with pytest.raises((ValueError, TypeError)):
            Script("emit(1)", time_limit=value)

    def test_no_time_limit_is_possible(self):
        assert Script("emit(1)", time_limit=None).run(None) == [1]

    @pytest.mark.parametrize("name", ["", "a b", "1x", "let", "fn", "é", "a.b"])
    def test_the_variable_must_be_a_name_of_the_language(self, name):
        with pytest.raises((ValueError, ScriptError)):
            Script("emit(1)", variable=name)

    def test_a_surrogate_in_the_source_is_refused(self):
        with pytest.raises((ValueError, ScriptError)):
            Script("emit('\ud800')")

    @pytest.mark.parametrize(
        "values", [(1, 2), {"a": 1}, "ab", None, iter([1])], ids=lambda value: type(value).__name__
    )
    def test_run_each_takes_a_list(self, values):
        with pytest.raises(TypeError):
            Script("emit(msg)").run_each(values)


def test_what_the_package_offers():
    assert set(rhai.__all__) == {
        "RHAI_VERSION",
        "BudgetError",
        "CompileError",
        "ImportRefused",
        "Matcher",
        "Pattern",
        "PatternError",
        "Paused",
        "Replacement",
        "RunError",
        "Script",
        "ScriptError",
        "count_line_ends",
        "has_slow_numbers",
    }
    assert all(hasattr(rhai, name) for name in rhai.__all__)
    assert rhai.RHAI_VERSION.count(".") == 2
