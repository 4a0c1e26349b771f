"""What a script may use: operations, time, what it builds, what its functions are given."""

from __future__ import annotations

import gc
import logging
import math
import weakref
from contextlib import suppress
from typing import Any

import pytest

from headrace.compiler import jsontext
from headrace.compiler.component.states import PipelineState
from headrace.compiler.errors import BuildRefused
from headrace.operators.script import Script, host
from headrace.operators.script.compiling import (
    LIMITS,
    OPERATIONS,
    PASSED,
    SECONDS,
    ScriptFailed,
    compiled,
)
from headrace.operators.script.host import ScriptHost, has_bytes
from headrace.operators.script.sources import ScriptFiles
from tests.doubles import StubContext, refusals
from tests.operators.scripted import outcome, script
from tests.virtual import virtual

# --- 10.4 limits: of what a script builds


def test_operations_are_bounded_and_the_text_says_how_to_raise_them() -> None:
    found = outcome("let n = 0;\nloop { n += 1; }", [0])

    assert found.failure == (
        f"script line 2: stopped after {OPERATIONS} operations:"
        " raise 'max_operations' if it needs more"
    )


def test_operations_are_those_of_one_run() -> None:
    code = "let n = 0; for i in 0..20_000 { n += i } emit(1)"

    assert len(outcome(code, [0] * 10).messages) == 10
    assert "after 1000 operations" in outcome(code, [0], max_operations=1000).failure
    assert outcome(code.replace("20_", "200_"), [0], max_operations=2**70).messages == [1]


def test_a_run_ends_after_a_second_whatever_its_budget() -> None:
    found = outcome("loop { }", [0], max_operations=10**15)

    assert found.failure == f"script line 1: stopped after {SECONDS:g} s: no run may take longer"


LIMITED = {
    "string": ('let s = "ab"; loop { s += s }', "a string became longer than 262144 bytes"),
    "array": ("let a = [0]; loop { a += a }", "an array became longer than 100000 elements"),
    "object": (
        "let m = #{}; for i in 0..20_000 { m[`k${i}`] = i }; m.len()",
        "a map got more than 10000 entries",
    ),
    "call depth": ("fn f(n) { f(n + 1) }\nf(0)", "functions called each other more than 64 deep"),
}


@pytest.mark.parametrize(("code", "said"), LIMITED.values(), ids=LIMITED)
def test_what_a_script_builds_is_bounded(code: str, said: str) -> None:
    assert outcome(code, [0], max_operations=10**7).failure.endswith(f": {said}")


@pytest.mark.parametrize(
    "code",
    ["emit(" + "(" * 70 + "1" + ")" * 70 + ")", "fn f() { " + "1+" * 70 + "1 }\nemit(f())"],
    ids=["in the script", "in a function"],
)
def test_expressions_are_nested_64_deep_at_most(code: str) -> None:
    with pytest.raises(BuildRefused, match="does not compile"):
        outcome(code, [0])


def test_what_came_in_never_fails_for_its_own_size() -> None:
    message = {
        "text": "a" * 300_000,
        "list": [*range(100_001)],
        "map": {f"k{n}": n for n in range(10_001)},
    }
    code = "emit([msg.text.len(), msg.list.len(), msg.map.len()])"

    assert outcome(code, [message]).messages == [[300_000, 100_001, 10_001]]
    assert outcome("emit([batch.len()])", [1] * 100_001, scope="batch").messages == [100_001]


def test_what_a_run_emits_is_bounded() -> None:
    many = outcome("loop { emit(1) }", [0], max_operations=10**9)
    much = outcome('let s = ""; s.pad(200_000, "a"); loop { emit(s) }', [0], max_operations=10**9)

    assert many.failure.endswith(": more than 10000 values were emitted")
    assert much.failure.endswith(": more than 16777216 bytes were emitted")


def test_every_limit_has_words() -> None:
    at_compile_time = {"max_expression_depth", "max_source"}
    assert {*PASSED} == ({*LIMITS} - at_compile_time) | {"max_operations", "time_limit"}


@pytest.mark.parametrize("operations", [0, -1, 1.5, "1"])
def test_max_operations_is_a_whole_number_from_one(operations: Any) -> None:
    source = {"type": "inline", "code": "emit(1)"}

    [refused] = refusals(Script, {"source": source, "max_operations": operations})

    assert refused.startswith("max_operations: expected an integer of at least 1, found ")


def test_no_max_operations_is_the_default() -> None:
    source = {"type": "inline", "code": "emit(1)"}

    assert Script.load({"source": source, "max_operations": None}).max_operations is None
    assert Script.load({"source": source}).dump() == {"type": "script", "source": source}


# --- what a function is given


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("field(msg, 1)", "'field' takes a string as its path, not an int"),
        ("field(msg, ())", "'field' takes a string as its path, not ()"),
        ("warn(1.5)", "'warn' takes a string, not a float"),
        ("warn(true)", "'warn' takes a string, not a bool"),
        ('remember("k", 1)', "'remember' takes a map, not an int"),
        ('remember("k", [1])', "'remember' takes a map, not an array"),
    ],
)
def test_a_wrong_argument_fails_the_run_where_the_call_is(call: str, said: str) -> None:
    assert outcome(f"let x = 1;\n  {call};", [{}]).failure == f"script line 2, column 3: {said}"


