"""A server's inputs captured by the installed command, and played through two configs."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.clients import HOST, PATIENCE
from tests.forked import run, serving
from tests.redis_sides import client
from tests.server import COMMAND, Server, end_with_parent, environment, settled
from tests.services.redis import Redis
from tests.stopwatch import Stopwatch
from tests.whole.figures import Figure
from tests.whole.linking import linked

HOT = {"type": "filter", "Numeric": {"field": "temp", "operator": "greater_than", "value": 50}}
POSTED = {"id": "posted", "inputs": [{"type": "http"}], "transforms": [HOT]}
PUBLISHED = {
    "id": "published",
    "inputs": [{"type": "redis", "connection": "bus", "channel": "captured"}],
    "transforms": [HOT],
}
HOSTILE = (
    b"{",
    b"1e400",
    b'"\\ud800"',
    b"\x00\x1b[31m\x07",
    b"\xff\xfe",
    b'{"temp":123456789012345678901234567890}',
    b'{"temp":1e308,"n":1.50}',
)
LARGE = 16 * 1024 * 1024 - 1024
LONGEST_HOLD = 0.5
"""Seconds that another request waits at most, on a machine that is busy."""


class Capturing:
    """A running `headrace capture`, and the file that it writes."""

    def __init__(self, process: subprocess.Popen[str], file: Path) -> None:
        self.process, self.file = process, file

    def until(self, holds: Callable[[bytes], bool]) -> None:
        """Wait until the file holds something."""
        watch = Stopwatch()
        while not holds(self.file.read_bytes()):
            assert watch.seconds < PATIENCE, self.file.read_bytes()[-500:]
            assert self.process.poll() is None, self.process.communicate()

    def interrupt(self) -> tuple[int, str]:
        """Send what Ctrl-C sends; return the exit code and what was said."""
        self.process.send_signal(signal.SIGINT)
        _, said = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, said

    def lines(self) -> list[Any]:
        """Return the lines of the file."""
        return [json.loads(line) for line in self.file.read_bytes().splitlines()]


@contextmanager
def capturing(
    folder: Path,
    server: Server,
    *options: str,
    extra: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Capturing]:
    """Run the command until the block ends, once it has begun."""
    file = folder / "c.ndjson"
    with open(file, "wb") as out:
        process = subprocess.Popen(
            [str(COMMAND), "capture", "--url", f"http://{HOST}:{server.port}", *options],
            cwd=folder,
            env=environment() | extra,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=end_with_parent,
        )
    with process:
        try:
            found = Capturing(process, file)
            found.until(lambda text: text.count(b"\n") >= 1)
            yield found
        finally:
            process.kill()


def diff(folder: Path, new: Any, *options: str) -> subprocess.CompletedProcess[str]:
    """Compare the config of the folder with another one."""
    (folder / "new.json").write_text(json.dumps(new))
    (folder / "new.connections.json").write_bytes((folder / "config.connections.json").read_bytes())
    return run(folder, "diff", "config.json", "new.json", "--capture", "c.ndjson", *options)


def records(text: bytes) -> int:
    """Return how many lines tell of something that arrived."""
    return text.count(b'"to":')


def test_what_was_posted_and_published_differs_exactly_where_another_config_does(
    tmp_path: Path, redis_server: Redis
) -> None:
    options = linked(tmp_path, {"bus": {"type": "redis", "url": redis_server.url}})
    config = [POSTED, PUBLISHED]
    with (
        serving(tmp_path, config, *options) as server,
        client(redis_server) as publisher,
        capturing(tmp_path, server, "--for", "5m") as capture,
    ):
        for temp in (40, 60, 80):
            assert server.post("posted", {"temp": temp}).status == 202
        for payload in (b'{"temp":40}', b'{"temp":70}', *HOSTILE):
            publisher.publish("captured", payload)
        capture.until(lambda text: b"1.50" in text and records(text) >= 5)
        code, said = capture.interrupt()

    assert code == 0
    assert said.startswith("ended (interrupted) after ")
    *_, last = lines = capture.lines()
    assert last["end"] == "interrupted"
    arrived = [line for line in lines if line.get("to") == "published.inputs[0]"]
    raw = [line[key] for line in arrived for key in ("raw", "base64") if key in line]
    assert raw == ["{", "1e400", '"\\ud800"', "\x00\x1b[31m\x07", "//4="]
    messages = [message for line in arrived for message in line.get("batch", [])]
    assert [each["temp"] for each in messages] == [40, 70, int("1234567890" * 3), 1e308]

    same = diff(tmp_path, config)
    assert (same.returncode, same.stderr) == (0, "")
    assert "the same came of" in same.stdout
    hotter = json.loads(json.dumps(config).replace("50", "65"))
    different = diff(tmp_path, hotter)
    assert different.returncode == 1
    assert re.findall(r"never came: (.*)", different.stdout) == ['{"temp": 60}']
    assert "nobody expected" not in different.stdout


class Enriching(BaseHTTPRequestHandler):
    """Answers each message with its site; refuses what is too hot, and repeats the credential then."""

    def do_POST(self) -> None:
        messages = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_fine = all(each["temp"] < 100 for each in messages)
        self.send_response(200 if is_fine else 422)
        self.end_headers()
        answer = [{**each, "site": "north"} for each in messages]
        said = f"you sent {self.headers['Authorization']}"
        self.wfile.write(json.dumps(answer).encode() if is_fine else said.encode())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def test_servers_of_transforms_answer_from_the_capture_when_they_are_gone(tmp_path: Path) -> None:
    options = linked(tmp_path, {})
    with HTTPServer((HOST, 0), Enriching) as enriching:
        thread = threading.Thread(target=enriching.serve_forever)
        thread.start()
        url = f"http://ann:open-sesame@{HOST}:{enriching.server_port}/enrich"
        asks = {"type": "http", "url": url, "verb": "POST"}
        config = [{**POSTED, "transforms": [HOT, asks]}]
        try:
            with (
                serving(tmp_path, config, *options) as server,
                capturing(tmp_path, server) as capture,
            ):
                for temp in (40, 60, 70, 120):
                    server.post("posted", {"temp": temp})
                capture.until(lambda text: text.count(b'"reply":') == 3)
                capture.interrupt()
        finally:
            enriching.shutdown()
            thread.join()

    assert b"sesame" not in capture.file.read_bytes()
    assert b"you sent" not in capture.file.read_bytes()
    same = diff(tmp_path, config)
    assert (same.returncode, same.stderr) == (0, "")
    hotter = json.loads(json.dumps(config).replace("50", "65"))
    different = diff(tmp_path, hotter)
    assert re.findall(r"never came: (.*)", different.stdout) == ['{"temp": 60, "site": "north"}']
    colder = json.loads(json.dumps(config).replace("50", "30"))
    unknown = diff(tmp_path, colder)
    assert unknown.returncode == 1
    assert "posted.transforms[1]: the capture has none to 1 requests" in unknown.stdout


def test_a_batch_of_16_mib_is_captured_whole_and_others_are_answered_meanwhile(
    tmp_path: Path, figure: Figure
) -> None:
    messages = [{"temp": number, "text": "x" * 80} for number in range(LARGE // 120)]
    body = json.dumps(messages).encode()
    assert LARGE * 0.8 < len(body) < LARGE
    longest = 0.0
    with (
        serving(tmp_path, [POSTED]) as server,
        capturing(tmp_path, server, "--max", "100MiB") as capture,
    ):
        assert server.request("POST", "/api/pipelines/posted/messages", body).status == 202

        def holds(text: bytes) -> bool:
            nonlocal longest
            watch = Stopwatch()
            assert server.get("/livez").status == 200
            longest = max(longest, watch.seconds)
            return records(text) >= 1

        capture.until(holds)
        assert capture.interrupt()[0] == 0

    figure("longest answer while 16 MiB are captured (s)", round(longest, 3))
    [line] = [each for each in capture.lines() if "to" in each]
    assert line["batch"] == messages
    assert longest < LONGEST_HOLD


def test_a_client_that_does_not_read_loses_records_and_no_post_waits(tmp_path: Path) -> None:
    body = json.dumps([{"temp": 60, "text": "x" * 1000}] * 200).encode()
    with serving(tmp_path, [POSTED]) as server:
        with closing(HTTPConnection(HOST, server.port, timeout=PATIENCE)) as reader:
            reader.request("GET", "/api/capture?bytes=1000000000")
            stream = reader.getresponse()
            assert stream.status == 200
            with closing(server.client()) as poster:
                for _ in range(150):  # 30 MB: what waits for it, and what sockets hold, is full
                    path = "/api/pipelines/posted/messages"
                    assert poster.request("POST", path, body).status == 202
            server.signal()
            text = stream.read()
        assert server.ended() == 0

    lines = [json.loads(line) for line in text.splitlines() if line]
    assert lines[-1]["end"] == "stopped"
    assert lines[-1]["dropped"] > 0
    assert sum(each.get("gap", 0) for each in lines) == lines[-1]["dropped"]
    assert lines[-1]["records"] + lines[-1]["dropped"] == 150
    assert sum("to" in each for each in lines) == lines[-1]["records"]


def test_only_an_admin_captures_and_credentials_are_in_the_environment(tmp_path: Path) -> None:
    accounts = {
        "ann": {"password": "correct-horse", "role": "admin"},
        "bob": {"password": "battery-staple"},
    }
    options = settled(tmp_path, auth={"type": "basic", "users": accounts})
    with serving(tmp_path, [POSTED], *options) as server:
        url = f"http://{HOST}:{server.port}"

        def told(**given: str) -> tuple[int, str]:
            ended = subprocess.run(
                [str(COMMAND), "capture", "--url", url, "--for", "1s"],
                env=environment() | given,
                capture_output=True,
                text=True,
                check=False,
            )
            return ended.returncode, ended.stderr

        nobody = told()
        reader = told(HEADRACE_USER="bob", HEADRACE_PASSWORD="battery-staple")
        wrong = told(HEADRACE_USER="ann", HEADRACE_PASSWORD="guessed-at-it")
        admin = told(HEADRACE_USER="ann", HEADRACE_PASSWORD="correct-horse")
        credential = {"HEADRACE_USER": "ann", "HEADRACE_PASSWORD": "correct-horse"}
        with capturing(tmp_path, server, "--redact", "name", extra=credential) as capture:
            for name in ("Ann Plum", "Bob Pear", "Ann Plum"):
                server.post("posted", {"temp": 60, "name": name})
            capture.until(lambda text: records(text) == 3)
            capture.interrupt()

    assert nobody[0] == wrong[0] == reader[0] == 1
    assert "put a token into HEADRACE_TOKEN, or name and password into HEADRACE_USER" in nobody[1]
    assert "captureMessages: needs 'admin', 'bob' has 'read'" in reader[1]
    assert admin == (5, admin[1])
    assert admin[1].startswith("ended (seconds) after ")
    text = capture.file.read_text()
    names = [line["batch"][0]["name"] for line in capture.lines() if "to" in line]
    assert names[0] == names[2] != names[1]
    assert not any(word in text for word in ("Plum", "Pear", "horse"))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"http://{HOST}:1", "no server answers at http://127.0.0.1:1: connection refused"),
        ("ftp://x", "--url is 'ftp://x': expected an http or https url"),
        ("http://ann:secret@x", "--url has a credential, which everybody on this machine can see"),
        ("http://x:y", "--url is no url"),
    ],
)
def test_what_cannot_be_asked_is_told(tmp_path: Path, url: str, said: str) -> None:
    told = run(tmp_path, "capture", "--url", url)

    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr.startswith(said)
    assert "secret" not in told.stderr


@pytest.mark.long
def test_a_capture_holds_no_credential_of_the_config_nor_of_who_posts(tmp_path: Path) -> None:
    words = ("door", "key", "user", "pass", "query", "value", "login", "token")
    planted = {word: f"Zq{number}xyzzy{word}" for number, word in enumerate(words)}
    header = {"type": "header", "name": "X-Key", "value": "${HEADER_KEY}"}
    asked = f"http://{planted['user']}:{planted['pass']}@127.0.0.1:9/?key={planted['query']}"
    bearer = {"type": "bearer", "token": planted["door"]}
    told = {"type": "merge"}
    config = [
        {"id": "door", "inputs": [{"type": "http", "auth": bearer, "envelope": told}]},
        {
            "id": "key",
            "inputs": [{"type": "http", "auth": header, "envelope": told}],
            "transforms": [{"type": "http", "verb": "POST", "url": asked}],
        },
    ]
    accounts = {"ann": {"password": planted["login"], "role": "admin"}}
    options = settled(tmp_path, auth={"type": "basic", "users": accounts})
    (tmp_path / "secrets.json").write_text(json.dumps({"HEADER_KEY": planted["value"]}))
    headers = {
        "door": {"Authorization": f"Bearer {planted['door']}"},
        "key": {"X-Key": planted["value"], "Cookie": f"a={planted['token']}"},
    }
    credential = {"HEADRACE_USER": "ann", "HEADRACE_PASSWORD": planted["login"]}
    with (
        serving(tmp_path, config, *options, "--secrets", "secrets.json") as server,
        capturing(tmp_path, server, extra=credential) as capture,
    ):
        for id, given in headers.items():
            with closing(HTTPConnection(HOST, server.port, timeout=PATIENCE)) as client:
                client.request("POST", f"/api/pipelines/{id}/messages", b'{"n":1}', given)
                assert client.getresponse().status == 202
        capture.until(lambda text: records(text) == 2 and b'"reply"' in text)
        _, said = capture.interrupt()

    text = capture.file.read_text() + said
    assert '"meta":{' in text, "what envelopes tell is there"
    assert [word for word, value in planted.items() if value in text] == []
