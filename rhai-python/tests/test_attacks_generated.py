"""Hostile scripts that are too long or too many to write down: sources, nests, odd arguments, modules."""

import pytest

SIZES = ("max_string", "max_array", "max_map", "max_memory", "max_nesting")
UNCOUNTED = {"max_operations": 10**12, "time_limit": 0.3}
COMPILES_OR_NOT = ("CompileError", "ok", "max_operations", "max_memory", "time_limit", "RunError")


def nest(before, inner, after, depth=5_000):
    return before * depth + inner + after * depth


NESTED = {
    "parentheses": "let x = " + nest("(", "1", ")"),
    "very many parentheses": "let x = " + nest("(", "1", ")", 400_000),
    "arrays": "let x = " + nest("[", "1", "]"),
    "very many arrays": "let x = " + nest("[", "1", "]", 400_000),
    "maps": "let x = " + nest("#{a:", "1", "}"),
    "blocks": nest("{", "1", "}", 400_000),
    "functions": nest("fn f() {", "1", "}"),
    "closures": "let x = " + nest("||", "1", ""),
    "closures with braces": "let x = " + nest("|a|{", "1", "}"),
    "branches": nest("if true {", "1", "}"),
    "switches": nest("switch 1 { _ => ", "1", "}"),
    "minus": "let x = " + nest("-", "1", "", 400_000),
    "not": "let x = " + nest("!", "true", "", 400_000),
    "interpolations": "let x = " + nest("`${", "1", "}`"),
    "very many interpolations": "let x = " + nest("`${", "1", "}`", 150_000),
    "tries": nest("try {", "1", "} catch {}"),
    "loops": nest("loop {", "break;", "}"),
    "calls": "let x = " + nest("f(", "1", ")", 300_000),
    "methods": "let x = " + nest("a.f(", "1", ")", 200_000),
    "indices": "let a = [0]; let x = " + nest("a[", "0", "]", 300_000),
    "dots": "let x = msg" + ".a" * 300_000,
    "sums": "let x = 1" + "+1" * 300_000,
    "powers": "let x = 1" + "**1" * 300_000,
    "defaults": "let x = 1" + "??1" * 300_000,
    "assignments": "let a = 1; " + nest("a=", "1", "", 300_000),
    "returns": nest("return ", "1", "", 100_000),
    "throws": nest("throw ", "1", "", 100_000),
}


@pytest.mark.parametrize("small_stack", [False, True], ids=["main thread", "small stack"])
@pytest.mark.parametrize("name", NESTED)
def test_source_that_nests_deep_does_not_compile(withstand, name, small_stack):
    withstand(NESTED[name], ["CompileError"], small_stack=small_stack)


@pytest.mark.parametrize("small_stack", [False, True], ids=["main thread", "small stack"])
@pytest.mark.parametrize(
    "code",
    [nest("if false {} else ", "{}", "", 60_000), nest("/*", "", "*/", 250_000)],
    ids=["else if", "comments"],
)
def test_source_that_only_looks_nested_breaks_nothing(withstand, code, small_stack):
    withstand(code, ["CompileError", "ok"], small_stack=small_stack)


def all_of_unicode():
    return "".join(chr(c) for c in range(1, 0x20000) if not 0xD800 <= c < 0xE000)


