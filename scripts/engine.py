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

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import cached
from cached import PINS, REPOSITORY, BuildError, Files

ENGINE = REPOSITORY / "rhai-python"

# What a wheel is made of: this is compared and copied, and a build sees nothing else.
SOURCES = ("Cargo.toml", "LICENSE", "README.md", "pyproject.toml", "python", "src")
LEFTOVERS = {".so", ".pyc"}
# Wheels that are kept, those used last; each has a few megabytes.
KEPT = 10

CACHE = cached.cache()
BUILD = CACHE / "build"
LOCK = CACHE / "lock"

REMEDY = "install it as https://rustup.rs says, or with 'rustup update stable'"


class NoToolchain(BuildError):
    """There is no Rust that will do. ``found`` is what there is, ``needed`` the oldest that would."""

    def __init__(self, needed: str, found: str) -> None:
        super().__init__(
            f"the script engine (rhai-python) is compiled with Rust {needed} or newer: {found}\n"
            f"{REMEDY}, and ask again"
        )
        self.needed, self.found = needed, found


def sources(folder: Path) -> Files:
    """Return path and content of every file that takes part in a build."""
    return cached.sources(folder, SOURCES, LEFTOVERS)


def entry(files: Files) -> Path:
    """Return the folder of the cache for these sources, this interpreter and this platform."""
    place = [sysconfig.get_config_var("SOABI"), sysconfig.get_platform(), *platform.libc_ver()]
    return CACHE / "wheels" / cached.key(files, cached.pin("maturin"), *place)


def wheel() -> Path:
    """Return the wheel of the sources as they are, from the cache or compiled now."""
    files = sources(ENGINE)
    kept = entry(files)
    if not kept.exists():
        rust = toolchain()
        with cached.alone(LOCK):
            # Somebody may have compiled the same meanwhile.
            if not kept.exists():
                compile_wheel(stage(files, rust), kept)
                cached.forget_the_oldest(CACHE / "wheels", KEPT)
    os.utime(kept)
    [built] = kept.glob("*.whl")
    return built


def available() -> Path | None:
    """Return the wheel; None, with two lines that say so, where there is no Rust to compile it.

    Raises:
        BuildError: there is, and it does not compile.
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
    with cached.alone(LOCK):
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

    cached.stage(files, sources(crate), crate)
    return crate


def compile_wheel(crate: Path, into: Path) -> None:
    """Compile the crate's wheel; its folder is seen in the cache when it is complete."""
    print("compiling the script engine, once for these sources: a minute or two", file=sys.stderr)
    made = BUILD / "wheel"
    shutil.rmtree(made, ignore_errors=True)
    where = ["--python", sys.executable, "--out-dir", str(made), "--no-create-gitignore"]
    pins = ["--build-constraints", str(PINS)]
    build = [sys.executable, "-m", "uv", "build", "--wheel", *pins, *where, str(crate)]
    run(build, crate, "the script engine (rhai-python) could not be compiled")
    into.parent.mkdir(exist_ok=True)
    os.replace(made, into)


def run(command: list[str], folder: Path, fault: str) -> None:
    """Run a command in a folder; if it fails, the error is what it printed and what that means."""
    environment = {
        "CARGO_TARGET_DIR": str(BUILD / "target"),
        "MATURIN_NO_INSTALL_RUST": "1",
        # The same interpreter in every build, not the one of its temporary environment: for
        # another path all that depends on PyO3 is compiled again.
        "MATURIN_PEP517_USE_BASE_PYTHON": "1",
        "PYO3_PYTHON": os.path.realpath(sys.executable),
    }
    cached.run(command, folder, fault, environment)


def main(verb: str) -> None:
    """Do what a verb says, and end with one message where it cannot be done."""
    try:
        if verb == "lint":
            lint()
        else:
            print({"wheel": wheel, "available": available, "lacking": lacking}[verb]() or "")
    except BuildError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1])
