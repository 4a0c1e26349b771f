"""A server whose graph is made over the API, saved, and started again from what was saved."""

from __future__ import annotations

import json
import resource
import signal
import socket
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.clients import HOST, PATIENCE
from tests.forked import run, serving
from tests.server import Server

POST = {"id": "größe / 1", "inputs": [{"type": "http"}], "outputs": [{"type": "stdout"}]}
BUS = {"id": "bus", "type": "nats", "urls": "nats://${USER_OF_BUS}:sesame@127.0.0.1:1"}
READS = {
    "id": "yes",
    "inputs": [{"type": "pipeline", "upstream": "größe / 1"}],
    "transforms": [
        {
            "type": "script",
            "source": {"type": "inline", "code": "// double\nmsg.n *= 2;\nemit(msg);\n"},
        }
    ],
}


def asked(server: Server, method: str, path: str, body: Any = None, status: int = 200) -> Any:
    answer = server.request(method, path, None if body is None else json.dumps(body).encode())
    assert answer.status == status, answer.body
    return json.loads(answer.body) if answer.body else None


def configs(server: Server) -> dict[str, Any]:
    return {each["id"]: each["config"] for each in asked(server, "GET", "/api/pipelines")}


@pytest.mark.parametrize("name", ["plant.yaml", pytest.param("plant.json", marks=pytest.mark.long)])
def test_what_was_saved_is_what_starts(tmp_path: Path, name: str) -> None:
    with serving(tmp_path) as server:
        asked(server, "POST", "/api/connections", BUS, 201)
        for config in (POST, READS):
            asked(server, "POST", "/api/pipelines", config, 201)
        asked(server, "PUT", "/api/layout", {"pipelines": {"yes": {"x": 1, "y": 2.5}}}, 204)
        before = asked(server, "GET", "/api/settings")
        saved = asked(server, "POST", "/api/config/save", {"name": name})
        after = asked(server, "GET", "/api/settings")
        ran, laid = configs(server), asked(server, "GET", "/api/layout")

    assert before == {
        "config_file": None,
        "save_directory": str(tmp_path),
        "unsaved_changes": True,
    }
    assert saved == {"path": str(tmp_path / name)}
    assert after == {**before, "config_file": name, "unsaved_changes": False}
    assert run(tmp_path, "check", name).returncode == 0
    with serving(tmp_path, tmp_path / name) as server:
        assert configs(server) == ran
        assert asked(server, "GET", "/api/layout") == laid
        assert asked(server, "GET", "/api/settings") == after
        assert asked(server, "GET", "/api/connections")["bus"]["urls"] == BUS["urls"]


def test_a_broken_layout_refuses_the_start(tmp_path: Path) -> None:
    (tmp_path / "plant.json").write_text("[]")
    (tmp_path / "plant.layout.json").write_text('{"pipelines": {"p": {"x": 1}}}')

    ended = run(tmp_path, "--config", "plant.json", "--listen", "127.0.0.1:0")

    assert ended.returncode == 1
    assert "plant.layout.json:1:21: pipelines.p.y: this key is required" in ended.stderr


def test_a_disk_that_takes_no_more_leaves_the_old_files_and_the_server_goes_on(
    tmp_path: Path,
) -> None:
    (tmp_path / "plant.json").write_text(json.dumps([POST]))
    with serving(tmp_path, tmp_path / "plant.json") as server:
        asked(server, "POST", "/api/pipelines", READS, 201)
        _, most = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (64, -1))
        refused = asked(server, "POST", "/api/config/save", {"name": "plant.json"}, 500)
        settings = asked(server, "GET", "/api/settings")
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (most, most))
        names = sorted(file.name for file in tmp_path.iterdir())
        asked(server, "POST", "/api/config/save", {"name": "plant.json"})

    assert refused["error"] == "'plant.json' cannot be written: file too large"
    assert settings["unsaved_changes"] is True
    assert names == ["plant.json"]
    assert len(json.loads((tmp_path / "plant.json").read_text())) == 2


@pytest.mark.long
def test_a_server_that_is_killed_while_it_saves_leaves_files_that_start(tmp_path: Path) -> None:
    many = [{**POST, "id": f"p{number}"} for number in range(300)]
    (tmp_path / "plant.json").write_text(json.dumps(many))
    body = b'{"name": "plant.json"}'
    request = b"POST /api/config/save HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s"
    with (
        serving(tmp_path, tmp_path / "plant.json") as server,
        socket.create_connection((HOST, server.port)) as peer,
    ):
        peer.sendall(request % (len(body), body))
        ends = monotonic() + PATIENCE
        while not [*tmp_path.glob(".headrace-*.tmp")] and monotonic() < ends:
            pass
        server.signal(signal.SIGKILL)
        server.ended()

    assert run(tmp_path, "check", "plant.json").returncode == 0
