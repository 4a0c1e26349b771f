"""The engine is compiled once for the same sources, and says what it takes to compile it."""

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
SCRIPT = "scripts/engine.py"
SHARED = "scripts/cached.py"


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Give the script's names, with a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(REPOSITORY / "scripts")
    return SimpleNamespace(**runpy.run_path(str(REPOSITORY / SCRIPT)))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Give a checkout with an engine of two files."""
    folder = tmp_path / "checkout"
    (folder / "scripts").mkdir(parents=True)
    for script in (SCRIPT, SHARED):
        shutil.copy(REPOSITORY / script, folder / "scripts")
    shutil.copy(REPOSITORY / "constraints.txt", folder)
    (folder / "rhai-python" / "src").mkdir(parents=True)
    (folder / "rhai-python" / "Cargo.toml").write_text('[package]\nrust-version = "1.85"\n')
    (folder / "rhai-python" / "src" / "lib.rs").write_text("// an engine\n")
    return folder


def asked(checkout: Path, tools: Path, verb: str = "wheel") -> subprocess.CompletedProcess[str]:
    """Ask for the wheel where only some tools are on the path."""
    cache = {"XDG_CACHE_HOME": str(checkout.parent / "cache"), "PATH": str(tools)}
    command = [sys.executable, checkout / SCRIPT, verb]
    return subprocess.run(command, env=cache, capture_output=True, text=True)


def tool(folder: Path, name: str, line: str) -> None:
    """Write a command that does one line of shell."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{line}\n")
    (folder / name).chmod(0o755)


def test_a_wheel_in_the_cache_needs_no_toolchain(
    engine: SimpleNamespace, checkout: Path, tmp_path: Path
) -> None:
    entry: Path = engine.entry(engine.sources(checkout / "rhai-python"))
    entry.mkdir(parents=True)
    (entry / "rhai_python.whl").touch()

    answer = asked(checkout, tools=tmp_path / "nothing")

    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout == f"{entry}/rhai_python.whl\n"


@pytest.mark.parametrize(
    ("rustc", "found"),
    [
        (None, "there is no 'rustc' on the path"),
        (
            "echo 'rustc 1.84.1 (e71f9a9a9 2025-01-27)'",
            "this is rustc 1.84.1 (e71f9a9a9 2025-01-27)",
        ),
        ("echo 'error: no default' >&2; exit 1", "'rustc' says: error: no default"),
    ],
    ids=["missing", "too old", "chosen by nobody"],
)
def test_without_a_toolchain_that_will_do_it_says_what_to_install(
    checkout: Path, tmp_path: Path, rustc: str | None, found: str
) -> None:
    tool(tmp_path / "tools", "cargo", "exit 1")
    if rustc is not None:
        tool(tmp_path / "tools", "rustc", rustc)

    answer = asked(checkout, tools=tmp_path / "tools")

    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr.splitlines() == [
        f"the script engine (rhai-python) is compiled with Rust 1.85 or newer: {found}",
        "install it as https://rustup.rs says, or with 'rustup update stable', and ask again",
    ]
    assert not (tmp_path / "cache").exists()


def test_an_install_without_a_toolchain_goes_on_and_says_so_in_two_lines(
    checkout: Path, tmp_path: Path
) -> None:
    answer = asked(checkout, tmp_path / "nothing", "available")

    assert (answer.returncode, answer.stdout.strip()) == (0, "")
    assert answer.stderr.splitlines() == [
        "installed without the script engine, all else is there: it takes Rust 1.85 or newer,"
        " there is no 'cargo' on the path",
        "for the transform 'script', install Rust as https://rustup.rs says, or with"
        " 'rustup update stable', and run make again",
    ]


def test_an_engine_that_does_not_compile_lets_no_install_go_on(
    checkout: Path, tmp_path: Path
) -> None:
    tool(tmp_path / "tools", "cargo", "exit 1")
    tool(tmp_path / "tools", "rustc", "echo 'rustc 1.85.0 (4d91de4e4 2025-02-17)'")

    answer = asked(checkout, tmp_path / "tools", "available")

    assert (answer.returncode, answer.stdout) == (1, "")
    assert "the script engine (rhai-python) could not be compiled" in answer.stderr


