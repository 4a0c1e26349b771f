"""What stands between the parts of a text, for whoever takes one apart or puts it together."""

from __future__ import annotations

from typing import Any

from headrace.compiler.schema.fields import Text, refused

MOST_PARTS = 10_000
"""Parts that a config may allow: a text of so many numbers is joined in some milliseconds."""

_LONGEST = 20
"""Characters: to look for more may take as many times as long."""


class Separator(Text):
    """A string with something in it, be it blanks."""

    expects = "a string that is not empty"

    def read(self, value: Any) -> str:
        """Take it as it is."""
        text: str = super().read(value)
        if len(text) > _LONGEST:
            raise refused(
                "out-of-range",
                f"a text of {len(text):,} characters is too long here",
                found=value,
                expected=f"at most {_LONGEST} characters",
            )
        if not text:
            raise refused("blank", "this must not be empty", found=value, expected=self.expects)
        return text
