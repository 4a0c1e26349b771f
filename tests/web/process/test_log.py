"""The log: one line an entry."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import logging
import os
import re
import sys
from collections.abc import Iterator

import pytest

from headrace.compiler.schema.secrets import Secret, Secrets
from headrace.compiler.text.diagnostics import Diagnostic
from headrace.web.process.log import MOST_WAITING, JsonLine, OneLine, StandardError, configure


class ClientRequest:
    """As the event loop names what aiohttp runs."""

    async def write_bytes(self, cause: Exception) -> None:
        raise cause

    async def read(self, cause: Exception) -> None:
        raise cause


def record(message: str, *arguments: object, exc_info: object = None) -> logging.LogRecord:
    made = logging.LogRecord(
        "headrace.pipeline",
        logging.WARNING,
        "",
        0,
        message,
        arguments,
        exc_info,  # type: ignore[arg-type]
    )
    made.created = 1772352000.5
    return made


def logged(message: str, *arguments: object, exc_info: object = None) -> str:
    return OneLine().format(record(message, *arguments, exc_info=exc_info))


def as_json(message: str, *arguments: object, exc_info: object = None) -> str:
    return JsonLine().format(record(message, *arguments, exc_info=exc_info))


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
    assert lines[-1] == "    ValueError: odd"


def test_what_does_not_print_is_written_as_an_escape() -> None:
    assert logged("pipeline '%s'", "\x1b[2Ja\u202eb\0").endswith(r"'\x1b[2Ja\u202eb\x00'")


def test_a_traceback_forges_no_entry() -> None:
    try:
        raise ValueError("odd\n2026-03-01T08:00:00.500+00:00 ERROR \x1b[2J")
    except ValueError:
        lines = logged("broke", exc_info=sys.exc_info()).splitlines()

    assert all(line.startswith("    ") and line.isprintable() for line in lines[1:])


def test_an_entry_can_be_an_object() -> None:
    assert as_json("odd") == (
        '{"time": "2026-03-01T08:00:00.500+00:00", "level": "WARNING", '
        '"logger": "headrace.pipeline", "message": "odd"}'
    )


def test_an_object_tells_the_pipeline_and_the_place_that_it_is_about() -> None:
    entry = json.loads(as_json("pipeline '%s' %s: %s", "straße\n1", "inputs[0]", "odd"))
    broken = json.loads(as_json("pipeline '%s': an output did not finish in time", "p"))

    assert (entry["pipeline"], entry["place"]) == ("straße\n1", "inputs[0]")
    assert entry["message"] == "pipeline 'straße 1' inputs[0]: odd"
    assert (broken["pipeline"], "place" in broken) == ("p", False)


def test_an_object_of_failures_has_their_count() -> None:
    made = record("pipeline '%s' %s: %s", "p", "outputs[0]", "7 more: full")
    made.count = 7

    entry = json.loads(JsonLine().format(made))

    assert (entry["message"], entry["count"]) == ("pipeline 'p' outputs[0]: 7 more: full", 7)


def test_an_object_of_a_diagnostic_has_its_parts() -> None:
    diagnostic = Diagnostic(code="unknown-key", message="unknown key 'a'", line=3)
    made = record("%s", "3: unknown key 'a'")
    made.diagnostic = diagnostic

    assert json.loads(JsonLine().format(made))["diagnostic"] == diagnostic.as_json()


@pytest.mark.parametrize(
    "forged", ["\n", "\r", "\u2028", "\x1b[2J", "\u202e", "\0", '"', "\\", "\ud800"]
)
def test_an_object_stands_on_one_line_that_prints(forged: str) -> None:
    try:
        raise ValueError(forged)
    except ValueError:
        line = as_json("pipeline '%s'", forged, exc_info=sys.exc_info())

    assert line.isprintable()
    assert json.loads(line)["pipeline"] == forged


def test_an_object_has_the_traceback_in_it() -> None:
    try:
        raise ValueError("odd\x1b")
    except ValueError:
        entry = json.loads(as_json("broke", exc_info=sys.exc_info()))

    lines = entry["traceback"].split("\n")
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == r"ValueError: odd\x1b"


@pytest.fixture
def loggers() -> Iterator[None]:
    """Put back what a configuration changes."""
    named = [logging.getLogger(name) for name in (None, "headrace", "uvicorn", "asyncio", "mqtt")]
    levels, handlers = [each.level for each in named], logging.root.handlers[:]
    yield
    for each, level in zip(named, levels, strict=True):
        each.setLevel(level)
    logging.root.handlers[:] = handlers


def test_drivers_are_silent_and_debugging_shows_their_warnings(loggers: None) -> None:
    def said(*, is_debug: bool) -> list[str]:
        configure(stream := io.StringIO(), is_debug=is_debug)
        for name in ("aiokafka.conn", "nats.aio.client", "mqtt", "redis", "headrace.pipeline"):
            logging.getLogger(name).error("%s lost", name)
            logging.getLogger(name).info("%s found", name)
        logging.getLogger("asyncio").warning("slow")
        return [line.split(" ", 2)[2] for line in stream.getvalue().splitlines()]

    logging.getLogger("mqtt").setLevel(logging.WARNING)  # as a driver may when it is imported
    ours = ["headrace.pipeline lost", "headrace.pipeline found", "slow"]
    drivers = ["aiokafka.conn lost", "nats.aio.client lost", "mqtt lost", "redis lost"]
    assert said(is_debug=False) == ours
    assert said(is_debug=True) == drivers + ours


def test_a_server_that_hangs_up_over_tls_is_not_told_by_the_event_loop(loggers: None) -> None:
    written = io.StringIO()
    configure(written, is_debug=False)

    logging.getLogger("asyncio").warning(
        "returning true from eof_received() has no effect when using ssl"
    )
    logging.getLogger("asyncio").warning("a callback took too long")

    [line] = written.getvalue().splitlines()
    assert line.endswith("WARNING a callback took too long")


async def test_a_request_that_is_cut_off_as_it_begins_is_not_told_by_the_event_loop(
    loggers: None,
) -> None:
    written = io.StringIO()
    configure(written, is_debug=False)
    request = ClientRequest()
    for coroutine in (
        request.write_bytes(ConnectionResetError("cut off")),
        request.write_bytes(ValueError("wrong")),
        request.read(ConnectionResetError("not sent")),
    ):
        task = asyncio.get_running_loop().create_task(coroutine)
        await asyncio.wait([task])
        del task, coroutine
    gc.collect()

    said = written.getvalue()
    assert said.count("Task exception was never retrieved") == 2
    assert "ValueError: wrong" in said
    assert "ConnectionResetError: not sent" in said
    assert "cut off" not in said


def test_what_drivers_say_and_what_is_in_tracebacks_is_without_secrets(loggers: None) -> None:
    secrets = Secrets({"PASS": "tr0ub4dor&3"}, {})
    secrets.resolve(Secret("${PASS}"))
    configure(stream := io.StringIO(), is_debug=True).redact = secrets.redact

    logging.getLogger("aiokafka").error("AUTH tr0ub4dor&3 at kafka://app:x@bus")
    try:
        raise ValueError("tr0ub4dor&3")
    except ValueError:
        logging.getLogger("headrace.web").exception("broke")

    driver, *ours = stream.getvalue().splitlines()
    assert driver.endswith(" ERROR AUTH ${PASS} at kafka://app:***@bus")
    assert ours[-1] == "    ValueError: ${PASS}"


def test_objects_are_without_secrets_and_keep_their_keys(loggers: None) -> None:
    secrets = Secrets({"PASS": "message"}, {})
    secrets.resolve(Secret("${PASS}"))
    configure(stream := io.StringIO(), is_debug=True, form="json").redact = secrets.redact

    logging.getLogger("aiokafka").error("AUTH message")
    try:
        raise ValueError("message")
    except ValueError:
        logging.getLogger("headrace.web").exception("broke")

    driver, ours = map(json.loads, stream.getvalue().splitlines())
    assert (driver["logger"], driver["message"]) == ("aiokafka", "AUTH ${PASS}")
    assert ours["traceback"].endswith("ValueError: ${PASS}")


def test_what_was_lost_is_an_object_among_objects() -> None:
    reader, writer = os.pipe()
    errors = StandardError(writer, "json")

    for _ in range(3 * MOST_WAITING):
        errors.write("{}".ljust(999) + "\n")
    with os.fdopen(reader) as lines:
        entry = next(told for line in lines if (told := json.loads(line)))

    assert (entry["level"], entry["logger"]) == ("WARNING", "headrace.web.log")
    assert re.fullmatch(
        r"[\d,]+ entries of the log were lost here: nobody read them", entry["message"]
    )


def test_a_log_that_nobody_reads_holds_nobody_up_and_says_what_was_lost() -> None:
    reader, writer = os.pipe()
    errors = StandardError(writer)
    entry = "x" * 999 + "\n"

    for _ in range(3 * MOST_WAITING):
        errors.write(entry)
    with os.fdopen(reader, "rb") as lines:
        first = next(line for line in lines if line != entry.encode())
        errors.write("here again\n")
        following = next(lines)

    assert re.fullmatch(rb"[\d,]+ entries of the log were lost here: nobody read them\n", first)
    assert following == b"here again\n"


def test_a_log_whose_reader_has_gone_is_written_to_nobody() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    errors = StandardError(writer)

    errors.write("anybody?\n")
    errors.drain()


def test_the_end_does_not_wait_for_a_reader() -> None:
    reader, writer = os.pipe()
    errors = StandardError(writer)

    errors.write("x" * 1_000_000)
    errors.drain(seconds=0)

    os.close(reader)
