"""The command as a process that need not import anything: a copy of one that has imported everything.

    from tests.forked import run, serving

are used as those of `tests/server.py`, whose servers and commands these are in all else: a process each,
with a session, streams, an environment and a working directory of their own. Importing is most of what a
start takes of a processor, and a hundred tests start one. Those whose subject is the start, the memory or
what happens under load start the installed command.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import IO

from tests import server
from tests.clients import PATIENCE, Gone

_MOST_BYTES = 1 << 17
"""Of one request: arguments and environment."""
_LINE = 16
"""Bytes in which the number of a process is told, and later how it ended."""
IS_POSSIBLE = hasattr(os, "pidfd_open")
"""Where it is not, commands are started as those of `tests/server.py` are."""


class Forked:
    """What `subprocess.Popen` is to whoever watches a process, of one that somebody else has forked."""

    def __init__(self, arguments: Sequence[str], folder: Path, given: bytes = b"") -> None:
        """Start it; ``given`` is what it finds on its standard input, if it reads that."""
        self.args = arguments
        self.returncode: int | None = None
        ours: list[int] = []
        theirs: list[int] = []
        for is_read_by_it in (True, False, False, False):
            read, write = os.pipe()
            theirs.append(read if is_read_by_it else write)
            ours.append(write if is_read_by_it else read)
        asked = {
            "arguments": [str(each) for each in arguments],
            "folder": str(folder),
            "environment": server.environment(),
        }
        try:
            socket.send_fds(_original(), [json.dumps(asked).encode()], theirs)
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        with os.fdopen(ours[0], "wb") as stdin:
            stdin.write(given)
        self.stdout: IO[bytes] = os.fdopen(ours[1], "rb")
        self.stderr: IO[bytes] = os.fdopen(ours[2], "rb")
        self._told: IO[bytes] = os.fdopen(ours[3], "rb", buffering=0)
        self._lock = threading.Lock()
        self.pid = self._number()

    def wait(self, timeout: float | None = None) -> int:
        """Return how it has ended: as `Popen` says it."""
        with self._lock:
            if self.returncode is None:
                seconds = None if timeout is None else max(0.0, timeout)
                if not select.select([self._told], [], [], seconds)[0]:
                    raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
                with self._told:
                    self.returncode = self._number()
            return self.returncode

    def poll(self) -> int | None:
        """Return how it has ended, if it has."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)

    def _number(self) -> int:
        """Return what is told next: the number of the process, and in the end how it ended."""
        told = self._told.read(_LINE)
        if not told:
            raise Gone("the process that is copied has ended")
        return int(told)


def _started(arguments: Sequence[str], folder: Path, setup: Callable[[], None]) -> server.Process:
    """Fork a server; what is to happen in a process before it imports anything needs a real start."""
    if setup is not server.nothing or not IS_POSSIBLE:
        return server.started(arguments, folder, setup)
    return Forked(arguments, folder)


def _ended(
    arguments: Sequence[str], folder: Path, given: str | None
) -> subprocess.CompletedProcess[str]:
    if not IS_POSSIBLE:
        return server.executed(arguments, folder, given)
    process = Forked(arguments, folder, (given or "").encode())
    with ThreadPoolExecutor(2) as readers:
        out, err = (readers.submit(_text, each) for each in (process.stdout, process.stderr))
        try:
            code = process.wait(PATIENCE)
        except BaseException:
            process.kill()
            process.wait()
            raise
        return subprocess.CompletedProcess(arguments, code, out.result(), err.result())


def _text(stream: IO[bytes]) -> str:
    with stream:
        return stream.read().decode()


serving = partial(server.serving, start=_started)
run = partial(server.run, execute=_ended)


@cache
def _original() -> socket.socket:
    """Start the process that is copied, and return the socket that it is asked on."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for each in (ours, theirs):
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST_BYTES)
    # The system ends a child with the thread that started it: this one lives as long as the process.
    with theirs:
        original = _starter.submit(
            subprocess.Popen,
            [sys.executable, "-m", "tests.forked", str(theirs.fileno())],
            cwd=Path(__file__).parents[1],
            env=server.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            preexec_fn=server.end_with_parent,
        ).result()

    def end() -> None:
        ours.close()
        original.wait(PATIENCE)

    atexit.register(end)
    return ours


_starter = ThreadPoolExecutor(1, "forked")


def _import() -> None:
    """Import what a start imports."""
    for module in ("compiler.text.yamlsource", "web.commands.check", "web.commands.serve"):
        import_module(f"headrace.{module}")
    reading = import_module("headrace.authoring.configfiles")
    reading.catalogue()


def _fork_for(asking: socket.socket) -> None:
    """Fork for whoever asks, until nobody can; in each copy, return when it is to be the command."""
    running: dict[int, tuple[int, int]] = {}
    """The number of each copy and where its end is told, by the descriptor that says that it ended."""
    while True:
        watched = select.poll()
        for descriptor in (asking.fileno(), *running):
            watched.register(descriptor, select.POLLIN)
        for descriptor, _ in watched.poll():
            if descriptor in running:
                number, told = running.pop(descriptor)
                _, status = os.waitpid(number, 0)
                os.write(told, b"%-*d" % (_LINE, os.waitstatus_to_exitcode(status)))
                os.close(told)
                os.close(descriptor)
                continue
            request, descriptors, _, _ = socket.recv_fds(asking, _MOST_BYTES, 4)
            if not request:
                os._exit(0)
            number = os.fork()
            if number == 0:
                asking.detach()
                _become(json.loads(request), descriptors)
                return
            for stream in descriptors[:3]:
                os.close(stream)
            running[os.pidfd_open(number)] = number, descriptors[3]
            os.write(descriptors[3], b"%-*d" % (_LINE, number))


def _become(asked: dict[str, object], descriptors: Sequence[int]) -> None:
    """Have this process stand where the command would."""
    os.setsid()
    server.end_with_parent()
    for number, stream in enumerate(descriptors[:3]):
        os.dup2(stream, number)
    os.closerange(3, 1 << 12)
    os.chdir(str(asked["folder"]))
    os.environ.clear()
    os.environ.update(asked["environment"])  # type: ignore[call-overload]
    sys.argv = list(asked["arguments"])  # type: ignore[call-overload]
    sys.path[0] = str(Path(sys.argv[0]).parent)


if __name__ == "__main__":
    from headrace.web.commands.cli import main

    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    _import()
    _fork_for(socket.socket(fileno=int(sys.argv[1])))
    main()
