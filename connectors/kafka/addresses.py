"""Addresses of Kafka brokers, as a connection lists them and as brokers advertise them."""

from __future__ import annotations

import re

from headrace.compiler.errors import BuildRefused
from headrace.compiler.text.diagnostics import Fault

Broker = tuple[str, int]
"""Host and port."""

_ADDRESS = re.compile(
    r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s:/@,\[\]\x00-\x1f\x7f]+)):(?P<port>\d{1,5})"
)


def brokers(text: str, template: str) -> list[Broker]:
    """Return the hosts and ports of a list.

    Raises:
        BuildRefused: one is no address. It is shown as the ``template`` of the list spells it, for
            what that resolves to may be a secret.
    """
    entries = [entry.strip() for entry in text.split(",")]
    found = [_broker(entry) for entry in entries]
    if None in found:
        raise _malformed(found.index(None), len(found), template)
    return [broker for broker in found if broker is not None]


def spelt(host: str, port: int) -> str:
    """Return an address as a list has it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_address(host: str, port: int) -> bool:
    """Return whether there may be a broker there."""
    return _broker(spelt(host, port)) is not None


def _broker(entry: str) -> Broker | None:
    match = _ADDRESS.fullmatch(entry)
    if match is None or not 0 < int(match["port"]) <= 65535:
        return None
    host = match["six"] or match["host"]
    try:
        host.encode("idna")  # a part of a name is neither empty nor longer than 63
    except UnicodeError:
        return None
    return host, int(match["port"])


def _malformed(index: int, count: int, template: str) -> BuildRefused:
    entries = template.split(",")
    bad = entries[index].strip() if len(entries) == count else template
    which = f"'{bad}' in 'brokers'" if count == len(entries) else f"part {index + 1} of '{bad}'"
    return BuildRefused(
        Fault(
            "not-an-address",
            f"{which} is no address of a broker",
            found=bad,
            expected="host:port, several of them parted by commas",
            path=("connection",),
        )
    )
