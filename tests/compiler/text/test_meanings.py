"""Of the things that a malformed text may mean the one is taken that is the most of a config."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from headrace.compiler.text.diagnostics import Diagnostic, Severity
from headrace.compiler.text.documents import Document, Judge, Meaning, Unreadable, likeliest, read

TEXT = "a:\n  b:\n    - c: 1\n\td: { e: 2, f: 3 }\n"
INNER = {"a": {"b": [{"c": 1, "d": {"e": 2, "f": 3}}]}}
OUTER = {"a": {"b": [{"c": 1}], "d": {"e": 2, "f": 3}}}


def meanings(*, has_nearest: bool = True) -> list[Meaning]:
    with pytest.raises(Unreadable) as refused:
        read(TEXT, "a", "yaml")
    assert [each.document.value for each in refused.value.meanings] == [INNER, OUTER]
    return [
        Meaning(each.document, each.diagnostics, has_nearest and each.is_nearest)
        for each in refused.value.meanings
    ]


def judging(faults: Mapping[str, list[str]]) -> Judge:
    """Return what finds these codes in the inner and in the outer meaning, at the ``d`` of line 4."""

    def found(document: Document) -> Iterator[Diagnostic]:
        for code in faults["inner" if document.value == INNER else "outer"]:
            severity = Severity.WARNING if code == "not-applied" else Severity.ERROR
            column = 5 if code == "wrong-type" else 2
            yield Diagnostic(
                file="a", line=4, column=column, code=code, message=code, severity=severity
            )

    return lambda document: (None, found(document))


@pytest.mark.parametrize(
    ("inner", "outer", "value"),
    [
        ([], ["out-of-range"], INNER),
        (["out-of-range"], [], OUTER),
        (["blank"], ["blank"], INNER),
        (["not-applied"], [], INNER),  # a warning is no fault
        (["out-of-range", "blank"], ["missing-key"], INNER),
        (["out-of-range", "blank", "blank"], ["unknown-key"], INNER),  # which hides two values
        (["missing-key"], ["unknown-key"], INNER),
        (["missing-key"], ["wrong-type"], INNER),
    ],
)
def test_what_has_the_fewest_keys_out_of_place_was_meant_then_the_fewest_errors(
    inner: list[str], outer: list[str], value: object
) -> None:
    meant = likeliest(meanings(), judging({"inner": inner, "outer": outer}))

    assert meant is not None
    assert meant.document.value == value


def test_where_nothing_decides_nobody_can_tell() -> None:
    judge = judging({"inner": ["blank"], "outer": ["blank"]})

    assert likeliest(meanings(has_nearest=False), judge) is None
    assert likeliest([], judge) is None
