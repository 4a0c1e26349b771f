"""Who asks an object store, and where: what a connection says, with its secrets resolved."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Account:
    """A bucket, and the key to it."""

    bucket: str
    region: str
    endpoint: str | None
    """Without one, that of the vendor in the region."""
    access_key_id: str = field(repr=False)
    secret_access_key: str = field(repr=False)
    tls: ssl.SSLContext | None = field(repr=False)
