"""What the failures of requests over HTTP mean, for whatever makes them: one table of causes and statuses.

Source: RFC 9110, section 15.
"""

from __future__ import annotations

from headrace.compiler.component.failureclasses import FailureClasses, FailureRow
from headrace.compiler.errors import FailureClass
from headrace.compiler.httpexchange import NO_CONNECTION, NOT_HTTP, NOT_REDIRECTED, SENT, NoReply

NO_ANSWER = FailureRow(
    "no_answer",
    "unavailable",
    (NO_CONNECTION,),
    "nobody answers: the host name does not resolve, or no connection comes about",
)
LATER = FailureRow("later", "unavailable", (408, 425, 429), "the server asks to be tried later")
BROKEN = FailureRow("broken", "unavailable", ("5xx",), "the server has a fault, or too much to do")
NOT_LET_IN = FailureRow(
    "not_let_in",
    "misconfigured",
    (401, 403),
    "the credential is missing or wrong, or lacks the right",
)
NOTHING_THERE = FailureRow(
    "nothing_there",
    "misconfigured",
    (404, 405, 410),
    "nothing is at the url, or nothing that takes the method",
)
REDIRECTED = FailureRow(
    "redirected",
    "misconfigured",
    ("3xx", NOT_REDIRECTED),
    "the server points to somewhere that is not followed",
)
STRANGER = FailureRow(
    "stranger",
    "misconfigured",
    (NOT_HTTP,),
    "what answers does not speak HTTP, or its TLS is not to be trusted",
)
REFUSED = FailureRow("refused", "invalid", ("4xx",), "the server refuses what it was sent")
CUT_OFF = FailureRow(
    "cut_off", "unclear", (SENT,), "the request was sent, and no answer came in time or whole"
)

HTTP_FAILURES = FailureClasses(
    *(NO_ANSWER, LATER, BROKEN),
    *(NOT_LET_IN, NOTHING_THERE, REDIRECTED, STRANGER),
    REFUSED,
    CUT_OFF,
)

CONTENT_TOO_LARGE = 413
"""What a server answers that takes nothing of a request, because it is too large."""


def class_of_status(status: int) -> FailureClass:
    """Return the class of an answer that is no success."""
    return HTTP_FAILURES.of(status, f"{min(status // 100, 5)}xx")


def class_without_reply(cause: NoReply) -> FailureClass | None:
    """Return the class of what was not answered; None: what is usual for what it leads to."""
    return None if cause.code is None else HTTP_FAILURES.of(cause.code)
