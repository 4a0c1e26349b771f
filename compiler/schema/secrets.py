"""`${NAME}` references: what a config says instead of a credential.

A secret is a template. Its text, its repr and its JSON are the template; the value exists only
while a component is built, and whoever needs it asks `Secrets.resolve`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headrace.compiler.errors import UnresolvedSecret
from headrace.compiler.schema.redaction import REFERENCE, Hidden, Redaction
from headrace.compiler.text.diagnostics import Codes, Fault

CODES: Codes = {
    "unresolved-secret": "A '${NAME}' reference that nothing answers.",
}

_VARIABLE = re.compile(r"\A\$_*[A-Z][A-Z0-9_]*\Z|(?<![\w$])\$[A-Z_][A-Z0-9_]{2,}(?![\w$])")
"""A ``$NAME`` as shells have it, alone or among other signs. In capitals only: the user name that
Azure has for Kafka is ``$ConnectionString``, and hashes begin with ``$argon2id$``."""
_BROKEN = re.compile(r"\$\{(?![A-Za-z0-9_.\-]+\})")


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A string that may hold references; shows its template wherever it is written."""

    template: str

    def __repr__(self) -> str:
        return f"Secret({self.template!r})"

    def __str__(self) -> str:
        return self.template

    def dump(self, *, masked: bool = True) -> str:
        """Return the template: what an echo and a save write."""
        return self.template

    def names(self) -> list[str]:
        """Return the names it refers to, in order."""
        return REFERENCE.findall(self.template)

    @property
    def is_broken(self) -> bool:
        """Whether a ``${`` starts no legal reference."""
        return _BROKEN.search(self.template) is not None

    @property
    def lacks_braces(self) -> bool:
        """Whether it looks as if it named a variable without braces."""
        return _VARIABLE.search(self.template) is not None


class Secrets:
    """Where references are looked up: the environment first, then the secrets file."""

    def __init__(
        self, filed: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None
    ) -> None:
        self._filed = filed or {}
        self._environ = os.environ if environ is None else environ
        self.redact = Redaction()
        """Hides what was resolved here: for texts of which nobody knows what they are about."""

    def lookup(self, name: str) -> str | None:
        """Return the value of one name, or None."""
        found = self._environ.get(name)
        return self._filed.get(name) if found is None else found

    def faults(self, secret: Secret) -> Iterator[Fault]:
        """Yield why it does not resolve: each name that nothing answers, or a broken reference.

        None repeats the template: beside its references, part of a credential may be written out.
        """
        if secret.is_broken:
            yield Fault(
                "unresolved-secret",
                "a '${' here starts no reference",
                expected="${NAME}, with letters, digits, '_', '.' and '-' in the name",
            )
        unresolved = (name for name in secret.names() if self.lookup(name) is None)
        for name in dict.fromkeys(unresolved):
            yield Fault(
                "unresolved-secret",
                f"nothing resolves '${{{name}}}': looked in the environment and the secrets file",
                found=f"${{{name}}}",
                expected=f"an environment variable {name} or an entry in the --secrets file",
            )

    def resolve(self, secret: Secret, owner: Hidden | None = None) -> str:
        """Return the value; the resolved text is not scanned again.

        What is written out in the template is hidden for good, or until its ``owner`` lets go.

        Raises:
            UnresolvedSecret: a name nothing answers, or a ``${`` that starts no legal reference.
        """
        for fault in self.faults(secret):
            raise UnresolvedSecret(fault)
        value = REFERENCE.sub(lambda match: self.lookup(match[1]) or "", secret.template)
        self.redact.learn(secret.template, value, self.lookup, owner)
        return value
