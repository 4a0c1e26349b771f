"""What the codes of ClickHouse's exceptions mean, and the statuses of what stands before a server.

Source: https://github.com/ClickHouse/ClickHouse/blob/master/src/Common/ErrorCodes.cpp
"""

from __future__ import annotations

from headrace.compiler.component.failureclasses import FailureClasses, FailureRow
from headrace.compiler.httpfailures import CUT_OFF, LATER, NO_ANSWER, NOT_LET_IN, NOTHING_THERE

ERROR_CODES = "https://github.com/ClickHouse/ClickHouse/blob/master/src/Common/ErrorCodes.cpp"

UNKNOWN_TABLE = 60
UNKNOWN_DATABASE = 81
ACCESS_DENIED = 497
TOO_MANY_PARTITIONS = "252 for one insert"
"""The code of a table with too many parts is that of a batch for too many partitions as well."""


def by_status(*statuses: int | str) -> tuple[str, ...]:
    """Return the codes of answers that have a status and no exception."""
    return tuple(f"HTTP {each}" for each in statuses)


SLOW = FailureRow(
    "slow",
    "unavailable",
    # TIMEOUT_EXCEEDED, TOO_SLOW
    (159, 160),
    "the insert takes longer than the server allows",
)
# MEMORY_LIMIT_EXCEEDED
MEMORY = FailureRow("memory", "unavailable", (241,), "the server has no memory left for it")
MAY_BE_CONTENT = frozenset(SLOW.codes + MEMORY.codes)
"""What time may heal, or one of the rows may be why."""

PASSING = (
    SLOW,
    FailureRow(
        "between_servers",
        "unavailable",
        # SOCKET_TIMEOUT, NETWORK_ERROR
        (209, 210),
        "the server does not reach another one that it needs",
    ),
    MEMORY,
    # TABLE_IS_READ_ONLY: its replica has lost its keeper
    FailureRow("table_read_only", "unavailable", (242,), "the table takes nothing for now"),
    # NOT_ENOUGH_SPACE
    FailureRow("disk_full", "unavailable", (243,), "the disk of the server is full"),
    # TOO_MANY_PARTS
    FailureRow("too_many_parts", "unavailable", (252,), "the server is behind with its merges"),
    FailureRow(
        "overloaded",
        "unavailable",
        # QUOTA_EXCEEDED, TOO_MANY_SIMULTANEOUS_QUERIES, CANNOT_SCHEDULE_TASK, SERVER_OVERLOADED
        (201, 202, 439, 745),
        "the server has too much to do, or the user has had its quota",
        ERROR_CODES,
    ),
    FailureRow(
        "ended",
        "unavailable",
        # ABORTED: it shuts down, QUERY_WAS_CANCELLED
        (236, 394),
        "the server has ended it, as when it shuts down",
        ERROR_CODES,
    ),
    FailureRow(
        "replicas",
        "unavailable",
        # NO_ZOOKEEPER, TOO_FEW_LIVE_REPLICAS, UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE, KEEPER_EXCEPTION
        (225, 285, 286, 999),
        "too few replicas are there, or the keeper is not",
        ERROR_CODES,
    ),
    FailureRow(
        "disk_fails",
        "unavailable",
        # CANNOT_WRITE_TO_FILE_DESCRIPTOR
        (75,),
        "the server cannot write to its disk",
        ERROR_CODES,
    ),
    FailureRow(
        "unknown_status",
        "unclear",
        # UNKNOWN_STATUS_OF_INSERT
        (319,),
        "the server does not know itself whether it has the rows",
        ERROR_CODES,
    ),
)
"""What the same insert may not be answered with in a while, or what a pause helps against."""

TURNED_AWAY = FailureRow(
    "turned_away",
    "misconfigured",
    # UNKNOWN_USER, WRONG_PASSWORD, REQUIRED_PASSWORD, AUTHENTICATION_FAILED
    (192, 193, 194, 516),
    "the server does not let the user in",
    ERROR_CODES,
)

