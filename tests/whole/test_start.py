"""The installed command comes up, says where it is and what to try, and that works."""

from __future__ import annotations

import json
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests import forked
from tests.clients import HOST, Answer
from tests.server import COMMAND, Server, environment, run, serving, settled
from tests.stopwatch import Stopwatch

HELLO = Path(__file__).parents[2] / "specs" / "hello" / "config.yaml"

LINE = [{"id": "line 1", "inputs": [{"type": "http"}], "outputs": [{"type": "stdout"}]}]
TICKING = [{"id": "t", "inputs": [{"type": "dummy", "duration": 3600}]}]

READY_SECONDS = 3.0
"""The promise is 1 s on two idle cores; a machine that runs other tests is given longer."""
CHECKED_SECONDS = 2.0
"""The promise is 0.5 s."""


def announced(server: Server) -> list[str]:
    """Return the commands that a server says to try."""
    _, *commands = server.err.wait(3)[:3]
    return [command.strip() for command in commands]


def tried(server: Server, command: str) -> Answer:
    """Do what a curl command line says."""
    curl, *arguments = shlex.split(command)
    assert curl == "curl"
    url, body = urlsplit(arguments.pop()), None
    assert (url.hostname, url.port) == (HOST, server.port)
    if arguments:
        option, body = arguments
        assert option == "-d"
    return server.request("POST" if body else "GET", url.path, body.encode() if body else None)


@pytest.mark.parametrize("config", [HELLO, LINE, None], ids=["hello", "http", "nothing"])
def test_it_is_ready_soon_after_it_was_started(tmp_path: Path, config: object) -> None:
    with serving(tmp_path, config) as server:
        answer, took = server.get("/readyz"), server.seconds

    assert (answer.status, answer.value) == (200, {"status": "ready"})
    assert took < READY_SECONDS


def test_it_prints_its_address_and_two_things_to_try(tmp_path: Path) -> None:
    with serving(tmp_path, HELLO) as server:
        first, *commands = server.err.wait(3)
        url = f"http://{HOST}:{server.port}"

    assert first == f"headrace runs 1 pipeline at {url}, try:"
    assert commands == [f"  curl -N {url}/events", f"  curl {url}/api/pipelines"]


def test_what_it_says_to_try_works(tmp_path: Path) -> None:
    with forked.serving(tmp_path, TICKING) as server:
        stream, listing = announced(server)
        assert stream.endswith("/events")
        server.events()

        assert [pipeline["id"] for pipeline in tried(server, listing).value] == ["t"]


def test_where_somebody_may_post_it_says_how(tmp_path: Path) -> None:
    with forked.serving(tmp_path, LINE) as server:
        _, post = announced(server)

        assert tried(server, post).value == {"accepted": 1}
        assert '"pipeline":"line 1","count":1,"batch":[{"value":42}]' in server.out.wait(1)[0]


def test_a_credential_is_not_asked_of_whoever_tries(tmp_path: Path) -> None:
    (tmp_path / "secrets.json").write_text('{"DOOR": "open sesame"}')
    door = {"type": "http", "auth": {"type": "bearer", "token": "${DOOR}"}}
    with forked.serving(
        tmp_path, [{"id": "p", "inputs": [door]}], "--secrets", "secrets.json"
    ) as server:
        _, listing = announced(server)

        assert tried(server, listing).status == 200
        assert "sesame" not in str(server.err)


def test_where_people_sign_in_what_it_says_to_try_works_as_well(tmp_path: Path) -> None:
    users = {"ann": {"password": "correct horse", "role": "admin"}}
    settings = settled(tmp_path, auth={"type": "basic", "users": users})
    with forked.serving(tmp_path, LINE, *settings) as server:
        post, root = announced(server)

        assert tried(server, post).status == 202
        assert b"/api/reference" in tried(server, root).body


def test_the_established_form_names_no_command(tmp_path: Path) -> None:
    with serving(tmp_path, TICKING, command=()) as server:
        assert [each["id"] for each in server.get("/api/pipelines").value] == ["t"]


def test_standard_output_belongs_to_the_pipelines(tmp_path: Path) -> None:
    with serving(tmp_path, TICKING) as server:
        assert server.stop() == 0

        assert server.out.all() == []


def test_an_address_in_use_is_refused(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as taken:
        address = f"{HOST}:{taken.getsockname()[1]}"

        ended = run(tmp_path, "serve", "--listen", address)

    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"headrace: cannot listen on {address}: Address already in use\n"


def test_the_version_is_told_and_those_of_the_tables_of_zones_and_of_sqlite(tmp_path: Path) -> None:
    ended = run(tmp_path, "--version")

    assert ended.returncode == 0
    assert re.fullmatch(
        r"headrace \d+\.\d+\.\d+\nzones (\S+) of \S.*\nSQLite \d+\.\d+\.\d+\n", ended.stdout
    )


def test_ten_pipelines_are_checked_in_no_time(tmp_path: Path) -> None:
    ten = [{**LINE[0], "id": f"line {number}"} for number in range(10)]
    (tmp_path / "ten.json").write_text(json.dumps(ten))
    watch = Stopwatch()

    ended = run(tmp_path, "check", "ten.json")

    assert ended.returncode == 0
    assert watch.seconds < CHECKED_SECONDS


def imported(folder: Path, arguments: Sequence[str]) -> set[str]:
    """Return the modules that a command imports."""
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", str(COMMAND), *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0
    return {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}


def test_checking_loads_neither_server_nor_driver_nor_engine(tmp_path: Path) -> None:
    modules = imported(tmp_path, ["check", str(HELLO)])

    assert "headrace.operators.aggregations" in modules
    assert modules & {"aiohttp", "falcon", "uvicorn", "uvloop", "reactivex", "rich"} == set()