# Made where they are tried: each process of a run imports this file.
LARGE = {
    "ten megabytes of statements": lambda: "emit(1);" * 1_300_000,
    "ten megabytes of comment": lambda: "/" * 10_000_000,
    "ten megabytes in one string": lambda: 'let s = "' + "x" * 10_000_000 + '";',
    "a megabyte of statements": lambda: "host(1);" * 130_000,
    "a megabyte of semicolons": lambda: ";" * 1_000_000,
    "a megabyte of blocks": lambda: "{" + "{1};" * 200_000 + "}",
    "a megabyte of different strings": lambda: ";".join(f'"s{i}"' for i in range(100_000)),
    "a megabyte of one string": lambda: 'let s = "' + "x" * 1_000_000 + '"; emit(s.len());',
    "a megabyte of one name": lambda: f"let {'a' * 1_000_000} = 1;",
    "a megabyte of one number": lambda: "let a = " + "1" * 1_000_000 + ";",
    "an array of a hundred thousand": lambda: "let a = [" + "1," * 99_999 + "]; loop { a.len(); }",
    "an array of three hundred thousand": lambda: "let a = [" + "1," * 300_000 + "];",
    "a map of sixty thousand": lambda: (
        "let a = #{" + ",".join(f"a{i}:1" for i in range(60_000)) + "};"
    ),
    "a switch of ninety thousand": lambda: (
        "switch 5 {" + ",".join(f"{i}=>1" for i in range(90_000)) + "}"
    ),
    "a switch of ranges": lambda: (
        "switch 5 {" + ",".join(f"{i}..{i + 5}=>1" for i in range(60_000)) + "}"
    ),
    "an interpolation of many parts": lambda: "`" + "${1}" * 200_000 + "`;",
    "a hundred thousand calls": lambda: ";".join(f"f{i}()" for i in range(80_000)),
    "many tries": lambda: "try{}catch(e){}" * 60_000,
    "a string that does not end": lambda: 'let s = "' + "x" * 1_000_000,
    "a comment that does not end": lambda: "/*" + "x" * 1_000_000,
    "nul characters": lambda: "\x00" * 1_000_000,
    "marks of order and direction": lambda: "\ufeff\u202eemit(1)\u2066",
    "all of unicode": all_of_unicode,
    "all of unicode in a string": lambda: f'emit("{all_of_unicode()[0xFF:]}".len())',
    "variables": lambda: "".join(f"let v{i}={i};" for i in range(60_000)),
    "constants": lambda: "".join(f"const v{i}={i};" for i in range(40_000)),
    "functions": lambda: "".join(f"fn f{i}(){{}}" for i in range(60_000)),
    "functions and closures": lambda: "".join(f"fn f{i}(x){{|| x}}" for i in range(40_000)),
    "parameters": lambda: f"fn f({','.join(f'p{i}' for i in range(20_000))}) {{}}",
    "arguments": lambda: f"f({','.join('1' * 20_000)})",
    "closures": lambda: ";".join(["||1"] * 100_000),
    "closures that capture": lambda: "let a = 1;" + "||a;" * 200_000,
    "exports": lambda: "".join(f"let v{i}={i}; export v{i};" for i in range(20_000)),
    "curried again and again": lambda: "let f = Fn(`len`);" + "f = f.curry(f);" * 60,
    "imports": lambda: "".join(f'import "m" as b{i};' for i in range(30_000)),
}


@pytest.mark.long
@pytest.mark.parametrize("name", LARGE)
def test_a_large_source_is_compiled_or_refused_in_time(withstand, name):
    withstand(LARGE[name](), [*COMPILES_OR_NOT, *SIZES, "max_modules"], modules={"m": ""})


STEPS = {
    "arrays": "a = [a];",
    "pushed arrays": "let b = []; b.push(a); a = b;",
    "maps by index": "let b = #{}; b[`k`] = a; a = b;",
    "thrown arrays": "try { throw [a] } catch (e) { a = e }",
    "mapped arrays": "a = [0].map(|x| a);",
}
USES = {
    "dropped": "",
    "printed": "print(a); a.to_string().len()",
    "compared": "let b = a; a == b",
    "cloned": "let b = a; b.push(1); let c = [b, a];",
    "emitted": "emit(a)",
    "given to a host function": "host(a)",
    "interpolated": "`${a}`",
    "thrown": "throw a",
    "searched": "[a].contains(a); [a].index_of(a); a in [a]",
    "written as json": "#{ a: a }.to_json()",
}


# Nesting a value is quadratic in the engine: much deeper than this no run gets in its time.
NESTS = [(form, use, 1_000) for form in STEPS for use in USES]
NESTS += [("arrays", use, 3_000) for use in USES]
NESTS += [(form, "dropped", 10**6) for form in STEPS]


@pytest.mark.long
@pytest.mark.parametrize(("form", "use", "rounds"), NESTS)
def test_values_that_nest_deep_break_nothing(withstand, form, use, rounds):
    withstand(
        f"let a = []; for i in 0..{rounds} {{ {STEPS[form]} }} {USES[use]}",
        ["max_nesting", "RunError", "ok", *(["time_limit"] if rounds > 3_000 else [])],
        # What has to end by itself has time enough on a machine that does much else.
        options={"max_operations": 10**12, "time_limit": 2.0 if rounds > 3_000 else 30.0},
        small_stack=True,
    )


