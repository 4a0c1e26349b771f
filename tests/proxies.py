"""The proxies of `deploy/` as processes: their configs as they stand, but for names, ports and files."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.services.authority import Authority
from tests.services.programs import program
from tests.services.server import Service, free_port

DEPLOY = Path(__file__).parent.parent / "deploy"


class Proxy(Service):
    """A proxy with TLS in front of a server that listens on a port."""

    site: str
    """The file in `deploy/`."""

    def __init__(self, folder: Path, port: int, tls: Authority, **options: Any) -> None:
        """Take the port of the server that requests go on to."""
        super().__init__(folder, tls=tls, **options)
        self.plain_port = free_port(self.port)
        self.server_port = port

    def written(self, changes: Mapping[str, str]) -> str:
        """Return the config with something in the place of what is the operator's own."""
        text = (DEPLOY / self.site).read_text()
        for pattern, ours in {
            r"127\.0\.0\.1:6767": f"{self.host}:{self.server_port}",
            **changes,
        }.items():
            text, count = re.subn(pattern, ours, text)
            assert count, f"{self.site} has no '{pattern}'"
        return text

    def answers(self) -> bool:
        return self.talk(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", tls=True).startswith(
            b"HTTP/"
        )


class Nginx(Proxy):
    """nginx, with `deploy/nginx.conf` as one of its sites."""

    ready = "event method"
    site = "nginx.conf"

    def command(self) -> Sequence[str | Path]:
        nginx = program("nginx", "install 'nginx-light'")
        return [nginx, "-e", "stderr", "-p", self.folder, "-c", self.folder / "main.conf"]

    def prepare(self) -> None:
        assert self.tls is not None
        site = self.written(
            {
                r"listen 80;": f"listen {self.host}:{self.plain_port};",
                r"listen 443 ": f"listen {self.host}:{self.port} ",
                r"pipelines\.example\.org": "localhost",
                r"/etc/ssl/certs/\S+(?=;)": str(self.tls.server_cert_file),
                r"/etc/ssl/private/\S+(?=;)": str(self.tls.server_key_file),
            }
        )
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        own = "".join(f"{kind}_temp_path {kind};\n" for kind in kinds)
        # One process, which ends with the test run: workers would outlive a master that is killed.
        user = f"user {getpass.getuser()};\n" if os.geteuid() == 0 else ""
        (self.folder / "main.conf").write_text(
            f"{user}daemon off;\nmaster_process off;\npid nginx.pid;\n"
            "error_log stderr notice;\nevents {}\n"
            f"http {{\naccess_log off;\n{own}{site}}}\n"
        )


class Caddy(Proxy):
    """Caddy, with `deploy/Caddyfile`."""

    ready = "serving initial configuration"
    site = "Caddyfile"

    def command(self) -> Sequence[str | Path]:
        caddy = program("caddy", "install 'caddy'")
        own = f"XDG_DATA_HOME={self.folder}", f"XDG_CONFIG_HOME={self.folder}"
        config = self.folder / "Caddyfile"
        return ["env", *own, caddy, "run", "--adapter", "caddyfile", "--config", config]

    def prepare(self) -> None:
        assert self.tls is not None
        certificate = f"tls {self.tls.server_cert_file} {self.tls.server_key_file}"
        site = self.written({r"pipelines\.example\.org \{": f"localhost {{\n\t{certificate}"})
        ports = f"http_port {self.plain_port}\nhttps_port {self.port}\ndefault_bind {self.host}"
        (self.folder / "Caddyfile").write_text(f"{{\nadmin off\n{ports}\n}}\n{site}")

    def answers(self) -> bool:
        return True
