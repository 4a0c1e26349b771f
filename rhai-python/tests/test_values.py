"""Values on their way into a script and back out of it."""

import enum
import math
from collections import OrderedDict
from decimal import Decimal

import pytest
from rhai import RunError, Script

I64 = 2**63


def same(got, expected):
    """Equal down to the types and the order of keys: repr tells 1 from 1.0, True and -0.0."""
    return repr(got) == repr(expected)


ROWS = [
    # value, type_of inside
    (None, "()"),
    (True, "bool"),
    (False, "bool"),
    (0, "i64"),
    (-1, "i64"),
    (I64 - 1, "i64"),
    (-I64, "i64"),
    (I64, "f64"),
    (-I64 - 1, "f64"),
    (2**64, "f64"),
    (10**30, "f64"),
    (1.5, "f64"),
    (42.0, "f64"),
    (-0.0, "f64"),
    (5e-324, "f64"),
    (1.7976931348623157e308, "f64"),
    (Decimal("1.10"), "f64"),
    (Decimal("123456789012345678901234567890.5"), "f64"),
    ("", "string"),
    ("text", "string"),
    ("aé€😀", "string"),
    ("\x00\x7f\u2028", "string"),
    ("\ufffe\U0010ffff", "string"),
    ([], "array"),
    ([1, "a", None, [2.0, {}]], "array"),
    ({}, "map"),
    ({"z": 1, "a": {"y": [True], "b": None}}, "map"),
]


@pytest.mark.parametrize(("value", "kind"), ROWS, ids=repr)
def test_every_json_value_has_its_type_inside_and_comes_back_the_same(run, value, kind):
    assert run("emit(type_of(msg))", value) == [kind]
    assert same(run("emit(msg)", value), [value])
    assert same(run("emit([msg, #{k: msg}])", value), [[value, {"k": value}]])


@pytest.mark.parametrize(("value", "kind"), ROWS, ids=repr)
def test_a_field_has_the_type_of_its_value(run, value, kind):
    message = {"before": 1, "f": value, "after": 2}

    assert run("emit(type_of(msg.f))", message) == [kind]
    assert same(run("emit(msg.f)", message), [value])
    assert same(run("msg.copy = msg.f; emit(msg)", message), [{**message, "copy": value}])


def test_an_untouched_message_comes_out_as_the_same_object(run):
    message = {"z": 1, "a": {"b": [1, {"c": 2.0}]}, "wide": 2**70, "price": Decimal("1.10")}

    for code in ("emit(msg)", "let all = msg; emit(all)", "if msg.z == 1 { emit(msg) }"):
        (out,) = run(code, message)
        assert out is message, code


def test_an_untouched_part_of_a_changed_message_is_the_same_object(run):
    message = {"kept": {"deep": [1, 2]}, "list": [[1], [2]], "n": 1}

    (out,) = run("msg.n = 2; msg.list[0].push(5); emit(msg)", message)

    assert out == {"kept": {"deep": [1, 2]}, "list": [[1, 5], [2]], "n": 2}
    assert out["kept"] is message["kept"]
    assert out["list"][1] is message["list"][1]


@pytest.mark.parametrize(
    "code",
    [
        "msg.a = 1; emit(msg)",
        "msg.l.push(1); emit(msg)",
        "msg.o.p = 1; emit(msg)",
        "msg.remove(`a`); emit(msg)",
        "let m = msg; m.o.q = 5; m.l = []; emit(m)",
        "msg = #{}; emit(msg)",
        "fn f() { this.a = 9 } msg.f(); emit(msg)",
    ],
)
def test_what_came_in_is_never_changed(run, code):
    message = {"a": 0, "l": [0], "o": {"p": 0}}

    run(code, message)

    assert same(message, {"a": 0, "l": [0], "o": {"p": 0}})


def test_the_keys_of_an_object_keep_their_order(run):
    message = {"z": 1, "m": 2, "a": 3}

    assert same(run("msg.m = 5; emit(msg)", message), [{"z": 1, "m": 5, "a": 3}])
    assert same(run("let all = msg; all.m = 5; emit(all)", message), [{"z": 1, "m": 5, "a": 3}])
    assert same(run("msg.remove(`m`); emit(msg)", message), [{"z": 1, "a": 3}])


def test_new_keys_follow_in_the_order_the_script_first_names_them(run):
    assert same(run("emit(#{ z: 1, b: 2, a: 3 })"), [{"z": 1, "b": 2, "a": 3}])
    assert same(
        run("msg.q = 1; msg.b = 2; msg.a = 3; emit(msg)", {"x": 0}),
        [{"x": 0, "q": 1, "b": 2, "a": 3}],
    )
    assert same(
        run('msg["new one"] = 1; msg.z = 2; msg["a"] = 3; emit(msg)', {}),
        [{"new one": 1, "z": 2, "a": 3}],
    )