# m and x are the largest and the smallest integer.
ODD = r"""
[1][x] ;; [1][x..=m] ;; `abc`[x..=m] ;; `abc`[m..x] ;; 5[x..=m] ;; 5[63..=63] ;; get_bits(5, x, m)
get_bits(5, x..=m) ;; set_bits(y, x..=m, 1) ;; set_bits(y, 0..=63, -1) ;; bits(y, x..=m) ;; y.bits(m, x)
`abc`.chars(x, m) ;; `abc`.chars(-m..=m) ;; range(x, m, m) ;; range(m, x, x) ;; range(0, 1, 0)
range(0.0, 1.0 / 0.0, 1e300) ;; (x..=m).contains(y) ;; (m..x).is_empty() ;; `abc`.split(x) ;; `abc`.split(m)
`abc`.split(`b`, x) ;; `abc`.pad(x, `x`) ;; `abc`.pad(m, 'x') ;; `abc`.pad(9, ``) ;; `abc`.index_of(`b`, x)
`abc`.index_of('b', m) ;; `abc`.crop(x..=m) ;; `abc`.crop(x, m) ;; `abc`.truncate(x) ;; `abc`.pop(m)
`abc`.sub_string(x, m) ;; `abc`.get(x) ;; `abc`.set(m, 'c') ;; [1, 2].pad(m, 0) ;; [1, 2].insert(x, 5)
[1, 2].splice(x, m, []) ;; [1, 2].splice(x..=m, []) ;; [1, 2].drain(x, m) ;; [1, 2].retain(x..=m)
[1, 2].retain(1, m) ;; [1, 2].chop(m) ;; [1, 2].split(x) ;; [1, 2].index_of(1, x) ;; [1, 2].extract(x)
[1, 2].remove(x) ;; [1].get(x) ;; blob(m) ;; m + 1 ;; x - 1 ;; m * m ;; m ** m
2 ** m ;; 2.0 ** m ;; 2 ** -1 ;; x / -1 ;; x % -1 ;; -x ;; x.abs() ;; x.sign() ;; x >> 64 ;; x << -1
1 << x ;; 1 >> m ;; (1e308).to_int() ;; (0.0 / 0.0).to_int() ;; (2.0).log(0.0) ;; parse_int(`zz`, 36)
parse_int(`1`, 1) ;; parse_int(`1`, x) ;; parse_int(``) ;; parse_int(`-`) ;; parse_float(`1e999`)
parse_float(`nan`) ;; parse_json(``) ;; parse_json(`{`) ;; parse_json(`5`) ;; parse_json(`{"a": 1e999}`)
parse_json(`{"a": 123456789012345678901234567890}`) ;; parse_json("{\"a\": \"\\ud800\"}") ;; m.to_hex()
x.to_binary() ;; x.to_octal() ;; m.to_float().to_int() ;; 'a' + m ;; max(m, 1.5) ;; [|x| x] == [|x| x]
[|x| x].contains(|x| x) ;; [0.0 / 0.0, 1.0].sort() ;; [1..2].contains(1..2) ;; (1..2) == (1..2) ;; Fn(``)
Fn(`a b`) ;; Fn(`+`) ;; Fn(`emit`).call(1, 2, 3) ;; call(1, 2) ;; call(Fn(`nope`)) ;; `x`.call()
(|a| a).curry(1).curry(2).call() ;; is_def_fn(`emit`, x) ;; is_def_fn(``, m) ;; is_def_var(``) ;; tag(5)
type_of(emit) ;; take(y) ;; exit(m) ;; sleep(m) ;; sleep(1e300) ;; timestamp() ;; eval(`1`)
Fn(`eval`).call(`1`) ;; Fn(`sleep`).call(1) ;; print(x, m) ;; emit() ;; emit(1, 2)
"\x00".len() ;; "\uD800"
this ;; this.x ;; global::x ;; [].set_tag(5) ;; y.tag = 5 ;; y.tag ;; Fn(`set_tag`).call(y, 5) ;; 1.2.3
"""


@pytest.mark.parametrize(
    "code", [one for line in ODD.strip().splitlines() for one in line.split(" ;; ")]
)
def test_odd_arguments_give_a_value_or_an_error(withstand, code):
    withstand(
        f"let m = 9223372036854775807; let x = -m - 1; let y = 5; let r = {code}; `${{r}}`",
        ["ok", "RunError", "CompileError", *SIZES],
    )