@pytest.mark.parametrize(
    ("has_rust", "runs_again"), [(False, False), (True, True)], ids=["no Rust yet", "Rust by now"]
)
def test_an_install_without_the_engine_is_done_again_when_it_can_be_had(
    checkout: Path, tmp_path: Path, has_rust: bool, runs_again: bool
) -> None:
    for name in ("Makefile", "pyproject.toml", "setup.py"):
        shutil.copy(REPOSITORY / name, checkout)
    (checkout / "rhai-python" / "python").mkdir()
    programs = checkout / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to(sys.executable)
    (programs / "uv").touch()
    for mark in (".without-engine", ".runs"):
        (checkout / ".venv" / mark).touch()
    tools = tmp_path / "tools"
    if has_rust:
        tool(tools, "cargo", "exit 1")
        tool(tools, "rustc", "echo 'rustc 1.85.0 (4d91de4e4 2025-02-17)'")
    make = ["make", "--dry-run", f"PYTHON={sys.executable}", ".venv/.runs"]
    path = f"{tools}:/usr/bin:/bin"
    cache = str(tmp_path / "cache")

    told = subprocess.run(
        make, cwd=checkout, env={"PATH": path, "XDG_CACHE_HOME": cache}, capture_output=True
    )

    assert told.returncode == 0
    assert (b"engine.py available" in told.stdout) == runs_again


def test_what_a_build_does_not_see_does_not_ask_for_another(
    engine: SimpleNamespace, checkout: Path
) -> None:
    folder = checkout / "rhai-python"
    before = engine.entry(engine.sources(folder))
    for name in (
        "Cargo.lock",
        "tests/test_rhai.py",
        "target/release/deps.d",
        "python/rhai/_rhai.so",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()

    assert engine.entry(engine.sources(folder)) == before


@pytest.mark.parametrize(
    "name", ["src/lib.rs", "src/more.rs", "Cargo.toml", "python/rhai/py.typed"]
)
def test_another_source_asks_for_another_wheel(
    engine: SimpleNamespace, checkout: Path, name: str
) -> None:
    folder = checkout / "rhai-python"
    before = engine.entry(engine.sources(folder))
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("// another engine\n")

    assert engine.entry(engine.sources(folder)) != before


def test_only_what_differs_is_written_where_it_is_compiled(engine: SimpleNamespace) -> None:
    crate = engine.stage({"Cargo.toml": b"", "src/a.rs": b"a", "src/b.rs": b"b"}, "rustc 1")
    (crate / "Cargo.lock").touch()
    for name in ("a", "b"):
        os.utime(crate / f"src/{name}.rs", (0, 0))

    engine.stage({"Cargo.toml": b"", "src/a.rs": b"a", "src/b.rs": b"c"}, "rustc 1")

    assert (crate / "src/a.rs").stat().st_mtime == 0
    assert (crate / "src/b.rs").stat().st_mtime > 0
    assert (crate / "src/b.rs").read_bytes() == b"c"

    engine.stage({"Cargo.toml": b"", "src/a.rs": b"a"}, "rustc 1")

    assert sorted(path.name for path in crate.rglob("*") if path.is_file()) == [
        "Cargo.lock",
        "Cargo.toml",
        "a.rs",
    ]


@pytest.mark.parametrize(("crates", "rust"), [(b"more", "rustc 1"), (b"", "rustc 2")])
def test_other_crates_or_another_compiler_start_from_nothing(
    engine: SimpleNamespace, crates: bytes, rust: str
) -> None:
    engine.stage({"Cargo.toml": b""}, "rustc 1")
    (engine.BUILD / "target").mkdir()

    engine.stage({"Cargo.toml": crates}, rust)

    assert not (engine.BUILD / "target").exists()
