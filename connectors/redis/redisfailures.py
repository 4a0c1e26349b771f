"""Which failures of the Redis output are of which class, by how the answers of a server begin."""

from __future__ import annotations

from headrace.compiler.component.failureclasses import FailureClasses, FailureRow

LIST = "https://redis.io/docs/latest/develop/reference/errors/all/redis/"
"""Where Redis lists what it answers."""
SIGN_IN = "NOAUTH"
"""What a stranger is answered, whatever he wants."""
UNANSWERED = "no answer"
"""That the server has not answered for a message that was sent."""

BUSY = FailureRow(
    "busy",
    "unavailable",
    ("BUSY", "ERR max number of clients"),
    "the server runs a script that takes long, or has as many clients as it takes",
)
NOT_READY = FailureRow(
    "not_ready",
    "unavailable",
    ("LOADING", "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN"),
    "the server reads its data, or has lost the others of its kind",
    source=LIST,
)
PASSING = (*BUSY.codes, *NOT_READY.codes)
"""How answers begin that will be others in a while: nothing more is sent until then."""

FAILURES = FailureClasses(
    FailureRow("away", "unavailable", (), "the server cannot be connected to"),
    BUSY,
    NOT_READY,
    FailureRow(
        "full",
        "unavailable",
        ("OOM", "MISCONF", "NOREPLICAS", "READONLY"),
        "the server has no memory left, cannot save its data, or takes nothing for now",
        source=LIST,
    ),
    FailureRow(
        "signed_out",
        "misconfigured",
        (SIGN_IN, "WRONGPASS"),
        "the password is missing or another one since the pipeline has started",
    ),
    FailureRow("denied", "misconfigured", ("NOPERM",), "the user may not publish on the channel"),
    FailureRow(
        "no_command",
        "misconfigured",
        ("ERR unknown command",),
        "the server has no command to publish with, as where it was renamed",
    ),
    FailureRow(
        "unanswered",
        "unclear",
        (UNANSWERED,),
        "the connection is lost, or nothing is answered, when messages have been sent",
    ),
)
_CODES = [str(code) for row in FAILURES.rows for code in row.codes]


def code_of(reply: str) -> str | None:
    """Return how an error begins that a server answers, if that is known."""
    return next((code for code in _CODES if f"{reply} ".startswith(f"{code} ")), None)
