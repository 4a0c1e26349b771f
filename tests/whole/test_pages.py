"""What pages have somebody send, and print nothing of, is taken."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients import HOST, PATIENCE
from tests.forked import serving
from tests.server import environment

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
ADDRESS = "127.0.0.1:6767"
"""Where the pages have the server."""


def done(command: str, folder: Path) -> str:
    """Run a command of a page, and return what it prints."""
    quiet = re.sub(r"^curl ", "curl -s ", command)
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
    """Return the blocks of the pages that are a command for curl to the server, each with its page."""
    return [
        (str(page.relative_to(DOCS)), block.strip())
        for page in sorted(DOCS.rglob("*.md"))
        for block in re.findall(
            r"^```sh\n(curl .*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE
        )
        if ADDRESS in block
    ]


def test_what_the_pages_have_somebody_send_is_taken(tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    pages = requests()
    with serving(tmp_path, None) as server:
        sent = [
            (
                page,
                done(
                    f"{command.replace(ADDRESS, f'{HOST}:{server.port}')} -w '%{{http_code}}'",
                    REPOSITORY,
                ),
            )
            for page, command in pages
        ]

    assert {page for page, _ in pages} >= {"sampling.md", "dry-runs.md"}
    assert [(page, said) for page, said in sent if not said.endswith("200")] == []


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
