"""Mosquitto, an MQTT broker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.services.programs import Missing, program
from tests.services.server import Service

_REMEDY = "install 'mosquitto'"
# Where the plugins of the broker are: on Debian, in a folder for the kind of processor.
_LIBRARIES = [*Path("/usr/lib").glob("*-linux-*"), Path("/usr/lib64"), Path("/usr/local/lib")]
_ACTIONS = ("publishClientSend", "publishClientReceive", "subscribe", "unsubscribe")
# A client of MQTT 3.1.1 named `r`, with a clean session.
_CONNECT = b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x05\x00\x01r"


class Mosquitto(Service):
    """A Mosquitto broker; with a user, nobody else gets in.

    What it holds for clients survives an orderly stop. To have a killed broker find it again it must
    save every change, which is slow: ``extra=SAVING``.
    """

    ready = " running"

    def __init__(
        self,
        folder: Path,
        *,
        user: str | None = None,
        password: str | None = None,
        acl: str | None = None,
        refuses: Sequence[str] = (),
        **options: Any,
    ) -> None:
        """Take a user with a password, and who may read and write what, as in its `acl_file`.

        What that list does not let a client read is subscribed to and never comes. A filter in
        ``refuses`` cannot be subscribed to, by whoever has no user.
        """
        super().__init__(folder, **options)
        self.user, self.password = user, password
        self.acl, self.refuses = acl, refuses

    @property
    def url(self) -> str:
        """The address."""
        return f"{'mqtt' if self.tls is None else 'mqtts'}://{self.address}"

    def change_password(self, password: str) -> None:
        """Have the user need another one from now on; whoever is in with the old one has to go."""
        self.password = password
        self._write_password()
        os.kill(self.pid, signal.SIGHUP)

    def command(self) -> Sequence[str | Path]:
        return [program("mosquitto", _REMEDY), "-c", self.folder / "mosquitto.conf"]

    def prepare(self) -> None:
        if self.user is not None:
            self._write_password()
        if self.acl is not None:
            (self.folder / "acl").write_text(self.acl)
            (self.folder / "acl").chmod(0o600)
        if self.refuses:
            self._write_refusals()
        (self.folder / "mosquitto.conf").write_text("\n".join([*self._config(), *self.extra, ""]))

    def answers(self) -> bool:
        # Whoever is refused is told so: that is an answer, too.
        return self.talk(_CONNECT, tls=self.tls is not None).startswith(b"\x20\x02")

    def _config(self) -> Iterator[str]:
        if os.geteuid() == 0:
            yield "user root"  # else it becomes a user who may not write here
        yield from ["persistence true", f"persistence_location {self.folder}/"]
        yield f"listener {self.port} {self.host}"
        yield f"allow_anonymous {'true' if self.user is None else 'false'}"
        if self.user is not None:
            yield f"password_file {self.folder / 'passwords'}"
        if self.acl is not None:
            yield f"acl_file {self.folder / 'acl'}"
        if self.refuses:
            yield f"plugin {_plugin()}"
            yield f"plugin_opt_config_file {self.folder / 'refusals.json'}"
        if self.tls is not None:
            yield f"cafile {self.tls.ca_file}"
            yield f"certfile {self.tls.server_cert_file}"
            yield f"keyfile {self.tls.server_key_file}"
            yield f"require_certificate {'true' if self.mutual else 'false'}"

    def _write_password(self) -> None:
        tool, file = program("mosquitto_passwd", _REMEDY), self.folder / "passwords"
        credentials = [self.user or "", self.password or ""]
        subprocess.run([tool, "-c", "-b", file, *credentials], check=True, capture_output=True)

    def _write_refusals(self) -> None:
        refused = {"acltype": "subscribeLiteral", "priority": 0, "allow": False}
        security = {
            "defaultACLAccess": dict.fromkeys(_ACTIONS, True),
            "roles": [{"rolename": "r", "acls": [refused | {"topic": t} for t in self.refuses]}],
            "groups": [{"groupname": "everybody", "roles": [{"rolename": "r"}]}],
            "anonymousGroup": "everybody",
        }
        file = self.folder / "refusals.json"
        file.write_text(json.dumps(security))
        file.chmod(0o600)


def _plugin() -> Path:
    """Return the plugin that comes with the broker and lets it refuse a subscription."""
    name = "mosquitto_dynamic_security.so"
    for found in (path for place in _LIBRARIES if (path := place / name).exists()):
        return found
    raise Missing(f"there is no '{name}' on this machine: {_REMEDY}")


SAVING = ("autosave_interval 1", "autosave_on_changes true")
"""Lines for a broker that is to be killed: it writes down every change.

It does so after it has answered. Who kills it on purpose asks it something else before
(`answers()`), and then knows that what was confirmed is written.
"""
