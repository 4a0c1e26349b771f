"""An output of a system that nobody has, with a table of how it fails, for tests of what tells of those."""

from __future__ import annotations

from typing import ClassVar

from headrace.compiler.component.catalogue import Catalogue, scan
from headrace.compiler.component.failureclasses import FailureClasses, FailureRow
from headrace.compiler.component.families import Output
from headrace.compiler.component.promises import OutputPromises

SOURCE = "https://ledger.example/codes"


class Ledger(Output, kind="ledger"):
    """Writes down what comes."""

    promises: ClassVar = (
        OutputPromises(row="output", written="it is there", away="is lost", twice="nothing"),
    )
    failure_classes: ClassVar = FailureClasses(
        FailureRow("busy", "unavailable", (503, "LOCKED"), "somebody else writes"),
        FailureRow("full", "unavailable", (507,), "its last page is full", SOURCE),
        FailureRow("closed", "unavailable", ("SHUT",), "it is shut"),
        FailureRow("no_book", "misconfigured", (404,), "there is no `book` of that name", SOURCE),
        FailureRow("torn", "unclear", (), "a page was torn out"),
    )


CATALOGUE = Catalogue([*scan("headrace.operators", "headrace.connectors"), Ledger])
