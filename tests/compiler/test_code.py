"""Generated source against the plain truth of `DottedPath`, and the promises of `Code`."""

import gc
import linecache
import math
import traceback
from copy import deepcopy

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.compiler.code import GiveUp, compile_source
from headrace.compiler.dottedpaths import MISSING, DottedPath
from headrace.compiler.lowering.chain import fuse

A, B, AB, AC = DottedPath("a"), DottedPath("b"), DottedPath("a.b"), DottedPath("a.c")
ABC = DottedPath("a.b.c")
SEEN = DottedPath("seen")


class Dropped(Exception):
    """The plain program dropped the message."""


# A program is a list of operations: `part` writes one as source, `plain` does it as it reads.

TEXTS = ["a", "b", "", "a.b", "a.c", "b.a", "a.b.a", "a.", ".", "a..b"]
paths = st.sampled_from(TEXTS).map(DottedPath)
values = st.recursive(
    st.sampled_from([None, True, 0, 7, 1.5, "x", "a.b"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b", "", "c"]), inner)
    ),
    max_leaves=4,
)
objects = st.dictionaries(st.sampled_from(TEXTS), values, max_size=5)
messages = st.lists(objects | values, max_size=3) | st.lists(objects, max_size=3)
operations = st.one_of(
    st.tuples(st.just("note"), paths, st.booleans()),
    st.tuples(st.just("write"), paths, values),
    st.tuples(st.just("copy"), paths, paths),
    st.tuples(st.just("remove"), paths),
    st.tuples(st.just("keep"), paths),
    st.tuples(st.just("demand"), paths),
    st.tuples(st.just("look")),
    st.tuples(st.just("own")),
    st.tuples(st.just("replace"), paths),
    st.tuples(st.just("write if"), paths, paths),
    st.tuples(st.just("remove if"), paths, paths),
    st.tuples(st.just("drop if"), paths),
)


def part(operation, position):
    """Return what writes one operation; ``position`` names the field that notes what it read."""
    note = DottedPath(f"note{position}")

    def write(code):
        match operation:
            case "note", path, optional:
                code.write(note, code.read(path, optional=optional))
            case "write", path, value:
                code.write(path, code.constant(value))
            case "copy", source, target:
                code.write(target, code.read(source))
            case "remove", path:
                code.remove(path)
            case "keep", path:
                code.keep_if(f"{code.read(path)} is not None")
            case "demand", path:
                code.give_up_unless(f"{code.read(path)} is not None")
            case ("look",):
                code.write(note, f"len({code.message})")
            case ("own",):
                code.own()
            case "replace", path:
                code.replace(f"{{'a': {code.read(path)}}}")
            case "write if", condition, target:
                with code.block(f"if {code.read(condition)} is None:"):
                    code.write(target, code.read(condition, optional=True))
                with code.block("else:"):
                    code.write(target, code.let("1"))
            case "remove if", condition, target:
                with code.block(f"if {code.read(condition)} is not None:"):
                    code.remove(target)
            case "drop if", path:
                with code.block(f"if {code.read(path)} is None:"):
                    code.drop()

    return write


def plain(operation, position, message):
    """Return the message after one operation, by `DottedPath` alone."""

    def read(path):
        value = path.read(message)
        return None if value is MISSING else value

    note = DottedPath(f"note{position}")
    if not isinstance(message, dict) and operation[0] not in ("keep", "drop if"):
        raise TypeError
    match operation:
        case "note", path, _:
            return note.write(message, read(path))
        case "write", path, value:
            return path.write(message, value)
        case "copy", source, target:
            return target.write(message, read(source))
        case "remove", path:
            return path.remove(message)
        case (("keep" | "drop if"), path):
            if read(path) is None:
                raise Dropped
        case "demand", path:
            if read(path) is None:
                raise GiveUp
        case ("look",):
            return note.write(message, len(message))
        case "replace", path:
            return {"a": read(path)}
        case "write if", condition, target:
            return target.write(message, None if read(condition) is None else 1)
        case "remove if", condition, target:
            return message if read(condition) is None else target.remove(message)
    return message


def plainly(program, batch):
    out = []
    for message in batch:
        try:
            for position, operation in enumerate(program):
                message = plain(operation, position, message)
        except Dropped:
            continue
        out.append(message)
    return out


def outcome(function, *arguments):
    try:
        return function(*arguments)
    except Exception as fault:
        return fault


@given(st.lists(operations, max_size=6), messages)
@example([("copy", A, B), ("write", AB, 1), ("note", B, True)], [{"a": {"x": 1}}])
@example([("write", A, {"b": 1}), ("note", AB, False), ("keep", AB)], [{"a": 5}])
@example([("write", A, {"b": 1}), ("note", AB, False)], [{"a": {"b": 2}}])
@example([("write", B, 1), ("own",), ("look",)], [{"a": 1}])
@example([("write", B, 1), ("replace", A), ("note", B, True)], [{"a": 1}])
@example([("write if", B, A), ("note", A, True)], [{"a": 1, "b": None}])
@example([("note", AB, True), ("note", ABC, True)], [{"a.b": 1, "a": {"b": {"c": 2}}}])
@example([("write", A, 0), ("note", AB, False), ("keep", A)], [{}])
@example([("note", AB, True), ("write if", B, AC), ("note", AC, True)], [{"a": {"b": 1}, "b": 2}])
@example([("write", B, 1), ("keep", A)], ["b"])
def test_generated_code_does_what_the_plain_operations_do_or_raises(program, batch):
    loop = fuse([part(operation, n) for n, operation in enumerate(program)], "p transforms").loop
    untouched = deepcopy(batch)

    expected = outcome(plainly, program, batch)
    found = outcome(loop, batch)

    assert repr(batch) == repr(untouched)
    if isinstance(found, Exception):
        odd = any(not isinstance(message, dict) for message in batch)
        assert isinstance(expected, Exception) or odd
    else:
        # By repr: 1, 1.0 and True differ, and so does the order of keys.
        assert repr(found) == repr(expected)


@given(st.sampled_from(TEXTS).map(DottedPath), st.lists(objects | values, max_size=3))
def test_generated_access_is_the_plain_access(path, batch):
    loop = fuse([lambda code: code.write(SEEN, code.read(path))], "p transforms[0]").loop
    untouched = deepcopy(batch)

    def expected(message):
        value = path.read(message)
        return {**message, "seen": None if value is MISSING else value}

    if all(isinstance(message, dict) for message in batch):
        assert repr(loop(batch)) == repr([expected(message) for message in batch])
    else:
        assert isinstance(outcome(loop, batch), Exception)
    assert repr(batch) == repr(untouched)


def test_nothing_but_filters_is_one_comprehension_over_the_messages_themselves():
    loop = fuse([part(("keep", A), 0), part(("keep", AB), 1)], "p transforms[0..1]").loop
    batch = [{"a": {"b": 1}}, {"a": None}, {"a": {}}, {"a.b": 2}]

    kept = loop(batch)

    assert kept == [{"a": {"b": 1}}]
    assert kept[0] is batch[0]
    assert "append" not in source("p transforms[0..1]")


def test_a_message_is_copied_once_however_often_it_is_written():
    writes = [part(("write", path, 1), n) for n, path in enumerate([A, B, AB])]

    loop = fuse(writes, "p transforms[0]").loop

    assert isinstance(outcome(loop, [{}]), TypeError)
    assert source("p transforms[0]").count("= {**m}") == 1


def test_a_message_that_is_replaced_is_not_copied():
    loop = fuse([part(("write", B, 1), 0), part(("replace", B), 1)], "p transforms[0]").loop

    assert loop([{"a": 1}]) == [{"a": 1}]
    assert "{**m}" not in source("p transforms[0]")


def test_what_a_later_filter_drops_was_never_copied():
    loop = fuse([part(("write", B, 1), 0), part(("keep", A), 1)], "p transforms[0]").loop

    first, rest = source("p transforms[0]").split("continue", 1)

    assert loop([{"a": None}, {"a": 1}]) == [{"a": 1, "b": 1}]
    assert "{**m}" not in first
    assert "{**m}" in rest


def test_a_path_read_twice_is_looked_up_once():
    reads = [part(("keep", A), 0), part(("keep", A), 1), part(("copy", A, B), 2)]

    loop = fuse(reads, "p transforms[0]").loop

    assert loop([{"a": 1}]) == [{"a": 1, "b": 1}]
    assert source("p transforms[0]").count("m['a']") == 1


def test_a_missing_field_costs_a_second_pass_and_an_optional_one_none():
    calls = []

    def counting(optional):
        def write(code):
            code.line(f"{code.constant(calls.append)}({code.read(A, optional=optional)})")

        return write

    fuse([counting(False)], "p transforms[0]").loop([{"a": 1}, {}])
    twice, calls[:] = list(calls), []
    fuse([counting(True)], "p transforms[0]").loop([{"a": 1}, {}])

    assert twice == [1, 1, None]
    assert calls == [1, None]


@pytest.mark.parametrize("message", [None, 5, "a", ["a"], True])
def test_a_message_that_is_no_object_is_left_to_the_plain_steps(message):
    constants = fuse([part(("write", A, 1), 0)], "p transforms[0]").loop
    replaced = fuse([lambda code: code.replace("{'b': 1}")], "p transforms[1]").loop
    dropped = fuse([part(("write", A, None), 0), part(("keep", A), 1)], "p transforms[2]").loop

    def sometimes(code):
        with code.block("if False:"):
            code.own()

    partly = fuse([sometimes, lambda code: code.replace("{'b': 1}")], "p transforms[3]").loop

    for loop in (constants, replaced, dropped, partly):
        with pytest.raises((GiveUp, AttributeError, TypeError)):
            loop([message])


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -5, 1.5, -0.0, 1e308, math.inf, 10**400, 'it\'s "quoted"\n', "\ud800", [1]],
)
def test_a_constant_is_what_was_given(value):
    loop = fuse([part(("write", A, value), 0)], "p transforms[0]").loop

    assert repr(loop([{}])) == repr([{"a": value}])


