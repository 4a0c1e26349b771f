"""The transcripts of the pages about sign-in and saving are what the installed command does.

What other pages have somebody send is sent as well, and is taken.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.clients import HOST, PATIENCE
from tests.forked import serving
from tests.server import environment

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
ADDRESS, FOLDER = "127.0.0.1:6767", "/srv/plant"
"""Where the pages have the server, and where its files."""


@dataclass(frozen=True)
class Steps:
    """A part of a page: files, the command that starts a server, what is asked of it, its log."""

    files: dict[str, str]
    options: list[str]
    announced: str
    commands: list[tuple[str, str]]
    log: list[str]


def steps(page: str, begin: str, end: str) -> Steps:
    """Read a part of a page."""
    text = (DOCS / page).read_text()
    part = text[text.index(f"## {begin}\n") : text.index(f"## {end}\n")]
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", part, re.DOTALL | re.MULTILINE)
    named = re.findall(r"^`([\w.]+)`.*:$", part, re.MULTILINE)
    contents = [text for language, text in fenced if language in ("yaml", "json")]
    console = "".join(text for language, text in fenced if language == "console")
    each = [one.partition("\n") for one in f"\n{console}".split("\n$ ")[1:]]
    (started, _, announced), *commands = each
    return Steps(
        dict(zip(named, contents, strict=True)),
        shlex.split(started)[2:],
        announced,
        [(command, said) for command, _, said in commands],
        [line for language, text in fenced if not language for line in text.splitlines()],
    )


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


def timeless(text: str) -> str:
    """Return a text that tells of no time when something started."""
    return re.sub(r'"started_at":\d{13}\b', '"started_at":0', text)


@pytest.mark.long
@pytest.mark.parametrize(
    ("page", "begin", "end"),
    [
        ("sign-in.md", "Accounts, step by step", "Hashes instead of passwords"),
        ("saving.md", "Step by step", "How a save is written"),
    ],
)
def test_the_steps_of_a_page_go_as_they_are_shown(
    tmp_path: Path, page: str, begin: str, end: str
) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    shown = steps(page, begin, end)
    for name, text in shown.files.items():
        (tmp_path / name).write_text(text)
    with serving(tmp_path, None, *shown.options) as server:
        here = {ADDRESS: f"{HOST}:{server.port}", FOLDER: str(tmp_path)}

        def there(text: str) -> str:
            for said, meant in here.items():
                text = text.replace(meant, said)
            return text.strip()

        for command, said in shown.commands:
            printed = there(done(command.replace(ADDRESS, here[ADDRESS]), tmp_path))
            assert timeless(printed) == timeless(said.strip())
        first = len(shown.announced.strip().splitlines())
        lines = server.err.wait(first + len(shown.log))[: first + len(shown.log)]
        assert there("\n".join(lines[:first])) == shown.announced.strip()
        assert [there(line).partition(" ")[2] for line in lines[first:]] == [
            line.partition(" ")[2] for line in shown.log
        ]


def requests() -> list[tuple[str, str]]:
    """Return the blocks of the pages that are a command for curl, each with its page."""
    return [
        (str(page.relative_to(DOCS)), block.strip())
        for page in sorted(DOCS.rglob("*.md"))
        for block in re.findall(
            r"^```sh\n(curl .*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE
        )
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
