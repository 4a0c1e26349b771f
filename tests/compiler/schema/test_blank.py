"""What counts as blank: whatever nobody sees."""

from __future__ import annotations

import json
import re
import unicodedata

import pytest
from marshmallow import ValidationError

from headrace.compiler.config.connectionsfile import load_connection
from headrace.compiler.schema.fields import (
    SOMETHING_SEEN,
    BucketName,
    ConnectionName,
    Identifier,
    Name,
    is_blank,
)
from headrace.compiler.schema.records import faults_of
from headrace.compiler.text.documents import read
from tests.compiler.catalogued import CATALOGUE

UNSEEN = [
    *("", " ", "\t\n", "\u00a0", "\u3000"),
    *("\u3164", "\u115f", "\u1160", "\uffa0", "\u2800", "\u200b", "\u200d", "\ufeff", "\u2060"),
    *("\u00ad", "\u034f", "\ufe0f", "\u180e", "\u202e", "\U000e0020", "\U000e0100", "\U0001d159"),
    " \u3164\u2800 \u200b",
]
SEEN = ["a", ".", "0", "ü", "日", "\u0301", "🙂", "\u3164x", "\u0600", "\u2801", "\x07"]


@pytest.mark.parametrize("text", UNSEEN, ids=ascii)
def test_what_nobody_sees_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", SEEN, ids=ascii)
def test_what_shows_anything_is_not(text: str) -> None:
    assert not is_blank(text)
    assert re.search(SOMETHING_SEEN, text)


@pytest.mark.parametrize("text", UNSEEN, ids=ascii)
@pytest.mark.parametrize(
    "field",
    [Identifier(), Name(), BucketName(), ConnectionName("file")],
    ids=lambda it: type(it).__name__,
)
def test_no_name_is_blank(field: Name | Identifier, text: str) -> None:
    with pytest.raises(ValidationError) as wrong:
        field.read(text)

    assert [fault.code for fault in faults_of(wrong.value)] == ["blank"]


def test_a_connection_that_nobody_could_see_is_refused_by_its_name() -> None:
    document = read(json.dumps({"id": "\u3164", "type": "mill", "host": "h"}), None, "json")

    loaded, said = load_connection(document, CATALOGUE)

    assert (loaded, [(each.code, each.path) for each in said]) == (None, [("blank", "id")])


def test_no_letter_digit_or_sign_is_blank_but_the_fillers() -> None:
    blank = {
        chr(number)
        for number in range(0x110000)
        if unicodedata.category(chr(number))[0] in "LNPS" and is_blank(chr(number))
    }

    assert blank == set("\u115f\u1160\u3164\uffa0\u2800\U0001d159")
