"""How much memory a server uses."""

from __future__ import annotations

import re
from pathlib import Path

from tests.server import Server

MIB = 1 << 20


def resident(server: Server) -> int:
    """Return the bytes that the process has in memory now."""
    return _bytes(server, "VmRSS")


def peak(server: Server) -> int:
    """Return the most that it has ever had there."""
    return _bytes(server, "VmHWM")


def _bytes(server: Server, figure: str) -> int:
    told = Path(f"/proc/{server.process.pid}/status").read_text()
    found = re.search(rf"{figure}:\s+(\d+) kB", told)
    assert found is not None
    return int(found[1]) * 1024
