"""What is told of how a part fails: the classes of its table, with the codes of each."""

from __future__ import annotations

from headrace.authoring.explaining.explained import ExplainedFailure
from headrace.authoring.explaining.texts import text_of
from tests.authoring.explaining.configs import explained_text
from tests.ledgers import CATALOGUE, SOURCE

CONFIG = "- {id: books, inputs: [{type: http}], outputs: [{type: ledger}, {type: stdout}]}"


def test_each_class_is_a_line_with_its_codes_and_those_that_no_test_has_tried_stand_last():
    lines = text_of(explained_text(CONFIG, components=CATALOGUE)).splitlines()

    told = [each.strip() for each in lines]
    before, behind = (
        told.index("while the other side is away: is lost"),
        told.index("outputs[1]  stdout  :1  written when the system has taken it"),
    )
    assert told[before + 1 : behind] == [
        "unavailable: 503, LOCKED, SHUT (tried); 507 (documented)",
        "misconfigured: 404 (documented)",
    ]


def test_each_row_is_told_and_a_part_without_a_table_has_none():
    [told] = explained_text(CONFIG, components=CATALOGUE)

    http, ledger, _ = told.parts()
    fails = "ledger.output.fails"
    no_book = "there is no 'book' of that name"
    assert http.failures == ()
    assert ledger.failures == (
        ExplainedFailure(
            f"{fails}.busy", "unavailable", ("503", "LOCKED"), "somebody else writes", "tried", None
        ),
        ExplainedFailure(
            f"{fails}.full", "unavailable", ("507",), "its last page is full", "documented", SOURCE
        ),
        ExplainedFailure(f"{fails}.closed", "unavailable", ("SHUT",), "it is shut", "tried", None),
        ExplainedFailure(
            f"{fails}.no_book", "misconfigured", ("404",), no_book, "documented", SOURCE
        ),
        ExplainedFailure(f"{fails}.torn", "unclear", (), "a page was torn out", "tried", None),
    )
