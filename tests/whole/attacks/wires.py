"""What no client sends, byte by byte, and all that comes back."""

from __future__ import annotations

import re
import socket

from tests.clients import HOST, PATIENCE

_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")


def told(port: int, *pieces: bytes) -> bytes:
    """Send pieces, and return everything that the server says until it closes the connection."""
    said = b""
    with socket.create_connection((HOST, port), PATIENCE) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
            while received := connection.recv(65536):
                said += received
        except (BrokenPipeError, ConnectionResetError):
            pass  # it was closed while there was more to send
    return said


def statuses(said: bytes) -> list[int]:
    """Return the statuses of the answers in what a server has said."""
    return [int(status) for status in _STATUS.findall(said)]
