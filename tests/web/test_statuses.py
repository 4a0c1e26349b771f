"""The one table from error to status."""

from __future__ import annotations

import inspect
import logging

import pytest

from headrace.compiler import errors as compiled
from headrace.compiler.errors import BatchFailed, HeadraceError, PipelineExists, Refused
from headrace.compiler.text.diagnostics import Diagnostic
from headrace.web.apierror import api_error
from headrace.web.statuses import STATUS, answer, status_of


def test_the_most_specific_class_counts() -> None:
    assert status_of(Refused([])) == 422
    assert status_of(PipelineExists("p")) == 409
    assert status_of(BatchFailed("x")) == 500


@pytest.mark.parametrize("kind", STATUS)
def test_the_table_gives_its_own_classes_their_status(kind) -> None:
    assert STATUS[kind] in range(400, 600)


def test_a_refusal_carries_its_diagnostics() -> None:
    refused = Refused([Diagnostic(code="blank", message="this must not be blank", path="id")])

    status, body = answer(refused, "createPipeline")

    assert status == 422
    assert body.startswith(b'{"error":"id: this must not be blank","diagnostics":[{"file":null,')


def test_line_breaks_are_folded() -> None:
    assert api_error("one\ntwo\r\n  three") == b'{"error":"one two three"}'


def test_what_nobody_foresaw_is_logged_and_its_words_are_kept_back(caplog) -> None:
    with caplog.at_level(logging.ERROR):
        status, body = answer(KeyError("s3cret"), "createPipeline")

    assert status == 500
    assert body == (b'{"error":"createPipeline: unexpected KeyError, the server\'s log says more"}')
    assert "s3cret" in caplog.text


def test_every_class_of_error_has_an_answer() -> None:
    tree = [
        kind
        for _, kind in inspect.getmembers(compiled, inspect.isclass)
        if issubclass(kind, HeadraceError)
    ]

    assert tree
    for kind in tree:
        assert any(base in STATUS for base in kind.__mro__)
