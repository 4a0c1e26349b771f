"""An authority that signs certificates, for servers and clients on this machine."""

from __future__ import annotations

from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization

from tests.clients import HOST


class Authority:
    """A certificate authority with one certificate for the server and one for a client.

    All are PEM files. A second authority is the wrong one for whoever trusts the first.
    """

    def __init__(self, folder: Path) -> None:
        """Sign everything and write it into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        signer = trustme.CA()
        server = signer.issue_cert(HOST, "localhost")
        client = signer.issue_cert("client@example.com", common_name="client")

        self.ca_file = folder / "ca.pem"
        signer.cert_pem.write_to_path(str(self.ca_file))
        self.server_cert_file, self.server_key_file = _written(server, folder, "server")
        self.client_cert_file, self.client_key_file = _written(client, folder, "client")


def _written(certificate: trustme.LeafCert, folder: Path, name: str) -> tuple[Path, Path]:
    chain, key = folder / f"{name}.pem", folder / f"{name}.key"
    chain.write_bytes(b"".join(pem.bytes() for pem in certificate.cert_chain_pems))
    key.write_bytes(_in_pkcs8(certificate.private_key_pem.bytes()))
    return chain, key


def _in_pkcs8(key: bytes) -> bytes:
    """Return a private key in the one format that Java reads."""
    return serialization.load_pem_private_key(key, password=None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
