"""What an object store says, in words, and whether it says no."""

from __future__ import annotations

import os
import socket
import ssl
from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ReadTimeoutError,
)
from botocore.parsers import ResponseParserError

PASSING = frozenset(
    {
        "ConditionalRequestConflict",
        "InternalError",
        "OperationAborted",
        "RequestTimeout",
        "RequestTimeTooSkewed",
        "ServiceUnavailable",
        "SlowDown",
        "ThrottlingException",
        "TooManyRequests",
    }
)
"""Codes of answers that will be others in a while."""
DENIED = frozenset({"AccessDenied", "AllAccessDisabled", "403", "Forbidden"})
"""Codes of a store that knows who asks, and does not let them do this."""
TAKEN = frozenset({"PreconditionFailed", "412"})
UNKNOWN_CONDITION = frozenset({"NotImplemented", "501"})
SILENT = "does not answer"
NO_STORE = "answers, and not as S3 does"
MOST_SAID = 500
"""Characters that are shown of what a store says."""


class Answer:
    """An error that a store answers with."""

    def __init__(self, cause: ClientError) -> None:
        said = cause.response
        error: dict[str, Any] = said.get("Error", {})
        about = said.get("ResponseMetadata", {})
        self.code = str(error.get("Code", "?"))
        self.message = str(error.get("Message", ""))[:MOST_SAID]
        self.status = int(about.get("HTTPStatusCode", 0))
        headers = about.get("HTTPHeaders", {})
        self.region: str | None = error.get("Region") or headers.get("x-amz-bucket-region")
        self.is_of_a_store = not self.code.isdecimal()
        """Whether it has a code, as every answer with a body has; others may be of what stands before."""
        self._is_page = "html" in headers.get("content-type", "")

    @property
    def is_passing(self) -> bool:
        """Whether the answer will be another one in a while."""
        return self.status in (408, 429) or self.status >= 500 or self.code in PASSING

    def words(self, key: str = "") -> str:
        """Return what the store does, in its words: ``says 'SlowDown: ...'``.

        What names the key is left out, or every part had words of its own.
        """
        if self._is_page and not self.is_of_a_store:
            return f"{NO_STORE} ({self.status})"
        return f"says '{self._quoted(key)}'"

    def _quoted(self, key: str) -> str:
        says_more = (
            self.message and self.message != self.code and (not key or key not in self.message)
        )
        return f"{self.code}: {self.message}" if says_more else self.code


def silence(cause: BaseException) -> str:
    """Return what a store does that does not answer, or not as a store: ``does not answer: ...``."""
    if (error := tls_error(cause)) is not None:
        return f"breaks off the TLS handshake: {getattr(error, 'verify_message', error.reason)}"
    if isinstance(cause, TimeoutError | ConnectTimeoutError | ReadTimeoutError):
        return SILENT
    if isinstance(cause, ResponseParserError):
        return NO_STORE
    if isinstance(cause, ConnectionClosedError):
        return "closed the connection"
    if isinstance(cause, EndpointConnectionError):
        return f"{SILENT}: {_reason(_system(cause))}"
    return f"cannot be asked: {type(cause).__name__}"


def tls_error(cause: BaseException) -> ssl.SSLError | None:
    """Return what went wrong with a handshake, if that is what happened."""
    error = cause.kwargs.get("error") if isinstance(cause, BotoCoreError) else None
    found = getattr(error, "certificate_error", None) or getattr(error, "os_error", None)
    return found if isinstance(found, ssl.SSLError) else None


def _system(cause: BotoCoreError) -> OSError | None:
    error = cause.kwargs.get("error")
    found = getattr(error, "os_error", error)
    return found if isinstance(found, OSError) else None


def _reason(system: OSError | None) -> str:
    if isinstance(system, socket.gaierror):
        return "the host name cannot be resolved"
    number = system.errno if system is not None else None
    return os.strerror(number).lower() if number else "connection refused"
