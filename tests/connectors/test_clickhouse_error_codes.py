"""What is made of the exceptions of ClickHouse."""

from __future__ import annotations

import pytest

from headrace.connectors.clickhouse.connection import answer

VERSION = " (version 26.5.1.882 (official build))\n"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "Code: 516. DB::Exception: me: Authentication failed: password is incorrect, or there is"
            " no user with such name.\n\nIf you have installed ClickHouse and forgot password you can"
            " reset it.\n\n. (AUTHENTICATION_FAILED)" + VERSION,
            "Code 516 AUTHENTICATION_FAILED: me: Authentication failed: password is incorrect, or"
            " there is no user with such name",
        ),
        (
            "Code: 81. DB::Exception: Database nowhere does not exist. (UNKNOWN_DATABASE)"
            + VERSION,
            "Code 81 UNKNOWN_DATABASE: Database nowhere does not exist",
        ),
        (
            "Code: 47. DB::Exception: Unknown expression identifier `x` in scope SELECT x FROM t"
            " WHERE secret = 1. (UNKNOWN_IDENTIFIER)" + VERSION,
            "Code 47 UNKNOWN_IDENTIFIER: Unknown expression identifier `x`",
        ),
        (
            "Code: 349. DB::Exception: Code: 349. DB::Exception: Cannot convert NULL value to"
            ' non-Nullable type: while converting column "a" from type Nullable(Int32) to type'
            " Int32: (in file/uri /tmp/x): While executing File."
            " (CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN)" + VERSION,
            "Code 349 CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN: Cannot convert NULL value to"
            ' non-Nullable type: while converting column "a" from type Nullable(Int32) to type Int32',
        ),
        ("Code: 1001. DB::Exception: std::exception", "Code 1001: std::exception"),
        ("Code: 5. something else", "Code 5: something else"),
    ],
)
def test_an_exception_is_told_without_query_version_and_advice(body, words):
    assert answer(500, None, body).words == words


def test_the_code_of_the_header_counts():
    assert answer(500, "60", "").words == "Code 60"
    assert answer(500, "sixty", "").words == "HTTP status 500"


def test_what_is_not_of_clickhouse_is_told_by_its_status():
    assert answer(502, None, "<html>Bad gateway</html>").words == "HTTP status 502"


@pytest.mark.parametrize(
    ("status", "body", "is_passing"),
    [
        (500, "Code: 252. DB::Exception: Too many parts (300). Merges are slow", True),
        (
            500,
            "Code: 252. DB::Exception: Too many partitions for single INSERT block (more than 100)",
            False,
        ),
        (500, "Code: 241. DB::Exception: Memory limit (total) exceeded", True),
        (500, "Code: 60. DB::Exception: Table t does not exist", False),
        (400, "Code: 27. DB::Exception: Cannot parse input", False),
        (503, "", True),
        (429, "slow down", True),
        (404, "not here", False),
    ],
)
def test_what_passes_by_itself_is_known(status, body, is_passing):
    assert answer(status, None, body).is_passing is is_passing


@pytest.mark.parametrize("digits", [10, 5_000])
def test_a_code_of_too_many_digits_is_none(digits):
    number = "9" * digits

    assert answer(500, number, "no").words == "HTTP status 500"
    assert answer(404, None, f"Code: {number}. DB::Exception: no").words == "HTTP status 404"


@pytest.mark.parametrize(
    ("sentence", "signature"),
    [
        ("Cannot convert: while converting column `a` from x", "'Code 9 X' of the column 'a'"),
        ("No such column a in table t", "'Code 9 X' of the column 'a'"),
        ("(while reading the value of key a): (at row 17)", "'Code 9 X' of the column 'a'"),
        ("No such column z in table t", "'Code 9 X'"),
        ("the value 'column' is odd", "'Code 9 X'"),
        (
            "Constraint `small` for table t is violated at row 7. Column values: a = 12",
            "'Code 9 X' of the constraint 'small'",
        ),
    ],
)
def test_a_failure_names_a_column_of_ours_and_no_value(sentence, signature):
    said = answer(500, None, f"Code: 9. DB::Exception: {sentence}. (XY)".replace("(XY)", "(XXX)"))
    said.name = "X"

    assert said.signature(["a", "b"]) == signature


@pytest.mark.parametrize(
    ("status", "body", "took_nothing"),
    [
        (500, "Code: 469. DB::Exception: Constraint `c` for table d.t is violated. (V)", True),
        (500, "Code: 252. DB::Exception: Too many partitions for single INSERT block (9)", True),
        (500, "Code: 252. DB::Exception: Too many parts (3000)", False),
        (500, "Code: 395. DB::Exception: no: while executing f: while pushing to view d.v", False),
        (500, "Code: 6. DB::Exception: Received from other:9000. DB::Exception: no", False),
        (500, "Code: 60. DB::Exception: there is no such table", False),
        (500, "Code: 9999. DB::Exception: nobody knows", False),
        (413, "too large, says a proxy", True),
        (400, "no, says a proxy", False),
    ],
)
def test_where_a_table_may_have_rows_already_nobody_says_that_it_took_nothing(
    status, body, took_nothing
):
    assert answer(status, None, body).took_nothing is took_nothing
