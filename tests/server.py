"""The installed command as a process: started on a port of its own, watched, ended by its id.

    with serving(tmp_path, config) as server:
        server.post("p1", {"n": 1})

The server runs in a session of its own and ends with the block, whatever happens in it. Nothing
here sleeps: threads read what the server prints, and whoever waits is woken by its next line.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Protocol

from tests.clients import HOST, PATIENCE, Gone, Reached
from tests.stopwatch import Stopwatch

COMMAND = Path(sys.executable).with_name("headrace")
_ANNOUNCED = re.compile(r"headrace runs .* at http://\S+:(?P<port>\d+)")
_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1
EACH_SECONDS = 1.0
"""How often somebody who waits looks how much time of a machine that is not busy is over."""

PLANTED = "planted-s3cret/that+no=server&says"
"""In the environment of every server, where it resolves references; none says it."""
LEAST = 8
PLAIN = ("type", "role", "issuer", "audience", "jwks_url", "username_claim", "claim", "same_site")
"""Keys of a settings file whose values are no secrets."""


class Lines:
    """What a process prints on one of its streams, line by line, as it comes."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._news = threading.Condition()
        self._lines: list[str] = []
        self._is_over = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with self._stream:
            for line in self._stream:
                self._add(line.decode("utf-8", "backslashreplace").rstrip("\n"))
        with self._news:
            self._is_over = True
            self._news.notify_all()

    def _add(self, line: str) -> None:
        with self._news:
            self._lines.append(line)
            self._news.notify_all()

    def wait(self, count: int = 1, seconds: float = PATIENCE) -> list[str]:
        """Return all lines, as soon as there are so many."""
        return self._until(lambda: len(self._lines) >= count, f"{count} lines", seconds)

    def find(self, pattern: re.Pattern[str], seconds: float = PATIENCE) -> re.Match[str]:
        """Return the first match in a line, as soon as there is one."""
        found: list[re.Match[str]] = []

        def seek() -> bool:
            found.extend(match for line in self._lines if (match := pattern.search(line)))
            return bool(found)

        self._until(seek, f"a line with '{pattern.pattern}'", seconds)
        return found[0]

    def follow(self) -> Iterator[str]:
        """Yield all lines, each as soon as it is there, until the process closes the stream."""
        seen = 0
        while new := self._after(seen):
            yield from new
            seen += len(new)

    def _after(self, count: int) -> list[str]:
        """Return what comes after so many lines, as soon as there is something; nothing at the end."""
        with self._news:
            self._news.wait_for(lambda: len(self._lines) > count or self._is_over)
            return self._lines[count:]

    def all(self, seconds: float = PATIENCE) -> list[str]:
        """Return all lines, when the process has closed the stream."""
        self._reader.join(seconds)
        return list(self._lines)

    def _until(self, is_there: Callable[[], bool], what: str, seconds: float) -> list[str]:
        watch = Stopwatch()
        with self._news:
            while watch.seconds < seconds:
                if self._news.wait_for(
                    lambda: is_there() or self._is_over, min(seconds, EACH_SECONDS)
                ):
                    break
            if not is_there():
                raise Gone(f"{what}: not printed {'at all' if self._is_over else 'in time'}")
            return list(self._lines)

    def __str__(self) -> str:
        with self._news:
            return "\n".join(self._lines)


class Process(Protocol):
    """A process that somebody has started, as `subprocess.Popen` has it."""

    pid: int
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None

    def wait(self, timeout: float | None = None) -> int: ...
    def poll(self) -> int | None: ...
    def send_signal(self, number: int, /) -> None: ...
    def kill(self) -> None: ...


class Server(Reached):
    """A running `headrace serve`."""

    def __init__(self, process: Process, started: Stopwatch) -> None:
        super().__init__()
        assert process.stdout is not None
        assert process.stderr is not None
        self.process = process
        self._started = started
        self.out, self.err = Lines(process.stdout), Lines(process.stderr)

    def wait_until_ready(self) -> None:
        """Wait for the line that says where it serves."""
        self.port = int(self.err.find(_ANNOUNCED)["port"])

    @property
    def seconds(self) -> float:
        """Seconds since the process was started, without those in which the machine was busy."""
        return self._started.seconds

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def ended(self, seconds: float = PATIENCE) -> int:
        """Wait for the end of the process and return its exit code."""
        watch = Stopwatch()
        while watch.seconds < seconds:
            with suppress(subprocess.TimeoutExpired):
                return self.process.wait(min(seconds, EACH_SECONDS))
        raise Gone(f"the server did not end within {seconds} s")

    def stop(self) -> int:
        """End it in order and return its exit code."""
        self.signal()
        return self.ended()

    def end(self) -> None:
        """End it by all means, and everything that was opened to it."""
        self.leave()
        if self.process.poll() is None:
            self.signal()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def told(self) -> str:
        """Return what it printed, for whoever reads why a test failed."""
        parts = [("stdout", self.out), ("stderr", self.err)]
        said = [f"--- {name} of the server\n{_short(str(lines))}" for name, lines in parts]
        return "\n".join([*said, f"--- exit code: {self.process.poll()}"])


