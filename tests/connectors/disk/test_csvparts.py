"""Rows of CSV: what they look like, what is refused, and that the generated form is the plain one."""

import csv
import io
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.decimals import Written
from headrace.compiler.errors import BatchFailed
from headrace.connectors.disk.csvparts import (
    INLINE_COLUMNS,
    LONGEST_ROW,
    UNUSUAL_BATCHES,
    CsvRowWriter,
    CsvWriting,
)
from tests.compiler.lowering.drawn import other
from tests.doubles import StubContext, refusals
from tests.examples import examples
from tests.slowness import slowness


def table(*columns: str, **options) -> CsvRowWriter:
    return CsvRowWriter(CsvWriting.load({"columns": [*columns], **options}), StubContext())


def rows(batch, *columns, **options) -> str:
    return table(*columns, **options)(batch).decode()


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("x", "x"),
        ("", ""),
        (None, ""),
        (5, "5"),
        (-5, "-5"),
        (-2.5, "-2.5"),
        (0.0, "0.0"),
        (1e16, "1e16"),
        (1e-5, "0.00001"),
        (Written("-1.10"), "-1.10"),
        (float("nan"), ""),
        (10**40, str(10**40)),
        (True, "true"),
        (False, "false"),
        ("a,b", '"a,b"'),
        ('say "x"', '"say ""x"""'),
        ("a\nb", '"a\nb"'),
        ("a\r", '"a\r"'),
        ("=1+1", '"=1+1"'),
        ("+49 40", '"+49 40"'),
        ("-5", '"-5"'),
        ("@me", '"@me"'),
        ("a=b", "a=b"),
        (";", ";"),
        ([1, "x"], '"[1,""x""]"'),
        ({"a": 1}, '"{""a"":1}"'),
        ([], "[]"),
        ("ü 🚀", "ü 🚀"),
    ],
)
@pytest.mark.parametrize("beside", [1, "a,b"])
def test_a_cell(value, cell, beside):
    last = '"a,b"' if beside == "a,b" else "1"

    assert rows([{"a": value, "b": beside}], "a", "b") == f"{cell},{last}\n"
    assert rows([{"b": beside, "a": value}], "b", "a") == f"{last},{cell}\n"


def test_what_is_missing_is_an_empty_cell():
    batch = [{"a": {"b": 1}}, {"a": 5, "c": "x"}, {"a.b": 2}, {}, [1], "text", None]

    assert rows(batch, "a.b", "c") == "1,\n,x\n2,\n,\n,\n,\n,\n"


def test_a_row_of_one_empty_cell_is_no_empty_line():
    assert rows([{"a": "x"}, {"a": ""}, {}], "a") == 'x\n""\n""\n'


def test_another_separator_is_what_has_to_be_quoted():
    batch = [{"a": "1;2", "b": "1,5"}, {"a": 1.5, "b": {"c": 1, "d": 2}}]

    assert rows(batch, "a", "b", separator=";") == '"1;2";1,5\n1.5;"{""c"":1,""d"":2}"\n'
    assert rows([{"a": "x\ty", "b": 1}], "a", "b", separator="\t") == '"x\ty"\t1\n'
    assert rows([{"a": "x", "b": 1}], "a", "b", separator="'") == "x'1\n"
    assert rows([{"a": "x", "b": 1}], "a", "b", separator="\\") == "x\\1\n"


def test_the_header_has_the_names_as_they_are_spelt():
    assert table("a", "b.c", 'x"y', "=z", separator=";").header() == b'a;b.c;"x""y";"=z"\n'


@pytest.mark.parametrize("count", [1, 2, INLINE_COLUMNS, INLINE_COLUMNS + 1, 1000])
def test_there_may_be_many_columns(count):
    names = [f"c{n}" for n in range(count)]
    batch = [{name: at for at, name in enumerate(names)}, dict.fromkeys(names, "a,b")]

    first, second = rows(batch, *names).splitlines()

    assert first == ",".join(map(str, range(count)))
    assert second == ",".join(['"a,b"'] * count)


def test_a_row_is_bounded():
    made = table("a", "b")
    longest = "x" * (LONGEST_ROW - 2)

    assert len(made([{"a": longest}])) == LONGEST_ROW
    for value in (longest + "x", '"' * (LONGEST_ROW // 2), ["x" * LONGEST_ROW]):
        with pytest.raises(BatchFailed) as failed:
            made([{"a": 1}, {"a": value}])
        assert str(failed.value) == "a row of CSV is longer than 1,048,576 characters"


@pytest.mark.timed
@pytest.mark.parametrize("text", ['"', "é,", "\n", "x"])
def test_the_longest_row_takes_less_than_twenty_milliseconds(text):
    made, took = table("a", "b"), []
    for _ in range(5):
        began = time.process_time()
        made([{"a": text * (LONGEST_ROW // len(text) // 2 - 10)}])
        took.append(time.process_time() - began)

    assert min(took) < 0.02 * slowness(), took


def test_a_text_that_is_none_fails_as_it_does_in_json():
    with pytest.raises(UnicodeEncodeError):
        table("a", "b")([{"a": "\ud800"}])


def test_after_an_unusual_batch_the_usual_way_is_tried_again():
    made = table("a", "b")
    plain, odd = {"a": "x", "b": "y"}, {"a": "x,y", "b": "y"}

    found = [made([each]) for each in [odd, *[plain] * UNUSUAL_BATCHES, plain, odd, plain]]

    assert found == [b'"x,y",y\n', *[b"x,y\n"] * UNUSUAL_BATCHES, b"x,y\n", b'"x,y",y\n', b"x,y\n"]


@examples(300)
@given(
    st.lists(
        other | st.dictionaries(st.sampled_from(["a", "b", "d"]), st.text(',;"\r\n=+-@ax')),
        min_size=1,
        max_size=4,
    ),
    st.lists(st.sampled_from(["a", "b", "a.b", "d", "d.a"]), min_size=1, unique=True),
    st.sampled_from(",;\t'"),
)
def test_the_generated_form_is_the_plain_one_and_is_read_back(batch, columns, separator):
    made = table(*columns, separator=separator)

    found = made(batch).decode()

    assert found == "".join(map(made._row, batch))
    if all(isinstance(each, dict) for each in batch):
        assert made._careful(batch) == [*map(made._row, batch)]
    read = csv.reader(io.StringIO(found, newline=""), delimiter=separator, strict=True)
    assert [len(row) for row in read] == [len(columns)] * len(batch)


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({}, "columns: this key is required"),
        ({"columns": []}, "columns: "),
        ({"columns": ["a", " "]}, "columns[1]: this must not be blank"),
        ({"columns": ["a", "b", "a"]}, "columns[2]: the column 'a' is "),
        ({"columns": [f"c{n}" for n in range(1001)]}, "columns: "),
        ({"columns": ["a"], "header": "no"}, "header: expected true or false"),
        *(
            ({"columns": ["a"], "separator": text}, "separator: expected one character that is no")
            for text in ("", ",,", "\\t", '"', "\n", "\r", "a", "1", "-", ".", "=", "\0", "ü")
        ),
    ],
)
def test_what_is_refused(options, refusal):
    [found] = refusals(CsvWriting, options)

    assert found.startswith(refusal)
