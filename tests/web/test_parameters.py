"""Parameters of a query that have to be right."""

from __future__ import annotations

from typing import Literal

import falcon.asgi
import falcon.testing
import pytest

from headrace.web.parameters import WholeNumber, Word, WrongParameter

SIZE = WholeNumber("size", "How many.", default=5, least=1, most=2000)
FORMAT: Word[Literal["json", "yaml"]] = Word("as", "Which.", ("json", "yaml"), "json", str)


def asked(query: str) -> falcon.asgi.Request:
    """Return a request with a query."""
    return falcon.testing.create_asgi_req(query_string=query)


@pytest.mark.parametrize(
    ("query", "number"),
    [("", 5), ("other=x", 5), ("size=1", 1), ("size=2000", 2000), ("size=007", 7), ("size=%31", 1)],
)
def test_a_whole_number_is_read_and_absent_it_is_the_usual_one(query: str, number: int) -> None:
    assert SIZE.of(asked(query)) == number


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("size=", ""),
        ("size", ""),
        ("size=0", "0"),
        ("size=2001", "2001"),
        ("size=-1", "-1"),
        ("size=1.0", "1.0"),
        ("size=%201", " 1"),
        ("size=1_000", "1_000"),
        ("size=%D9%A1", "\u0661"),  # a digit, of another script
        ("size=%C2%B9", "¹"),
        ("size=a%0Ab", "a\\nb"),
        ("size=" + "9" * 5000, "9" * 100),
    ],
)
def test_what_is_no_such_number_is_refused_with_what_would_do(query: str, found: str) -> None:
    with pytest.raises(WrongParameter) as cause:
        SIZE.of(asked(query))

    expected = "expected a whole number from 1 to 2,000"
    assert str(cause.value) == f"the parameter 'size' is '{found}': {expected}"


def test_a_word_is_read_and_absent_it_is_the_usual_one() -> None:
    assert (FORMAT.of(asked("")), FORMAT.of(asked("as=yaml"))) == ("json", "yaml")


@pytest.mark.parametrize("word", ["", "YAML", "toml", "yaml "])
def test_another_word_is_refused_with_those_that_would_do(word: str) -> None:
    with pytest.raises(WrongParameter) as cause:
        FORMAT.of(asked(f"as={word}"))

    assert str(cause.value) == f"the parameter 'as' is '{word}': expected one of json, yaml"


@pytest.mark.parametrize("parameter", [SIZE, FORMAT])
def test_a_parameter_that_comes_twice_is_refused(parameter: WholeNumber) -> None:
    name = parameter.name
    with pytest.raises(WrongParameter) as cause:
        parameter.of(asked(f"{name}=1&{name}=2"))

    assert str(cause.value) == f"the parameter '{name}' is '1, 2': expected it once"


def test_a_comma_separates_nothing() -> None:
    with pytest.raises(WrongParameter):
        SIZE.of(asked("size=1,2"))
