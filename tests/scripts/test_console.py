"""The console is built once for the same sources, and a server without it says how to have it."""

import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
PAGE = "web/console/page"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Give a checkout with the scripts, and a page of one source."""
    folder = tmp_path / "checkout"
    (folder / "scripts").mkdir(parents=True)
    for script in ("console.py", "cached.py"):
        shutil.copy(REPOSITORY / "scripts" / script, folder / "scripts")
    shutil.copy(REPOSITORY / "constraints.txt", folder)
    (folder / PAGE / "src").mkdir(parents=True)
    (folder / PAGE / "src" / "main.ts").write_text("// a page\n")
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(REPOSITORY / PAGE / name, folder / PAGE)
    return folder


@pytest.fixture
def console(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Give the names of the script of the checkout, with a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(checkout / "scripts")
    monkeypatch.delitem(sys.modules, "cached", raising=False)
    return SimpleNamespace(**runpy.run_path(str(checkout / "scripts" / "console.py")))


def entry(console: SimpleNamespace) -> Path:
    """Return where the page of the checkout is in the cache."""
    files = console.cached.sources(console.PAGE, console.SOURCES)
    folder: Path = (
        console.CACHE / "console" / console.cached.key(files, console.cached.pin(console.NODE))
    )
    return folder


def asked(checkout: Path, verb: str) -> subprocess.CompletedProcess[str]:
    """Ask for the page where no registry can be reached."""
    nowhere = {"UV_OFFLINE": "1", "UV_NO_CACHE": "1"}
    environment = {"XDG_CACHE_HOME": str(checkout.parent / "cache"), "PATH": "", **nowhere}
    command = [sys.executable, "scripts/console.py", verb]
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)


def fill(folder: Path, text: str = "<!doctype html>") -> None:
    """Write a built page."""
    (folder / "console").mkdir(parents=True)
    (folder / "index.html").write_text(text)


def test_a_page_in_the_cache_is_brought_without_node_and_without_a_registry(
    console: SimpleNamespace, checkout: Path
) -> None:
    fill(entry(console))

    answer = asked(checkout, "build")

    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")
    assert (checkout / "web/console/built/index.html").read_text() == "<!doctype html>"


def test_another_page_takes_the_place_of_the_one_that_was_there(
    console: SimpleNamespace, checkout: Path
) -> None:
    fill(checkout / "web/console/built", "of older sources")
    (checkout / "web/console/built/console/old.js").touch()
    fill(entry(console))

    asked(checkout, "build")

    built = checkout / "web/console/built"
    assert [path.name for path in built.rglob("*") if path.is_file()] == ["index.html"]
    assert (built / "index.html").read_text() == "<!doctype html>"
    assert [path.name for path in built.parent.iterdir()].count("built") == 1


def test_another_source_asks_for_another_page(console: SimpleNamespace, checkout: Path) -> None:
    before = entry(console)

    (checkout / PAGE / "src" / "main.ts").write_text("// another page\n")

    assert entry(console) != before


@pytest.mark.parametrize("name", ["tests/a.test.ts", "node_modules/a.js"])
def test_what_a_page_is_not_made_of_asks_for_no_other(
    console: SimpleNamespace, checkout: Path, name: str
) -> None:
    before = entry(console)

    (checkout / PAGE / name).parent.mkdir(parents=True, exist_ok=True)
    (checkout / PAGE / name).touch()

    assert entry(console) == before


def test_where_no_registry_is_reached_a_run_goes_on_without_the_console_and_says_so(
    checkout: Path,
) -> None:
    answer = asked(checkout, "available")

    assert answer.returncode == 0
    assert "Node, which builds the console, could not be had" in answer.stderr
    assert answer.stderr.splitlines()[-1] == (
        "served without the console: 'make console' tries again"
    )
    assert not (checkout / "web/console/built").exists()


def test_a_page_that_was_built_before_is_served_where_no_registry_is_reached(
    checkout: Path,
) -> None:
    (checkout / "web/console/built").mkdir()

    answer = asked(checkout, "available")

    assert answer.returncode == 0
    assert answer.stderr.splitlines()[-1] == (
        "served with the console that was built last: 'make console' tries again"
    )


def test_whoever_asks_for_the_console_itself_is_told_that_there_is_none(checkout: Path) -> None:
    answer = asked(checkout, "build")

    assert answer.returncode == 1
    assert "Node, which builds the console, could not be had" in answer.stderr
