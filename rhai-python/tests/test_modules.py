"""Imports: literal paths, loaded while the script is compiled."""

import pytest
from rhai import BudgetError, CompileError, ImportRefused, RunError, Script, ScriptError


def built(code, files, **options):
    return Script(code, load=files.__getitem__, **options)


def refused(code, files, **options):
    with pytest.raises(ScriptError) as caught:
        built(code, files, **options)
    return caught.value


def test_functions_and_exports_of_a_module_are_visible():
    files = {
        "a": "fn twice(x) { x * 2 } export const K = 7; let hidden = 1; private fn secret() { 1 }"
    }

    assert built("import `a` as a; emit(a::twice(4)); emit(a::K)", files).run(None) == [8, 7]
    for code in ("import `a` as a; emit(a::hidden)", "import `a` as a; emit(a::secret())"):
        with pytest.raises(ScriptError):
            built(code, files).run(None)


def test_a_module_without_functions_reads_its_own_constants_as_globals():
    files = {"a": "const K = 7; export const TWICE = 2 * global::K;"}

    assert built("import `a` as a; emit(a::TWICE)", files).run(None) == [14]


def test_a_module_may_import_another_by_the_same_kind_of_path():
    files = {"a": 'import "lib/b" as b; fn f(x) { b::g(x) + 1 }', "lib/b": "fn g(x) { x * 10 }"}

    assert built('import "a" as a; emit(a::f(2))', files).run(None) == [21]


def test_imports_in_functions_and_blocks_are_found():
    files = {"b": "fn g(x) { x * 2 }"}

    assert built('fn f(x) { import "b" as b; b::g(x) } emit(f(2))', files).run(None) == [4]
    assert built('if msg { import "b" as b; emit(b::g(3)) }', files).run(True) == [6]


def test_a_module_is_loaded_once_and_only_while_compiling():
    asked = []

    def load(path):
        asked.append(path)
        return {"a": 'import "b" as b; fn f() { b::g() }', "b": "fn g() { 1 }"}[path]

    s = Script('import "a" as a; import "b" as b; emit(a::f() + b::g())', load=load)
    assert sorted(asked) == ["a", "b"]

    assert s.run_each([None] * 3) == [2, 2, 2]
    assert sorted(asked) == ["a", "b"]


def test_the_body_of_a_module_runs_once_while_compiling():
    notes = []
    s = Script(
        'import "a" as a; emit(a::K)',
        load=lambda _: "print(`body`); export const K = 1 + 1;",
        note=lambda *n: notes.append(n[:2]),
    )

    s.run_each([None, None])

    assert notes in ([("print", "body")], [])


def test_modules_reach_host_functions_and_emit():
    files = {"a": "fn f(x) { emit(host(x)) }"}
    s = built('import "a" as a; a::f(1)', files, functions={"host": (1, lambda x: x + 1)})

    assert s.run(None) == [2]
    assert s.emits
    assert "host" in s.calls


def test_a_module_that_is_not_there_is_told_at_its_import():
    error = refused('let x = 1;\nimport "nope" as a;', {})

    assert type(error) is CompileError
    assert (error.line, error.column, error.module) == (2, 8, None)
    assert "nope" in error.message


def test_a_refusal_of_the_loader_is_told_in_its_words():
    def load(path):
        raise ImportRefused(f"'{path}' leads out of the scripts directory")

    with pytest.raises(CompileError) as caught:
        Script('\n  import "../x" as a;', load=load)

    assert "'../x' leads out of the scripts directory" in caught.value.message
    assert (caught.value.line, caught.value.column) == (2, 10)


def test_any_other_exception_of_the_loader_is_told_too():
    def load(path):
        raise OSError("disk is gone")

    with pytest.raises(CompileError, match="disk is gone") as caught:
        Script('import "x" as a;', load=load)
    assert caught.value.line == 1


def test_without_a_loader_nothing_can_be_imported():
    with pytest.raises(CompileError, match="etc/passwd"):
        Script('import "/etc/passwd" as x;')
    with pytest.raises(CompileError):
        Script('import "Cargo" as x;')


@pytest.mark.parametrize("source", [5, None, b"fn f() {}", "\ud800"], ids=repr)
def test_a_loader_that_gives_no_text_is_an_error(source):
    with pytest.raises((CompileError, TypeError, ValueError)):
        Script('import "a" as a;', load=lambda _: source)


@pytest.mark.parametrize(
    ("files", "circle"),
    [
        ({"a": 'import "a" as a;'}, ["a"]),
        ({"a": 'import "b" as b;', "b": 'import "a" as a;'}, ["a", "b"]),
        (
            {"a": 'import "b" as b;', "b": 'import "c" as b;', "c": 'fn f() { import "b" as b; }'},
            ["b", "c"],
        ),
    ],
)
def test_modules_that_import_each_other_are_refused(files, circle):
    error = refused('import "a" as a;', files)

    assert isinstance(error, CompileError)
    assert all(f"'{name}'" in error.message for name in circle)