NOT_CONVERTED = FailureRow(
    "not_converted",
    "invalid",
    # ILLEGAL_COLUMN, NOT_IMPLEMENTED, TYPE_MISMATCH, CANNOT_CONVERT_TYPE
    (44, 48, 53, 70),
    "the server does not convert a type to that of its column",
)

CLICKHOUSE_FAILURES = FailureClasses(
    NO_ANSWER,
    FailureRow(
        "gateway_away",
        "unavailable",
        by_status(*LATER.codes, "5xx"),
        "what stands before the server has none, or asks to be tried later",
    ),
    *(each for each in PASSING if each.failure == "unavailable"),
    # SYSTEM_ERROR: no reason to pause, as it may be about this insert alone
    FailureRow(
        "system",
        "unavailable",
        (173, 198, 279, 425),
        "the system of the server has a fault",
        ERROR_CODES,
    ),
    FailureRow(
        "missing",
        "misconfigured",
        # NO_SUCH_COLUMN_IN_TABLE
        (16, UNKNOWN_TABLE, UNKNOWN_DATABASE),
        "there is no such column, table or database",
    ),
    # READONLY
    FailureRow("user_read_only", "misconfigured", (164,), "the user may only read"),
    TURNED_AWAY,
    FailureRow("denied", "misconfigured", (ACCESS_DENIED,), "the user lacks a right", ERROR_CODES),
    FailureRow(
        "stranger",
        "misconfigured",
        by_status(*NOT_LET_IN.codes, *NOTHING_THERE.codes, "3xx"),
        "somebody else answers, who lets nobody through, has nothing there, or points elsewhere",
    ),
    FailureRow(
        "unread_text",
        "invalid",
        # CANNOT_PARSE_TEXT, CANNOT_PARSE_INPUT_ASSERTION_FAILED, CANNOT_PARSE_DATE,
        # CANNOT_PARSE_DATETIME, INCORRECT_DATA, CANNOT_READ_ARRAY_FROM_TEXT, CANNOT_PARSE_UUID,
        # CANNOT_PARSE_BOOL, CANNOT_PARSE_IPV4, CANNOT_PARSE_IPV6, UNKNOWN_ELEMENT_OF_ENUM
        (6, 27, 38, 41, 117, 130, 376, 467, 675, 676, 691),
        "a text is none that the type of the column is written as",
    ),
    NOT_CONVERTED,
    FailureRow(
        "out_of_range",
        "invalid",
        # ARGUMENT_OUT_OF_BOUND, TOO_LARGE_STRING_SIZE, DECIMAL_OVERFLOW
        (69, 131, 407),
        "a value is too large for what the table does with it",
    ),
    # CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN
    FailureRow("null", "invalid", (349,), "a column that cannot be NULL gets no value"),
    # FUNCTION_THROW_IF_VALUE_IS_NON_ZERO, VIOLATED_CONSTRAINT
    FailureRow("constraint", "invalid", (395, 469), "a row violates a constraint of the table"),
    FailureRow(
        "too_many_partitions",
        "invalid",
        (TOO_MANY_PARTITIONS,),
        "the rows of the batch belong to more partitions than one insert may have",
    ),
    FailureRow("misfit", "invalid", (), "a value does not fit its column; nothing was sent"),
    CUT_OFF,
    *(each for each in PASSING if each.failure == "unclear"),
)

CHECKED_FIRST = frozenset(
    code for row in CLICKHOUSE_FAILURES.rows if row.failure == "invalid" for code in row.codes
)
"""What the server finds before it makes a part of any row, unless it is for a materialized view."""

OVERLOADED = frozenset(code for row in PASSING for code in row.codes)
PASSING_STATUSES = frozenset({429, 500, 502, 503, 504})
"""HTTP statuses of what stands before a server, or of one that does not say more, that open a pause."""