def test_an_integer_too_long_to_write_out_is_a_constant_all_the_same():
    loop = fuse([part(("write", A, 10**5000), 0)], "p transforms[0]").loop

    assert loop([{}])[0]["a"] == 10**5000


def test_a_function_bound_twice_has_one_name_and_local_names_never_meet_it():
    def write(code):
        assert code.constant(repr, "v") == code.constant(repr, "v")
        names = [code.let(f"{code.constant(repr, 'v')}({n})", "v") for n in range(20)]
        code.write(A, f"{names[3]} + {names[19]}")

    assert fuse([write], "p transforms[0]").loop([{}]) == [{"a": "319"}]


@pytest.mark.parametrize("text", ["for", "0", "größe", "a b", "x" * 200, "'", "\n", "None", "m"])
def test_any_text_can_name_a_field(text):
    path = DottedPath(text)

    loop = fuse(
        [part(("note", path, False), 0), part(("copy", path, A), 1)], "p transforms[0]"
    ).loop

    assert loop([{text: 5}]) == [{text: 5, "note0": 5, "a": 5}]


def test_a_reducer_ends_the_loop_with_its_own_result():
    def write(code):
        code.before("total = 0")
        code.line(f"total += {code.read(A)}")
        code.returns("[{'sum': total}]")

    loop = fuse([part(("keep", B), 0), write], "p transforms[0..1]").loop

    assert loop([{"a": 1, "b": 1}, {"a": 5, "b": None}, {"a": 2}, {"a": 4, "b": 0}]) == [{"sum": 5}]
    assert loop([]) == [{"sum": 0}]


