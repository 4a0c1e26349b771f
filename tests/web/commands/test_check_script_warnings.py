"""What `headrace check` warns of in scripts that compile."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headrace.operators.script.names import MOST_REMARKS
from tests.web.commands.checked import check, config_of, written

pytestmark = pytest.mark.usefixtures("in_a_folder")


def json_of(code: str) -> list[Any]:
    """Return a config of one inline script."""
    script = {"type": "script", "source": {"type": "inline", "code": code}}
    return [{"inputs": [{"type": "dummy", "duration": 1}], "transforms": [script]}]


@pytest.mark.parametrize("scope", ["message", "batch"])
def test_a_script_that_never_emits_is_warned_of(scope: str) -> None:
    source = '{type: inline, code: "print(1);"}'

    code, lines = check(written("a.yaml", config_of(source, f", scope: {scope}")))

    assert code == 0
    assert lines == [
        "a.yaml:3:60: pipelines[0].transforms[0].source.code: warning:"
        " this script never calls 'emit': whatever comes is dropped"
        f" (call emit({'msg' if scope == 'message' else 'batch'}) for what is to go on)"
    ]


@pytest.mark.parametrize(
    "code",
    ["msg", "return msg;", "msg.n = 1; msg // on", "return #{ a: 1 };", "[msg]", "`${msg.a}`"],
)
def test_one_that_returns_what_it_should_emit_is_told_so(code: str) -> None:
    _, [line] = check(written("a.yaml", config_of(f"{{type: inline, code: {json.dumps(code)}}}")))

    assert line.endswith(
        ": warning: this script never calls 'emit': whatever comes is dropped"
        " (a returned value does not count: call emit(msg))"
    )


def test_a_function_that_looks_like_one_of_ours_is_warned_of_where_it_is_called() -> None:
    code = 'let n = 1;\nrembember("a", #{});\nemitt(n);'
    written("lib/a.rhai", "fn f(x) {\n  recal(x)\n}")
    source = json.dumps(f'import "lib/a" as a; {code}')

    _, lines = check(written("a.json", json.dumps(json_of(json.loads(source)))))

    assert [line.partition(": ")[2] for line in lines] == [
        "pipelines[0].transforms[0].source.code: warning: there is no function 'rembember'"
        " (did you mean 'remember'?)",
        "pipelines[0].transforms[0].source.code: warning: there is no function 'emitt'"
        " (did you mean 'emit'?)",
        "pipelines[0].transforms[0].source.code: warning: there is no function 'recal'"
        " (did you mean 'recall'?)",
    ]
    assert lines[2].startswith("lib/a.rhai:2:3: ")


def test_a_call_with_a_comment_in_it_is_told_where_it_is() -> None:
    code = json.dumps("let n = 1; emitt /* it */ (n);")

    _, [line] = check(written("a.yaml", config_of(f"{{type: inline, code: {code}}}")))

    assert line == (
        "a.yaml:3:72: pipelines[0].transforms[0].source.code: warning: there is no function 'emitt'"
        " (did you mean 'emit'?)"
    )


@pytest.mark.parametrize(
    ("code", "column", "said"),
    [
        ("emit(sha256(msg.id))", 6, "'sha256'"),
        ("msg.sha256 = sha256(msg.id); emit(msg)", 14, "'sha256'"),
        ("emit(#{ sha256: sha256(msg.id) })", 17, "'sha256'"),
        ("emit(msg.id.sha256())", 13, "'sha256'"),
        ("emit(msg.id?.sha256())", 14, "'sha256'"),
        ("emit(`${sha256(msg.id)}`)", 9, "'sha256'"),
        ("let x = msg.name.length(); emit(x)", 18, "'length' (did you mean 'len'?)"),
        ("emit(msg.name.to_uper())", 15, "'to_uper' (did you mean 'to_upper'?)"),
        ("fn celsius(f) { f } emit(celcius(1.0))", 26, "'celcius' (did you mean 'celsius'?)"),
        ('import "out" as o; emit(o::sha256(1))', 28, "'sha256'"),
    ],
)
def test_a_function_that_nobody_has_is_warned_of_where_it_is_called(
    code: str, column: int, said: str
) -> None:
    written("out.rhai", "fn emitt(x) { x }")
    written("a.rhai", code)

    _, [line] = check(written("a.yaml", config_of("{type: file, path: a.rhai}")))

    assert line == (
        f"a.rhai:1:{column}: pipelines[0].transforms[0].source.path: warning: "
        f"there is no function {said}"
    )


def test_a_script_of_nothing_but_unknown_functions_is_told_the_first_few() -> None:
    calls = " ".join(f"f{n}();" for n in range(1000))

    _, lines = check(written("a.yaml", config_of(f"{{type: inline, code: '{calls} emit(1)'}}")))

    assert len(lines) == MOST_REMARKS


@pytest.mark.parametrize(
    "code",
    [
        "fn emitt(x) { emit(x) } emitt(1)",
        'import "out" as o; o::emitt(1); emit(1)',
        "let o = #{ emitt: |x| x }; o.emitt(1); emit(1)",
        "let o = #{}; o.emitt = |x| x; o.emitt(1); emit(1)",
        "let f = |x| x; emit(f.call(1))",
        "if msg.n > 1 { exit() } emit(1)",
        "emit(msg.list.filter(|x| x > 1).reduce(|a, b| a + b, 0).to_float().floor())",
        "msg.remove(`a`); msg.list.retain(|x| x > 1); emit(max(1, 2))",
        "let sha256 = |x| x; emit(sha256.call(1))",
        "fn apply(sha256, x) { sha256.call(x) } emit(apply(|x| x, 1))",
        "let o = #{}; o[`sha256`] = |x| x; o.sha256(1); emit(1)",
        "let o = #{ sha256: Fn(`emit`) }; o.sha256(1)",
        "fn f64.sha256() { this } emit(1.5.sha256())",
        "fn f(x) { x } emit([1].map(f)); let g = Fn(`f`).curry(1); emit(g.call()); emit(is_def_fn(`f`, 1))",
        'import "out" as o; emit(o::HASH.call(1)); emit(type_of(1)); print(1); debug(1)',
        "emit(PI() + E()); emit(parse_json(`[1]`)); emit(#{ a: 1 }.to_json())",
        "emit(msg.sha256)",
        "emit(`${msg.list.len()} // sha256(1)`)",
    ],
)
def test_one_that_is_there_is_not(code: str) -> None:
    written("out.rhai", "fn emitt(x) { x } export const HASH = |x| x;")

    assert check(written("a.yaml", config_of(f"{{type: inline, code: {json.dumps(code)}}}"))) == (
        0,
        [],
    )


@pytest.mark.parametrize(
    "code",
    [
        "emit(1)",
        "if false { emit(1) }",
        "fn f(x) { emit(x) } f(1)",
        "[1].for_each(|x| emit(x))",
        'import "out" as o; o::f(1)',
        'call(Fn("em" + "it"), 1)',
    ],
)
def test_a_script_that_may_emit_is_not(code: str) -> None:
    written("out.rhai", "fn f(x) { emit(x) }")

    assert check(written("a.yaml", config_of(f"{{type: inline, code: {json.dumps(code)}}}"))) == (
        0,
        [],
    )


def test_state_without_a_bucket_is_warned_of_in_the_words_of_the_run() -> None:
    code = 'let n = recall("a"); remember("a", #{}); emit(n)'

    code, lines = check(written("a.yaml", config_of(f"{{type: inline, code: {json.dumps(code)}}}")))

    place = "a.yaml:3:60: pipelines[0].transforms[0].source.code: warning: "
    needs = "needs to know which bucket: the pipeline has no 'state'"
    assert code == 0
    assert lines == [f"{place}'recall' {needs}", f"{place}'remember' {needs}"]


@pytest.mark.parametrize(
    ("code", "state"),
    [
        ('emit(recall("a"))', "  state: {bucket: b}\n"),
        ('fn recall(x) { x } emit(recall("a"))', ""),
    ],
)
def test_state_that_is_there_or_is_not_asked_for_is_not(code: str, state: str) -> None:
    pipelines = config_of(f"{{type: inline, code: {json.dumps(code)}}}") + state
    indented = "".join(f"  {line}\n" for line in pipelines.splitlines())

    assert check(written("a.yaml", f"state: {{b: {{}}}}\npipelines:\n{indented}")) == (0, [])


def test_an_interpolation_in_a_script_is_no_reference_to_a_secret() -> None:
    code = json.dumps("emit(`${msg.a}`)")

    assert check(written("a.yaml", config_of(f"{{type: inline, code: {code}}}"))) == (0, [])


def test_without_the_engine_everything_else_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "rhai", None)
    name = written("a.yaml", config_of('{type: inline, code: "emit(1)"}', ", scope: all"))
    other = written("b.yaml", config_of('{type: inline, code: "emit(1)"}'))

    assert check(name) == (
        1,
        [
            "a.yaml:3:79: pipelines[0].transforms[0].scope:"
            " expected one of message, batch, found \"all\" (did you mean 'batch'?)"
        ],
    )
    assert check(other) == (
        1,
        [
            "b.yaml:3:60: pipelines[0].transforms[0].source.code: a script needs the package"
            " 'rhai-python', which is not installed: where there is Rust 1.85 or newer"
            " (https://rustup.rs), 'make run' or 'pip install ./rhai-python' in the sources of"
            " headrace installs it"
        ],
    )