def test_a_mistake_in_a_module_is_told_with_the_module_and_its_own_place():
    error = refused('let z;\nimport "lib/syn" as a;', {"lib/syn": "let x = 1;\nlet y = ;"})

    assert type(error) is CompileError
    assert (error.line, error.column, error.module) == (2, 9, "lib/syn")
    assert error.message.endswith("(in module 'lib/syn')")


def test_a_mistake_in_the_module_of_a_module_names_the_inner_one():
    files = {"a": '\n\nimport "b" as b;', "b": "let y = ;"}

    error = refused('import "a" as a;', files)

    assert (error.line, error.column, error.module) == (1, 9, "b")


def test_a_module_whose_body_fails_is_refused():
    error = refused('import "a" as a;', {"a": "\n\n 1/0;"})

    assert (error.line, error.column, error.module) == (3, 3, "a")


def test_an_undefined_variable_in_a_module_is_found_at_compile_time():
    for source in ("fn f() { nope }", "emit(msg)", "fn f() { msg }"):
        error = refused('import "a" as a;', {"a": source})
        assert type(error) is CompileError
        assert error.module == "a"


def test_an_error_in_a_function_of_a_module_names_the_module():
    files = {"lib/b": "fn bad(x) {\n  x / 0\n}"}

    for code in (
        'import "lib/b" as b;\nemit(b::bad(4));',
        'import "lib/b" as b;\nemit([1].map(|x| b::bad(x)));',
        'import "lib/b" as b;\nfn f(x) { import "lib/b" as b; b::bad(x) } f(1)',
    ):
        with pytest.raises(RunError) as caught:
            built(code, files).run(None)
        error = caught.value
        assert (error.line, error.column, error.module) == (2, 5, "lib/b"), code
        assert error.message.endswith("(in module 'lib/b')")
        assert error.index == 0


def test_a_callback_of_the_script_that_a_module_calls_is_told_in_the_script():
    files = {"m": "fn each(l, f) { l.map(f) }"}

    with pytest.raises(RunError) as caught:
        built('import "m" as m;\nm::each([1], |x|\n  x / 0)', files).run(None)

    assert (caught.value.line, caught.value.column) == (3, 5)


def test_a_computed_path_fails_when_it_runs(run):
    files = {"lib/b": "fn g() { 1 }"}

    for code in ('let p = "lib/" + msg; import p as b; emit(b::g())', "import msg as b;"):
        with pytest.raises(ScriptError) as caught:
            built(code, files).run("b")
        assert caught.value.line == 1


@pytest.mark.parametrize(
    "path", ["", "/", "..", "a\x00b", "é", "a" * 10_000, "https://example.org/x", "a\\b"]
)
def test_any_literal_path_goes_to_the_loader_as_it_is(path):
    asked = []

    def load(path):
        asked.append(path)
        raise ImportRefused("no")

    literal = path.replace("\\", "\\\\").replace("\x00", "\\x00")
    with pytest.raises(CompileError):
        Script(f'import "{literal}" as a;', load=load)
    assert asked in ([path], [])


def test_the_number_of_modules_is_limited():
    files = {f"m{i}": f'import "m{i + 1}" as n;' for i in range(40)} | {"m40": ""}
    wide = "".join(f'import "w{i}" as w{i};' for i in range(33))

    for code in ('import "m0" as m;', wide):
        with pytest.raises(ScriptError, match="modules") as caught:
            built(code, files | {f"w{i}": "" for i in range(33)})
        assert getattr(caught.value, "limit", "max_modules") == "max_modules"


def test_as_many_modules_as_the_limit_says_may_be_imported():
    files = {f"w{i}": "fn f() { 1 }" for i in range(32)}
    code = "".join(f'import "w{i}" as w{i};' for i in range(32)) + "emit(w31::f())"

    assert built(code, files).run(None) == [1]


def test_a_module_has_the_same_limits(run):
    deep = "1" + "+(1" * 100 + ")" * 100

    assert isinstance(refused('import "a" as a;', {"a": f"let x = {deep};"}), CompileError)
    assert isinstance(refused('import "a" as a;', {"a": f"fn f() {{ {deep} }}"}), CompileError)
    assert isinstance(refused('import "a" as a;', {"a": "/" + "/" * 2_000_000}), CompileError)
    with pytest.raises(ScriptError):
        built('import "a" as a;', {"a": "loop {}"})
    with pytest.raises(BudgetError):
        built('import "a" as a; a::f()', {"a": "fn f() { loop {} }"}).run(None)


def test_a_module_cannot_hide_or_replace_functions_of_the_script():
    files = {"a": "fn emit(x) { 1 } fn len(x) { 99 } fn f() { 5 } export const emit = 1;"}

    s = built('import "a" as a; fn f() { 7 } emit(f()); emit([1].len()); emit(a::f())', files)

    assert s.run(None) == [7, 1, 5]


def test_a_name_that_starts_a_module_path_must_be_imported():
    with pytest.raises(ScriptError, match="nope"):
        built("emit(nope::f())", {}).run(None)
