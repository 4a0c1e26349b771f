"""Reading only the fields a script names must not be seen from outside.

``msg.a`` alone needs no other field, so a script that names its fields gets a part of the message. The
twin of a script is the same script with a line that reaches everything: both have to do the same with
every message, down to types, the order of keys and which objects come out.
"""

from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rhai import Script, ScriptError

KEYS = ["a", "b", "m", "q", "site", "x", "y", "z", "tag", "len", "", "é", "msg"]
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**66), 2**66),
    st.sampled_from([0, 1, 5, 2**63 - 1, -(2**63), 2**64]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([-0.0, 1.0, Decimal("1.10"), Decimal("0.1"), "", "x", "é€😀", "x" * 30]),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=5),
)


def objects(values, most=6):
    return st.lists(st.sampled_from(KEYS), max_size=most, unique=True).flatmap(
        lambda keys: st.tuples(*[values] * len(keys)).map(lambda v: dict(zip(keys, v, strict=True)))
    )


VALUES = st.recursive(
    LEAVES, lambda v: st.one_of(st.lists(v, max_size=3), objects(v, 4)), max_leaves=12
)
MESSAGES = st.one_of(objects(VALUES), objects(VALUES), VALUES)

FRAGMENTS = [
    "emit(msg);",
    "emit(msg.a);",
    'emit(msg["site"]);',
    "msg.x += 1;",
    "msg.x = 5;",
    "msg.x = msg.a;",
    "msg.a = msg.a;",
    "msg.b = msg.site; msg.b.x = 1;",
    "msg.q = #{ z: msg.a, a: msg.z };",
    'msg["b"] = [msg.a, msg.x];',
    "msg.z = ();",
    "msg.site.x = 3;",
    "msg.site.new = msg.m;",
    "emit(#{ z: msg.a, a: msg.z });",
    "emit([msg.a, msg.site, msg.z]);",
    "emit(msg?.site?.x ?? 4);",
    "if msg.a == 1 { emit(msg) }",
    "if msg.x == msg.y { msg.same = true; }",
    "emit(`${msg.a} ${msg.x}`);",
    "let s = msg.site; s.one = 1; emit(s);",
    "{ let msg = #{ b: 9 }; msg.x = 1; emit(msg) }",
    "msg.len = 3; emit(msg.len);",
    "msg.tag = 3; emit(msg.tag);",
    "for i in 0..2 { msg.y = i; emit(msg) }",
    "try { msg.a.b.c = 1; } catch { msg.failed = true; }",
    "switch msg.a { 1 => msg.b = 1, _ => msg.m = 2 }",
    'msg[""] = 1;',
    'msg.a = "new";',
    "msg.m = 1.0;",
    "emit(msg.site.b); emit(msg.site);",
    "msg.msg = msg.b;",
    "let t = msg.y; t += 1; msg.y = t;",
]
TRICKS = [
    # each tries to reach more than its names, or to pass something else off as the message
    "let m = msg; m.w = 1; emit(m); emit(msg);",
    "emit(msg.keys());",
    "emit(msg.len());",
    "for k in msg.keys() { emit(msg[k]) }",
    "fn f(m) { m.z = 1; m } emit(f(msg));",
    "fn f() { this.z = 1; this } emit(msg.f());",
    "fn f() { this.x = 1; } msg.f(); emit(msg);",
    "fn f() { this.keys() } emit(msg.site.f()); emit(msg);",
    "msg.remove(`a`); emit(msg);",
    "let f = || msg.a; emit(f.call()); emit(msg);",
    "let f = || msg.x = 1; f.call(); emit(msg);",
    "let f = |msg| msg.keys(); emit(f.call(#{ k: 1 })); emit(msg);",
    "msg = #{ b: 1, a: 2 }; emit(msg);",
    "let o = #{ b: 1 }; msg = o; emit(msg);",
    "{ let msg = msg; msg.x = 1; emit(msg) } emit(msg.a);",
    "let msg = msg.site; emit(msg);",
    "for msg in [1, #{ x: 1 }] { emit(msg) } emit(msg.a);",
    "try { throw #{ x: 1 } } catch (msg) { emit(msg) } emit(msg.a);",
    "let k = `z`; emit(msg[k]); msg[k] = 1; emit(msg);",
    "emit(msg[`a`]); emit(msg[`${`z`}`]);",
    "emit(msg == #{}); emit(msg.a == msg);",
    "emit([msg]); emit(#{ m: msg });",
    "emit(msg.to_json()); emit(`${msg}`);",
    "msg.a = msg; emit(msg);",
    "msg.a = [msg.b]; msg.a.push(msg); emit(msg);",
    "let c = msg; msg.x = 1; emit(c); emit(msg);",
    "Fn(`emit`).call(msg); emit(msg.a);",
    "let e = Fn(`emit`); e.call(msg); msg.x = 1; e.call(msg);",
    "msg += #{ w: 1 }; emit(msg);",
    "msg.mixin(#{ w: 1 }); emit(msg);",
    "msg.clear(); emit(msg);",
    "take(msg); emit(msg);",
    "let t = take(msg.a); emit(t); emit(msg);",
    "emit(type_of(msg)); emit(msg.a);",
    "emit(msg?.keys()); emit(msg);",
    "emit(msg.a, msg);",
    "emit(emit(msg)); emit(msg.a);",
    "fn g(x) { emit(x); } g(msg); g(msg.a);",
    "emit({ msg }); emit(msg.a);",
    "emit(if true { msg } else { msg.a });",
    "msg.set(`w`, 1); emit(msg.get(`z`)); emit(msg);",
    "emit(msg.contains(`z`)); emit(`z` in msg);",
    "msg.fill_with(#{ z: 1, w: 2 }); emit(msg);",
    "emit(msg.map(|v, k| k)); emit(msg);",
    "let x = [msg.site]; x[0].w = 1; emit(x); emit(msg);",
    "swap(msg.a, msg.b); emit(msg);",
    "emit(msg.site.x?.keys() ?? msg.site);",
    "const M = msg; emit(M); emit(msg.a);",
]
CODES = st.one_of(
    st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=5).map(" ".join),
    st.sampled_from(TRICKS),
    st.tuples(st.sampled_from(FRAGMENTS), st.sampled_from(TRICKS)).map(" ".join),
)
EVERYTHING = " if false { let everything = msg; }"
BUILT = {}


