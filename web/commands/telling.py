"""What a start tells on standard error: as text for whoever started it, or as entries of the log."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping, Sequence

from headrace.compiler.text.diagnostics import Diagnostic, in_file_order
from headrace.compiler.text.render import render
from headrace.web.commands.check import style_for
from headrace.web.files.fileremarks import log_each
from headrace.web.process.log import Form, StandardError

log = logging.getLogger("headrace.web")


class StartReport:
    """Tells how a start went. In JSON an entry for each thing, so that no line is anything else."""

    def __init__(self, errors: StandardError, form: Form) -> None:
        self._errors = errors
        self._is_json = form == "json"

    def runs(self, where: str, to_try: Sequence[str]) -> None:
        """Tell what runs and where; and commands to try, for people alone."""
        if self._is_json:
            log.info("%s", where)
        else:
            said = f"{where}, try:" if to_try else where
            print("\n  ".join([said, *to_try]), file=self._errors)

    def refused(self, diagnostics: Iterable[Diagnostic], sources: Mapping[str, str]) -> None:
        """Tell all that is wrong with the files, in their order."""
        said = in_file_order(diagnostics)
        if self._is_json:
            log_each(said)
        else:
            print(render(said, style=style_for(sys.stderr), sources=sources), file=self._errors)

    def not_started(self, reason: object) -> None:
        """Tell what was not to be had."""
        if self._is_json:
            log.error("%s", reason)
        else:
            print(f"headrace: {reason}", file=self._errors)
