"""What is wrong or odd about files, as entries of the log."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from headrace.compiler.text.diagnostics import Diagnostic, Severity
from headrace.compiler.text.render import render

log = logging.getLogger("headrace.web")


def log_each(diagnostics: Iterable[Diagnostic]) -> None:
    """Log each of the diagnostics, and in JSON its parts as well."""
    for one in diagnostics:
        level = logging.ERROR if one.severity is Severity.ERROR else logging.WARNING
        log.log(level, "%s", render([one], style="plain"), extra={"diagnostic": one})
