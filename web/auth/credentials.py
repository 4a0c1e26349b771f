"""What is posted to sign in. What it holds is shown nowhere: no error, no repr, no line of the log."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError

from headrace.compiler.schema.fields import Text
from headrace.compiler.schema.records import Record, json_type, option
from headrace.compiler.text.diagnostics import Fault


class SignInCredential:
    """A string that was given to prove something."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return "Given(***)"


class GivenText(Text):
    """A string of which no error tells more than that it is none."""

    def wrong(self, value: Any) -> ValidationError:
        """Return the error for a value of another type, which is told."""
        found = json_type(value)
        fault = Fault("wrong-type", f"expected {self.expects}, found {found}", found, self.expects)
        return ValidationError([fault])

    def read(self, value: Any) -> SignInCredential:
        """Take a string."""
        return SignInCredential(super().read(value))


class LoginRequest(Record):
    """A name and a password."""

    username: SignInCredential = option(GivenText(), "The name of an account.")
    password: SignInCredential = option(GivenText(), "Its password.")


class TokenLoginRequest(Record):
    """A token."""

    token: SignInCredential = option(
        GivenText(), "What the identity provider has issued: the JWT alone."
    )