def pair(code):
    """The script and its twin that reaches everything."""
    if code not in BUILT:
        BUILT[code] = Script(code), Script(code + EVERYTHING)
    return BUILT[code]


def shape(value):
    """The value with its types and the order of its keys."""
    if isinstance(value, dict):
        return "dict", [(key, shape(item)) for key, item in value.items()]
    if isinstance(value, list):
        return "list", [shape(item) for item in value]
    return type(value).__name__, repr(value)


def outcome(script, message):
    try:
        return [shape(value) for value in script.run(message)]
    except ScriptError as error:
        # Map contents are in some messages, and there the two may differ in what they list.
        return type(error).__name__, error.line, error.column
    except TypeError as error:
        return type(error).__name__


@settings(max_examples=settings().max_examples * 6)
@given(CODES, MESSAGES)
@example("emit(msg);", {"z": 1, "a": 2})
@example("msg.a = msg.a; emit(msg);", {"b": 1})
@example("msg.x += 1; emit(msg);", {"x": 2**64})
@example("msg.x += 1; emit(msg);", {"x": Decimal("1.10")})
@example("msg.z = (); emit(msg);", {"z": 0, "a": 1})
@example('msg[""] = 1; emit(msg);', {"": 2})
def test_a_script_that_names_its_fields_does_what_its_twin_does(code, message):
    try:
        named, twin = pair(code)
    except ScriptError:
        with pytest.raises(ScriptError):
            Script(code + EVERYTHING)
        return
    before = shape(message)

    first, second = outcome(named, message), outcome(twin, message)

    assert twin.reaches is None
    assert first == second
    assert shape(message) == before


@pytest.mark.parametrize("code", TRICKS)
def test_no_trick_gives_another_result_than_its_twin(code):
    messages = [
        {"z": 1, "a": {"k": 1}, "site": {"x": 2, "b": [1]}, "b": 2, "secret": {"y": 1, "c": 2}},
        {"a": 1},
        {},
        [1],
        "text",
        None,
    ]
    named, twin = pair(code)

    for message in messages:
        assert outcome(named, message) == outcome(twin, message), message


@given(MESSAGES)
def test_a_message_that_is_only_handed_on_is_the_same_object(message):
    for script in pair("emit(msg);"):
        try:
            (out,) = script.run(message)
        except ScriptError:
            continue
        assert out is message or not isinstance(message, (dict, list))


@given(objects(VALUES))
def test_parts_that_are_not_changed_are_the_same_objects(message):
    for script in pair("msg.x = 5; emit(msg);"):
        (out,) = script.run(message)
        assert all(out[key] is message[key] for key in message if key != "x")
        assert list(out) == [*message, *(["x"] if "x" not in message else [])]


def test_a_named_field_of_another_thing_than_an_object():
    for script in pair("emit(msg.a);"):
        for value in (None, 5, "text", [1]):
            with pytest.raises(ScriptError):
                script.run(value)


class TestReach:
    @pytest.mark.parametrize(
        ("code", "fields"),
        [
            ("emit(msg)", []),
            ("msg.x += 1; emit(msg)", ["x"]),
            ('emit(msg["a b"])', ["a b"]),
            ("emit(msg?.a?.b)", ["a"]),
            ("emit(msg.a[0].b + msg.c.d)", ["a", "c"]),
            ("fn f(x) { x.keys() } emit(f(msg.a))", ["a"]),
            ("if msg.a > 1 { for i in msg.b { emit(i) } }", ["a", "b"]),
        ],
    )
    def test_the_fields_a_script_names(self, code, fields):
        reaches = Script(code).reaches

        assert reaches is not None
        assert sorted(reaches) == fields

    @pytest.mark.parametrize(
        "code",
        [
            "let m = msg",
            "emit(msg.keys())",
            "f(msg)",
            "msg.f()",
            "emit([msg])",
            "msg[msg.a] = 1",
            "let f = || msg.a",
            "emit(msg == ())",
            "import `x` as x; x::f(msg)",
        ],
    )
    def test_what_reaches_everything(self, code):
        assert Script(code, load=lambda _: "fn f(x) { x }").reaches is None
