"""Who asks for what where somebody is let in: every operation, every caller, and what the table says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.web.resources import ENDPOINTS
from tests.web.auth.people import (
    ADMIN,
    PASSWORDS,
    READER,
)

PUBLIC, READ, ADMINS = "public", "read", "admin"
LEVELS = {
    # As the specification has them.
    "listPipelines": READ,
    "createPipeline": ADMINS,
    "deletePipeline": ADMINS,
    "ingestMessages": PUBLIC,
    "getPipelineHistory": READ,
    "dryRunScript": ADMINS,
    "sampleInput": ADMINS,
    "dryRunPipeline": ADMINS,
    "listConnections": READ,
    "createConnection": ADMINS,
    "deleteConnection": ADMINS,
    "listStateBuckets": READ,
    "getStateBucket": READ,
    "getSettings": READ,
    "saveConfig": ADMINS,
    "revertConfig": ADMINS,
    "getLayout": READ,
    "replaceLayout": ADMINS,
    "streamEvents": READ,
    "whoAmI": PUBLIC,
    "login": PUBLIC,
    "tokenLogin": PUBLIC,
    "logout": PUBLIC,  # "read", and 204 whether or not there was a session
    "listComponents": PUBLIC,
    "getOpenApi": PUBLIC,
    "apiReference": PUBLIC,
    # Beyond it.
    "getRecentHistory": READ,
    "getServer": READ,
    "testConnection": ADMINS,
    "getConfigText": ADMINS,
    "listFailures": READ,
    "listStored": READ,
    "discardStored": ADMINS,
    "discardSetAside": ADMINS,
    "listDeadLetters": READ,
    "listPipelineDeadLetters": READ,
    "getDeadLetter": ADMINS,
    "deleteDeadLetters": ADMINS,
    "replayDeadLetters": ADMINS,
    "getReplay": READ,
    "stopReplay": ADMINS,
    "planRevert": READ,
    "checkConfig": ADMINS,
    "getPipeline": READ,
    "captureMessages": ADMINS,
    "exchangePipeline": ADMINS,
    "planExchange": ADMINS,
    "referenceAsset": PUBLIC,
    "consoleAsset": PUBLIC,
    "getRoot": PUBLIC,
    "getLiveness": PUBLIC,
    "getReadiness": PUBLIC,
    "getMetrics": READ,
}
SPECIFIED = 26
TOKENS = {READ: "of-dora", ADMINS: "of-carl"}
NAMES = {READ: READER, ADMINS: ADMIN}
SCRIPT = {"messages": [1], "source": {"type": "inline", "code": "emit(msg)"}}
FILED = {"id": "new", "type": "file", "root": "data"}
GOOD_LOGIN = {"username": READER, "password": PASSWORDS[READER]}
ASKED: Mapping[str, tuple[int, Any]] = {
    "listPipelines": (200, None),
    "createPipeline": (201, {"id": "new", "inputs": [{"type": "http"}]}),
    "deletePipeline": (204, None),
    "ingestMessages": (202, {"n": 1}),
    "getPipelineHistory": (200, None),
    "dryRunScript": (200, SCRIPT),
    "sampleInput": (200, {"input": {"type": "dummy", "duration": 1}, "timeout_ms": 0}),
    "dryRunPipeline": (200, {"messages": [1], "transforms": []}),
    "listConnections": (200, None),
    "createConnection": (201, FILED),
    "deleteConnection": (204, None),
    "listStateBuckets": (200, None),
    "getStateBucket": (200, None),
    "getSettings": (200, None),
    "saveConfig": (200, {"name": "saved.json"}),
    "revertConfig": (204, None),
    "getLayout": (200, None),
    "replaceLayout": (204, {"pipelines": {"p": {"x": 1, "y": 2, "width": 3}}}),
    "streamEvents": (200, None),
    "whoAmI": (200, None),
    "login": (200, GOOD_LOGIN),
    "tokenLogin": (200, {"token": TOKENS[READ]}),
    "logout": (204, None),
    "listComponents": (200, None),
    "getOpenApi": (200, None),
    "apiReference": (200, None),
    "getRoot": (200, None),
    "getRecentHistory": (200, None),
    "getServer": (200, None),
    "testConnection": (200, {"type": "file", "root": "data"}),
    "getConfigText": (200, None),
    "listFailures": (200, None),
    "listStored": (200, None),
    "discardStored": (404, None),
    "discardSetAside": (404, None),
    "listDeadLetters": (200, None),
    "listPipelineDeadLetters": (200, None),
    "getDeadLetter": (404, None),
    "deleteDeadLetters": (400, None),
    "replayDeadLetters": (409, {"filter": {}}),
    "getReplay": (200, None),
    "stopReplay": (404, None),
    "planRevert": (200, None),
    "checkConfig": (200, {"text": "[]"}),
    "getPipeline": (200, None),
    "captureMessages": (200, None),
    "exchangePipeline": (428, {"id": "p", "inputs": [{"type": "http"}]}),
    "planExchange": (200, {"id": "p", "inputs": [{"type": "http"}]}),
    "referenceAsset": (200, None),
    "consoleAsset": (200, None),
    "getLiveness": (200, None),
    "getReadiness": (200, None),
    "getMetrics": (200, None),
}
"""What each answers to somebody who may ask, and the body that it is asked with."""


NAMED = {
    "pipeline_id": "p",
    "connection_id": "disk",
    "bucket": "seen",
    "stored_id": "1",
    "letter_id": "1",
    "asset": "start.js",
}
OPEN, ANYBODY, NOBODY = "open", "anybody", "nobody"
WAYS = ("none", "basic", "bearer", "cookie")
COLUMNS = [
    *((ANYBODY, way) for way in WAYS),  # a server without accounts, whatever it is sent
    *((NOBODY, way) for way in WAYS),  # a credential that is worth nothing
    *((who, way) for who in (READ, ADMINS) for way in WAYS[1:]),
]
CELLS = [(endpoint, who, way) for endpoint in ENDPOINTS for who, way in COLUMNS]


def expected(operation: str, who: str) -> int:
    """Return the status of the table."""
    level = LEVELS[operation]
    if who == NOBODY and level != PUBLIC:
        return 401
    if who == READ and level == ADMINS:
        return 403
    return ASKED[operation][0]