def test_an_error_of_a_function_can_be_caught() -> None:
    assert outcome('try { warn(1) } catch (e) { emit("caught") }', [0]).messages == ["caught"]


def test_a_path_may_be_as_long_as_a_string_and_only_short_ones_are_kept() -> None:
    long, kept = "a." * 50_000 + "a", host._path.cache_info().currsize

    code = f'emit([field(msg, "{long}"), field(1, "{long}")])'
    assert outcome(code, [{long: 7}]).messages == [[7, None]]
    assert host._path.cache_info().currsize == kept

    outcome('emit(field(msg, "short.and.new"))', [{}])
    assert host._path.cache_info().currsize == kept + 1


def test_a_failure_tells_its_values_to_the_log(caplog) -> None:
    caplog.set_level(logging.DEBUG)

    outcome("emit(1 / msg)", [1, 0])

    [said] = [each for each in caplog.records if each.name == "headrace.script"]
    assert (said.levelname, said.getMessage()) == (
        "DEBUG",
        "pipeline 'p1' transforms[0]: script line 1: value 1: Division by zero: 1 / 0",
    )


def test_what_is_remembered_is_bounded() -> None:
    code = """\
let s = "";
s.pad(100_000, "a");
remember("k", #{ a: s });
remember("k", #{ b: s });
remember("k", #{ b: s });
remember("k", #{ c: s });"""

    found = outcome(code, [0])

    assert found.failure == (
        "script line 6, column 1: 'remember' keeps at most 262144 bytes of JSON under one key"
    )
    assert {name: len(text) for name, text in found.state["k"].items()} == {
        "a": 100_000,
        "b": 100_000,
    }


def test_what_came_in_can_be_remembered_whatever_its_size() -> None:
    large = {"text": "a" * 300_000}

    found = outcome('remember("k", #{ last: msg }); remember("k", #{ n: 1 }); emit(1)', [large])

    assert found.failures == []
    assert found.state["k"] == {"last": large, "n": 1}


def test_a_large_batch_is_encoded_no_further_than_what_is_remembered_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = 0

    def encode(value: Any) -> bytes:
        nonlocal counted
        text = jsontext.encode(value)
        counted += len(text)
        return text

    monkeypatch.setattr(host, "encode", encode)
    large = {"text": "a" * 300_000}
    batch = [large, *[{"n": n} for n in range(500_000)]]

    found = outcome('remember("k", #{ last: batch[0] }); emit([1])', batch, scope="batch")

    assert found.failures == []
    assert counted < 1_000_000


@pytest.mark.parametrize("messages", [0, 1, 255, 256, 257, 1_000])
def test_the_bytes_of_a_batch_are_counted_as_its_json_has_them(messages: int) -> None:
    batch = [{"n": n} for n in range(messages)]
    size = len(jsontext.encode(batch))

    assert has_bytes(batch, size)
    assert not has_bytes(batch, size + 1)


def test_what_is_remembered_cannot_grow_by_holding_itself() -> None:
    # Twice as large every time: forty rounds would fill the memory.
    code = 'let r = recall("k"); remember("k", #{ a: r, b: r }); emit(1)'

    found = outcome(code, *[[0]] * 40)

    assert len(found.failures) > 10
    assert {failure.partition(": ")[2] for failure in found.failures} <= {
        "'remember' keeps at most 262144 bytes of JSON under one key",
        "a map got more than 10000 entries",
    }


@virtual
async def test_a_script_that_does_not_compile_refuses_to_be_built() -> None:
    with pytest.raises(BuildRefused) as refused:
        script("emit(msg").operator(StubContext())

    fault = refused.value.fault
    assert (fault.code, fault.path) == ("not-compiled", ("source", "code"))
    assert fault.spot is not None
    assert (fault.spot.line, fault.spot.column) == (1, 9)


@virtual
async def test_a_bucket_that_is_not_declared_refuses_to_be_built() -> None:
    with pytest.raises(BuildRefused) as refused:
        script("emit(msg)").operator(StubContext(state=PipelineState(bucket="none")))

    assert refused.value.fault.code == "unknown-bucket"


def test_nan_and_infinity_may_live_inside_a_script() -> None:
    [found] = outcome("let x = 0.0 / 0.0; emit(if x.is_nan { 1.0 } else { x })", [0]).messages

    assert not math.isnan(found)


class Batch(list):
    """A batch that tells whether anybody has it still."""


@pytest.mark.parametrize("whole", [False, True], ids=["message", "batch"])
@pytest.mark.parametrize("code", ["emit(1)", "()", "throw 1", "loop {}", "let a = []; a[1]"])
def test_nothing_is_kept_of_a_batch_whose_run_is_over(code: str, whole: bool) -> None:
    source = script(code).source
    program = compiled(
        source, ScriptFiles(None), ScriptHost("s"), is_whole=whole, max_operations=10**9
    )
    batch = Batch([1, 2])
    kept = weakref.ref(batch)

    with suppress(ScriptFailed):
        made = program.start(batch, 0.001)
        if not isinstance(made, list):
            made.close()
        del made
    del batch
    gc.collect()

    assert kept() is None