MODULES = {
    "a computed path": ('let p = "m"; import p as m;', {"m": ""}, ["CompileError", "RunError"]),
    "a path from the message": ("import msg as m;", {"m": ""}, ["CompileError", "RunError"]),
    "an interpolated path": ("import `${msg}` as m;", {"m": ""}, ["CompileError", "RunError"]),
    "in a loop": (
        'loop { import "m" as m; }',
        {"m": "fn f() {}"},
        ["max_operations", "max_modules"],
    ),
    "one that imports itself": ('import "m" as m;', {"m": 'import "m" as m;'}, ["CompileError"]),
    "a circle": (
        'import "a" as a;',
        {"a": 'import "b" as b;', "b": 'fn f() { import "a" as a; }'},
        ["CompileError"],
    ),
    "a long chain": (
        'import "m0" as m;',
        {f"m{i}": f'import "m{i + 1}" as m;' for i in range(1000)},
        ["CompileError", "max_modules"],
    ),
    "one that is too long": ('import "m" as m;', {"m": "/" * 2_000_000}, ["CompileError"]),
    "one that nests": (
        'import "m" as m;',
        {"m": "let x = " + nest("(", "1", ")")},
        ["CompileError"],
    ),
    "one that loops": ('import "m" as m;', {"m": "loop {}"}, ["CompileError", "max_operations"]),
    "one that grows": (
        'import "m" as m;',
        {"m": "let s = `ab`; loop { s += s }"},
        ["CompileError", *SIZES],
    ),
    "one that eats memory": (
        'import "m" as m;',
        {
            "m": "let a = []; a.pad(9000, 0); for i in 0..9000 { let b = []; b.pad(90000, 0); a[i] = b }"
        },
        ["CompileError", *SIZES],
    ),
    "one that emits": ('import "m" as m;', {"m": "emit(1)"}, ["CompileError", "RunError", "ok"]),
    "one that recurs": ('import "m" as m; m::f(1)', {"m": "fn f(x) { f(x) }"}, ["max_calls"]),
    "a file of the machine": ('import "/etc/passwd" as x;', {}, ["CompileError"]),
    "odd characters": ('import "../\\x00/é/\\\\" as x;', {"m": ""}, ["CompileError"]),
    "no path": ('import "" as x;', {"m": ""}, ["CompileError"]),
}


@pytest.mark.long
@pytest.mark.parametrize("name", MODULES)
def test_modules_break_nothing(withstand, name):
    code, modules, stops = MODULES[name]

    withstand(code, stops, modules=modules, value="m")


MESSAGES = {
    "a long list into many places": (
        "let l = []; l.pad(9000, 0); for i in 0..9000 { l[i] = msg }",
        [0] * 50_000,
        SIZES,
    ),
    "a long list in a loop": (
        "let n = 0; loop { for x in msg { n += x } }",
        list(range(100_000)),
        ["time_limit"],
    ),
    "a long key": ("msg[msg.keys()[0] + `x`] = 1; emit(msg.len())", {"k" * 300_000: 1}, ["ok"]),
    "emitted many times": (
        "loop { emit(msg) }",
        {"s": "x" * 100_000},
        ["max_emitted", "max_emitted_bytes"],
    ),
    "changed and emitted many times": (
        "for i in 0..9000000 { msg.i = i; emit(msg) }",
        {"s": "x" * 100_000},
        ["max_emitted", "max_emitted_bytes", "max_memory"],
    ),
    "emitted in many copies": (
        "loop { emit([msg, msg, msg, msg, msg, msg, msg, msg]) }",
        {"s": ["x" * 1000] * 100},
        ["max_emitted", "max_emitted_bytes", "max_memory", "max_string"],
    ),
    "a tree of copies": (
        "let a = msg; for i in 0..40 { a = [a, a] } emit(a)",
        {"s": "x" * 1000},
        SIZES,
    ),
    "a wide object": (
        "loop { let k = msg.keys(); k.sort(); }",
        {f"k{i}": i for i in range(50_000)},
        ["time_limit"],
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_are_no_lever(withstand, name):
    code, value, stops = MESSAGES[name]
    # Where size is what stops it, a busy machine must not have its time over first.
    seconds = UNCOUNTED["time_limit"] if "time_limit" in stops else 5.0

    withstand(code, stops, value=value, options={**UNCOUNTED, "time_limit": seconds})
