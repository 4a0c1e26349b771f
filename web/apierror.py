"""The one shape of every refusal.

    {"error": "pipeline 'p1' could not be started: inputs[0].upstream: this key is required ..."}

One line, the context before the cause. A refused config adds `diagnostics`, the very objects that a
start-up refusal prints.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from headrace.compiler.annotated import Count
from headrace.compiler.jsontext import encode
from headrace.compiler.text import diagnostics
from headrace.compiler.text.diagnostics import Severity


class Diagnostic(msgspec.Struct):
    """What is wrong or odd in a document, and where; what is unknown is null."""

    file: str | None
    line: Count | None
    column: Annotated[
        Count | None, Meta(description="In characters (Unicode code points), from 1.")
    ]
    end_line: Count | None
    end_column: Annotated[
        Count | None,
        Meta(
            description="Of the character behind the last one of what is wrong; null where something is "
            "missing, and where nothing but a place is known."
        ),
    ]
    path: str
    severity: Severity
    code: str
    message: str
    found: str | None
    expected: str | None
    suggestion: str | None
    replacement: Annotated[
        str | None,
        Meta(
            description="What would do from `line` and `column` to the end, spelled as in the document."
        ),
    ]


class ApiError(msgspec.Struct):
    """One line, `context: cause`. A refused document adds what is wrong where."""

    error: str
    diagnostics: list[Diagnostic] | UnsetType = UNSET


def api_error(text: str, wrong: Iterable[diagnostics.Diagnostic] = ()) -> bytes:
    """Return an ApiError, its text on one line."""
    return encode(ApiError(" ".join(text.split()), shown(wrong) or UNSET))


def shown(said: Iterable[diagnostics.Diagnostic]) -> list[Diagnostic]:
    """Return diagnostics as the API shows them."""
    return msgspec.convert([*said], list[Diagnostic], from_attributes=True)
