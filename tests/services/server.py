"""A real server as a process: started on a free port, asked, stopped, killed, started again.

    with Redis(tmp_path) as server:
        connect(server.url)
        server.kill()
        server.restart()

Each server has a session of its own and ends with the test run, however that ends. Nothing here
sleeps: a start waits for the line in which the server says that it is ready, then asks it.
"""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import ssl
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from tests.clients import HOST, PATIENCE, Gone
from tests.server import Lines, end_with_parent
from tests.services.authority import Authority
from tests.services.halting import halted

# Below the ports that systems give to whoever connects: while a server is down, nobody who tries
# to reach it is handed its port, and so it finds it free again.
_PORTS = range(20_000, 32_000)

# The system ends a child with the thread that started it, not with the process. So one thread
# starts all of them and lives as long as the process; whoever calls `start` may be any other.
_starter = ThreadPoolExecutor(1, "services")


class Service:
    """A server in a directory of its own, which keeps its data over restarts.

    ``start``, ``stop`` and ``restart`` block: where an event loop has to go on meanwhile, call them
    in a thread (`asyncio.to_thread`).
    """

    ready: ClassVar[str]
    """What the server prints when it is ready."""
    patience: ClassVar[float] = PATIENCE
    """Seconds that a start or a stop may take."""
    host = HOST

    def __init__(
        self,
        folder: Path,
        *,
        tls: Authority | None = None,
        mutual: bool = False,
        extra: Sequence[str] = (),
    ) -> None:
        """Choose a port; nothing is written or started yet.

        ``tls`` says who signs the server's certificate, ``mutual`` that a client needs one as well
        by the same authority. ``extra`` are lines for the end of the server's config.
        """
        self.folder = folder
        self.tls, self.mutual, self.extra = tls, mutual, extra
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._lives: list[Lines] = []

    def command(self) -> Sequence[str | Path]:
        """Return what starts the server. Raises `Missing` on a machine that lacks it."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Write what the server reads, before it is started for the first time."""
        raise NotImplementedError

    def answers(self) -> bool:
        """Ask the server for something, in its protocol, and say whether it answers."""
        raise NotImplementedError

    @property
    def address(self) -> str:
        """Host and port."""
        return f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """What a client connects to."""
        return self.address

    @property
    def pid(self) -> int:
        """The number of the process."""
        assert self._process is not None, f"the server at {self.address} was never started"
        return self._process.pid

    def halted(self) -> AbstractContextManager[None]:
        """Have it do nothing for as long as a block lasts; what is sent to it waits in the system."""
        assert self.is_running, f"the server at {self.address} does not run"
        return halted(self.pid)

    @property
    def is_running(self) -> bool:
        """Whether there is a process."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        """Start it and return when it answers. Raises `Gone` with its log if it does not."""
        assert not self.is_running, f"the server at {self.address} runs already"
        command = self.command()
        if not self._lives:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.prepare()
        self._process = _starter.submit(_started, command, self.folder).result()
        assert self._process.stdout is not None
        self._lives.append(Lines(self._process.stdout))
        try:
            self._wait_until_ready()
        except BaseException as cause:
            self.kill()
            cause.add_note(self.log())
            raise
        return self

    def stop(self) -> None:
        """End it in order; one that does not end in time is killed, and that is an error."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(self.patience)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Gone(f"the server at {self.address} did not stop: {self.log()}") from None
        self._lives[-1].all()

    def kill(self) -> None:
        """End it as a power failure would."""
        if self._process is None:
            return
        if self.is_running:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._lives[-1].all()

    def restart(self) -> Self:
        """Start it again with its data on its port; stop it in order before if it runs."""
        self.stop()
        return self.start()

    def log(self) -> str:
        """Return what it has printed in all its lives."""
        return "\n".join(str(lines) for lines in self._lives)

    def talk(self, said: bytes, *, tls: bool = False) -> bytes:
        """Open a connection, say something and return the beginning of what is answered."""
        with socket.create_connection((self.host, self.port), PATIENCE) as plain:
            if not tls:
                return _asked(plain, said)
            with self.trusting().wrap_socket(plain, server_hostname=self.host) as secret:
                return _asked(secret, said)

    def trusting(self) -> ssl.SSLContext:
        """Return a client's context that trusts the server and is trusted by it."""
        assert self.tls is not None
        context = ssl.create_default_context(cafile=self.tls.ca_file)
        context.load_cert_chain(self.tls.client_cert_file, self.tls.client_key_file)
        return context

    def _wait_until_ready(self) -> None:
        self._lives[-1].find(re.compile(re.escape(self.ready)), self.patience)
        if not self.answers():
            raise Gone(f"the server at {self.address} is ready and does not answer")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, cause: BaseException | None, _: TracebackType | None
    ) -> None:
        self.kill()
        if cause is not None:
            cause.add_note(f"--- the server at {self.address}\n{self.log()[-20_000:]}")


def free_port(*besides: int) -> int:
    """Return a port that nobody listens on or uses; none of those that are meant for something already."""
    while True:
        port = random.SystemRandom().choice(_PORTS)
        if port in besides:
            continue
        with socket.socket() as probe, suppress(OSError):
            probe.bind((HOST, port))
            return port


def _started(command: Sequence[str | Path], folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=end_with_parent,
    )


def _asked(connection: socket.socket, said: bytes) -> bytes:
    connection.sendall(said)
    return connection.recv(4096)
