"""Build the script engine, `rhai-python/`, once for its user and not once for every checkout.

    python scripts/engine.py wheel      # print where its wheel is; compile if the cache has none
    python scripts/engine.py available  # print the same; nothing, and why, where it cannot be compiled
    python scripts/engine.py lacking    # print what is lacking to have it; nothing if nothing is
    python scripts/engine.py lint       # formatting and lints of its Rust, unless they passed before

The cache is `headrace/` in the user's cache folder, and may be deleted at any time:

    wheels/<key>/   the wheel of these sources for this interpreter and platform
    build/          the sources compiled last and Cargo's target folder, which make the next build quick
    lock            held by whoever compiles: one at a time

Only what is not in the cache needs a Rust toolchain.
"""

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
ENGINE = REPOSITORY / "rhai-python"
PINS = REPOSITORY / "constraints.txt"

# What a wheel is made of: this is compared and copied, and a build sees nothing else.
SOURCES = ("Cargo.toml", "LICENSE", "README.md", "pyproject.toml", "python", "src")
LEFTOVERS = {".so", ".pyc"}
# Wheels that are kept, those used last; each has a few megabytes.
KEPT = 10

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace"
BUILD = CACHE / "build"

REMEDY = "install it as https://rustup.rs says, or with 'rustup update stable'"

Files = Mapping[str, bytes]


class EngineError(Exception):
    """The engine cannot be compiled, or has a fault; the message says what would help."""


class NoToolchain(EngineError):
    """There is no Rust that will do. ``found`` is what there is, ``needed`` the oldest that would."""

    def __init__(self, needed: str, found: str) -> None:
        super().__init__(
            f"the script engine (rhai-python) is compiled with Rust {needed} or newer: {found}\n"
            f"{REMEDY}, and ask again"
        )
        self.needed, self.found = needed, found


def sources(folder: Path) -> Files:
    """Return path and content of every file that takes part in a build."""
    found = (path for name in SOURCES for path in (folder / name, *(folder / name).rglob("*")))
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(found)
        if path.is_file() and path.suffix not in LEFTOVERS
    }


def entry(files: Files) -> Path:
    """Return the folder of the cache for these sources, this interpreter and this platform."""
    maturin = [pin for pin in PINS.read_text().splitlines() if pin.startswith("maturin==")]
    place = [sysconfig.get_config_var("SOABI"), sysconfig.get_platform(), *platform.libc_ver()]
    digest = hashlib.sha256(repr([*maturin, *place]).encode())
    for name, content in files.items():
        digest.update(f"\n{name} {len(content)}\n".encode() + content)
    return CACHE / "wheels" / digest.hexdigest()[:20]


def wheel() -> Path:
    """Return the wheel of the sources as they are, from the cache or compiled now."""
    files = sources(ENGINE)
    cached = entry(files)
    if not cached.exists():
        rust = toolchain()
        with alone():
            # Somebody may have compiled the same meanwhile.
            if not cached.exists():
                compile_wheel(stage(files, rust), cached)
                forget_the_oldest()
    os.utime(cached)
    [built] = cached.glob("*.whl")
    return built


def available() -> Path | None:
    """Return the wheel; None, with two lines that say so, where there is no Rust to compile it.

    Raises:
        EngineError: there is, and it does not compile.
    """
    try:
        return wheel()
    except NoToolchain as error:
        print(
            f"installed without the script engine, all else is there: it takes Rust {error.needed} or"
            f" newer, {error.found}\n"
            f"for the transform 'script', {REMEDY.replace('it', 'Rust', 1)}, and run make again",
            file=sys.stderr,
        )
        return None


def lacking() -> str:
    """Return why there is no wheel and none can be compiled here; empty if there is, or can be."""
    if entry(sources(ENGINE)).exists():
        return ""
    try:
        toolchain()
    except NoToolchain as error:
        return error.found
    return ""


def lint() -> None:
    """Have the Rust's formatting and lints checked; what passed is remembered beside its wheel."""
    files = sources(ENGINE)
    passed = wheel().with_name("linted")
    if passed.exists():
        return
    rust = toolchain()
    with alone():
        crate = stage(files, rust)
        run(["cargo", "fmt", "--check"], ENGINE, "'cargo fmt' has other ideas of rhai-python/src")
        # The profile of the wheel, so that what is compiled for it need not be compiled again.
        clippy = ["cargo", "clippy", "--quiet", "--release", "--", "--deny", "warnings"]
        run(clippy, crate, "'cargo clippy' finds fault with rhai-python/src")
    passed.touch()


