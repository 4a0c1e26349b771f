"""The mapping that writes the hash of a text."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import ClassVar, Self

from headrace.compiler.code import Code
from headrace.compiler.component.branches import altered
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import DottedPath
from headrace.compiler.errors import BuildRefused
from headrace.compiler.schema.fields import Choice, SecretText
from headrace.compiler.schema.records import option
from headrace.compiler.schema.secrets import Secret
from headrace.compiler.text.diagnostics import Codes, Fault, Severity
from headrace.operators.formula import Formula
from headrace.operators.literals import Literal
from headrace.operators.mappings.mapping import (
    LONGEST_READ,
    OfField,
    as_option,
    converted,
    default_option,
    from_option,
    short,
)

CODES: Codes = {
    "guessable-hash": "A hash without a key is made of what can be guessed.",
}

_KEYED = "hmac_sha256"
_CHARACTER = 7
"""Nanoseconds that it takes for a character of four bytes."""
_SHORTEST_KEY = 16
"""Characters: a shorter key can be found by trying."""
_SHORT_IDS = frozenset(
    {"account", "address", "card", "customer", "email", "iban", "id", "ip", "mail"}
) | {*("mobile", "name", "number", "phone", "plate", "serial", "ssn", "user")}
"""Words in the name of a field that holds one of few values: all of them can be hashed and compared."""
_WORDS = re.compile("[A-Z]?[a-z]+|[A-Z]+")


def _uuid(digest: bytes) -> str:
    """Return the first 16 bytes as a UUID of version 8, which is for what an application makes itself.

    Source: RFC 9562, 5.8
    """
    whole = int.from_bytes(digest[:16], "big")
    whole = whole & ~(0xF << 76) | 8 << 76
    whole = whole & ~(3 << 62) | 2 << 62
    text = f"{whole:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


_FORMS: dict[str, Callable[[bytes], str]] = {
    "hex": bytes.hex,
    "base64": lambda digest: base64.b64encode(digest).decode(),
    "uuid": _uuid,
}


class Hash(
    OfField, tag="hash", listed=130, elsewhere="checksum digest hmac pseudonymize sha sha256 sha512"
):
    """Writes the hash of a text, as UTF-8. A number or boolean is a text as JSON writes it.

    A hash without a key is the same for everybody: whoever can list the ids hashes them all and
    compares, so it is no pseudonym of a short one. `hmac_sha256` with a key that nobody else has is. A list
    or an object fails the batch, and so does a text of more than 1,048,576 characters.
    """

    is_never_object: ClassVar = True

    from_: str = from_option("Field that holds the text.", elsewhere="field path source")
    algorithm: str = option(
        Choice(
            "sha256",
            "sha512",
            _KEYED,
            elsewhere={"sha256": "sha2 sha_256", "sha512": "sha_512", _KEYED: "hmac"},
        ),
        "How it is made.",
        elsewhere="function method",
    )
    key: Secret | None = option(
        SecretText(),
        f"The key of `{_KEYED}`, usually a ${{NAME}} reference; at least {_SHORTEST_KEY} characters.",
        default=None,
        elsewhere="salt secret",
    )
    to: str = option(
        Choice("hex", "base64", "uuid", elsewhere={"hex": "hexadecimal", "uuid": "guid"}),
        "How it is written. `uuid` is the first 16 bytes, as a UUID of version 8.",
        default="hex",
        elsewhere="encoding format",
    )
    as_: str | None = as_option()
    default: Literal | None = default_option()

    def rules(self) -> Iterator[Fault]:
        """Refuse a key that nothing asks for, none, and one that is certainly too short."""
        if self.algorithm != _KEYED and self.key is not None:
            yield Fault(
                "conflict",
                f"'{self.algorithm}' has no key",
                expected=f"'{_KEYED}' as 'algorithm', or no 'key'",
                path=("key",),
                is_confidential=True,
            )
        elif self.algorithm == _KEYED and self.key is None:
            yield Fault(
                "missing-key",
                f"'{_KEYED}' needs a 'key'",
                expected="a string, usually a ${NAME} reference",
            )
        elif self.key is not None and not self.key.names():
            yield from _too_short(self.key.template)

    def examine(self) -> Iterator[Fault]:
        """Tell that what is hashed can be guessed."""
        last = DottedPath(self.from_).segments[-1]
        words = {word.lower() for word in _WORDS.findall(last)}
        if self.key is None and not words.isdisjoint(_SHORT_IDS):
            yield Fault(
                "guessable-hash",
                f"the hash of '{self.from_}' is no pseudonym: who can list its values can hash them all",
                suggestion=f"use {_KEYED} with a key of your own where nobody is to find out",
                path=("algorithm",),
                severity=Severity.WARNING,
            )

    def built(self, ctx: Context) -> Self:
        """Return one that has its key."""
        if self.key is None:
            return self
        key = ctx.resolve(self.key)
        if key != self.key.template:  # in a play, a reference stands for itself
            for fault in _too_short(key):
                raise BuildRefused(fault)
        secret = key.encode()
        return altered(self, _digest=lambda text: hmac.digest(secret, text, "sha256"))

    def _digest(self, text: bytes) -> bytes:
        return hashlib.new(self.algorithm, text, usedforsecurity=False).digest()

    def made(self, found: JsonValue) -> JsonValue:
        """Return the hash, as it is to be written."""
        text = short(converted(found, "text", self.from_), self.from_, LONGEST_READ)
        # A text may hold half of a pair of surrogates, which UTF-8 has no bytes for.
        return _FORMS[self.to](self._digest(text.encode("utf-8", "surrogatepass")))

    def source(self, code: Code, ctx: Context, *, optional: bool) -> Formula:
        """Call the algorithm by its name, for a string."""
        made, written, digest = self.made, _FORMS[self.to], self._digest
        called = partial(self.called, nanoseconds=_CHARACTER, longest=LONGEST_READ)
        bare = {"sha256": hashlib.sha256, "sha512": hashlib.sha512}.get(self.algorithm)
        if bare is not None and self.to == "hex":

            def in_hex(found: JsonValue) -> JsonValue:
                if found.__class__ is str and found.isascii():
                    return bare(found.encode()).hexdigest()
                return made(found)

            return called(in_hex, code, optional)

        def hashed(found: JsonValue) -> JsonValue:
            if found.__class__ is str and found.isascii():
                return written(digest(found.encode()))
            return made(found)

        return called(hashed, code, optional)


def _too_short(key: str) -> Iterator[Fault]:
    if len(key) < _SHORTEST_KEY:
        yield Fault(
            "out-of-range",
            f"the key of a '{_KEYED}' has less than {_SHORTEST_KEY} characters",
            expected=f"a text of at least {_SHORTEST_KEY} characters that nobody can guess",
            path=("key",),
            is_confidential=True,
        )
