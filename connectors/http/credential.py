"""The credential of HTTP, in a header: presented by the output, asked for by the input."""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import replace
from typing import Any

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.errors import BuildRefused, UnresolvedSecret
from headrace.compiler.schema.fields import Name, SecretText, refused
from headrace.compiler.schema.records import option
from headrace.compiler.schema.secrets import Secret
from headrace.compiler.schema.variants import Tagged
from headrace.compiler.text.diagnostics import Fault, shown

# Source: RFC 9110, section 5.6.2 (tokens) and 5.5 (field values).
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NOT_IN_A_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]|^[ \t]|[ \t]$")


class HeaderName(Name):
    """The name of an HTTP header."""

    expects = "a header name: letters, digits and !#$%&'*+.^_`|~-"

    def read(self, value: Any) -> str:
        """Take a name that HTTP allows."""
        name: str = super().read(value)
        if not _TOKEN.fullmatch(name):
            raise refused(
                "illegal-header",
                f"{shown(name)} cannot be the name of a header",
                found=name,
                expected=self.expects,
            )
        return name


class Auth(Tagged):
    """A credential that is presented in a header."""

    @abstractmethod
    def header(self, ctx: Context) -> tuple[str, str]:
        """Return name and value of the header, with the credential in it.

        Raises:
            BuildRefused: it does not resolve, or to nothing, or to what no header carries.
        """

    @abstractmethod
    def presented(self, value: str) -> str:
        """Return the credential that a received header presents; empty when it presents none."""


class Bearer(Auth, tag="bearer", elsewhere="oauth token"):
    """``Authorization: Bearer <token>``."""

    token: Secret = option(
        SecretText(), "The token, usually a ${NAME} reference.", elsewhere="value"
    )

    def header(self, ctx: Context) -> tuple[str, str]:
        """Return the Authorization header."""
        return "Authorization", "Bearer " + _credential(ctx, self.token, "token")

    def presented(self, value: str) -> str:
        """Return what follows the scheme, which is written in any case."""
        scheme, _, token = value.partition(" ")
        return f"Bearer {token.lstrip(' ')}" if scheme.lower() == "bearer" else ""


class Header(Auth, tag="header", elsewhere="api_key apikey"):
    """A header of your choice with an exact value."""

    name: str = option(
        HeaderName(), "Name of the header; the case does not matter.", elsewhere="header key"
    )
    value: Secret = option(
        SecretText(), "The exact value, usually a ${NAME} reference.", elsewhere="token"
    )

    def header(self, ctx: Context) -> tuple[str, str]:
        """Return the header as configured."""
        return self.name, _credential(ctx, self.value, "value")

    def presented(self, value: str) -> str:
        """Return the whole value."""
        return value


def _credential(ctx: Context, secret: Secret, key: str) -> str:
    """Return the value of a secret of ``auth`` that can stand in a header."""
    path = ("auth", key)
    try:
        value = ctx.resolve(secret)
    except UnresolvedSecret as cause:
        raise UnresolvedSecret(replace(cause.fault, path=path)) from cause
    if not value:
        raise BuildRefused(Fault("empty-credential", f"'{key}' resolves to nothing", path=path))
    if _NOT_IN_A_VALUE.search(value):
        raise BuildRefused(
            Fault(
                "illegal-header",
                f"'{key}' resolves to what no header can carry",
                expected="no line breaks or control characters, and no blanks around it",
                path=path,
            )
        )
    return value
