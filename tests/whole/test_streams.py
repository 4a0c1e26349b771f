"""Standard streams that are closed, full or left hold nobody up."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.clients import HOST, Client
from tests.server import COMMAND, end_with_parent, environment, run, serving, written

PATIENCE = 30.0
PRINTING = [{"id": "p", "inputs": [{"type": "http"}], "outputs": [{"type": "stdout"}]}]
FIELDS = [f"field{n}" for n in range(100)]
REMARKABLE = {
    "inputs": [{"type": "dummy", "duration": 3600}],
    "transforms": [
        {
            "type": "map",
            "on_missing": "omit",
            "mappings": [{"type": "coalesce", "from": FIELDS, "as": "a"}],
        }
    ],
}
"""A pipeline whose creation logs a hundred warnings: some 15 kB."""


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the command with nobody reading its standard error."""
    process = subprocess.Popen(
        [str(COMMAND), *arguments],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=end_with_parent,
    )
    assert process.stderr is not None
    try:
        yield process
    finally:
        process.stderr.close()
        process.kill()
        process.wait()


def announced(process: subprocess.Popen[bytes]) -> int:
    """Read where it serves, and nothing after."""
    assert process.stderr is not None
    found = re.search(rb":(\d+), try:", process.stderr.readline())
    assert found is not None
    return int(found[1])


def created(port: int) -> int:
    """Create a pipeline that there is much to say of, and return the status."""
    client = Client(port)
    try:
        return client.request("POST", "/api/pipelines", json.dumps(REMARKABLE).encode()).status
    finally:
        client.close()


def ended(process: subprocess.Popen[bytes]) -> int:
    process.send_signal(signal.SIGTERM)
    return process.wait(PATIENCE)


def test_a_log_that_nobody_reads_holds_nobody_up(tmp_path: Path) -> None:
    with started(tmp_path, "serve", "--listen", f"{HOST}:0") as process:
        port = announced(process)

        assert [created(port) for _ in range(10)] == [201] * 10
        assert ended(process) == 0


def test_a_log_whose_reader_has_left_does_not_end_the_server(tmp_path: Path) -> None:
    with started(tmp_path, "serve", "--listen", f"{HOST}:0") as process:
        port = announced(process)
        assert process.stderr is not None
        process.stderr.close()

        assert created(port) == 201
        assert ended(process) == 0


@pytest.mark.long
def test_it_starts_although_nobody_is_told(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    with started(tmp_path, "serve", "--listen", f"{HOST}:{port}") as process:
        assert process.stderr is not None
        process.stderr.close()

        assert answering(process, port)
        assert ended(process) == 0


def answering(process: subprocess.Popen[bytes], port: int) -> bool:
    """Wait until it takes connections or has ended; say which."""
    while process.poll() is None:
        try:
            socket.create_connection((HOST, port)).close()
        except ConnectionRefusedError:
            continue
        return True
    return False


def closed(*numbers: int) -> Callable[[], None]:
    """Return what closes some of a process's standard streams."""

    def close() -> None:
        for number in numbers:
            os.close(number)

    return close


def test_without_a_standard_output_printing_fails_and_the_rest_goes_on(tmp_path: Path) -> None:
    with serving(tmp_path, PRINTING, setup=closed(0, 1)) as server:
        assert server.post("p", {"a": 1}).status == 202

        server.err.find(re.compile("writing to standard output: bad file descriptor"))
        assert server.stop() == 0


@pytest.mark.long
@pytest.mark.parametrize("numbers", [(1,), (2,), (0, 1, 2)])
def test_a_check_ends_as_ever_with_streams_closed(tmp_path: Path, numbers: tuple[int, ...]) -> None:
    file = written(tmp_path, [{"id": "p"}])

    ended = subprocess.run(
        [str(COMMAND), "check", str(file)],
        capture_output=True,
        preexec_fn=closed(*numbers),
        check=False,
        timeout=PATIENCE,
    )

    assert ended.returncode == 1
    assert b"Traceback" not in ended.stderr
    assert (b"inputs: this key is required" in ended.stdout) is (1 not in numbers)


@pytest.mark.long
def test_without_a_standard_input_there_are_no_lines_to_run(tmp_path: Path) -> None:
    file = written(tmp_path, [{"id": "p", "inputs": [{"type": "http"}]}])

    ended = subprocess.run(
        [str(COMMAND), "run", str(file)],
        capture_output=True,
        preexec_fn=closed(0),
        check=False,
        timeout=PATIENCE,
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_a_refusal_without_a_standard_error_is_not_printed_for_the_pipelines(
    tmp_path: Path,
) -> None:
    file = written(tmp_path, [{"id": "p"}])

    ended = subprocess.run(
        [str(COMMAND), "serve", "--config", str(file)],
        capture_output=True,
        preexec_fn=closed(2),
        check=False,
        timeout=PATIENCE,
    )

    assert (ended.returncode, ended.stdout) == (1, b"")


def test_what_cannot_be_printed_is_said(tmp_path: Path) -> None:
    file = written(tmp_path, [{"id": "p"}])

    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [str(COMMAND), "check", str(file)],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=PATIENCE,
        )

    assert (ended.returncode, ended.stderr) == (
        1,
        b"Error: cannot be printed: No space left on device\n",
    )


def test_a_pipe_that_nobody_writes_to_is_an_empty_config(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")

    checked = run(tmp_path, "check", "pipe.yaml")

    assert (checked.returncode, checked.stdout) == (
        1,
        "pipe.yaml:1:1: the document is empty\n",
    )


def test_a_host_that_no_host_can_be_called_is_refused(tmp_path: Path) -> None:
    refused = run(tmp_path, "serve", "--listen", f"{'a' * 64}:80")

    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        f"headrace: cannot listen on {'a' * 64}:80: the host name cannot be resolved\n"
    )
