"""`headrace dead-letters` beside a server that tells, refuses, or breaks off."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from headrace.web.commands.cli import commands
from tests.clients import HOST

AT = 1_767_225_601_250
LETTER = {
    **{"id": 7, "pipeline_id": "p q", "stage": "output", "component": 0, "input_index": None},
    **{"class": "invalid", "message": "no\x1b number", "last_seen": AT},
    **{"message_count": 2, "tries": 1},
}
SIGNATURE = {**LETTER, "count": 1_500}
PAGE = {"total": 1, "next": None, "damaged": [], "entries": [LETTER]}
LETTERS = "/api/pipelines/p%20q/dead-letters"
REPLAYED = {"replay": 4, "selected": 2, "done": 2, "failed": 0, "state": "done"}
BEGUN = {"replay": 4, "selected": 2, "config_changed": True, "changed": ["state"]}

Answers = Mapping[str, Any]
"""What is answered, by method and path with its query: a value, or a status and a text, and headers."""


@contextmanager
def answering(answers: Answers) -> Iterator[tuple[str, list[Any]]]:
    """Give the url of a server, and what it is asked: method, path and body."""
    asked: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked.append((f"{self.command} {self.path}", body.decode()))
            found = answers.get(f"{self.command} {self.path}", (404, '{"error": "nothing"}'))
            answer = found if isinstance(found, tuple) else (200, json.dumps(found))
            status, text, *headers = answer
            self.send_response(status)
            for name, value in (headers[0] if headers else {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_POST = do_DELETE = answer

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


def invoked(answers: Answers, *args: str) -> tuple[Result, list[Any]]:
    with answering(answers) as (url, asked):
        result = CliRunner().invoke(commands, ["dead-letters", *args, "--url", url])
    return result, asked


def test_what_failed_alike_is_a_table() -> None:
    result, _ = invoked({"GET /api/dead-letters": [SIGNATURE]}, "list")

    assert result.exit_code == 0
    head, row = result.stdout.splitlines()
    assert [*map(" ".join, (head.split(), row.split()))] == [
        "PIPELINE WHERE LETTERS MESSAGES CLASS LAST SEEN MESSAGE",
        "p q output 0 1,500 2 invalid 2026-01-01T00:00:01+00:00 no\\x1b number",
    ]
    assert head.index("MESSAGES") == row.index("2  ")
    assert head.index("LAST") == row.index("2026")


def test_no_letters_are_told_of_too() -> None:
    result, _ = invoked({"GET /api/dead-letters": []}, "list")

    assert (result.exit_code, result.stdout) == (0, "no dead letters\n")


def test_letters_of_a_pipeline_are_listed_page_by_page() -> None:
    pages = {
        f"GET {LETTERS}?stage=output&limit=3": {**PAGE, "total": 9, "next": 7, "damaged": [8]},
        f"GET {LETTERS}?stage=output&before=7&limit=3": {**PAGE, "entries": [LETTER] * 3},
    }

    result, asked = invoked(pages, "list", "p q", "--stage", "output", "--limit", "3")
    as_json, _ = invoked({f"GET {LETTERS}?limit=200": PAGE}, "list", "p q", "--format", "json")

    assert (result.exit_code, len(asked), len(result.stdout.splitlines())) == (0, 2, 4)
    assert "damaged on the disk: 8" in result.stderr
    assert json.loads(as_json.stdout) == [LETTER]


def test_a_letter_is_shown_as_it_comes() -> None:
    text = '{"id":7,"messages":[1.2300]}'

    result, _ = invoked({f"GET {LETTERS}/7": (200, text)}, "show", "p q", "7")

    assert (result.exit_code, result.stdout) == (0, f"{text}\n")


def test_letters_are_exported_one_a_line(tmp_path: Path) -> None:
    text, file = '{"id":7,"messages":[1.2300]}', tmp_path / "letters.jsonl"
    answers = {f"GET {LETTERS}?limit=200": PAGE, f"GET {LETTERS}/7": (200, text)}

    result, _ = invoked(answers, "export", "p q")
    written, _ = invoked(answers, "export", "p q", "-o", str(file))
    nothing, _ = invoked({f"GET {LETTERS}?limit=200": {**PAGE, "entries": []}}, "export", "p q")

    assert (result.exit_code, result.stdout) == (0, f"{text}\n")
    assert (written.exit_code, file.read_text()) == (0, f"{text}\n")
    assert file.stat().st_mode & 0o777 == 0o600
    assert nothing.exit_code == 5


def test_an_earlier_export_stays_until_another_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "letters.jsonl"
    file.write_text("earlier")
    page = {**PAGE, "entries": [LETTER, {**LETTER, "id": 8}]}
    answers = {f"GET {LETTERS}?limit=200": page, f"GET {LETTERS}/7": (200, "{}")}

    refused, _ = invoked({}, "export", "p q", "-o", str(file))
    in_the_midst, asked = invoked(answers, "export", "p q", "-o", str(file))

    assert [refused.exit_code, in_the_midst.exit_code, len(asked)] == [1, 1, 3]
    assert [(each, each.read_text()) for each in tmp_path.iterdir()] == [(file, "earlier")]


def test_a_letter_that_ends_too_early_is_told_and_is_in_no_file(tmp_path: Path) -> None:
    file = tmp_path / "letters.jsonl"
    answers = {
        f"GET {LETTERS}?limit=200": PAGE,
        f"GET {LETTERS}/7": (200, '{"id":7,', {"Content-Length": "4000"}),
    }

    result, _ = invoked(answers, "export", "p q", "-o", str(file))

    assert result.exit_code == 1
    assert result.stderr.endswith(" broke off in the middle of a dead letter\n")
    assert [*tmp_path.iterdir()] == []


def test_a_file_that_cannot_be_read_or_written_is_named(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "no" / "x")

    replayed, asked = invoked({}, "replay", "p q", "--ids", "7", "--messages", nowhere)
    exported, _ = invoked({}, "export", "p q", "-o", nowhere)

    assert (replayed.exit_code, exported.exit_code, asked) == (1, 1, [])
    assert replayed.stderr == f"{nowhere} cannot be read: No such file or directory\n"
    assert exported.stderr == f"Error: {nowhere} cannot be written: No such file or directory\n"


@pytest.mark.parametrize("rate", ["nan", "inf", "-inf", "0", "-1", "1e999", "fast"])
def test_a_rate_is_a_finite_number_above_0(rate: str) -> None:
    result, asked = invoked({}, "replay", "p q", "--all", "--rate", rate)

    assert (result.exit_code, asked) == (2, [])
    assert f"'{rate}' is not a number above 0, such as 100 or 0.5\n" in result.stderr


@pytest.mark.parametrize(
    ("options", "query"),
    [
        (["--ids", "7,8"], "ids=7%2C8"),
        (["--stage", "input"], "stage=input"),
        (["--message", "a & b"], "message=a%20%26%20b"),
        (["--all"], "all=true"),
    ],
)
def test_what_is_meant_is_deleted(options: list[str], query: str) -> None:
    result, asked = invoked(
        {f"DELETE {LETTERS}?{query}": {"deleted": 2}}, "delete", "p q", *options
    )

    assert (result.exit_code, result.stdout) == (0, "2 dead letters deleted\n")
    assert [each for each, _ in asked] == [f"DELETE {LETTERS}?{query}"]


@pytest.mark.parametrize("command", ["delete", "replay"])
@pytest.mark.parametrize(
    "options",
    [[], ["--ids", "1", "--all"], ["--stage", "input", "--all"], ["--ids", "x"], ["--ids", ""]],
)
def test_nothing_is_asked_for_by_accident(command: str, options: list[str]) -> None:
    result, asked = invoked({}, command, "p q", *options)

    assert (result.exit_code, asked) == (2, [])


def test_a_replay_is_followed_to_its_end(tmp_path: Path) -> None:
    messages = tmp_path / "messages.json"
    messages.write_text("[1.2300]")
    answers = {
        f"POST {LETTERS}/replay": (202, json.dumps(BEGUN)),
        f"GET {LETTERS}/replay": REPLAYED,
    }
    options = ["--ids", "7", "--rate", "5", "--from", "other", "--component", "1"]

    result, asked = invoked(answers, "replay", "p q", *options, "--messages", str(messages))

    assert (result.exit_code, result.stdout) == (0, "done: 2 of 2 gone through, 0 failed again\n")
    assert "another config than when they failed: state\n" in result.stderr
    assert asked[0][1] == (
        '{"ids":[7],"rate":5.0,"from":"other","component":1,"messages":[1.2300]}'
    )


@pytest.mark.parametrize(
    ("figures", "code"),
    [
        ({"done": 1, "failed": 1}, 1),
        ({"state": "stopped", "done": 1}, 1),
        ({"selected": 0, "done": 0}, 5),
        ({"replay": 5}, 1),
        (None, 1),
    ],
)
def test_how_a_replay_ends_is_the_exit_code(figures: dict[str, Any] | None, code: int) -> None:
    answers = {
        f"POST {LETTERS}/replay": (202, json.dumps(BEGUN)),
        f"GET {LETTERS}/replay": None if figures is None else {**REPLAYED, **figures},
    }

    result, asked = invoked(answers, "replay", "p q", "--all")

    assert result.exit_code == code
    assert asked[0][1] == '{"filter":{}}'


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((401, '{"error":"nobody"}'), "nobody: put a token into HEADRACE_TOKEN"),
        ((409, '{"error":"a replay is\\u001b under way"}'), "a replay is\\x1b under way\n"),
        ((404, "<html>"), "is no headrace server, or one without dead letters: it answers 404"),
        ((200, "<html>"), "is no headrace server"),
    ],
)
def test_a_server_that_refuses_is_told(answer: Any, said: str) -> None:
    result, _ = invoked({f"POST {LETTERS}/replay": answer}, "replay", "p q", "--all")

    assert result.exit_code == 1
    assert said in result.stderr
    assert result.stdout == ""


MISSING = (404, "{\"error\":\"pipeline 'p q' has no dead letter '7'\"}")
LISTED_AT_7 = f"GET {LETTERS}?before=8&limit=1"


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        (f"GET {LETTERS}/7", ["show", "p q", "7"]),
        (f"POST {LETTERS}/replay", ["replay", "p q", "--ids", "7", "--dry-run"]),
        (f"POST {LETTERS}/replay", ["replay", "p q", "--ids", "7", "--messages", "edited.json"]),
        (f"POST {LETTERS}/replay", ["replay", "to", "--from", "p q", "--ids", "7", "--dry-run"]),
    ],
)
def test_a_letter_that_is_not_there_is_nothing_that_is_meant(
    asked: str, options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("edited.json").write_text("[1]")
    if "to" in options:
        asked = asked.replace("p%20q", "to")
    answers = {asked: MISSING, LISTED_AT_7: {**PAGE, "entries": [{**LETTER, "id": 6}]}}

    result, _ = invoked(answers, *options)

    assert (result.exit_code, result.stdout) == (5, "")
    assert result.stderr == "pipeline 'p q' has no dead letter '7'\n"


@pytest.mark.parametrize("page", [PAGE, {**PAGE, "entries": [], "damaged": [7]}, (404, "<html>")])
def test_a_letter_that_is_there_and_not_told_is_refused(page: Any) -> None:
    shown, _ = invoked({f"GET {LETTERS}/7": MISSING, LISTED_AT_7: page}, "show", "p q", "7")
    tried, _ = invoked(
        {f"POST {LETTERS}/replay": MISSING, LISTED_AT_7: page},
        *["replay", "p q", "--ids", "7", "--dry-run"],
    )

    assert (shown.exit_code, tried.exit_code) == (1, 1)


def test_an_id_above_all_is_not_there() -> None:
    above = 2**63 - 1
    answers = {f"GET {LETTERS}/{above}": MISSING, f"GET {LETTERS}?before={above}&limit=1": PAGE}

    result, _ = invoked(answers, "show", "p q", str(above))

    assert result.exit_code == 5


TRIED = {
    **{"stage": "transform", "component": 1, "kind": "map", "messages": [{"n": "7"}, {"n": "x"}]},
    **{"failure": None, "fails": True, "config_changed": True, "changed": ["transforms[1]"]},
    **{"warnings": [], "notes": ["only the first 2 of 300 messages were used"]},
    "transformed": {
        "outcome": "ran",
        "stages": [{"index": 1, "kind": "map", "batches": [[{"n": 7}]]}],
        "left": [{"message": 1, "at": 1, "kind": "map", "why": "skipped by error: no\x1b number"}],
        **{"warnings": [], "notes": [], "buckets": {}},
    },
}


def test_a_dry_run_prints_what_would_become_of_a_letter() -> None:
    answers = {f"POST {LETTERS}/replay": TRIED}

    result, asked = invoked(answers, "replay", "p q", "--ids", "7", "--dry-run")
    as_json, _ = invoked(answers, "replay", "p q", "--ids", "7", "--dry-run", "--format", "json")

    assert asked == [(f"POST {LETTERS}/replay", '{"ids":[7],"dry_run":true}')]
    assert result.stdout.splitlines() == [
        "transform 1 (map) would get 2 messages",
        "transform 1 (map) would hand on 1 message",
        '  {"n": 7}',
        "message 1 would go no further than transform 1 (map): skipped by error: no\\x1b number",
        "note: only the first 2 of 300 messages were used",
    ]
    assert "another config than when they failed: transforms[1]\n" in result.stderr
    assert (result.exit_code, as_json.exit_code) == (1, 1)
    assert json.loads(as_json.stdout) == TRIED


@pytest.mark.parametrize(
    ("told", "lines", "code"),
    [
        (
            {"stage": "input", "component": 0, "kind": "mqtt", "failure": "no JSON"},
            ["input 0 (mqtt) can make nothing of it: no JSON"],
            1,
        ),
        (
            {"stage": "output", "fails": None, "transformed": None, "messages": [1], "notes": []},
            ["output 1 (map) would get 1 message", "  1"],
            0,
        ),
        (
            {
                "transformed": {
                    **{"outcome": "failed", "at": 2, "kind": "script", "message": "no"},
                    **{"stages": [], "warnings": ["w"], "notes": []},
                },
                "notes": [],
            },
            [
                "transform 1 (map) would get 2 messages",
                "transform 2 (script) would fail: no",
                "warning: w",
            ],
            1,
        ),
    ],
)
def test_a_dry_run_says_whether_it_would_fail(told: Any, lines: list[str], code: int) -> None:
    answers = {f"POST {LETTERS}/replay": {**TRIED, "config_changed": False, **told}}

    result, _ = invoked(answers, "replay", "p q", "--ids", "7", "--dry-run")

    assert (result.exit_code, result.stdout.splitlines()) == (code, lines)


@pytest.mark.parametrize("which", [["--all"], ["--ids", "7,8"], ["--stage", "input"]])
def test_a_dry_run_is_of_one_letter(which: list[str]) -> None:
    result, asked = invoked({}, "replay", "p q", "--dry-run", *which)

    assert (result.exit_code, asked) == (2, [])
