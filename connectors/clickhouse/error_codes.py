"""What ClickHouse answers when it says no: codes, names, and which of them pass by themselves.

Its sentences quote rows, queries and versions. In the text of a failure stand the code and its name,
and the column or constraint if one of ours is named; the sentence is for the log.

Source: https://github.com/ClickHouse/ClickHouse/blob/master/src/Common/ErrorCodes.cpp
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from headrace.connectors.network.refusal import MOST_SAID

CODE_HEADER = "X-ClickHouse-Exception-Code"

UNKNOWN_TABLE = 60
UNKNOWN_DATABASE = 81
ACCESS_DENIED = 497
NOT_CONVERTED = frozenset({44, 48, 53, 70})
"""Codes for a block whose types the server does not convert to those of the table: ILLEGAL_COLUMN,
NOT_IMPLEMENTED, TYPE_MISMATCH, CANNOT_CONVERT_TYPE."""

OVERLOADED = frozenset(
    {
        75,  # CANNOT_WRITE_TO_FILE_DESCRIPTOR: the disk
        159,  # TIMEOUT_EXCEEDED
        160,  # TOO_SLOW
        201,  # QUOTA_EXCEEDED
        202,  # TOO_MANY_SIMULTANEOUS_QUERIES
        209,  # SOCKET_TIMEOUT
        210,  # NETWORK_ERROR: between servers
        225,  # NO_ZOOKEEPER
        236,  # ABORTED: it shuts down
        241,  # MEMORY_LIMIT_EXCEEDED
        242,  # TABLE_IS_READ_ONLY: its replica has lost its keeper
        243,  # NOT_ENOUGH_SPACE
        252,  # TOO_MANY_PARTS
        285,  # TOO_FEW_LIVE_REPLICAS
        286,  # UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE
        319,  # UNKNOWN_STATUS_OF_INSERT
        394,  # QUERY_WAS_CANCELLED
        439,  # CANNOT_SCHEDULE_TASK
        745,  # SERVER_OVERLOADED
        999,  # KEEPER_EXCEPTION
    }
)
"""Codes that the same insert may not be answered with in a while, or that a pause helps against."""
NOT_LET_IN = frozenset({192, 193, 194, 516})
"""Codes for whoever does not get in: the user, its password."""
PASSING_STATUSES = frozenset({429, 500, 502, 503, 504})
"""HTTP statuses of what stands before a server, or of one that does not say more."""

_MOST_READ = 4 * MOST_SAID
"""Characters of a sentence, and of the end of an answer, that are looked at: rows may stand there."""

_MOST_DIGITS = 9  # of a code: what has more is none
_CODE = re.compile(r"Code: (\d+)\. ")
_SENTENCE = re.compile(r"(?:Code: \d+\. |DB::\w+: )+(.*)")
_NAME = re.compile(r"\(([A-Z][A-Z0-9_]{2,})\)\s*+(?:\(version .*\)\s*)?$")
_NOISE = re.compile(
    # Of a run of blanks from its beginning only: from each of them it would be quadratic.
    r"(?:[.:]|(?<!\s))\s*+(?:\b[Ii]n scope\b.*|: ?[Ww]hile (?:executing|processing|reading)\b.*"
    r"|: \(in file/uri .*|\(version .*|\([A-Z][A-Z0-9_]{2,}\))\s*$"
)
"""What stands behind a sentence: queries, the part of the server that speaks, its version."""
_TOO_MANY_AT_ONCE = "Too many partitions for single INSERT block"
_CONSTRAINT = re.compile(r"Constraint `([^`]+)`")
_COLUMN = re.compile(r"\b(?:[Cc]olumn|key|name:) [`'\"]?(\w+)\b")


@dataclass(eq=False)
class ErrorAnswer(Exception):
    """An answer that is no success: its HTTP status, and what ClickHouse says if it says anything."""

    status: int
    code: int | None
    name: str
    sentence: str

    @property
    def is_passing(self) -> bool:
        """Whether the answer may be another one in a while."""
        if self.code is None:
            return self.status in PASSING_STATUSES
        # The code of a table with too many parts is that of a batch for too many of them as well.
        return self.code in OVERLOADED and not self.sentence.startswith(_TOO_MANY_AT_ONCE)

    @property
    def title(self) -> str:
        """Code and name, or the HTTP status: never anything of a query or of its rows."""
        if self.code is None:
            return f"HTTP status {self.status}"
        return f"Code {self.code} {self.name}".rstrip()

    @property
    def words(self) -> str:
        """What is said, its title first."""
        return f"{self.title}: {self.sentence}" if self.sentence else self.title

    def signature(self, columns: Collection[str]) -> str:
        """Return the title in quotes, and the constraint or which of the columns it is about."""
        said = f"'{self.title}'"
        if found := _CONSTRAINT.match(self.sentence):
            return f"{said} of the constraint '{found[1]}'"
        named = self.column(columns)
        return said if named is None else f"{said} of the column '{named}'"

    def column(self, columns: Collection[str]) -> str | None:
        """Return which of the columns it is about, if it names one."""
        return next((each for each in _COLUMN.findall(self.sentence) if each in columns), None)


def answer(status: int, code: str | None, body: str) -> ErrorAnswer:
    """Return what an answer says; ``code`` is that of its header."""
    found = _CODE.search(body)
    number = code if code is not None and code.isdecimal() else found[1] if found else None
    if number is None or len(number) > _MOST_DIGITS:
        return ErrorAnswer(status, None, "", "")
    name = _NAME.search(body[-_MOST_READ:])
    sentence = _SENTENCE.search(body)  # the first line of it: then come rows, or advice
    said = sentence[1][:_MOST_READ] if sentence else ""
    while (less := _NOISE.sub("", said)) != said:
        said = less
    return ErrorAnswer(status, int(number), name[1] if name else "", said.strip().rstrip(".:"))
