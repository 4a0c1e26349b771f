"""Paths as options hold them."""

from __future__ import annotations

from typing import Any

from headrace.compiler.schema.fields import Name, refused
from headrace.compiler.text.diagnostics import shown


class FilePath(Name):
    """A path as a file system takes it."""

    expects = "a path"

    def read(self, value: Any) -> str:
        """Take a path without the one character that ends it for the system."""
        path: str = super().read(value)
        if "\0" in path:
            raise refused(
                "control-character", "a path holds no NUL character", expected=self.expects
            )
        return path


class InnerPath(FilePath):
    """A path that stays under the directory it is relative to, links aside."""

    expects = "a relative path without '.' and '..'"

    def read(self, value: Any) -> str:
        """Take a relative path that only descends."""
        path = super().read(value)
        if path.startswith("/") or {".", ".."} & set(path.split("/")):
            raise refused(
                "outside-root",
                f"expected {self.expects}, found {shown(path)}",
                found=path,
                expected=self.expects,
            )
        return path
