"""The log: one line an entry on standard error, because standard output is the pipelines'.

2026-03-01T08:00:00.000+00:00 WARNING pipeline 'line-1' transforms[0]: dropped a message ...
"""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime


class OneLine(logging.Formatter):
    """Time, level, message. Only a traceback takes further lines."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """Return when the entry was made, in UTC."""
        return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the entry with its line breaks folded: a payload must not forge one."""
        record.message = " ".join(record.message.splitlines())
        return super().formatMessage(record)


def configure(*, is_debug: bool) -> None:
    """Send everything from level INFO on, or DEBUG, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("headrace").setLevel(logging.DEBUG if is_debug else logging.INFO)
    # Its notices are about itself, and some can be had by anybody who sends nonsense.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
