"""The language that scripts may count on, group by group: what a line gives for a value."""

import pytest
from rhai import BudgetError, RunError

GROUPS = {
    "let and const": [
        ("let x = 1; x += 1; emit(x)", None, [2]),
        ("let x; emit(x)", None, [None]),
        ("let x = 1; { let x = 2; emit(x) } emit(x)", None, [2, 1]),
        ("let x = 1; let x = x + 1; emit(x)", None, [2]),
        ("const A = 40; emit(A + 2)", None, [42]),
        ("const A = 1; fn f() { global::A } emit(f())", None, [1]),
        ("const A = 1; emit(global::A)", None, [1]),
        ("const A = msg.a; if true { emit(global::A) }", {"a": [1]}, [[1]]),
        ("emit(global::A); const A = 1;", None, RunError),
        ("let a = 1; emit(global::a)", None, RunError),
        ("let x = { let y = 2; y * 3 }; emit(x)", None, [6]),
        ("let (a) = 1; emit(a)", None, "compile"),
    ],
    "if as an expression": [
        ("emit(if msg > 1 { `big` } else { `small` })", 2, ["big"]),
        ("emit(if msg > 1 { 1 } else if msg == 1 { 2 } else { 3 })", 1, [2]),
        ("let x = if false { 1 }; emit(x)", None, [None]),
        ("if msg { emit(1) }", True, [1]),
        ("if msg { emit(1) }", 1, RunError),
        ("if msg.x { emit(1) }", {}, RunError),
    ],
    "switch": [
        ("emit(switch msg { 1 => `one`, 2 | 3 => `few`, _ => `many` })", 3, ["few"]),
        ("emit(switch msg { 0..10 => `low`, 10..=20 => `mid`, _ => `high` })", 20, ["mid"]),
        ("emit(switch msg { x if x > 1 => 1, _ => 2 })", 3, "compile"),
        ("emit(switch msg { 3 if msg < 3 => 1, 1..9 if msg > 2 => 2, _ => 3 })", 3, [2]),
        ("emit(switch msg { `a` => 1, 'b' => 2, () => 3, true => 4, 1.5 => 5 })", 1.5, [5]),
        ("emit(switch msg { 1 => { let y = 2; y } })", 7, [None]),
        ("switch msg { #{a: 1} => emit(1), [1] => emit(2) }", [1], [2]),
    ],
    "for": [
        ("for x in msg { emit(x) }", [1, 2], [1, 2]),
        ("for (x, i) in msg { emit([i, x]) }", ["a", "b"], [[0, "a"], [1, "b"]]),
        ("for c in msg { emit(c) }", "aé", ["a", "é"]),
        ("for i in 0..3 { emit(i) }", None, [0, 1, 2]),
        ("for i in 0..=2 { emit(i) }", None, [0, 1, 2]),
        ("for i in range(0, 10, 4) { emit(i) }", None, [0, 4, 8]),
        ("for i in range(3, 0, -1) { emit(i) }", None, [3, 2, 1]),
        ("for k in msg.keys() { emit(k) }", {"z": 1, "a": 2}, ["a", "z"]),
        ("for k in msg { emit(k) }", {"z": 1}, RunError),
        ("let n = for x in [1, 2, 3] { if x == 2 { break x * 10; } }; emit(n)", None, [20]),
    ],
    "while, loop, do": [
        ("let i = 0; while i < 3 { i += 1; if i == 2 { continue } emit(i) }", None, [1, 3]),
        ("let i = 0; let r = loop { i += 1; if i > 4 { break i; } }; emit(r)", None, [5]),
        ("let i = 5; do { i += 1 } while i < 3; emit(i)", None, [6]),
        ("let i = 0; do { i += 1 } until i >= 3; emit(i)", None, [3]),
    ],
    "return": [
        ("emit(1); return; emit(2)", None, [1]),
        (
            "fn f(x) { if x > 1 { return `big`; } `small` } emit(f(2)); emit(f(0))",
            None,
            ["big", "small"],
        ),
    ],
    "functions": [
        ("fn add(a, b) { a + b } emit(add(1, 2))", None, [3]),
        ("fn f(x) { 1 } fn f(x, y) { 2 } emit(f(0)); emit(f(0, 0))", None, [1, 2]),
        ("fn fib(n) { if n < 2 { n } else { fib(n - 1) + fib(n - 2) } } emit(fib(10))", None, [55]),
        ("fn f(m) { m.x = 9; } f(msg); emit(msg)", {"x": 1}, [{"x": 1}]),
        ("fn f() { this.x = 9; } msg.f(); emit(msg)", {"x": 1}, [{"x": 9}]),
        ("fn f() { msg } f()", 1, RunError),
        ("let y = 1; fn f() { y }", 1, "compile"),
        ("emit(twice(2)); fn twice(x) { x * 2 }", None, [4]),
    ],
    "closures": [
        ("let f = |x| x + 1; emit(f.call(1))", None, [2]),
        ("let n = 10; let f = |x| x + n; n = 20; emit(f.call(1))", None, [21]),
        ("let n = 0; let f = || n += 1; f.call(); f.call(); emit(n)", None, [2]),
        ("let f = || msg; emit(f.call())", 3, [3]),
        ("let m = #{ n: 2, f: |x| this.n * x }; emit(m.f(5))", None, [10]),
        ("let f = |x, y| x - y; let g = f.curry(10); emit(g.call(3))", None, [7]),
        ("fn dbl(x) { x * 2 } emit([1, 2].map(dbl)); emit(Fn(`dbl`).call(3))", None, [[2, 4], 6]),
    ],
    "objects": [
        ("emit(#{ a: 1, a: 2 })", None, "compile"),
        ('emit(#{ a: 1, "b c": 2 })', None, [{"a": 1, "b c": 2}]),
        ("emit(msg.a.b[0].c)", {"a": {"b": [{"c": 5}]}}, [5]),
        ('emit(msg["a b"]); emit(msg["a"])', {"a b": 1, "a": 2}, [1, 2]),
        ("msg.a.b[0].c += 5; emit(msg)", {"a": {"b": [{"c": 1}]}}, [{"a": {"b": [{"c": 6}]}}]),
        ("msg.other.deep = 1", {}, RunError),
        ("let c = msg; c.z = 9; emit(msg); emit(c)", {"z": 1}, [{"z": 1}, {"z": 9}]),
        (
            "emit(msg.keys()); emit(msg.values()); emit(msg.len())",
            {"z": 1, "a": 2},
            [["a", "z"], [2, 1], 2],
        ),
        (
            "emit(msg.contains(`z`)); emit(`z` in msg); emit(`q` in msg)",
            {"z": None},
            [True, True, False],
        ),
        ("emit(msg.remove(`z`)); emit(msg)", {"z": 1, "a": 2}, [1, {"a": 2}]),
        (
            "emit(msg + #{ q: 1 }); msg += #{ z: 2 }; emit(msg)",
            {"z": 1},
            [{"q": 1, "z": 1}, {"z": 2}],
        ),
        ("emit(msg == #{ z: 1, y: [1] })", {"y": [1], "z": 1.0}, [True]),
        ("emit(msg.len)", {"len": 99}, [99]),
        ('emit(msg["new"]); emit(msg["default"])', {"new": 1, "default": 2}, [1, 2]),
        ("emit(msg.new)", {"new": 1}, "compile"),
    ],
    "null handling": [
        ("emit(msg.a?.b)", {}, [None]),
        ("emit(msg.a?.b?.c ?? `none`)", {"a": {}}, ["none"]),
        ("emit(msg.a.b)", {}, RunError),
        ("emit(msg.a?[0])", {}, [None]),
        ("msg.b = msg.b ?? 6; emit(msg)", {"a": 1}, [{"a": 1, "b": 6}]),
        ("emit(msg == ()); emit(() == 1)", None, [True, False]),
        ("emit(msg.x > 5); emit(() < 1)", {}, [False, False]),
        ("emit(0 ?? 5); emit(false ?? 5)", None, [0, False]),
    ],
    "arrays": [
        (
            "let a = [1, 2]; a.push(3); emit(a); emit(a.pop()); emit(a.len())",
            None,
            [[1, 2, 3], 3, 2],
        ),
        ("emit(msg[0]); emit(msg[-1])", [1, 2, 3], [1, 3]),
        ("emit(msg[5])", [1], RunError),
        ("emit(msg.map(|x| x * 2).filter(|x| x > 2).reduce(|s, x| s + x, 0))", [1, 2, 3], [10]),
        ("emit(msg.some(|x| x > 2)); emit(msg.all(|x| x > 2))", [1, 3], [True, False]),
        (
            "emit(msg.index_of(3)); emit(msg.index_of(9)); emit(msg.index_of(|x| x > 1))",
            [1, 3],
            [1, -1, 1],
        ),
        ("msg.sort(); emit(msg); msg.reverse(); emit(msg)", [3, 1, 2], [[1, 2, 3], [3, 2, 1]]),
        ("msg.sort(|a, b| b - a); emit(msg)", [3, 1, 2], [[3, 2, 1]]),
        ("msg.sort(|a, b| a.n < b.n); emit(msg)", [{"n": 2}, {"n": 1}], [[{"n": 1}, {"n": 2}]]),
        ("emit(msg.order()); emit(msg)", [2, 1], [[1, 2], [2, 1]]),
        ("emit([1] + [2]); msg += [3]; msg += 4; emit(msg)", [0], [[1, 2], [0, 3, 4]]),
        ("emit(2 in msg); emit(9 in msg); emit(msg.contains(1))", [1, 2], [True, False, True]),
        ("emit([1, [2]] == [1.0, [2]])", None, [True]),
        (
            "let a = [0]; a.insert(0, 9); a.insert(99, 8); emit(a); emit(a.shift())",
            None,
            [[9, 0, 8], 9],
        ),
        (
            "let a = [1, 2, 3, 4]; emit(a.extract(1, 2)); emit(a.drain(|x| x > 2)); emit(a)",
            None,
            [[2, 3], [3, 4], [1, 2]],
        ),
        ("let a = [1, 1, 2, 2, 1]; a.dedup(); emit(a)", None, [[1, 2, 1]]),
        ("let a = []; a.pad(3, 0); emit(a)", None, [[0, 0, 0]]),
        ("let a = [3, 1.5]; a.sort()", None, RunError),
        (
            "for (m, i) in msg { m.n = i; emit(m) } emit(msg)",
            [{}, {}],
            [{"n": 0}, {"n": 1}, [{}, {}]],
        ),
    ],
    "strings": [
        ("emit(`a ${msg} b ${1 + 1}`)", "x", ["a x b 2"]),
        (
            'emit("tab\\t\\x41\\u00e9\\U0001F600" + 1 + 2.0 + true + ())',
            None,
            ["tab\tAé😀12.0true"],
        ),
        ("emit(msg.len()); emit(msg.len); emit(msg.bytes)", "aé€😀", [4, 4, 10]),
        ("emit(msg[1]); emit(msg[-1]); emit(msg[1..3])", "aé€😀", ["é", "😀", "é€"]),
        ("emit(msg.sub_string(1, 2)); emit(msg.sub_string(2))", "aé€😀", ["é€", "€😀"]),
        ("emit(msg.split(`,`)); emit(msg.split(`;`))", "a,b,,c", [["a", "b", "", "c"], ["a,b,,c"]]),
        ("emit(msg.split()); emit(msg.split(1))", "ab cd", [["ab", "cd"], ["a", "b cd"]]),
        ("msg.trim(); emit(msg)", "  a ", ["a"]),
        ("emit(msg.to_upper()); emit(msg.to_lower()); emit(msg)", "éßA", ["ÉSSA", "éßa", "éßA"]),
        (
            "emit(msg.contains(`b`)); emit(msg.starts_with(`a`)); emit(msg.ends_with(`a`))",
            "ab",
            [True, True, False],
        ),
        (
            "emit(msg.index_of(`€`)); emit(msg.index_of(`x`)); emit(msg.index_of('a', 1))",
            "aé€a",
            [2, -1, 3],
        ),
        (
            "msg.replace(`a`, `bb`); emit(msg); msg.replace('b', 'c'); emit(msg)",
            "aba",
            ["bbbbb", "ccccc"],
        ),
        ("msg.replace(``, `-`); emit(msg)", "ab", ["-a-b-"]),
        (
            "msg.pad(5, `xy`); emit(msg); msg.pad(7, '.'); emit(msg); msg.pad(2, `z`); emit(msg)",
            "a",
            ["axyxy", "axyxy..", "axyxy.."],
        ),
        ("emit(msg - `b`); emit(`abc` - 'a'); emit(msg + 'c')", "ab", ["a", "bc", "abc"]),
        (
            "emit(`a` < `b`); emit(`a` < 1); emit(`1` == 1); emit(`a` == 'a')",
            None,
            [True, False, False, True],
        ),
        ("msg.truncate(1); emit(msg); msg.clear(); emit(msg)", "abc", ["a", ""]),
        (
            "let r = []; for c in msg.chars() { r.push(c) } emit(r); emit(msg.to_chars())",
            "aé",
            [["a", "é"], ["a", "é"]],
        ),
        ("msg.crop(1, 2); emit(msg); emit(msg.pop()); emit(msg)", "abcd", ["bc", "c", "b"]),
        ("emit(msg[9])", "abc", RunError),
        (
            "emit(`${msg}`)",
            {"b": 1, "a": [1, "q", None, 1.0]},
            ['#{"a": [1, "q", (), 1.0], "b": 1}'],
        ),
    ],
    "numbers": [
        (
            "emit(5 / 2); emit(-5 / 2); emit(-5 % 3); emit(5 / 2.0); emit(2 ** 10)",
            None,
            [2, -2, -2, 2.5, 1024],
        ),
        (
            "emit(1 == 1.0); emit(1 < 1.5); emit(1 + 1.5); emit(3 - 0.5)",
            None,
            [True, True, 2.5, 2.5],
        ),
        ("emit(9223372036854775807 + 1)", None, RunError),
        ("emit(msg * msg)", 2**62, RunError),
        ("emit(1 / msg)", 0, RunError),
        ("emit(1 % msg)", 0, RunError),
        ("emit(-msg)", -(2**63), RunError),
        ("emit(msg.abs())", -3, [3]),
        (
            "emit((2.5).round()); emit((-2.5).round()); emit((2.7).floor()); emit((2.1).ceiling())",
            None,
            [3.0, -3.0, 2.0, 3.0],
        ),
        ("emit((3).round())", None, RunError),
        ("emit((2.0).sqrt() * (2.0).sqrt() > 1.99); emit(4.0.sqrt())", None, [True, 2.0]),
        (
            "emit(2.7.to_int()); emit((-2.7).to_int()); emit(3.to_float()); emit('a'.to_int())",
            None,
            [2, -2, 3.0, 97],
        ),
        ("emit(1e30.to_int())", None, RunError),
        (
            "emit(parse_int(`12`)); emit(parse_int(` ff `, 16)); emit(parse_float(`1.50`))",
            None,
            [12, 255, 1.5],
        ),
        ("emit(parse_int(`12x`))", None, RunError),
        ("emit(parse_float(`x`))", None, RunError),
        (
            "emit(`${42.0}`); emit(1.5.to_string()); emit((0.1 + 0.2).to_string())",
            None,
            ["42.0", "1.5", "0.30000000000000004"],
        ),
        (
            "emit(10_000); emit(0xff); emit(0b101); emit(0o17); emit(1.5e3)",
            None,
            [10000, 255, 5, 15, 1500.0],
        ),
        ("emit(-9223372036854775808)", None, [-(2**63)]),
        ("emit(min(1, 2)); emit(max(1.5, 2.5))", None, [1, 2.5]),
        ("emit(255.to_hex()); emit(5.to_binary()); emit(8.to_octal())", None, ["ff", "101", "10"]),
    ],
    "assignment operators": [
        ("let x = 7; x += 1; x -= 2; x *= 3; x /= 2; x %= 5; emit(x)", None, [4]),
        ("let x = 2; x **= 5; emit(x); x <<= 1; emit(x); x >>= 3; emit(x)", None, [32, 64, 8]),
        ("let x = 6; x &= 3; emit(x); x |= 8; emit(x); x ^= 1; emit(x)", None, [2, 10, 11]),
        (
            "msg.n += 1; msg.s += `b`; msg.f *= 2.0; emit(msg)",
            {"n": 1, "s": "a", "f": 1.5},
            [{"n": 2, "s": "ab", "f": 3.0}],
        ),
    ],
    "integer and bit operators": [
        (
            "emit(5 & 3); emit(5 | 8); emit(5 ^ 1); emit(1 << 4); emit(16 >> 2); emit(-1 >> 1)",
            None,
            [1, 13, 4, 16, 4, -1],
        ),
        ("emit(1 << 63); emit(1 << 64)", None, [-(2**63), 0]),
        ("emit(!true); emit(true && false || true); emit(true ^ true)", None, [False, True, False]),
        (
            "emit(5[0]); emit(5[1]); let x = 0; x[3] = true; emit(x); emit(0xff.get_bits(0, 4))",
            None,
            [True, False, 8, 15],
        ),
    ],
    "type_of and to_string": [
        (
            "emit([(), true, 1, 1.5, `s`, 'c', [], #{}].map(|v| type_of(v)))",
            None,
            [["()", "bool", "i64", "f64", "string", "char", "array", "map"]],
        ),
        ("emit(type_of(|x| x)); emit(type_of(0..1))", None, ["Fn", "range"]),
        (
            "emit(1.to_string()); emit(().to_string()); emit(true.to_string()); emit([1].to_string())",
            None,
            ["1", "", "true", "[1]"],
        ),
        ("emit(msg.to_json())", {"z": 1.0, "a": [None, 'q"']}, ['{"a":[null,"q\\""],"z":1.0}']),
        (
            "emit(parse_json(msg))",
            '{"a": 1.50, "b": [null, true, "é"]}',
            [{"a": 1.5, "b": [None, True, "é"]}],
        ),
    ],
    "throw and catch": [
        ("try { throw 5 } catch (e) { emit(e) }", None, [5]),
        ("try { throw #{ code: 5 } } catch (e) { emit(e.code) }", None, [5]),
        ("try { 1 / 0 } catch { emit(`caught`) }", None, ["caught"]),
        ("try { msg.nope() } catch (e) { emit(type_of(e)) }", {}, ["map"]),
        ("try { try { throw 1 } catch { throw } } catch (e) { emit(e) }", None, [1]),
        ("throw `bad`", None, RunError),
        ("fn f(x) { throw x } try { f(3) } catch (e) { emit(e) }", None, [3]),
        ("try { loop {} } catch { emit(1) }", None, BudgetError),
    ],
    "comments": [
        ("// one\n/* two /* nested */ */ emit(1) // three", None, [1]),
        ("/// doc\nfn f() { 1 }\nemit(f())", None, [1]),
    ],
}
TABLE = [
    pytest.param(code, value, expected, id=f"{group}: {code}")
    for group, rows in GROUPS.items()
    for code, value, expected in rows
]


