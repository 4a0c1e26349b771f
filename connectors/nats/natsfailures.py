"""Which failures of the NATS output are of which class."""

from __future__ import annotations

from headrace.compiler.component.failureclasses import FailureClasses, FailureRow

DENIED = "Permissions Violation"
"""How a server says that something is not permitted."""
TOO_LARGE = "max_payload"
"""What a server calls the size of the largest message that it takes."""
UNCONFIRMED = "no PONG"
"""That a server has not answered the ping behind a batch."""

FAILURES = FailureClasses(
    FailureRow("away", "unavailable", (), "no server can be connected to"),
    FailureRow(
        "turned_away",
        "misconfigured",
        ("Authorization Violation",),
        "a server turns the connection away since the pipeline has started",
    ),
    FailureRow("denied", "misconfigured", (DENIED,), "the user may not publish to the subject"),
    FailureRow("too_large", "invalid", (TOO_LARGE,), "a message is larger than the server takes"),
    FailureRow(
        "unconfirmed",
        "unclear",
        (UNCONFIRMED,),
        "the connection is lost, or nothing is answered, when messages have been sent",
    ),
)
