"""`headrace capture` beside servers that are none, refuse, break off or say too much."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headrace.web.commands.capturing import Wanted, capture
from headrace.web.commands.cli import commands
from tests.authoring.language.test_capturefile import HEADER
from tests.clients import HOST

FIRST = json.dumps(HEADER, separators=(",", ":")).encode() + b"\n"
LINE = b'{"at":1.0,"to":"p.inputs[0]","batch":[1]}\n'
END = b'{"at":2.0,"end":"seconds","records":1,"dropped":3}\n'


@contextmanager
def answering(status: int, body: bytes) -> Iterator[tuple[str, list[Any]]]:
    """Give the url of a server that answers so, and what it is asked."""
    asked: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers.get("Authorization")))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with HTTPServer((HOST, 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://{HOST}:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def captured(status: int, body: bytes, **environment: str) -> tuple[int, bytes, str, list[Any]]:
    out, err = io.BytesIO(), io.StringIO()
    with answering(status, body) as (url, asked):
        code = capture(Wanted(f"{url}/below/", environment=environment), out, err)
    return code, out.getvalue(), err.getvalue(), asked


def test_lines_are_written_as_they_come_and_blank_ones_left_out() -> None:
    gap = b'{"at":1.5,"gap":3}\n'

    code, text, said, _ = captured(200, FIRST + b"\n" + LINE + gap + b"\n\n" + END)

    assert (code, text) == (0, FIRST + LINE + gap + END)
    assert said.startswith("ended (seconds) after 0 s: 1 records, ")
    assert said.endswith(", 3 dropped\n")


def test_a_server_that_breaks_off_leaves_whole_lines() -> None:
    code, text, said, _ = captured(200, FIRST + LINE + LINE[:20])

    assert (code, text) == (1, FIRST + LINE)
    assert said.startswith("the server broke off after 0 s: 1 records")


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b"<html>hello\n", "this is no headrace server: its answer is no capture\n"),
        (200, b"", "this is no headrace server: its answer is no capture\n"),
        (404, b"<html>no", "is no headrace server, or one without captures: it answers 404"),
        (500, b"{", "is no headrace server, or one without captures: it answers 500"),
        (401, b'{"error":"nobody"}', "nobody: put a token into HEADRACE_TOKEN, or name"),
        (403, b'{"error":"needs admin"}', "needs admin\n"),
        (503, b'{"error":"a\\u001b[31m\\nb"}', "a\\x1b[31m\\nb\n"),
    ],
)
def test_what_is_no_capture_is_told(status: int, body: bytes, said: str) -> None:
    code, text, told, _ = captured(status, body)

    assert (code, text) == (1, b"")
    assert said in told


def test_the_credential_comes_from_the_environment() -> None:
    *_, asked = captured(200, FIRST + END, HEADRACE_TOKEN="t-o.k", HEADRACE_USER="ann")
    assert asked == [("/below/api/capture?seconds=600&bytes=67108864", "Bearer t-o.k")]

    *_, asked = captured(200, FIRST + END, HEADRACE_USER="ann", HEADRACE_PASSWORD="plüm")
    assert asked[0][1] == "Basic YW5uOnBsw7xt"

    code, _, said, asked = captured(200, FIRST, HEADRACE_TOKEN="a\r\nX: y")
    assert (code, asked) == (1, [])
    assert said == "HEADRACE_TOKEN has characters that no token has\n"


@pytest.mark.parametrize(
    ("options", "query"),
    [
        (["--for", "90s", "--max", "1KiB"], "seconds=90&bytes=1024"),
        (["--for", "1h", "--max", "5"], "seconds=3600&bytes=5"),
        (
            ["--pipeline", "a b", "--pipeline", "c&d", "--redact", "$meta.x"],
            "pipeline=a%20b&pipeline=c%26d&seconds=600&bytes=67108864&redact=%24meta.x",
        ),
    ],
)
def test_options_are_asked_for(options: list[str], query: str) -> None:
    with answering(200, FIRST + LINE + END) as (url, asked):
        result = CliRunner().invoke(commands, ["capture", "--url", url, *options])

    assert result.exit_code == 0
    assert result.stdout_bytes == FIRST + LINE + END
    assert asked == [(f"/api/capture?{query}", None)]


@pytest.mark.parametrize(
    "options",
    [
        ["--for", "0s"],
        ["--for", "2d"],
        ["--for", "soon"],
        ["--for", "10"],
        ["--max", "0"],
        ["--max", "2GiB"],
        ["--max", "64mb"],
        ["--max", "KiB"],
        ["--max", "-1"],
        ["--token", "x"],
    ],
)
def test_what_no_option_takes_is_a_mistake_of_usage(options: list[str], tmp_path: Path) -> None:
    assert CliRunner().invoke(commands, ["capture", *options]).exit_code == 2


@pytest.mark.parametrize(
    "line",
    [
        b'{"at":garbage',
        b'{"at":1,"gap":"x"}',
        b'{"at":1,"gap":1e400}',
        b'{"at":1,"dropped":[1]}',
        b'{"at":' + b"[" * 200_000,
    ],
)
def test_a_line_that_makes_no_sense_is_written_as_it_is(line: bytes) -> None:
    code, out, err, _ = captured(200, FIRST + LINE + line + b"\n" + END)

    assert (code, out) == (0, FIRST + LINE + line + b"\n" + END)
    assert err.startswith("ended (seconds)")


def test_a_line_that_does_not_end_fills_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = io.BytesIO(), io.StringIO()
    with answering(200, FIRST + b"x" * 200_000) as (url, _):
        code = capture(Wanted(url, bytes=100_000, environment={}), out, err)

    assert (code, out.getvalue()) == (1, FIRST)
    assert err.getvalue() == "the server sends a line that is larger than all of the capture\n"


def test_what_a_server_says_too_much_of_is_cut() -> None:
    deep, long = b"[" * 60_000, b'{"error":"%b"}' % (b"x" * 60_000)

    assert "is no headrace server" in captured(500, deep)[2]
    assert len(captured(500, long)[2]) < 1100


@pytest.mark.parametrize(
    "url", ["http://\udcff", "http://a\x00b", f"http://{'a' * 70}", "http://a/é"]
)
def test_an_address_that_cannot_be_is_told(url: str) -> None:
    err = io.StringIO()

    assert capture(Wanted(url, environment={}), io.BytesIO(), err) == 1
    assert err.getvalue().startswith("--url is ")
