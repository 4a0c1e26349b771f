"""Parameters of a query that have to be right: a malformed one is refused, and told what would do.

Those that were there before these take what they cannot read for absent, and go on doing so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import falcon.asgi
from msgspec import Meta

from headrace.compiler.errors import HeadraceError
from headrace.compiler.text.diagnostics import printable
from headrace.compiler.text.suggest import one_of
from headrace.web.endpoint import Query

W = TypeVar("W", bound=str)

_MOST_SHOWN = 100
_MOST_DIGITS = 15


class WrongParameter(HeadraceError):
    """A parameter of a query has a value that it does not take."""

    def __init__(self, name: str, found: str, expected: str) -> None:
        shown = printable(found[:_MOST_SHOWN])
        super().__init__(f"the parameter '{name}' is '{shown}': expected {expected}")


@dataclass(frozen=True, slots=True)
class WholeNumber:
    """A parameter that is a whole number; absent it is ``default``."""

    name: str
    meaning: str
    default: int
    least: int = 0
    most: int = 10**_MOST_DIGITS - 1

    @property
    def query(self) -> Query:
        """How it is described."""
        bounds = {"maximum": self.most, "default": self.default}
        kind = Annotated[int, Meta(ge=self.least, extra_json_schema=bounds)]
        return Query(self.name, self.meaning, kind)

    def of(self, req: falcon.asgi.Request) -> int:
        """Return the number that a request has.

        Raises:
            WrongParameter: it is none, or too small or large.
        """
        return self.number(text_of(req, self.name))

    def number(self, text: str | None) -> int:
        """Return the number that a text stands for.

        Raises:
            WrongParameter: it is none, or too small or large.
        """
        if text is None:
            return self.default
        is_number = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
        if not is_number or not self.least <= int(text) <= self.most:
            expected = f"a whole number from {self.least:,} to {self.most:,}"
            raise WrongParameter(self.name, text, expected)
        return int(text)


@dataclass(frozen=True, slots=True)
class Word(Generic[W]):
    """A parameter that is one of some words; absent it is ``default``."""

    name: str
    meaning: str
    words: Sequence[W]
    default: W
    schema: Any

    @property
    def query(self) -> Query:
        """How it is described."""
        return Query(self.name, self.meaning, self.schema)

    def of(self, req: falcon.asgi.Request) -> W:
        """Return the word that a request has.

        Raises:
            WrongParameter: it is none of them.
        """
        text = text_of(req, self.name)
        if text is None:
            return self.default
        for word in self.words:
            if text == word:
                return word
        raise WrongParameter(self.name, text, one_of(self.words))


def text_of(req: falcon.asgi.Request, name: str) -> str | None:
    """Return a parameter as it is sent, None where it is absent.

    Raises:
        WrongParameter: it is sent more than once.
    """
    found = req.params.get(name, [])
    return once(name, found if isinstance(found, list) else [found])


def once(name: str, found: Sequence[str]) -> str | None:
    """Return the only one of the values of a parameter, None where there is none.

    Raises:
        WrongParameter: there are several.
    """
    if len(found) > 1:
        raise WrongParameter(name, ", ".join(found), "it once")
    return found[0] if found else None
