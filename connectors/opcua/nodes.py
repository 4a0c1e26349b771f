"""Node ids of OPC UA as text: what a config says, what a message shows, what a server calls them.

Source: https://reference.opcfoundation.org/Core/Part6/v105/docs/5.3.1.10 (string form of a NodeId)
"""

from __future__ import annotations

import base64
import binascii
import re
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
            raise ValueError(next(why for form, why in _OBJECTIONS if re.match(form, text)))
        namespace = (match["namespace"] or "0").lstrip("0") or "0"
        if len(namespace) > len(str(LARGEST_NAMESPACE)) or int(namespace) > LARGEST_NAMESPACE:
            raise ValueError(f"its namespace is larger than {LARGEST_NAMESPACE:,}")
        return cls(int(namespace), match["kind"], _identifier(match["kind"], match["identifier"]))

    @property
    def text(self) -> str:
        """The node id in the server's notation; namespace 0 goes without saying."""
        prefix = f"ns={self.namespace};" if self.namespace else ""
        shown = (
            base64.b64encode(self.identifier).decode()
            if isinstance(self.identifier, bytes)
            else self.identifier
        )
        return f"{prefix}{self.kind}={shown}"


_OBJECTIONS = (
    (r"nsu=", "it names its namespace by a url, and not by its number"),
    (r"(?s)\s|.*\s\Z", "there are blanks around it"),
    (r"ns=[0-9]+[:,]", "a semicolon parts the namespace from the identifier"),
    (r"(ns=[0-9]+;)?[isgb]=\Z", "its identifier is empty"),
    (r"", "it has no identifier that begins with i=, s=, g= or b="),
)
"""What may be wrong with the form of a node id: the first that is met is told."""


def _identifier(kind: str, text: str) -> int | str | UUID | bytes:
    """Read what comes behind the letter. Raises: ValueError with what is wrong."""
    match kind:
        case "i":
            if not re.fullmatch(r"[0-9]{1,10}", text) or int(text) > LARGEST_NUMBER:
                raise ValueError(f"after i= comes a number of at most {LARGEST_NUMBER:,}")
            return int(text)
        case "s":
            if len(text) > LONGEST:
                raise ValueError(f"its identifier is longer than {LONGEST:,} characters")
            return text
        case "g":
            if not _GUID.fullmatch(text):
                raise ValueError("after g= comes a guid, 8-4-4-4-12 hexadecimal digits")
            return UUID(text)
    try:
        octets = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("after b= comes base64") from None
    if len(octets) > LONGEST:
        raise ValueError(f"its identifier is longer than {LONGEST:,} bytes")
    return octets


class Node(NamedTuple):
    """A node that is read, as its messages call it."""

    key: NodeKey
    text: str
    name: str