def test_a_key_that_the_script_never_spells_comes_after_those_it_does(run):
    code = "for i in 0..3 { msg[`k${2 - i}`] = i } msg.z = 9; emit(msg)"

    (out,) = run(code, {"x": 0})

    assert list(out) == ["x", "z", "k0", "k1", "k2"]


def test_a_key_put_back_in_place_of_a_removed_one_keeps_the_place(run):
    (out,) = run("let v = msg.remove(`a`); msg.a = v; emit(msg)", {"a": 1, "b": 2})

    assert same(out, {"a": 1, "b": 2})


def test_wide_integers_count_as_floats_inside(run):
    assert same(run("emit(msg + 1)", 2**64), [float(2**64)])
    assert same(run("emit(msg > 9223372036854775807)", 2**64), [True])
    assert same(run("msg.n *= 2; emit(msg.n)", {"n": 10**30}), [2e30])


def test_a_decimal_keeps_its_digits_only_while_nobody_changes_it(run):
    price = Decimal("1.10")

    assert run("emit(msg.price)", {"price": price})[0] is price
    assert same(run("emit(msg.price * 2)", {"price": price}), [2.2])
    assert same(run("msg.price += 1; emit(msg)", {"price": price}), [{"price": 2.1}])


def test_integers_and_floats_do_not_turn_into_each_other(run):
    assert same(run("emit(msg.a + 1); emit(msg.a + 1.0)", {"a": 1}), [2, 2.0])
    assert same(run("emit(msg.to_int()); emit(msg)", 42.0), [42, 42.0])
    assert same(run("emit([1, 1.0, 42.0, -0.0])"), [[1, 1.0, 42.0, -0.0]])
    assert same(run("msg.n = 1.0; emit(msg)", {"n": 1}), [{"n": 1.0}])
    assert same(run("msg.n = 1; emit(msg)", {"n": 1.0}), [{"n": 1}])
    assert same(run("msg.n = true; emit(msg)", {"n": 1}), [{"n": True}])
    assert same(run("msg.n = 0.0; emit(msg)", {"n": -0.0}), [{"n": 0.0}])


def test_a_char_becomes_a_string_of_one_character(run):
    assert run("emit('x'); emit(msg[1]); emit(#{c: msg[3]})", "aé€😀") == ["x", "é", {"c": "😀"}]


def test_an_absent_field_is_unit_and_not_an_error(run):
    assert run("emit(msg.nope)", {"a": 1}) == [None]
    assert run("emit(msg.a?.b?.c)", {"a": None}) == [None]
    assert run("emit(msg.nope ?? 7)", {"a": 1}) == [7]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("emit(0.0 / 0.0)", "NaN"),
        ("emit(1.0 / 0.0)", "inf"),
        ("emit(-1.0 / 0.0)", "-inf"),
        ("emit(|x| x)", "function"),
        ("emit(0..3)", "range"),
        ("emit(0..=3)", "range"),
        ("emit(Fn(`len`))", "function"),
    ],
)
def test_what_json_has_no_form_for_cannot_leave(run, code, text):
    with pytest.raises(RunError) as caught:
        run(code)

    assert text in caught.value.message
    assert "cannot leave" in caught.value.message
    assert caught.value.index == 0


@pytest.mark.parametrize(
    ("code", "path"),
    [
        ("emit(#{ a: [1, #{ f: |x| x }] })", "a[1].f"),
        ("msg.deep.list[1] = 0..3; emit(msg)", "deep.list[1]"),
        ("let all = msg; all.deep.list[1] = 0..3; emit(all)", "deep.list[1]"),
        ("emit([[], [0.0 / 0.0]])", "[1][0]"),
    ],
)
def test_the_error_names_the_path_inside_the_value(run, code, path):
    with pytest.raises(RunError, match="cannot leave") as caught:
        run(code, {"deep": {"list": [0, 1]}})

    assert f"'{path}'" in caught.value.message


def test_nan_that_came_in_and_was_not_touched_goes_out_again(run):
    message = {"x": math.nan, "y": [math.inf]}

    (out,) = run("emit(msg)", message)

    assert out is message


class Colour(enum.IntEnum):
    RED = 1


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize("value", [OrderedDict(b=1, a=2), Text("abc"), Colour.RED], ids=repr)
def test_subclasses_of_json_types_are_read_like_their_base_or_refused(run, value):
    """Either is fine; what is not: another value coming out."""
    try:
        (out,) = run("emit(msg)", value)
    except (TypeError, RunError):
        return
    assert out == value


@pytest.mark.parametrize(
    "value", [{1, 2}, b"x", object(), 1j, (1, 2), len], ids=lambda value: type(value).__name__
)
def test_what_a_script_cannot_read_is_refused_with_its_type(run, value):
    with pytest.raises((TypeError, RunError), match=type(value).__name__):
        run("emit(msg)", value)
    with pytest.raises((TypeError, RunError), match=type(value).__name__):
        run("let all = msg; emit(all)", {"a": [value]})


