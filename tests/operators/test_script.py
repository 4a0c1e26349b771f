"""The `script` transform: what a script sees, what it hands on, and what it may not do.

The tables are those of the wire contract, 10.1 to 10.4, row by row.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

import pytest

from headrace.compiler.errors import BuildRefused
from headrace.operators.script.host import MOST_NOTES
from tests.covered import Covered
from tests.operators.scripted import outcome

# --- 10.1 what a script sees


def test_msg_is_the_message_and_may_be_changed_in_place() -> None:
    given = {"n": 1, "nested": {"a": [1, 2]}}

    assert outcome("msg.n += 1; msg.nested.a[1] = 9; emit(msg);", [given]).messages == [
        {"n": 2, "nested": {"a": [1, 9]}}
    ]
    assert given == {"n": 1, "nested": {"a": [1, 2]}}  # others may hold the same message


def test_batch_is_the_list_of_messages() -> None:
    code = "emit([#{ size: batch.len(), first: batch[0], last: batch[-1] }]);"

    assert outcome(code, [5, "b", None], scope="batch").messages == [
        {"size": 3, "first": 5, "last": None}
    ]


def test_emit_hands_on_a_message_in_message_scope() -> None:
    code = "if msg > 1 { emit(msg); emit(-msg); }"

    assert outcome(code, [1, 2, 3]).batches == [[2, -2, 3, -3]]


def test_emit_hands_on_a_batch_in_batch_scope() -> None:
    code = "emit(batch.filter(|m| m.ok)); emit([1, 2]);"

    found = outcome(code, [{"ok": True, "n": 1}, {"ok": False}], scope="batch")

    assert found.batches == [[{"ok": True, "n": 1}], [1, 2]]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("a.b", 1),
        ("a.c", None),
        ("a", {"b": 1, "d.e": 2}),
        ("x.y", 3),
        ("a.d.e", None),
        ("list.0", None),
        ("none", None),
        ("a.b.c", None),
    ],
)
def test_field_reads_a_dotted_path_and_gives_unit_when_absent(path: str, found: Any) -> None:
    message = {"a": {"b": 1, "d.e": 2}, "x.y": 3, "list": [4], "none": None}

    assert outcome(f'emit(field(msg, "{path}"))', [message]).messages == [found]
    assert outcome(f'emit(field(msg, "{path}") == ())', [message]).messages == [found is None]


def test_recall_gives_the_names_under_a_key_or_unit() -> None:
    code = 'emit([recall("m1"), recall("m2")]);'

    found = outcome(code, [0], state={"m1": {"mode": "auto", "n": 1}})

    assert found.messages == [[{"mode": "auto", "n": 1}, None]]


def test_remember_merges_the_entries_of_a_map_into_a_key() -> None:
    code = 'remember("m1", #{ n: 2, list: [msg] }); emit(recall("m1"));'

    found = outcome(code, [{"x": 7}], state={"m1": {"mode": "auto", "n": 1}})

    assert found.messages == [{"mode": "auto", "n": 2, "list": [{"x": 7}]}]
    assert found.state == {"m1": {"mode": "auto", "n": 2, "list": [{"x": 7}]}}


def test_what_was_handed_on_does_not_change_when_more_is_remembered() -> None:
    code = 'remember("k", #{ n: msg }); emit(recall("k"));'

    assert outcome(code, [1, 2]).messages == [{"n": 1}, {"n": 2}]


def test_warn_is_logged_once_per_text_and_for_sixteen_texts() -> None:
    found = outcome('warn("all"); warn(`text ${msg}`); emit(msg);', [*range(20), *range(20)])

    assert found.warnings == ["script: all", *(f"script: text {n}" for n in range(15))]
    assert len(found.messages) == 40


STARTED = datetime(2026, 3, 1, 8, 0, 0, 123456, UTC)


def test_now_is_the_clocks_time_as_rfc_3339_in_utc() -> None:
    found = outcome("emit(now())", [0], [0], started_at=STARTED, seconds=[3600])

    assert found.batches == [
        ["2026-03-01T08:00:00.123456+00:00"],
        ["2026-03-01T09:00:00.123456+00:00"],
    ]


def test_now_millis_is_the_clocks_time_in_whole_milliseconds() -> None:
    found = outcome("emit(now_millis())", [0], [0], started_at=STARTED, seconds=[0.25])

    assert found.batches == [[1772352000123], [1772352000373]]


def test_the_value_of_the_last_expression_is_ignored() -> None:
    found = outcome("msg", [1, 2])

    assert (found.batches, found.failures) == ([], [])


def test_empty_lists_are_skipped_in_batch_scope() -> None:
    assert outcome("emit([]); emit([1]); emit([]); emit([2])", [0], scope="batch").batches == [
        [1],
        [2],
    ]


@pytest.mark.parametrize("value", ["1", '"a"', "#{}", "()", "batch[0]"])
def test_what_is_no_list_fails_in_batch_scope(value: str) -> None:
    found = outcome(f"emit([1]);\n  emit({value});", [0], scope="batch")

    assert found.failure.startswith("script line 2, column 3: ")
    assert "list" in found.failure


def test_what_all_messages_emit_is_one_batch_in_message_scope() -> None:
    assert outcome("for i in 0..msg { emit(i) }", [2, 0, 3], [0], [1]).batches == [
        [0, 1, 0, 1, 2],
        [0],
    ]


def test_an_empty_batch_is_run_in_batch_scope_and_only_there() -> None:
    code = 'remember("ran", #{ n: 1 }); emit([#{}]);'

    assert outcome(code, [], scope="batch").batches == [[{}]]
    found = outcome(code.replace("[#{}]", "#{}"), [])
    assert (found.batches, found.state) == ([], {})


def test_variables_are_fresh_every_run() -> None:
    code = "let n = if is_def_var(`seen`) { 1 } else { 0 }; let seen = 1; emit(n);"

    assert outcome(code, [0, 0]).messages == [0, 0]


def test_a_failing_run_fails_its_whole_batch_and_what_was_remembered_stays() -> None:
    code = 'remember("last", #{ n: msg });\nemit(msg);\nif msg == 2 { throw "no twos" }'

    found = outcome(code, [1, 2, 3], [4])

    assert found.batches == [[4]]
    assert found.failures == ["script line 3, column 15: no twos"]
    assert outcome(code, [1, 2, 3]).state == {"last": {"n": 2}}


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("1", "an int: use to_string()"),
        ("1.5", "a float: use to_string()"),
        ("()", "()"),
        ("[1]", "an array"),
        ("#{}", "a map"),
    ],
)
def test_a_key_is_a_string(key: str, kind: str) -> None:
    recalled = outcome(f"emit(\n recall({key}))", [0])
    remembered = outcome(f"remember({key}, #{{}})", [0])

    assert recalled.failure == (
        f"script line 2, column 2: 'recall' takes a string as its key, not {kind}"
    )
    assert remembered.failure == (
        f"script line 1, column 1: 'remember' takes a string as its key, not {kind}"
    )


def test_the_pipelines_own_key_plays_no_part() -> None:
    # Of the pipeline's state, `key: id` is for `remember` and `recall` as transforms.
    found = outcome('remember("k", #{ a: 1 }); emit(recall(msg.id))', [{"id": "k"}, {"id": "x"}])

    assert found.messages == [{"a": 1}, None]


def test_without_state_both_fail_saying_what_to_add() -> None:
    needs = "needs to know which bucket: the pipeline has no 'state' (expected 'state' on the"

    recalled = outcome('let x = recall("a"); emit(x)', [0], has_state=False)
    remembered = outcome('remember("a", #{})', [0], has_state=False)

    assert recalled.failure.startswith(f"script line 1, column 9: 'recall' {needs}")
    assert remembered.failure.startswith(f"script line 1, column 1: 'remember' {needs}")


def test_print_and_debug_go_to_the_log_and_not_to_standard_output(caplog, capfd) -> None:
    caplog.set_level(logging.INFO)

    outcome('print("one");\n\n debug(#{ a: 1 }); emit(1)', [0])

    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ("INFO", "pipeline 'p1' transforms[0]: script line 1: one"),
        ("INFO", "pipeline 'p1' transforms[0]: script line 3: #{\"a\": 1}"),
    ]
    assert capfd.readouterr() == ("", "")


def test_a_long_text_is_cut_in_the_log(caplog) -> None:
    caplog.set_level(logging.INFO)

    found = outcome('let s = ""; s.pad(5000, "a"); print(s); warn(s); emit(1)', [0])

    assert caplog.records[0].getMessage().endswith(": " + "a" * 2048 + "…")
    assert found.warnings == ["script: " + "a" * 2048 + "…"]


PRINTING = "for i in 0..100 { print(msg); } emit(msg)"


def test_a_script_writes_so_many_lines_a_minute_and_the_others_are_counted(caplog) -> None:
    caplog.set_level(logging.INFO)

    found = outcome(PRINTING, [*range(50)], [*range(50)], [7], seconds=[30, 60])

    said = [
        each.getMessage().removeprefix("pipeline 'p1' transforms[0]: ") for each in caplog.records
    ]
    assert [len(batch) for batch in found.batches] == [50, 50, 1]
    assert said[:MOST_NOTES] == [f"script line 1: {n}" for n in (0, 1) for _ in range(100)]
    told, *later = said[MOST_NOTES:]
    assert told == "script: 9,800 more lines were printed within 60 seconds, and left out"
    assert later == ["script line 1: 7"] * 100


def test_one_that_prints_a_line_too_many_is_told_of_it(caplog) -> None:
    caplog.set_level(logging.INFO)

    outcome("print(msg); emit(msg)", [*range(MOST_NOTES + 1)], [1], seconds=[60])

    said = [each.getMessage() for each in caplog.records]
    assert len(said) == MOST_NOTES + 2
    assert said[MOST_NOTES].endswith("one more line was printed within 60 seconds, and left out")


def test_lines_that_are_not_logged_do_not_count(caplog) -> None:
    caplog.set_level(logging.WARNING, "headrace.script")
    outcome(PRINTING, [*range(10)])

    assert caplog.records == []


@pytest.mark.parametrize("call", ['open("/etc/passwd")', "sleep(1)", "sleep(0.5)", "timestamp()"])
def test_there_are_no_files_and_there_is_no_sleep(call: str) -> None:
    assert outcome(f"emit({call})", [0]).failure.startswith("script line 1, column 6: ")


def test_there_is_no_eval() -> None:
    with pytest.raises(BuildRefused, match="eval"):
        outcome('emit(eval("1"))', [0])


# --- 10.2 values


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        -1,
        2**63 - 1,
        -(2**63),
        1.5,
        42.0,
        1e300,
        "",
        "é😀\n",
        [],
        [1, [2, None]],
        {},
        {"b": 1, "a": {"d": 1, "c": 2}},
    ],
    ids=repr,
)
def test_a_value_comes_back_as_it_came(value: Any) -> None:
    # The second time through a copy that the script has made and changed.
    [as_it_was, changed] = outcome(
        "emit(msg); let a = [msg]; a.push(1); emit(a[0])", [value]
    ).messages

    for found in (as_it_was, changed):
        assert json.dumps(found) == json.dumps(value)
        assert type(found) is type(value)


@pytest.mark.parametrize(
    ("value", "type_of"),
    [
        (None, "()"),
        (True, "bool"),
        (7, "i64"),
        (2**63, "f64"),
        (42.0, "f64"),
        ("a", "string"),
        ([1], "array"),
        ({"a": 1}, "map"),
    ],
)
def test_a_value_has_the_type_of_the_script(value: Any, type_of: str) -> None:
    assert outcome("emit(type_of(msg))", [value]).messages == [type_of]


def test_an_integer_above_is_a_float_once_it_is_touched() -> None:
    assert outcome("emit(msg + 0)", [2**63]).messages == [float(2**63)]


def test_a_character_comes_back_as_a_string() -> None:
    assert outcome("emit(msg[1])", ["aé"]).messages == ["é"]


@pytest.mark.parametrize("value", ["0.0/0.0", "1.0/0.0", "-1.0/0.0", "|x| x", "0..3", 'Fn("f")'])
def test_what_json_has_no_word_for_fails_the_batch(value: str) -> None:
    assert "script" in outcome(f"emit(#{{ a: [{value}] }})", [0]).failure


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("msg.nope == ()", True),
        ("1 == 1.0", True),
        ("1 + 1.5", 2.5),
        ("7 / 2", 3),
        ("7 / 2.0", 3.5),
    ],
)
def test_absent_properties_and_numbers(expression: str, value: Any) -> None:
    [found] = outcome(f"emit({expression})", [{}]).messages

    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("9223372036854775807 + msg", "Addition overflow"),
        ("msg * 9223372036854775807", "Multiplication overflow"),
        ("1 / (msg - 2)", "Division by zero"),
        ("1 % (msg - 2)", "Modulo division by zero or overflow"),
        ("[1, 2][msg]", "Array index out of bounds"),
        ('"ab"[msg]', "String index out of bounds"),
        ("parse_int(`x${msg}`)", "Error parsing integer number: invalid digit found in string"),
    ],
)
def test_an_error_of_a_value_is_one_failure_whatever_the_value(expression, said) -> None:
    assert outcome(f"emit({expression})", [2]).failure.partition(": ")[2] == said


def test_a_message_that_is_not_touched_comes_out_unchanged() -> None:
    message = {"z": [{"y": 2**70, "b": -0.0}], "a": 1}

    [found] = outcome("emit(msg)", [message]).messages

    assert json.dumps(found) == json.dumps(message)


def test_keys_keep_their_order_and_new_ones_follow_as_the_script_names_them() -> None:
    message = {"z": 1, "b": 2, "a": 3}

    [found] = outcome("msg.y = 0; msg.c = 0; msg.b = 5; emit(msg)", [message]).messages

    assert [*found] == ["z", "b", "a", "y", "c"]


def test_an_error_carries_no_index_of_a_message_so_that_failures_add_up() -> None:
    code = "emit(msg.a.b)"

    first, second = outcome(code, [{"a": 1}], [{"a": {"b": 1}}, {"a": 1}]).failures

    assert first == second


# --- its branches, for the coverage of tests

COVERED = [
    Covered(
        "{type: script, source: {type: inline, code: 'if msg.x % 2 == 0 { emit(msg); }'}}",
        "a: {1s: {x: 2}, 2s: {x: 3}, 3s: {x: two}}",
        (
            "the script never emitted anything",
            "the script always emitted something",
            "the script never failed",
        ),
    ),
    Covered(
        """{type: script, on_error: skip, source: {type: inline,
            code: 'if msg.x % 2 == 0 { emit(msg); }'}}""",
        "a: {1s: [{x: 2}, {x: two}], 2s: {x: 3}}",
        (
            "the script never emitted anything",
            "the script always emitted something",
            "no message was ever skipped by error",
        ),
    ),
    # What is skipped is not what emits nothing.
    Covered(
        "{type: script, on_error: skip, source: {type: inline, code: 'emit(10 / msg.x);'}}",
        "a: {1s: [{x: 2}, {x: 0}]}",
        ("the script never emitted anything", "no message was ever skipped by error"),
    ),
    Covered(
        """{type: script, scope: batch, source: {type: inline,
            code: 'if batch[0].x % 2 == 0 { emit(batch); }'}}""",
        "a: {1s: [{x: 2}, {x: 3}], 2s: {x: 3}, 3s: {x: two}}",
        (
            "the script never emitted anything",
            "the script always emitted something",
            "the script never failed",
        ),
    ),
]
