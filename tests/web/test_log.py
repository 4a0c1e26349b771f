"""The log: one line an entry."""

from __future__ import annotations

import logging
import sys

from headrace.web.log import OneLine


def logged(message: str, *arguments: object, exc_info: object = None) -> str:
    record = logging.LogRecord(
        "headrace.pipeline",
        logging.WARNING,
        "",
        0,
        message,
        arguments,
        exc_info,  # type: ignore[arg-type]
    )
    record.created = 1772352000.5
    return OneLine().format(record)


def test_an_entry_is_time_level_and_message() -> None:
    assert logged("pipeline '%s' %s: odd", "p", "inputs[0]") == (
        "2026-03-01T08:00:00.500+00:00 WARNING pipeline 'p' inputs[0]: odd"
    )


def test_line_breaks_are_folded_so_that_no_payload_forges_an_entry() -> None:
    line = logged("skipped: %s", "x\n2026-03-01T08:00:00.500+00:00 ERROR all is lost\r\u2028y")

    assert len(line.splitlines()) == 1


def test_a_traceback_follows_its_entry() -> None:
    try:
        raise ValueError("odd")
    except ValueError:
        lines = logged("broke", exc_info=sys.exc_info()).splitlines()

    assert lines[0].endswith("WARNING broke")
    assert lines[-1] == "ValueError: odd"
