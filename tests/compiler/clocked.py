"""Work for the tests of the clock."""

import asyncio
from datetime import UTC, datetime

from headrace.compiler.clock import Clock

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


HOUR = 3600.0


def here(**options):
    return Clock(asyncio.get_running_loop(), **options)


def work():
    """Keep a thread busy for some milliseconds."""
    return sum(range(300_000))
