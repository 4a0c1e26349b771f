"""A sample under way when the server is told to end."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.forked import serving
from tests.stopwatch import Stopwatch

TICKING = [{"id": "t", "inputs": [{"type": "dummy", "duration": 3600}]}]
NOWHERE = {"id": "cache", "type": "redis", "url": "redis://ann:open-sesame@127.0.0.1:1"}
ASKED = {
    "input": {"type": "redis", "connection": "cache", "channel": "c"},
    "timeout_ms": 30000,
}
PROMPT = 4.0
"""Seconds for an end that waits for nobody; idle machines take a tenth of it."""


@pytest.mark.long
def test_it_is_answered_and_holds_nobody_up(tmp_path: Path) -> None:
    with serving(tmp_path, TICKING) as server, ThreadPoolExecutor(1) as clients:
        filed = server.request("POST", "/api/connections", json.dumps(NOWHERE).encode())
        assert filed.status == 201
        asking = clients.submit(
            server.request, "POST", "/api/inputs/sample", json.dumps(ASKED).encode()
        )
        server.err.find(re.compile(r"pipeline 'sample-[a-z]+-[a-z]+-[a-z]+' inputs: "))

        watch = Stopwatch()
        server.signal()
        answer = asking.result()
        assert server.ended() == 0

        assert watch.seconds < PROMPT
        assert answer.value == {
            "outcome": "failed",
            "stage": "read",
            "message": "127.0.0.1:1 does not answer: connection refused",
            "notes": ["the server is shutting down: the sample ended early"],
        }
        assert "open-sesame" not in "\n".join(server.err.all())
