"""OPC UA: a server of asyncua that does what a test tells it, and node-opcua as an independent one."""

from __future__ import annotations

import json
import shutil
import socket
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.clients import HOST, PATIENCE
from tests.services.node_packages import modules
from tests.services.programs import program
from tests.services.server import Service, free_port

PROGRAM = Path(__file__).with_name("opcua_program.py")
NODE_PROGRAM = Path(__file__).with_name("node_opcua.cjs")

HELLO = b"HELF\x20\x00\x00\x00" + b"\x00" * 4 + b"\xff\xff\x00\x00" * 2 + b"\x00" * 12
"""The first words of a client: no url, and the largest chunks it takes."""


class Identity:
    """A certificate of an application, which has signed it itself, and its key.

    ``certificate`` is a DER file, ``certificate_pem`` the same in PEM; the key is PEM, ``private_key``.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        uri: str | None = "urn:headrace:test",
        days: int = 30,
    ) -> None:
        """Make both and write them; without ``uri`` it names no application, ``days`` may be over."""
        folder.mkdir(parents=True, exist_ok=True)
        self.uri = uri or ""
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        made = _self_signed(key, name, uri, days)
        self.certificate = folder / f"{name}.der"
        self.certificate.write_bytes(made.public_bytes(serialization.Encoding.DER))
        self.certificate_pem = folder / f"{name}.pem"
        self.certificate_pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        self.private_key = folder / f"{name}.key.pem"
        self.private_key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )


def _self_signed(key: rsa.RSAPrivateKey, name: str, uri: str | None, days: int) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    alternatives: list[x509.GeneralName] = [x509.DNSName("localhost")]
    if uri is not None:
        alternatives.insert(0, x509.UniformResourceIdentifier(uri))
    usage = x509.KeyUsage(True, True, True, True, False, True, False, False, False)
    both = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH])
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1000))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(both, critical=False)
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA256())
    )


class _OpcUa(Service):
    """What both servers have in common."""

    def __init__(
        self,
        folder: Path,
        *,
        users: Mapping[str, str] | None = None,
        policies: Sequence[str] = ("NoSecurity",),
        **options: Any,
    ) -> None:
        """Take users with their passwords, without whom anybody gets in, and the security to offer."""
        super().__init__(folder, **options)
        self.users, self.policies = dict(users or {}), list(policies)

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"opc.tcp://{self.address}/"

    def prepare(self) -> None:
        """Nothing is read from files but certificates, which are made by who asks for them."""

    def answers(self) -> bool:
        # An acknowledgement, or an error because of the url: both are OPC UA.
        return self.talk(HELLO)[:3] in (b"ACK", b"ERR")


class Opcua(_OpcUa):
    """A server of asyncua; `tell` has it do things.

    It has `ns=2;s=Plant` with the variable `Speed`, the object `Line` under it with `Temp`, whose
    property is `Temp.Unit`, and under that the object `Cell` with `Deep`; and what tests add.
    """

    ready = "ready"

    def __init__(
        self,
        folder: Path,
        *,
        identity: Identity | None = None,
        trusts: Path | None = None,
        **options: Any,
    ) -> None:
        """Take the server's certificate, and that of the only client it trusts (a DER file)."""
        super().__init__(folder, **options)
        self.control = free_port(self.port)
        self.identity, self.trusts = identity, trusts

    def command(self) -> Sequence[str | Path]:
        options: dict[str, Any] = {
            "port": self.port,
            "control": self.control,
            "users": self.users,
            "policies": self.policies,
        }
        if self.identity is not None:
            options["certificate"] = str(self.identity.certificate)
            options["private_key"] = str(self.identity.private_key)
            options["application_uri"] = self.identity.uri
        if self.trusts is not None:
            options["trusts"] = str(self.trusts)
        return [sys.executable, PROGRAM, json.dumps(options)]

    def tell(self, expression: str) -> Any:
        """Have the server evaluate an expression, await what it gives, and return that."""
        with socket.create_connection((HOST, self.control), PATIENCE) as connection:
            connection.sendall(json.dumps(expression).encode() + b"\n")
            answer = json.loads(connection.makefile("rb").readline())
        assert "raised" not in answer, f"{expression}: {answer}"
        return answer["value"]


class NodeOpcua(_OpcUa):
    """A server of node-opcua, whose numbers grow: `ns=1;s=Ramp` by 0.25 ten times a second.

    `ns=1;s=Text` is a string, `ns=1;s=Flag` a boolean that changes as often, `ns=1;s=Failing` a
    sensor that is broken, `ns=1;s=Late` a string that never has a value, `ns=1;s=Long` one of
    200,000 characters. It takes no more than 10 nodes in one request, in pieces of 8,192 bytes.
    """

    ready = "ready"
    patience = 60.0

    def command(self) -> Sequence[str | Path]:
        node = program("node", "install Node.js 18 or newer")
        options = {"port": self.port, "users": self.users, "policies": self.policies}
        options |= {"modules": str(modules("node-opcua")), "pki": str(self.folder / "pki")}
        return [node, NODE_PROGRAM, json.dumps(options)]

    def trust(self, certificate: Path) -> None:
        """Have it trust a client, before it is started."""
        trusted = self.folder / "pki" / "trusted" / "certs"
        trusted.mkdir(parents=True, exist_ok=True)
        shutil.copy(certificate, trusted)
