"""The zone of times that tell none: a name of the IANA list."""

from __future__ import annotations

import re
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from headrace.compiler.schema.fields import Text, refused
from headrace.compiler.text.diagnostics import shown

# What `localtime` and the like stand for differs from machine to machine.
_NAME = re.compile(r"UTC|[A-Z][A-Za-z0-9_+-]{0,30}(?:/[A-Za-z0-9_+-]{1,30}){1,3}")


class LocalZone(Text):
    """The name of a zone of the IANA list."""

    type_name = "zone"
    expects = "a name of the IANA list, such as Europe/Berlin or UTC"

    def read(self, value: Any) -> str:
        """Take the name of a zone that is in the tables."""
        name: str = super().read(value)
        try:
            if _NAME.fullmatch(name):
                ZoneInfo(name)
                return name
        except (ZoneInfoNotFoundError, OSError, ValueError):
            pass
        said = f"there is no zone {shown(name)}"
        raise refused("not-a-choice", said, found=name, expected=self.expects)
