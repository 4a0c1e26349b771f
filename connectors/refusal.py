"""A server that says no: what cannot be mended by trying again."""

from __future__ import annotations

from headrace.compiler.errors import BuildRefused
from headrace.compiler.language.diagnostics import Fault

CONNECT_SECONDS = 4.0
"""How long connecting may take: less than a pipeline waits for it while it is built."""


def turned_away(message: str, expected: str | None = None) -> BuildRefused:
    """Return the refusal of a component by the server that its connection names."""
    return BuildRefused(Fault("turned-away", message, expected=expected, path=("connection",)))
