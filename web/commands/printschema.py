"""What `headrace schema` prints: the JSON Schema of each file that is written by hand, for editors."""

from __future__ import annotations

import json
from collections.abc import Callable

from headrace.compiler.describe.editors import config_schema, connections_schema, record_schema
from headrace.compiler.describe.schema import Schema
from headrace.web.auth.settingsfile import ServerSettings
from headrace.web.files.reading import catalogue

FILES: dict[str, Callable[[], Schema]] = {
    "config": lambda: config_schema(catalogue()),
    "connections": lambda: connections_schema(catalogue()),
    "settings": lambda: record_schema(ServerSettings, "headrace settings"),
}
"""What makes the schema of a file, by what the file is."""


def printed(file: str) -> str:
    """Return the schema of one of `FILES` as text, the same each time."""
    return json.dumps(FILES[file](), indent=2, ensure_ascii=False)
