"""Which failures of a `postgres` output are of which class, by SQLSTATE.

Of five characters it is one error, of two all that begin with them: a class of errors, there.

Source: https://www.postgresql.org/docs/current/errcodes-appendix.html
"""

from __future__ import annotations

from headrace.compiler.component.failureclasses import FailureClasses, FailureRow

SESSION_ENDED = FailureRow(
    "session_ended",
    "unavailable",
    ("57P01", "57P03"),
    "the server ends the session, shuts down or starts up",
)
SESSION_GONE = FailureRow(
    "session_gone",
    "unavailable",
    ("57P02", "57P04", "57P05", "26000"),
    "the session is gone: the server crashed, the database was dropped, nothing came over it for too long,"
    " or something between us and the server gave it away",
    "https://www.postgresql.org/docs/current/errcodes-appendix.html",
)
"""A prepared statement that is not there any more (26000) was in another session."""
ROLLED_BACK = FailureRow(
    "rolled_back",
    "unavailable",
    ("40001", "40P01"),
    "the server chose the batch to lose against somebody else's transaction, three times",
)
READ_ONLY = FailureRow("read_only", "unavailable", ("25006",), "the session is read-only")
"""Another session may be elsewhere, or may not be any more."""
CUT_OFF = FailureRow(
    "cut_off",
    "unclear",
    (),
    "the connection breaks without a word after the batch was sent, and the try after it says only that"
    " the server is away, or that a key is there",
)

MAY_BE_CONTENT = frozenset({"57014", "53000", "53200", "53400"})
"""What time may heal, or one of the rows may be why: it takes too long, or needs more memory than there is.
No row is why a disk is full, or all connections are taken."""

FAILURE_CLASSES = FailureClasses(
    FailureRow(
        "connection",
        "unavailable",
        ("08",),
        "nobody answers, or the connection does not come about",
    ),
    SESSION_ENDED,
    SESSION_GONE,
    FailureRow(
        "resources",
        "unavailable",
        ("53",),
        "the server has no room: for another connection, on its disk, in its memory",
    ),
    FailureRow(
        "system",
        "unavailable",
        ("58",),
        "its system fails it, such as the disk",
        "https://www.postgresql.org/docs/current/errcodes-appendix.html",
    ),
    ROLLED_BACK,
    FailureRow(
        "lock",
        "unavailable",
        ("55P03",),
        "a lock is not to be had within the server's `lock_timeout`",
    ),
    FailureRow(
        "statement_timeout",
        "unavailable",
        ("57014",),
        "the statement takes too long, or is cancelled",
    ),
    READ_ONLY,
    FailureRow(
        "sign_in",
        "misconfigured",
        ("28",),
        "the server does not let us in any more, for a password or a role",
    ),
    FailureRow("no_database", "misconfigured", ("3D",), "the database is not there any more"),
    FailureRow("no_right", "misconfigured", ("42501",), "a right is missing"),
    FailureRow(
        "undefined_table",
        "misconfigured",
        ("42P01", "3F"),
        "a table or a schema is not there any more",
    ),
    FailureRow("undefined_column", "misconfigured", ("42703",), "a column is not there any more"),
    FailureRow(
        "column_type",
        "misconfigured",
        ("42804",),
        "a column has become one of a type that does not fit",
    ),
    FailureRow(
        "altered_table",
        "misconfigured",
        ("428C9", "42809", "42P10", "55000"),
        "the table has become something that takes no such rows: a column is generated, the key of"
        " `on_conflict` is gone, a view is in its place",
    ),
    FailureRow(
        "misfit",
        "invalid",
        (),
        "a value does not fit its column: found before anything is sent, by message",
    ),
    FailureRow(
        "value", "invalid", ("22",), "the server finds that a value does not fit its column"
    ),
    FailureRow(
        "constraint", "invalid", ("23",), "a key is there already, or another constraint is broken"
    ),
    FailureRow(
        "limit",
        "invalid",
        ("54",),
        "a limit of the server: a value is too long for an index",
    ),
    FailureRow("raised", "invalid", ("P0001",), "a function of the database raises an exception"),
    CUT_OFF,
)
