"""What pages have somebody send, and print nothing of, is taken."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients import HOST, PATIENCE
from tests.forked import serving
from tests.recipes import RECIPES
from tests.server import environment

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
ADDRESS = "127.0.0.1:6767"
"""Where the pages have the server."""
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


def done(command: str, folder: Path, port: int) -> str:
    """Run a command of a page against a server, and return what it prints."""
    quiet = re.sub(r"(^|\| )curl ", r"\1curl -s ", command.replace(ADDRESS, f"{HOST}:{port}"))
    ended = subprocess.run(
        ["bash", "-c", quiet],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    return ended.stdout


def requests() -> list[tuple[str, str]]:
    """Return the blocks of the pages that are a command for curl to the server, each with its page.

    Those of the recipes are for servers of their configs.
    """
    return [
        (str(page.relative_to(DOCS)), block.strip())
        for page in sorted(DOCS.rglob("*.md"))
        for block in re.findall(
            r"^```sh\n(curl .*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE
        )
        if ADDRESS in block and page.name != "recipes.md"
    ]


@needs_curl
def test_what_the_pages_have_somebody_send_is_taken(tmp_path: Path) -> None:
    pages = requests()
    with serving(tmp_path, None) as server:
        sent = [
            (page, done(f"{command} -w '%{{http_code}}'", REPOSITORY, server.port))
            for page, command in pages
        ]

    assert {page for page, _ in pages} >= {"sampling.md", "dry-runs.md"}
    assert [(page, said) for page, said in sent if not said.endswith("200")] == []


TABLE = "id,name,hall,max_temp\nm1,Press,A,80\nm2,Oven,,250.5\n"
LOG = '10.0.0.7 - - [10/Oct/2026:13:55:36 +0200] "GET /a HTTP/1.1" 200 2326 "-" "curl/8"\n'


@needs_curl
def test_what_the_recipes_have_somebody_send_is_taken(tmp_path: Path) -> None:
    files = {"machines.csv": TABLE, "access.log": LOG * 3}
    answers: dict[str, list[str]] = {}
    for title, recipe in RECIPES.items():
        if recipe.commands:
            folder = tmp_path / title
            folder.mkdir()
            for name, text in files.items():
                (folder / name).write_text(text)
            with serving(folder, recipe.file(folder), "--data-dir", "data") as server:
                answers[title] = [done(each, folder, server.port) for each in recipe.commands]

    assert {title: [*map(json.loads, told)] for title, told in answers.items()} == {
        "Add what a table knows": [{"accepted": 2}],
        "Keep an access log": [{"accepted": 3}, {"accepted": 3}],
    }


@needs_curl
def test_curl_joins_the_lines_of_a_file_unless_it_is_told_not_to(tmp_path: Path) -> None:
    """As the recipe says it: the table is then one long header."""
    recipe = RECIPES["Add what a table knows"]
    [command] = recipe.commands
    joining = command.replace("--data-binary", "-d")
    told = []
    with serving(tmp_path, recipe.file(tmp_path)) as server:
        for table in ("id,name\nm1,Press\n", TABLE):
            (tmp_path / "machines.csv").write_text(table)
            told.append(json.loads(done(joining, tmp_path, server.port)))

    assert told == [
        {"error": "the header has no 'max_temp', which 'types' gives a type"},
        {"error": "cell 9 of the header is empty"},
    ]


BODY = re.compile(r"curl (?:[^\n]*\\\n)*[^\n]*(?: -d | --data)(?:[^\n]*\\\n)*[^\n]*")


def test_whatever_a_page_sends_says_that_it_is_json() -> None:
    """But for messages, which are taken as anything, and a page that shows how it is refused."""
    pages = [REPOSITORY / "README.md", *DOCS.rglob("*.md"), *REPOSITORY.glob("specs/*/README.md")]
    sent = [(page.name, one) for page in pages for one in BODY.findall(page.read_text())]
    others = [(page, one) for page, one in sent if not re.search(r"/messages\b", one)]

    assert len(others) >= 8
    unmarked = [(page, one) for page, one in others if "Content-Type: application/json" not in one]
    assert [page for page, _ in unmarked] == ["sign-in.md"], unmarked
    assert "curl -b cookies.txt -d" in unmarked[0][1]
