"""What stands between texts, as the forms spell it."""

from __future__ import annotations

from typing import Any

from headrace.compiler.schema.fields import Text, refused


class SeparatorText(Text):
    """What stands between two parts: something, also blanks."""

    expects = "a string of at least one character"

    def read(self, value: Any) -> Any:
        """Take a string that is not empty."""
        text: str = super().read(value)
        if not text:
            raise refused("blank", "this must not be empty", found=value, expected=self.expects)
        return text
