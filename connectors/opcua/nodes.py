"""Node ids of OPC UA as text: what a config says, what a message shows, what a server calls them.

Source: https://reference.opcfoundation.org/Core/Part6/v105/docs/5.3.1.10 (string form of a NodeId)
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import NamedTuple, Self
from uuid import UUID

FORMS = "ns=2;s=Press.Temp, ns=2;i=1001, ns=2;g=<guid> or ns=2;b=<base64>; without ns= it is namespace 0"
LARGEST_NAMESPACE = 65_535
LARGEST_NUMBER = 4_294_967_295
LONGEST = 4096
"""Characters of a string, bytes of an opaque identifier."""

_FORM = re.compile(r"(?:ns=(?P<namespace>[0-9]+);)?(?P<kind>[isgb])=(?P<identifier>.+)", re.DOTALL)
_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class NodeKey(NamedTuple):
    """What tells one node of a server from another: equal keys are one node."""

    namespace: int
    kind: str
    """One of ``i``, ``s``, ``g`` and ``b``, as in the text."""
    identifier: int | str | UUID | bytes

    @classmethod
    def of(cls, text: str) -> Self:
        """Read a node id.

        Raises: ValueError with what is wrong, as the end of a sentence.
        """
        match = _FORM.fullmatch(text)
        if match is None:
            raise ValueError(_objection(text))
        namespace = (match["namespace"] or "0").lstrip("0") or "0"
        if len(namespace) > len(str(LARGEST_NAMESPACE)) or int(namespace) > LARGEST_NAMESPACE:
            raise ValueError(f"its namespace is larger than {LARGEST_NAMESPACE:,}")
        return cls(int(namespace), match["kind"], _READERS[match["kind"]](match["identifier"]))

    @property
    def text(self) -> str:
        """The node id in the server's notation; namespace 0 goes without saying."""
        identifier = self.identifier
        if isinstance(identifier, bytes):
            identifier = base64.b64encode(identifier).decode()
        prefix = f"ns={self.namespace};" if self.namespace else ""
        return f"{prefix}{self.kind}={identifier}"


def _objection(text: str) -> str:
    if text.startswith("nsu="):
        return "it names its namespace by a url, and not by its number"
    if text != text.strip():
        return "there are blanks around it"
    if re.match(r"ns=[0-9]+[:,]", text):
        return "a semicolon parts the namespace from the identifier"
    if re.fullmatch(r"(ns=[0-9]+;)?[isgb]=", text):
        return "its identifier is empty"
    return "it has no identifier that begins with i=, s=, g= or b="


def _number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", text) or int(text) > LARGEST_NUMBER:
        raise ValueError(f"after i= comes a number of at most {LARGEST_NUMBER:,}")
    return int(text)


def _string(text: str) -> str:
    if len(text) > LONGEST:
        raise ValueError(f"its identifier is longer than {LONGEST:,} characters")
    return text


def _guid(text: str) -> UUID:
    if not _GUID.fullmatch(text):
        raise ValueError("after g= comes a guid, 8-4-4-4-12 hexadecimal digits")
    return UUID(text)


def _octets(text: str) -> bytes:
    try:
        octets = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("after b= comes base64") from None
    if len(octets) > LONGEST:
        raise ValueError(f"its identifier is longer than {LONGEST:,} bytes")
    return octets


_READERS: dict[str, Callable[[str], int | str | UUID | bytes]] = {
    "i": _number,
    "s": _string,
    "g": _guid,
    "b": _octets,
}


class Node(NamedTuple):
    """A node that is read, as its messages call it."""

    key: NodeKey
    text: str
    name: str