def nothing() -> None:
    """Do nothing in a new process."""


def started(
    arguments: Sequence[str],
    folder: Path,
    setup: Callable[[], None],
    inherited: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a server as a process of this one; with descriptors that it has as well, if any."""

    def prepare() -> None:
        end_with_parent()
        # The tests may run where it is ignored (nohup), and the server would ignore it as well.
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        setup()

    return subprocess.Popen(
        arguments,
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=inherited,
        start_new_session=True,
        preexec_fn=prepare,
    )


@contextmanager
def serving(
    folder: Path,
    config: Path | Any = None,
    *options: str,
    command: Sequence[str] = ("serve",),
    setup: Callable[[], None] = nothing,
    start: Callable[[Sequence[str], Path, Callable[[], None]], Process] = started,
) -> Iterator[Server]:
    """Run the command on a config, a file or what is to stand in one, in a working directory.

    ``setup`` runs in the new process before the command does; ``start`` makes that process. By its end
    the server must not have logged a traceback, nor anything of what it was given in secret.
    """
    named = [] if config is None else ["--config", str(written(folder, config))]
    listen = ["--listen", f"{HOST}:0"]
    watch = Stopwatch()
    process = start([str(COMMAND), *command, *named, *listen, *options], folder, setup)
    server = Server(process, watch)
    try:
        server.wait_until_ready()
        yield server
        server.end()
        said = "\n".join(server.err.all())
        assert "Traceback" not in said, "the server logged a traceback"
        told = [value for value in kept_secret(folder, options) if value in said]
        assert not told, f"the server logged what is secret: {told}"
    except BaseException as cause:
        server.end()
        server.err.all()
        server.out.all()
        cause.add_note(server.told())
        raise


def kept_secret(folder: Path, options: Sequence[str]) -> list[str]:
    """Return what no server may say: what is planted in its environment, and what its files hold.

    Short words are left out: what they are found in may be anything.
    """
    given = dict(pairwise(options))
    told = [json.loads((folder / file).read_text()) for file in _secret_files(given)]
    values = [value for each in told for value in _texts(each)]
    return [PLANTED, *(value for value in values if len(value) >= LEAST and "${" not in value)]


def _secret_files(given: Mapping[str, str]) -> Iterator[str]:
    named = (given[option] for option in ("--secrets", "--server-config") if option in given)
    return (file for file in named if file.endswith(".json"))


def _texts(value: Any) -> Iterator[str]:
    """Yield the values of a secrets file, or the passwords and the hashes of a settings file."""
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _texts(inner)
        elif isinstance(inner, str) and key not in PLAIN:
            yield inner


def end_with_parent() -> None:
    """Have the system end this process when its parent dies: a killed test run leaves nobody."""
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def executed(
    arguments: Sequence[str], folder: Path, given: str | None
) -> subprocess.CompletedProcess[str]:
    """Run a command as a process of this one."""
    return subprocess.run(
        arguments,
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL if given is None else None,
        input=given,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        start_new_session=True,
        check=False,
    )


def run(
    folder: Path,
    *arguments: str,
    given: str | None = None,
    execute: Callable[
        [Sequence[str], Path, str | None], subprocess.CompletedProcess[str]
    ] = executed,
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, with its output piped, and with what it is ``given`` to read."""
    return execute([str(COMMAND), *arguments], folder, given)


def written(folder: Path, config: Path | Any) -> Path:
    """Return a file that holds a config: the one given, or a new one."""
    if isinstance(config, Path):
        return config
    file = folder / "config.json"
    file.write_text(json.dumps(config))
    return file


def filed(folder: Path, root: str = "data") -> list[str]:
    """Put a connections file with a file connection `disk` beside a config; return the options."""
    (folder / "config.connections.json").write_text(
        json.dumps({"disk": {"type": "file", "root": root}})
    )
    return ["--data-dir", root]


def settled(folder: Path, **settings: Any) -> list[str]:
    """Put a file of server settings into a working directory; return the options."""
    file = folder / "server.json"
    file.write_text(json.dumps(settings))
    return ["--server-config", str(file)]


def stored(folder: Path) -> list[Any]:
    """Return the messages of all ndjson parts in a directory, in order."""
    return [
        json.loads(line)
        for part in sorted(folder.glob("*.ndjson"))
        for line in part.read_text().splitlines()
    ]


def environment() -> dict[str, str]:
    """Return this process's environment without what would change the command's behaviour."""
    ours = ("HEADRACE_", "FORCE_COLOR", "NO_COLOR")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    return {**kept, "PLANTED_SECRET": PLANTED}


def _short(text: str, most: int = 20_000) -> str:
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"