@pytest.mark.parametrize(("code", "value", "expected"), TABLE)
def test_a_line_gives(run, code, value, expected):
    if expected == "compile":
        with pytest.raises(Exception, match="line 1, column") as caught:
            run(code, value)
        assert type(caught.value).__name__ == "CompileError"
    elif isinstance(expected, type):
        with pytest.raises(expected) as caught:
            run(code, value)
        assert type(caught.value) is expected
    else:
        assert repr(run(code, value)) == repr(expected)


@pytest.mark.parametrize(
    "code",
    ["eval(`1`)", "sleep(1)", "sleep(0.5)", "timestamp()", "let e = Fn(`eval`); e.call(`1`)"],
)
def test_what_a_script_must_not_have_is_not_there(run, code):
    with pytest.raises(Exception, match=r"eval|sleep|timestamp"):
        run(code)


def test_print_and_debug_go_to_the_note_with_their_place():
    from rhai import Script

    notes = []
    code = "print(`a`);\n  print(#{ b: 1 }); debug(`q`); [1].map(|x| debug(x));"
    Script(code, note=lambda *note: notes.append(note)).run(None)

    assert [note[:2] for note in notes] == [
        ("print", "a"),
        ("print", '#{"b": 1}'),
        ("debug", '"q"'),
        ("debug", "1"),
    ]
    assert notes[2][2:] == (2, 21, None)


def test_print_without_a_note_is_dropped(run):
    assert run("print(1); debug(2); emit(3)") == [3]
