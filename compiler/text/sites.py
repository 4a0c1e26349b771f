"""Where something stands in a document."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.compiler.text.diagnostics import Diagnostic, Fault, Path, diagnosed
from headrace.compiler.text.documents import Document


@dataclass(frozen=True)
class Site:
    """Where something stands in a document, and how that place is called.

    The two differ in a file that is a bare list, where ``pipelines[2]`` stands at ``[2]``.
    """

    document: Document | None = None
    at: Path = ()
    called: Path = ()

    def inside(self, *steps: str | int) -> Site:
        """Return a place within this one."""
        return Site(self.document, (*self.at, *steps), (*self.called, *steps))

    def position(self) -> tuple[int, int] | None:
        """Return the line and the column on which it starts."""
        return None if self.document is None else self.document.position(self.at)

    def line(self) -> int | None:
        """Return the line on which it starts."""
        place = self.position()
        return place and place[0]

    def diagnose(self, fault: Fault) -> Diagnostic:
        """Return a fault that was raised here."""
        file = position = None
        if self.document is not None:
            file = self.document.file
            position = self.document.place_of(fault, self.at)
        return diagnosed(fault, file, position, (*self.called, *fault.path))
