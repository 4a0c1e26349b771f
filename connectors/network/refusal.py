"""A server that says no, which trying again cannot mend, and one that cannot be reached."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator

from headrace.compiler.component.families import Connection
from headrace.compiler.errors import BuildRefused, Unreachable
from headrace.compiler.text.diagnostics import Codes, Fault

CODES: Codes = {
    "turned-away": "A server says no: to a credential, a certificate, or to TLS as it is configured.",
}

CONNECT_SECONDS = 4.0
"""How long connecting may take: less than a pipeline waits for it while it is built."""

MOST_SAID = 500
"""Characters that are shown of what a server says."""


def unusable(code: str, message: str, expected: str | None = None) -> BuildRefused:
    """Return the refusal of a component for what its connection holds, or names."""
    return BuildRefused(Fault(code, message, expected=expected, path=("connection",)))


def turned_away(message: str, expected: str | None = None) -> BuildRefused:
    """Return the refusal of a component by the server that its connection names."""
    return unusable("turned-away", message, expected)


def half_credential(connection: Connection, at: str | None = None) -> Iterator[Fault]:
    """Yield what is wrong when a connection has one of user and password; at the one that it has."""
    given = [name for name in ("username", "password") if getattr(connection, name) is not None]
    if len(given) == 1:
        (missing,) = {"username", "password"}.difference(given)
        message = f"the connection has a '{given[0]}' and no '{missing}'"
        yield Fault("conflict", message, None, "both of them, or neither", path=(at or given[0],))


def quoted(said: str, redact: Callable[[str], str]) -> str:
    """Return what a server says without secrets, and no more of it than people read."""
    told = redact(said)  # whole: half of a secret is none that is found
    return told if len(told) <= MOST_SAID else f"{told[:MOST_SAID]}..."


def unanswered(cause: OSError) -> str:
    """Return why a connection did not come about, in the system's words."""
    if isinstance(cause, socket.gaierror):
        return "the host name cannot be resolved"
    # A host with several addresses gives an error without a number.
    return os.strerror(cause.errno).lower() if cause.errno else "connection refused"


class Outage:
    """A server that cannot be reached, in one text from the first try that fails to the last.

    So an outage is one failure, with its count, however each of the tries ended.
    """

    def __init__(self, where: str) -> None:
        """Take the server's host and port, or whatever tells it from others."""
        self._where = where
        self._said = ""

    def of(self, what: str) -> Unreachable:
        """Return what to raise; ``what`` says what the server does, and counts the first time only."""
        self._said = self._said or f"{self._where} {what}"
        return Unreachable(self._said)

    def over(self) -> None:
        """Note that it was reached: what comes then is another outage."""
        self._said = ""
