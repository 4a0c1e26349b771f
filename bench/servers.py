"""Processes: the installed command, the limits, the client. Each ends with the block it is for."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from bench.load import HOST, Outcome, Plan
from bench.measuring import cores, cpu_of

COMMAND = Path(sys.executable).with_name("headrace")
READY_SECONDS = 20.0
ENDING_SECONDS = 20.0
ANSWER_SECONDS = 30.0


class Server:
    """A server process on a port of its own, pinned to the core of what is measured."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: IO[bytes]) -> None:
        self._process = process
        self._log = log
        self.port = port

    @property
    def cpu(self) -> float:
        """CPU seconds it has taken."""
        return cpu_of(self._process.pid)

    @property
    def rss(self) -> int:
        """Bytes of memory that are its own at the moment."""
        told = Path(f"/proc/{self._process.pid}/statm").read_text().split()
        return int(told[1]) * os.sysconf("SC_PAGESIZE")

    def get(self, path: str) -> tuple[int, bytes]:
        """Ask for something."""
        status, _, content = self.ask("GET", path)
        return status, content

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Mapping[str, str], bytes]:
        """Send a request, with a body as JSON if it has one; return status, headers and content."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=ANSWER_SECONDS)
        try:
            given = {} if body is None else {"Content-Type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), given)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def wait_until_ready(self) -> None:
        """Wait until it says that it is, or, for an app that says nothing, until it can be reached.

        Raises:
            RuntimeError: it ended instead, or does not come up.
        """
        until = time.monotonic() + READY_SECONDS
        while self._process.poll() is None and time.monotonic() < until:
            with suppress(OSError):
                if self.get("/readyz")[0] != 503:
                    return
            time.sleep(0.02)
        self._log.seek(0)
        raise RuntimeError(f"the server does not come up: {self._log.read().decode()}")


@contextmanager
def headrace(
    config: Any, folder: Path, connections: Any = None, options: Sequence[str] = ()
) -> Iterator[Server]:
    """Run the installed command on a config, and connections if it has any."""
    file = folder / f"config-{len(list(folder.iterdir()))}.json"
    file.write_text(json.dumps(config))
    if connections is not None:
        file.with_suffix(".connections.json").write_text(json.dumps(connections))
    port = _free_port()
    command = [str(COMMAND), "serve", "--config", str(file), "--listen", f"{HOST}:{port}"]
    command += options
    with _running(command, port) as server:
        yield server


@contextmanager
def bare(kind: str) -> Iterator[Server]:
    """Run the bare protocol."""
    with limit("bench.bareprotocol", kind) as server:
        yield server


@contextmanager
def limit(module: str, *arguments: object) -> Iterator[Server]:
    """Run a module that serves on the port it is given first."""
    port = _free_port()
    with _running([sys.executable, "-m", module, *map(str, [port, *arguments])], port) as server:
        yield server


def load(plan: Plan) -> Outcome:
    """Run the client on the other core until it is through."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.load", json.dumps(asdict(plan))],
        stdout=subprocess.PIPE,
        start_new_session=True,
        cwd=root(),
        preexec_fn=lambda: os.sched_setaffinity(0, {cores()[1]}),
    )
    told, _ = _ended(process, plan.seconds + 60)
    return Outcome(**json.loads(told))


@contextmanager
def _running(command: Sequence[str], port: int) -> Iterator[Server]:
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
            cwd=root(),
            preexec_fn=lambda: os.sched_setaffinity(0, {cores()[0]}),
        )
        try:
            server = Server(process, port, log)
            server.wait_until_ready()
            yield server
        finally:
            process.terminate()
            _ended(process, ENDING_SECONDS)


def _ended(process: subprocess.Popen[bytes], seconds: float) -> tuple[bytes, bytes]:
    """Wait for the end of a process, and end it where it does not."""
    try:
        return process.communicate(timeout=seconds)
    except BaseException:
        process.kill()
        process.wait()
        raise


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def root() -> Path:
    """Return the folder from which modules of this one are run."""
    return Path(__file__).parent.parent
