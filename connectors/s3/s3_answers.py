"""What an object store says, in words, and whether it says no."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any

import aiohttp
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from headrace.connectors.network.refusal import quoted, unanswered

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
OF_ALL = frozenset(
    {
        "AccountProblem",
        "AuthorizationHeaderMalformed",
        "ExpiredToken",
        "InvalidAccessKeyId",
        "InvalidSecurity",
        "InvalidToken",
        "NoSuchBucket",
        "NotSignedUp",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "TokenRefreshRequired",
    }
)
"""Codes of answers that are about who asks, when, and of which bucket, so that others would be the same."""
DENIED = frozenset({"AccessDenied", "AllAccessDisabled", "403", "Forbidden"})
"""Codes of a store that knows who asks, and does not let them do this."""
TAKEN = frozenset({"PreconditionFailed", "412"})
UNKNOWN_CONDITION = frozenset({"NotImplemented", "501"})
SILENT = "does not answer"
NO_STORE = "answers, and not as S3 does"
REGION = "x-amz-bucket-region"
"""The header that tells where a bucket is."""


class StoreError:
    """An error that a store answers with."""

    def __init__(self, cause: ClientError) -> None:
        said = cause.response
        error: dict[str, Any] = said.get("Error", {})
        about = said.get("ResponseMetadata", {})
        self.code = str(error.get("Code", "?"))
        self.message = str(error.get("Message", ""))
        self.status = int(about.get("HTTPStatusCode", 0))
        headers = about.get("HTTPHeaders", {})
        self.region: str | None = error.get("Region") or headers.get(REGION)
        self.is_of_a_store = not self.code.isdecimal()
        """Whether it has a code, as every answer with a body has; others may be of what stands before."""
        self._is_page = "html" in headers.get("content-type", "")

    @property
    def is_passing(self) -> bool:
        """Whether the answer will be another one in a while."""
        return self.status in (408, 429) or self.status >= 500 or self.code in PASSING

    @property
    def is_of_this_request(self) -> bool:
        """Whether others may be answered otherwise: a 4xx that is neither of now nor of who asks."""
        is_refusal = 400 <= self.status < 500 and self.status not in (401, 404, 407)
        return is_refusal and not self.is_passing and self.code not in OF_ALL

    def words(self, redact: Callable[[str], str], key: str = "") -> str:
        """Return what the store does, in its words and without secrets: ``says 'SlowDown: ...'``.

        What names the key is left out, or every part had words of its own.
        """
        if self._is_page and not self.is_of_a_store:
            return f"{NO_STORE} ({self.status})"
        return f"says '{quoted(self._told(key), redact)}'"

    def _told(self, key: str) -> str:
        says_more = (
            self.message and self.message != self.code and (not key or key not in self.message)
        )
        return f"{self.code}: {self.message}" if says_more else self.code


class NotOfAStore(Exception):
    """No store answers like this."""


class Redirected(Exception):
    """An answer that points elsewhere."""

    def __init__(self, target: str) -> None:
        super().__init__()
        self.target = target

    def words(self, redact: Callable[[str], str]) -> str:
        """Return what the store does: ``answers with a redirect to '...'``."""
        return f"answers with a redirect to '{quoted(self.target, redact)}'"


UNANSWERED = (BotoCoreError, aiohttp.ClientError, OSError, TimeoutError, NotOfAStore, Redirected)
"""What is raised where a store has not answered as stores do."""

_NO_ANSWERS = (aiohttp.ClientResponseError, ResponseParserError, NotOfAStore)
"""Of that: what is no HTTP, is longer than anything a store says, or no XML."""


def silence(cause: BaseException) -> str:
    """Return what a store does that does not answer, or not as a store: ``does not answer: ...``."""
    if (error := tls_error(cause)) is not None:
        return f"breaks off the TLS handshake: {getattr(error, 'verify_message', error.reason)}"
    if isinstance(cause, TimeoutError):
        return SILENT
    if isinstance(cause, _NO_ANSWERS):
        return NO_STORE
    if isinstance(cause, aiohttp.ClientConnectorError):
        return f"{SILENT}: {unanswered(cause.os_error)}"
    if isinstance(cause, aiohttp.ClientConnectionError | aiohttp.ClientPayloadError):
        return "closed the connection"
    return f"cannot be asked: {type(cause).__name__}"


def tls_error(cause: BaseException) -> ssl.SSLError | None:
    """Return what went wrong with a handshake, if that is what happened."""
    found = getattr(cause, "certificate_error", None) or getattr(cause, "os_error", None)
    return found if isinstance(found, ssl.SSLError) else None