def test_a_value_that_the_script_does_not_reach_is_not_even_looked_at(run):
    message = {"n": 1, "other": object()}

    assert run("msg.n += 1; emit(msg)", message) == [{"n": 2, "other": message["other"]}]


@pytest.mark.parametrize("key", [1, None, (1,), 1.5, b"k"], ids=repr)
def test_keys_must_be_strings(run, key):
    with pytest.raises((TypeError, RunError), match="key"):
        run("let all = msg; emit(all)", {"a": {key: 1}})


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"], ids=ascii)
def test_a_lone_surrogate_is_refused_and_nothing_breaks(run, text):
    script = Script("let all = msg; emit(all)")

    for value in (text, [text], {"a": text}, {text: 1}):
        with pytest.raises((ValueError, RunError)):
            script.run(value)
    assert script.run("ok") == ["ok"]


def nested(depth, wrap=lambda inner: [inner], inner=1):
    for _ in range(depth):
        inner = wrap(inner)
    return inner


@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: {"a": v}], ids=["list", "object"])
def test_values_go_in_and_come_out_down_to_the_nesting_limit(run, wrap):
    value = nested(128, wrap)

    for code in (
        "emit(msg)",
        "let all = msg; emit(all)",
        "let all = msg; emit(all.to_string().len() > 0)",
    ):
        assert run(code, value) in ([value], [True])


@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: {"a": v}], ids=["list", "object"])
@pytest.mark.parametrize("depth", [130, 1_000, 100_000])
def test_values_nested_deeper_than_the_limit_are_refused(run, wrap, depth):
    value = nested(depth, wrap)

    with pytest.raises((ValueError, RunError), match="128"):
        run("let all = msg; emit(all)", value)


def test_the_nesting_limit_is_an_option(run):
    assert run("let all = msg; emit(all)", nested(4), max_nesting=4) == [nested(4)]
    with pytest.raises((ValueError, RunError), match="4"):
        run("let all = msg; emit(all)", nested(6), max_nesting=4)


def test_a_circle_of_python_objects_is_refused(run):
    message = {}
    message["self"] = message
    circle = []
    circle.append(circle)

    for value in (message, circle, {"a": circle}):
        with pytest.raises((ValueError, RunError)):
            run("let all = msg; emit(all)", value)


def test_emitted_values_do_not_share_what_the_script_changes_later(run):
    assert run("emit(msg); msg.n = 2; emit(msg); msg.n = 3; emit(msg)", {"n": 1}) == [
        {"n": 1},
        {"n": 2},
        {"n": 3},
    ]
    assert run("let a = [1]; let f = || a; emit(a); a.push(2); emit(f.call())") == [[1], [1, 2]]


def test_the_variable_can_have_another_name(run):
    assert run("emit(batch.len())", [1, 2], variable="batch") == [2]


def test_the_last_expression_is_not_a_result(run):
    assert run("msg + 1", 1) == []
    assert run("return 5;", 1) == []
    assert run("emit(1); exit(5); emit(2)") == [1]


def test_nothing_survives_from_run_to_run():
    script = Script("let n = msg; n += 1; emit(n)")

    assert [script.run(1), script.run(1), script.run(5)] == [[2], [2], [6]]


def test_run_each_gives_what_all_runs_emitted_in_order():
    script = Script("if msg % 2 == 0 { emit(msg); emit(-msg) }")

    assert script.run_each([1, 2, 3, 4]) == [2, -2, 4, -4]
    assert script.run_each([]) == []


def test_a_batch_script_emits_lists_only():
    script = Script("emit(batch.filter(|m| m > 1)); emit([])", variable="batch", emits_lists=True)
    assert script.run([1, 2, 3]) == [[2, 3], []]

    with pytest.raises(RunError, match="list") as caught:
        Script("let x = 1;\n  emit(#{})", emits_lists=True).run(None)
    assert (caught.value.line, caught.value.column) == (2, 3)


class TestWhatAScriptTellsAboutItself:
    def test_emits(self):
        assert Script("emit(msg)").emits
        assert Script("fn f() { emit(1) } f()").emits
        assert not Script("msg.x = 1").emits

    def test_calls(self):
        script = Script("let n = now(); fn f(x) { x.trim(); } f(`a`)", functions={"now": (0, int)})

        assert {"now", "trim", "f"} <= script.calls
        assert "emit" not in script.calls
        assert isinstance(script.calls, frozenset)

    def test_reaches(self):
        assert sorted(Script("msg.a += msg[`b`]; emit(msg)").reaches) == ["a", "b"]
        assert Script("emit(msg)").reaches == []
        assert Script("let all = msg").reaches is None


def test_numbers_of_the_whole_range_survive_every_way_through(run):
    numbers = [0, 1, -1, I64 - 1, -I64, I64, 2**64 - 1, 2**64, -(2**65)]

    assert same(run("emit(msg)", numbers), [numbers])
    assert same(run("for n in msg { emit(n) }", numbers), numbers)
    assert same(run("emit(msg.map(|n| n))", numbers), [numbers])
