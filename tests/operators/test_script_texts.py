"""What is said of a script that fails or does not compile: whole texts, for what beginners write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.operators.script.names import ELSEWHERE, LENT
from headrace.operators.script.wording import FLOATS
from tests.operators.scripted import examined, outcome, script

MESSAGE = {
    "n": 1,
    "temp": 21.5,
    "name": "Ann",
    "ok": True,
    "list": [1, 2],
    "map": {"a": 1},
    "none": None,
}
NOTHING = "() is null or a field that is not there"

RUNS = {
    # Operators: what they are given, in the words of the page.
    "emit(msg.nope / 3600.0)": f"'/' does not take () and a float: {NOTHING}",
    "emit(1 + msg.none)": f"'+' does not take an int and (): {NOTHING}",
    "msg.nope += 1": f"'+' does not take () and an int: {NOTHING}",
    "emit(!msg.nope)": f"'!' does not take (): {NOTHING}",
    "emit(!msg.n)": "'!' does not take an int",
    "emit(msg.name - 1.0)": "'-' does not take a string and a float: parse_float() makes a number"
    " of a text",
    "emit(-msg.name)": "'-' does not take a string: parse_float() makes a number of a text",
    "emit(msg.list - 1)": "'-' does not take an array and an int",
    "emit(msg.map + 1)": "'+' does not take a map and an int",
    "emit(msg.ok + 1)": "'+' does not take a bool and an int",
    "emit(msg.n << 'x')": "'<<' does not take an int and a char",
    "emit((0..2) * 3)": "'*' does not take a range and an int",
    # Calls: of what is lent, of what is the language's, of what is somewhere else.
    "emit(msg, 1)": "'emit' takes 1 argument, not 2",
    "emit()": "'emit' takes 1 argument, not 0",
    "now(1)": "'now' takes no arguments, not 1",
    "field(msg)": "'field' takes 2 arguments, not 1",
    "emitt(msg)": "no function 'emitt' takes a map: did you mean 'emit'?",
    "Emit(msg.n)": "no function 'Emit' takes an int: did you mean 'emit'?",
    'rembember("a", #{})': "no function 'rembember' takes a string and a map: did you mean"
    " 'remember'?",
    "emit(msg.n.sqrt())": "no function 'sqrt' takes an int: to_float() makes a float of it",
    "emit(msg.nope.trim())": f"no function 'trim' takes (): {NOTHING}",
    "emit(msg.nope.map(|x| x))": f"no function 'map' takes () and a function: {NOTHING}",
    "emit(msg.name.pad(1))": "no function 'pad' takes a string and an int",
    "emit(msg.list.slice(0, 1))": "no function 'slice' takes an array, an int and an int",
    "emit(msg.name.length())": "no function 'length' takes a string: did you mean 'len'?",
    "emit(timestamp())": "there is no 'timestamp()': did you mean 'now_millis'?",
    "emit(open())": "there is no 'open()'",
    f"emit(many({', '.join(['1'] * 80)}))": "no function 'many' takes all these arguments",
    # Functions of its own.
    "fn f(x) { x } emit(f(1, 2))": "'f' takes 1 argument, not 2",
    "fn f(a, b) { a } emit(f())": "'f' takes 2 arguments, not 0",
    "fn celsius(x) { x } emit(celcius(1))": "no function 'celcius' takes an int: did you mean"
    " 'celsius'?",
    "let f = |x| x; emit(f(1))": "no function 'f' takes an int: a function in a variable is called"
    " with f.call()",
    "let f = |x| x; emit(f.call(1, 2))": "a closure is called with 2 arguments, and takes another"
    " number of them",
    "let A = 1; emit(global::A)": "'global::' finds no constant 'A': const A = ... has to stand"
    " before it, outside of every block",
    "fn f() { msg.n } emit(f())": "there is no variable 'msg': a function sees only what it is"
    " handed",
    # Properties and elements.
    "emit(msg.nope.deep)": f"() has no property 'deep': {NOTHING}, and '?.deep' gives () then",
    "emit(msg.n.deep)": "an int has no property 'deep'",
    "emit(msg.name.length)": "a string has no property 'length': did you mean 'len()'?",
    "emit(msg.n.to_string)": "an int has no property 'to_string': did you mean 'to_string()'?",
    "msg.nope.deep = 1": f"() has no property 'deep' to write: {NOTHING}; make it a map first, #{{}}",
    "msg.n.deep = 1": "an int has no property 'deep' to write",
    'emit(msg.nope["x"])': f"() has no element for a string in brackets: {NOTHING}",
    'msg.nope["x"] = 1': f"() has no element for a string in brackets: {NOTHING}",
    'emit(msg.ok["x"])': "a bool has no element for a string in brackets",
    'emit(msg.list["a"])': "expected an int, found a string",
    "emit(msg[0])": "expected a string, found an int",
    "emit(msg.list[5])": "Array index out of bounds",
    # Conditions and loops.
    "if msg.nope { emit(1) }": f"expected a bool, found (): {NOTHING}",
    "if msg.n { emit(1) }": "expected a bool, found an int: compare it, as in x > 0",
    "for k in msg { emit(k) }": "'for' goes through an array, a string or a range: take keys() or"
    " values() of a map, and '?? []' of a field that may be missing",
    "let a = [1]; a.for_each(|x| a.len())": "'for_each' is at work on a value that its own closure"
    " uses: copy the value first",
    # What a script says itself stays as it says it.
    'throw "Function not found: f (i64)"': "Function not found: f (i64)",
    'throw "For loop expects iterable type"': "For loop expects iterable type",
}


@pytest.mark.parametrize(("code", "said"), RUNS.items(), ids=RUNS)
def test_a_run_that_fails_says_what_would_do(code: str, said: str) -> None:
    assert outcome(code, [MESSAGE]).failure.partition(": ")[2] == said


@pytest.mark.parametrize("code", ["emit(1)", "emit(batch[0])"])
def test_one_message_is_no_batch(code: str) -> None:
    kind = "an integer" if code == "emit(1)" else "an object"

    assert outcome(code, [{}], scope="batch").failure == (
        f"script line 1, column 1: 'emit' takes a list of messages where 'scope' is batch, not {kind}"
    )


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("emit(celsius(1.0))", "no function 'celsius' takes a float: did you mean 'u::celsius'?"),
        (
            "emit(u::celcius(1.0))",
            "no function 'u::celcius' takes a float: did you mean 'u::celsius'?",
        ),
    ],
)
def test_a_function_of_a_module_is_found_under_its_name(
    tmp_path: Path, code: str, said: str
) -> None:
    (tmp_path / "units.rhai").write_text("fn celsius(f) { f }")

    failure = outcome(f'import "units" as u;\n{code}', [{}], base=tmp_path).failure

    assert failure.partition(": ")[2] == said


def test_a_failure_in_a_module_is_told_with_the_names_that_are_written_there(
    tmp_path: Path,
) -> None:
    (tmp_path / "units.rhai").write_text("fn half(x) { x }\nfn f(x) {\n  halv(x)\n}")

    failure = outcome('import "units" as u;\nemit(u::f(1))', [{}], base=tmp_path).failure

    assert failure == (
        "units.rhai line 3, column 3: no function 'halv' takes an int: did you mean 'half'?"
    )


def test_the_values_of_a_message_do_not_part_failures() -> None:
    first, second = outcome("emit(msg.a - 1)", [{"a": "x"}], [{"a": "y"}]).failures

    assert first == second


VALUES: dict[str, Any] = {
    "push": "[1].push(2)",
    "ceiling": "1.5.ceiling()",
    "contains": '"a".contains("a")',
    "for_each": "[1].for_each(|x| x)",
    "format_time": "format_time(0, (), ())",
    "len": '"a".len()',
    "matches": '"a".matches("a")',
    "now_millis": "now_millis()",
    "parse_float": 'parse_float("1")',
    "parse_int": 'parse_int("1")',
    "parse_regex": '"a".parse_regex("(?<x>a)")',
    "parse_time": "parse_time(0, (), ())",
    "replace_regex": '"a".replace_regex("a", "b")',
    "sub_string": '"abc".sub_string(1, 1)',
    "to_lower": '"a".to_lower()',
    "to_string": "1.to_string()",
    "to_upper": '"a".to_upper()',
    "trim": 'let s = "a"; s.trim()',
}


def test_what_is_suggested_for_the_words_of_other_languages_is_there() -> None:
    assert {*ELSEWHERE.values()} == {*VALUES}
    for code in VALUES.values():
        assert outcome(f"{code}; emit(1)", [0]).messages == [1]


@pytest.mark.parametrize("name", FLOATS)
def test_a_function_of_which_an_int_is_told_to_become_a_float_takes_one(name: str) -> None:
    assert outcome(f"1.5.{name}(); emit(1)", [0]).messages == [1]
    assert outcome(f"emit(1.{name}())", [0]).failure.endswith(": to_float() makes a float of it")


def test_what_is_lent_is_known_with_its_arguments() -> None:
    assert LENT == {
        "emit": 1,
        "field": 2,
        "recall": 1,
        "remember": 2,
        "warn": 1,
        "now": 0,
        "now_millis": 0,
        "parse_time": 3,
        "format_time": 3,
    }


# --- what does not compile

QUOTES = "single quotes hold one character"
BLOCK = "a block stands in braces, also a single statement"
SWITCH = "write switch x { 1 => ..., _ => ... }"
CLOSURE = "a closure is written |x| ..."
OUTER = "a function sees only what it is handed, and a variable ends with its block"

COMPILED = {
    # Quotes.
    "import 'lib/x' as x; emit(1)": (1, f'write "lib/x": {QUOTES}'),
    "emit(msg.name == 'Ann')": (1, f'write "Ann": {QUOTES}'),
    "emit('say \"hi\"')": (1, f"write it in double quotes or backticks: {QUOTES}"),
    "emit('" + "a" * 41 + "')": (1, f"write it in double quotes or backticks: {QUOTES}"),
    r'emit("\d")': (1, r"a backslash is written \\, or the text in backticks"),
    'emit(f"{msg.n}")': (1, "text with values in it is written `... ${msg.name} ...`"),
    # Maps and blocks.
    "emit({ a: 1 })": (1, "a map is written #{ ... }"),
    'emit({ "a": 1 })': (1, "a map is written #{ ... }"),
    "if (msg.ok) emit(msg);": (1, BLOCK),
    "if msg.ok: emit(msg)": (1, BLOCK),
    "for (let i = 0; i < 3; i++) { }": (1, "write for i in 0..3 { ... }"),
    "switch msg.n { case 1: emit(1) }": (1, SWITCH),
    "switch msg.n { 1: emit(1) }": (1, SWITCH),
    "emit(msg.list.map(x => x + 1))": (1, CLOSURE),
    "let f = (x) => x; emit(1)": (1, CLOSURE),
    "let f = fn(x) { x }; emit(1)": (1, CLOSURE),
    # Words and signs of other languages.
    "var x = 1; emit(x)": (1, "did you mean 'let'?"),
    "function f(x) { x } emit(1)": (1, "did you mean 'fn'?"),
    "emit(null)": (1, "did you mean '()'?"),
    "emit(undefined)": (1, "did you mean '()'?"),
    "emit(True)": (1, "did you mean 'true'?"),
    "if msg.ok and msg.n == 1 { }": (1, "did you mean '&&'?"),
    "emit(msg.ok or false)": (1, "did you mean '||'?"),
    "if not msg.ok { }": (1, "did you mean '!'?"),
    "console.log(1); emit(1)": (1, "did you mean 'print'?"),
    "let i = 0; i++; emit(i)": (1, "write += 1"),
    "emit(1) -- on": (1, "write -= 1; a comment starts with //"),
    "# on\nemit(1)": (1, "a comment starts with //, a map with #{"),
    "emit(msg.n > 1 ? 2 : 3)": (1, "write if a { b } else { c }"),
    # Variables.
    "x = 1; emit(x)": (1, "a new variable is written let x = ..."),
    "emit(1);\nx = 1;": (2, "a new variable is written let x = ..."),
    "msg.a-b = 1; emit(msg)": (1, None),
    "let count = 1; emit(cuont)": (1, "did you mean 'count'?"),
    "emit(message)": (1, "did you mean 'msg'?"),
    "emit(batch)": (
        1,
        "'batch' is there where 'scope' is batch; this script runs for one message, 'msg'",
    ),
    "emit(now)": (1, "it is a function: now()"),
    "emit msg": (1, "it is a function: emit(...)"),
    "let warm = 1;\nfn f() { warm }\nemit(f())": (2, OUTER),
    "{ let y = 1; } emit(y)": (1, OUTER),
    "const A = 1; fn f() { A } emit(f())": (1, "in a function it is global::A"),
    "emit(x)": (1, None),
    # Modules.
    "import lib/x as x; emit(1)": (1, "the path of an import stands in double quotes"),
    'import "lib"; emit(units::f(1))': (1, 'write import "lib" as units'),
    'import "lib" as units; emit(units.f(1))': (1, "did you mean 'units::f'?"),
    'import "lib" as units; emit(unit::f(1))': (1, "did you mean 'units'?"),
    "units::f(1); emit(1)": (1, None),
}


@pytest.mark.parametrize(("code", "place"), COMPILED.items(), ids=COMPILED)
def test_what_does_not_compile_says_what_would_do(tmp_path: Path, code: str, place: Any) -> None:
    (tmp_path / "lib.rhai").write_text("fn f(x) { x }")
    line, hint = place

    [fault] = examined(code, tmp_path)

    assert fault.code == "not-compiled"
    assert fault.suggestion == hint
    assert fault.spot is not None
    assert fault.spot.line == line


def test_in_batch_scope_there_is_no_message() -> None:
    [fault] = examined(script("emit(msg)", scope="batch"))
    [other] = examined(script("emit(messages)", scope="batch"))

    assert (fault.message, fault.suggestion) == (
        "the script does not compile: Undefined variable: msg",
        "'msg' is there where 'scope' is message; this script runs for the list 'batch'",
    )
    assert other.suggestion == "did you mean 'batch'?"


def test_a_module_that_never_ends_is_refused(tmp_path: Path) -> None:
    (tmp_path / "endless.rhai").write_text("loop { }")

    [fault] = examined(script('import "endless" as e; emit(1)', max_operations=10**15), tmp_path)

    assert fault.message == "'endless.rhai' does not compile: ran longer than 1 s"


def test_an_assignment_in_place_of_a_comparison_is_told() -> None:
    [fault] = examined("if msg.ok = true { emit(1) }")

    assert fault.message == (
        "the script does not compile: '=' assigns, and here a value is wanted: did you mean '=='?"
    )
