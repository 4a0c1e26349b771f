"""npm's `yaml-language-server`, asked as an editor asks it: what is wrong, what may be written here.

Source: https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

from tests.clients import PATIENCE, Gone
from tests.server import end_with_parent
from tests.services.node_packages import modules
from tests.services.programs import program

SETTINGS = {"yaml": {"validate": True, "completion": True, "schemaStore": {"enable": False}}}

_FAULTS = "textDocument/publishDiagnostics"


class YamlEditor:
    """A session with the server, over its standard streams; each text is a document of its own."""

    def __init__(self, process: subprocess.Popen[bytes], schema: Path) -> None:
        self._process = process
        self._schema = schema
        self._sent = self._opened = 0
        self._notices: list[dict[str, Any]] = []
        self._ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        self._tell("initialized", {})
        self._tell("workspace/didChangeConfiguration", {"settings": SETTINGS})

    def faults(self, text: str) -> list[tuple[int, str]]:
        """Return what is wrong with a text: line, from 1, and message."""
        return self._faults(self._open(text))

    def offered(self, text: str) -> dict[str, str]:
        """Return what may stand where `|` is in a text: words, each with what is said of it."""
        before, _, after = text.partition("|")
        uri = self._open(before + after)
        self._faults(uri)
        lines = before.split("\n")
        place = {
            "line": len(lines),
            "character": len(lines[-1]),
        }  # below the line that names the schema
        told = self._ask(
            "textDocument/completion", {"textDocument": {"uri": uri}, "position": place}
        )
        return {each["label"]: each.get("documentation", "") for each in told["items"]}

    def _open(self, text: str) -> str:
        self._opened += 1
        uri = f"file:///{self._opened}.yaml"
        named = f"# yaml-language-server: $schema={self._schema.as_uri()}\n{text}"
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": named}
        self._tell("textDocument/didOpen", {"textDocument": document})
        return uri

    def _faults(self, uri: str) -> list[tuple[int, str]]:
        said: dict[str, Any] = {}
        while said.get("method") != _FAULTS or said["params"]["uri"] != uri:
            said = self._notices.pop(0) if self._notices else self._read()
        faults = said["params"]["diagnostics"]
        return [(each["range"]["start"]["line"], each["message"]) for each in faults]

    def _ask(self, method: str, params: Any) -> Any:
        self._sent += 1
        self._write({"id": self._sent, "method": method, "params": params})
        while (said := self._read()).get("id") != self._sent or "method" in said:
            self._notices.append(said)
        return said["result"]

    def _tell(self, method: str, params: Any) -> None:
        self._write({"method": method, "params": params})

    def _write(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        """Return the next message that is no question of the server's own; those are answered."""
        assert self._process.stdout is not None
        while True:
            length = 0
            while (line := self._process.stdout.readline().strip()) or not length:
                if not line:
                    raise Gone("the language server has ended")
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            said: dict[str, Any] = json.loads(self._process.stdout.read(length))
            if "method" not in said or "id" not in said:
                return said
            asked = (said.get("params") or {}).get("items", ())
            self._write({"id": said["id"], "result": [SETTINGS["yaml"] for _ in asked]})


@contextmanager
def editing(schema: Path) -> Iterator[YamlEditor]:
    """Start the server for files of one schema; it ends with the block, or when it answers too late."""
    server = modules("yaml-language-server") / ".bin" / "yaml-language-server"
    process = subprocess.Popen(
        [program("node", "install Node.js 18 or newer"), server, "--stdio"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=end_with_parent,
    )
    limit = Timer(3 * PATIENCE, process.kill)
    limit.start()
    try:
        yield YamlEditor(process, schema)
    finally:
        limit.cancel()
        process.kill()
        process.communicate()