def toolchain() -> str:
    """Return what `rustc` says of itself; one that is missing or too old is an error."""
    package = tomllib.loads((ENGINE / "Cargo.toml").read_text())["package"]
    needed = package["rust-version"]
    for tool in ("cargo", "rustc"):
        if shutil.which(tool) is None:
            raise NoToolchain(needed, f"there is no '{tool}' on the path")
    asked = subprocess.run(["rustc", "--version"], capture_output=True, text=True)
    if asked.returncode:
        raise NoToolchain(needed, f"'rustc' says: {asked.stderr.strip()}")
    if numbers(asked.stdout.split()[1]) < numbers(needed):
        raise NoToolchain(needed, f"this is {asked.stdout.strip()}")
    return asked.stdout


def numbers(version: str) -> tuple[int, ...]:
    """Return a version so that it can be compared, without what follows its numbers."""
    return tuple(int(number) for number in version.partition("-")[0].split("."))


@contextmanager
def alone() -> Iterator[None]:
    """Wait until nobody else compiles, and keep it so; a process that dies lets go."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def stage(files: Files, rust: str) -> Path:
    """Bring the sources to the one place they are compiled at, and return it.

    One place, because Cargo compiles what it finds elsewhere again. Only what differs is written:
    Cargo goes by the time of a file. Another compiler or other crates start from nothing, so that
    what the older ones left does not pile up.
    """
    crate, made_for = BUILD / "rhai-python", BUILD / "made-for"
    if not made_for.exists() or made_for.read_bytes() != rust.encode() + files["Cargo.toml"]:
        shutil.rmtree(BUILD, ignore_errors=True)
        crate.mkdir(parents=True)
        made_for.write_bytes(rust.encode() + files["Cargo.toml"])

    there = sources(crate)
    for name in there.keys() - files.keys():
        (crate / name).unlink()
    for name, content in files.items():
        if there.get(name) != content:
            (crate / name).parent.mkdir(parents=True, exist_ok=True)
            (crate / name).write_bytes(content)
    return crate


def compile_wheel(crate: Path, cached: Path) -> None:
    """Compile the crate's wheel; its folder is seen in the cache when it is complete."""
    print("compiling the script engine, once for these sources: a minute or two", file=sys.stderr)
    made = BUILD / "wheel"
    shutil.rmtree(made, ignore_errors=True)
    where = ["--python", sys.executable, "--out-dir", str(made), "--no-create-gitignore"]
    pins = ["--build-constraints", str(PINS)]
    build = [sys.executable, "-m", "uv", "build", "--wheel", *pins, *where, str(crate)]
    run(build, crate, "the script engine (rhai-python) could not be compiled")
    cached.parent.mkdir(exist_ok=True)
    os.replace(made, cached)


def forget_the_oldest() -> None:
    """Delete the wheels nobody used for longest."""
    used = sorted((CACHE / "wheels").iterdir(), key=lambda folder: folder.stat().st_mtime)
    for folder in used[:-KEPT]:
        shutil.rmtree(folder)


def run(command: list[str], folder: Path, fault: str) -> None:
    """Run a command in a folder; if it fails, the error is what it printed and what that means."""
    environment = os.environ | {
        "CARGO_TARGET_DIR": str(BUILD / "target"),
        "MATURIN_NO_INSTALL_RUST": "1",
        # The same interpreter in every build, not the one of its temporary environment: for
        # another path all that depends on PyO3 is compiled again.
        "MATURIN_PEP517_USE_BASE_PYTHON": "1",
        "PYO3_PYTHON": os.path.realpath(sys.executable),
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode:
        raise EngineError(f"{done.stdout.decode(errors='replace')}\n{fault}")


def main(verb: str) -> None:
    """Do what a verb says, and end with one message where it cannot be done."""
    try:
        if verb == "lint":
            lint()
        else:
            print({"wheel": wheel, "available": available, "lacking": lacking}[verb]() or "")
    except EngineError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1])
