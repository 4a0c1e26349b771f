"""What PostgreSQL and its driver object to: whether trying again may help, and in which words.

The words never hold a value, so that all that fails for the same reason is one failure, counted.

Source: https://www.postgresql.org/docs/current/errcodes-appendix.html
"""

from __future__ import annotations

import re

from asyncpg import InterfaceError, InternalClientError, PostgresError

_TOLD_AS_SAID = ("08", "0A", "23", "25", "28", "3D", "3F", "40", "42", "53300", "55", "57")
"""Classes whose messages name tables, columns, keys and users, and show no value of a row."""

_ENDED = ("57P01", "57P02", "57P03", "57P04", "57P05", "53300")
"""The session is over, or there is no room for another: shut down, crashed, starting up, idle, full."""
_STATEMENT_GONE = "26000"
"""A prepared statement is not there any more: something between us and the server gave it away."""
_ROLLED_BACK = ("40001", "40P01")
"""The server chose this transaction to lose against another: nothing is written, and it may be again."""
_ONCE_ONLY = "25006"
"""The session is read-only; another one may be elsewhere, or may not be any more."""

_CALLED = {
    "Raise": "a function raises an exception",
    "InternalServer": "internal error",
    "UnknownPostgres": "an error of its own",
}
"""Errors whose class does not say what they are."""

_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


def is_loss(cause: Exception) -> bool:
    """Return whether the connection is of no more use, and not what was to be written."""
    if isinstance(cause, PostgresError):
        code = cause.sqlstate or ""
        return code in (*_ENDED, _STATEMENT_GONE) or code.startswith("08")
    if isinstance(cause, ValueError):  # the driver's own check of what is to be sent
        return False
    return isinstance(cause, InterfaceError | InternalClientError | OSError)


def spoken(cause: BaseException | None) -> PostgresError | None:
    """Return what the server said; None if it said nothing, and it is the driver that objects.

    For a connection that breaks with a last word the driver has an error of its own, and that word
    as the cause of it.
    """
    if not isinstance(cause, PostgresError):
        return None
    return cause if cause.severity is not None else spoken(cause.__cause__)


def is_rolled_back(cause: Exception) -> bool:
    """Return whether nothing was written, only because something else was at the same time."""
    return getattr(cause, "sqlstate", None) in _ROLLED_BACK


def ends_session(cause: Exception) -> bool:
    """Return whether the next session may be treated otherwise than this one."""
    return getattr(cause, "sqlstate", None) == _ONCE_ONLY


def refusal(cause: Exception) -> str:
    """Return why a batch cannot be written, the same for all that cannot be for this reason."""
    if (said := spoken(cause)) is not None:
        return f"the database refuses the batch: {reason(said)} (SQLSTATE {said.sqlstate})"
    return f"the batch cannot be sent: {condition(cause)}"


def reason(cause: PostgresError) -> str:
    """Return the words of the server, or only what its error is called if they may hold a value."""
    code, said = cause.sqlstate or "", str(cause.args[0])
    if code.startswith(_TOLD_AS_SAID):
        return said
    # `invalid input syntax for type uuid: "..."`: what it is about comes last, and in quotes.
    about, _, _ = said.partition(': "')
    if code.startswith("22") and '"' not in about:
        return about
    named = [f"'{name}'" for name in (cause.table_name, cause.column_name) if name]
    return " ".join([condition(cause), *(["of", ".".join(named)] if named else [])])


def condition(cause: Exception) -> str:
    """Return what the name of a class of errors says: ``DiskFullError`` says `disk full`."""
    name = type(cause).__name__.removesuffix("Error")
    return _CALLED.get(name) or _HUMP.sub(" ", name).lower()


def more(cause: Exception, told: str) -> str:
    """Return what was said and is not ``told``, values as well: for the log."""
    said = [*cause.args[:1], getattr(cause, "detail", None)]
    return ": ".join(text for each in said if each and (text := str(each)) not in told)