def test_what_comes_after_the_loop_runs_once_and_not_at_all_if_a_message_raises():
    calls = []

    def write(code):
        code.before("seen = []")
        code.line(f"seen.append({code.read(A, optional=True)})")
        code.give_up_unless(f"{code.read(A, optional=True)} != 5")
        code.after(f"{code.constant(calls.append)}(seen)")

    loop = fuse([part(("write", B, 2), 0), write], "p transforms[0..1]").loop

    assert loop([{"a": 1}, {}]) == [{"a": 1, "b": 2}, {"b": 2}]
    assert loop([]) == []
    with pytest.raises(GiveUp):
        loop([{"a": 1}, {"a": 5}])
    assert calls == [[1, None], []]


def test_a_result_that_looks_at_no_message_is_fine():
    loop = fuse([lambda code: code.returns("[len(batch)]")], "p transforms[0]").loop

    assert loop([{}, {}]) == [2]


def test_an_empty_block_is_no_syntax_error():
    def write(code):
        with code.block(f"if {code.read(A)} is None:"):
            pass

    assert fuse([write], "p transforms[0]").loop([{"a": 1}]) == [{"a": 1}]


def test_a_hundred_filters_are_not_too_many():
    loop = fuse(
        [part(("keep", DottedPath(f"f{n}")), n) for n in range(100)], "p transforms[0..99]"
    ).loop
    whole = {f"f{n}": n for n in range(100)}

    assert loop([whole, {"f0": 1}]) == [whole]


