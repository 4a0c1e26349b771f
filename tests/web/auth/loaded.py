"""Settings files for the tests of loading."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headrace.authoring.configfiles import catalogue
from headrace.web.files.reading import Files, Loaded, load

KNOWN = catalogue()


JWT = {"type": "jwt", "jwks_url": "https://id.example/keys", "issuer": "https://id.example/"}


def read(folder: Path, text: str, name: str = "server.yaml", secrets: Any = None) -> Loaded:
    """Read a settings file for a start."""
    (folder / name).write_text(text)
    filed = None
    if secrets is not None:
        filed = folder / "secrets.json"
        filed.write_text(json.dumps(secrets))
    return load(Files(secrets=filed, settings=folder / name), KNOWN, is_starting=True)


def basic(**users: Any) -> dict[str, Any]:
    return {"type": "basic", "users": users}
