"""An option that is a regular expression: one that cannot be used is refused with the config."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from marshmallow import ValidationError

from headrace.compiler.patterns import PatternRefused, pattern
from headrace.compiler.schema.fields import Text
from headrace.compiler.text.diagnostics import Codes, Fault, Spot
from headrace.compiler.text.positions import LineIndex

CODES: Codes = {
    "not-a-pattern": "A regular expression is malformed, too large for its place, or needs the extension.",
}


class PatternText(Text):
    """A regular expression, of `headrace.compiler.patterns`; the option holds its text."""

    type_name = "regular expression"
    expects = "a regular expression"

    def __init__(self, compiles: Callable[[str], object] = pattern) -> None:
        """Take what compiles it: `pattern`, or for a condition `whole_pattern`."""
        self.compiles = compiles
        super().__init__()

    def read(self, value: Any) -> str:
        """Take a text that compiles."""
        text: str = super().read(value)
        try:
            self.compiles(text)
        except PatternRefused as refused:
            spot = None if refused.at is None else Spot(*LineIndex(text).at(refused.at), text=text)
            fault = Fault("not-a-pattern", refused.message, expected=self.expects, spot=spot)
            raise ValidationError([fault]) from refused
        return text
