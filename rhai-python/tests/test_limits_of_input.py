"""What came into a script never trips a limit, and can be worked on whatever its size."""

import pytest
from rhai import Script

WIDE = {f"k{i}": i for i in range(15_000)}
BATCH = [{f"f{i}": i for i in range(20)} for _ in range(6_000)]
INPUTS = {
    "a long string": {"v": "x" * 1_000_000, "n": 1},
    "a long list": {"v": list(range(150_000)), "n": 1},
    "a wide object": {"v": WIDE, "n": 1},
    "a batch of many fields": {"v": BATCH, "n": 1},
    "many long strings": {"v": ["x" * 200_000] * 20, "n": 1},
}


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize(
    "code",
    [
        "emit(msg)",
        "emit(msg.v)",
        "msg.n = 2; emit(msg)",
        "emit(msg.v.len())",
        "let all = msg; emit(all)",
        "let v = msg.v; emit(v.len()); emit(v)",
        "fn f(x) { x.len() } emit(f(msg.v))",
        "fn f() { this.v.len() } emit(msg.f())",
        "let f = |x| x.len(); emit(f.call(msg.v))",
        "let v = msg.v; let f = || v.len(); emit(f.call())",
        "emit([msg.v.len(), 1])",
        "let l = [msg.v]; emit(l.len())",
        "let m = #{ w: msg.v }; emit(m.keys())",
        "emit(msg.v == msg.v)",
        "if msg.v.is_empty() { emit(0) } else { emit(1) }",
        "emit(type_of(msg.v)); emit(msg.v != ())",
        "let v = msg.v; v.clear(); emit(v.len())",
        "host(msg.v); emit(host(msg).n)",
    ],
)
def test_what_came_in_never_fails_for_its_own_size(name, code):
    script = Script(code, functions={"host": (1, lambda v: v)}, time_limit=20.0)

    assert script.run(INPUTS[name])


@pytest.mark.parametrize(
    ("name", "code", "expected"),
    [
        ("a long string", "msg.v += `y`; emit(msg.v.len())", 1_000_001),
        (
            "a long string",
            "emit(msg.v[0]); emit(msg.v.contains(`y`)); emit(msg.v.to_upper().len())",
            1_000_000,
        ),
        ("a long string", "emit(msg.v.sub_string(5).len())", 999_995),
        ("a long list", "msg.v.push(1); emit(msg.v.len())", 150_001),
        ("a long list", "emit(msg.v[149999]); msg.v[0] = 5; emit(msg.v.len())", 150_000),
        ("a long list", "msg.v.reverse(); emit(msg.v[0])", 149_999),
        ("a long list", "let n = 0; for x in msg.v { n += 1 } emit(n)", 150_000),
        ("a long list", "emit(msg.v.map(|x| x + 1).len())", 150_000),
        ("a wide object", "msg.v.other = 1; emit(msg.v.len())", 15_001),
        ("a wide object", "emit(msg.v.keys().len())", 15_000),
        ("a batch of many fields", "emit(msg.v.filter(|m| m.f1 == 1).len())", 6_000),
        ("a batch of many fields", "msg.v[5].f1 = 2; emit(msg.v.len())", 6_000),
        ("a batch of many fields", "for m in msg.v { m.f1 = 2; emit(m) } emit(1)", 1),
        ("many long strings", "msg.v.push(`x`); emit(msg.v.len())", 21),
    ],
)
def test_what_came_in_can_be_worked_on_whatever_its_size(name, code, expected):
    out = Script(code, max_operations=10**8, time_limit=20.0).run(INPUTS[name])

    assert out[-1] == expected