def test_numbers_are_integers_and_doubles_and_never_booleans():
    def write(code):
        code.keep_if(code.is_number(code.read(A)))

    loop = fuse([write], "p transforms[0]").loop

    assert loop([{"a": v} for v in (1, 1.0, True, "1", None, [1])]) == [{"a": 1}, {"a": 1.0}]


def test_a_traceback_shows_the_generated_line_under_the_place_in_the_config():
    loop = fuse([lambda code: code.line("raise ValueError")], "mill transforms[2]").loop

    shown = "".join(traceback.format_exception(outcome(loop, [{}])))

    assert 'File "<headrace mill transforms[2]>"' in shown
    assert "    raise ValueError\n" in shown


def test_a_function_beside_another_of_its_place_keeps_its_own_source_and_takes_it_along():
    older, newer = returning(1), returning(2)

    assert (older(), newer()) == (1, 2)
    assert (shown(older), shown(newer)) == ("return 1", "return 2")

    file = older.__code__.co_filename
    del older
    gc.collect()
    assert linecache.getlines(file) == []
    assert shown(newer) == "return 2"
    assert shown(returning(3)) == "return 3"


def test_a_function_whose_source_somebody_has_dropped_takes_no_other_one_along():
    older = returning(1)
    del linecache.cache[older.__code__.co_filename]
    newer = returning(2)
    assert newer.__code__.co_filename == older.__code__.co_filename

    del older
    gc.collect()

    assert shown(newer) == "return 2"


def test_a_source_that_is_none_leaves_nothing_behind():
    with pytest.raises(SyntaxError):
        compile_source("f", "def", {}, "mill transforms[7]")

    assert source("mill transforms[7]") == ""


def test_a_place_with_a_null_character_is_a_place():
    compiled = compile_source("f", "def f():\n    return 1\n", {}, "a\0b transforms[0]")

    assert compiled() == 1
    assert "return 1" in source("a\N{SYMBOL FOR NULL}b transforms[0]")


def returning(number):
    return compile_source("f", f"def f():\n    return {number}\n", {}, "mill transforms[0]")


def shown(function):
    code = function.__code__
    return linecache.getline(code.co_filename, code.co_firstlineno + 1).strip()


def source(place):
    return "".join(linecache.getlines(f"<headrace {place}>"))
