"""The page of diagnostics: every code with its meaning, an example, and what is printed for it.

An example is `docs/errors/<code>.yaml` or `.json`, of server settings `<code>.server.yaml`, for a server
with a data directory `<code>.data.yaml`; or, where such a file cannot well be kept, the commands in
`docs/errors/<code>.sh` that make one. What only another server can say is kept beside it, in
`docs/errors/<code>.console`; a test has such a server say it again.
"""

from __future__ import annotations

import asyncio
import pkgutil
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import chdir
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from headrace.authoring.configfiles import catalogue
from headrace.authoring.testing.suites import load_suite
from headrace.compiler.clock import Clock
from headrace.compiler.config.connectionsfile import companion
from headrace.compiler.datadir import DataDir
from headrace.compiler.errors import Refused
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.text.diagnostics import Codes, Diagnostic
from headrace.compiler.text.documents import Unreadable, read_file
from headrace.web.docs.markdown import RegionTexts, fenced
from headrace.web.docs.transcripts import checked, listed, not_started, transcript_of_tests
from headrace.web.files.reading import Files, Loaded, load

ROOMS = ("compiler", "operators", "connectors", "authoring", "web")
"""Where modules declare codes."""

GROUPS = {
    "unreadable": "Reading a file",
    "refused": "What the file says",
    "remarked": "Warnings",
    "tested": "Tests of a config",
}
"""What becomes of the file, as a heading of the page."""

KINDS = ("tests.yaml", "yaml", "json", "sh", "server.yaml", "data.yaml")
"""How the name of an example goes on."""

_TOLD = re.compile(r"^(?:error|warning)\[(.+?)\]", re.MULTILINE)


@dataclass(frozen=True)
class Example:
    """A config, or server settings, that earns a code, and what it is told."""

    code: str
    group: str
    told: frozenset[str]
    """The codes of all that it is told: its own and no other, if it is a good example."""
    text: str
    """The files and the transcript, as the page shows them."""


@cache
def codes() -> Codes:
    """Return every code a diagnostic can carry, with its meaning, sorted."""
    packages = [import_module(f"headrace.{room}") for room in ROOMS]
    names = (
        entry.name
        for each in packages
        for entry in pkgutil.walk_packages(each.__path__, f"{each.__name__}.")
        if not entry.name.endswith(".__main__")
    )
    return joined((name, getattr(import_module(name), "CODES", {})) for name in names)


def joined(tables: Iterable[tuple[str, Codes]]) -> Codes:
    """Return what modules declare in one table; a code is declared by one of them."""
    found: dict[str, str] = {}
    for module, declared in tables:
        if twice := declared.keys() & found.keys():
            raise ValueError(f"{module} declares what another does: {', '.join(sorted(twice))}")
        found |= declared
    return dict(sorted(found.items()))


def pages(folder: Path) -> dict[str, RegionTexts]:
    """Return the generated part of the page, from a folder of examples."""
    return {"errors.md": {"": "\n\n".join(_blocks(examples(folder)))}}


def examples(folder: Path) -> list[Example]:
    """Return the examples in a folder, in the order of their codes."""
    with TemporaryDirectory() as scratch:
        here = shutil.copytree(folder, Path(scratch, "examples"))
        with chdir(here):  # a diagnostic names its file as the command line does
            sources = {code: _source(code) for code in codes()}
            return [_example(code, source) for code, source in sources.items() if source]


def _blocks(found: Sequence[Example]) -> Iterator[str]:
    for group, heading in GROUPS.items():
        yield f"## {heading}"
        for example in found:
            if example.group == group:
                yield from (f"### {example.code}", codes()[example.code], example.text)


def _source(code: str) -> Path | None:
    """Return the file that is, or makes, the example of a code."""
    kinds = (Path(f"{code}.{kind}") for kind in KINDS)
    return next((path for path in kinds if path.exists()), None)


def _example(code: str, source: Path) -> Example:
    if source.name.endswith(".tests.yaml"):
        return _tested(code, source)
    config, shown = _made(code, source) if source.suffix == ".sh" else (source, listed(source))
    beside = companion(config, "connections")
    blocks = [shown]
    if beside.exists():
        blocks += [f"Beside it, `{beside}`:", listed(beside)]
    is_settings = config.name.endswith(".server.yaml")
    data_dir = Path("data") if config.name.endswith(".data.yaml") else None
    files = Files(settings=config) if is_settings else Files(config)
    loaded = load(files, catalogue(), data_dir=data_dir)
    kept = Path(f"{code}.console")
    # What is told before is not started: it may name servers.
    is_silent = not loaded.diagnostics and not kept.exists()
    refusals = refusals_of(loaded) if is_silent else []
    if loaded.diagnostics:
        blocks.append(checked(config, is_settings=is_settings, data_dir=data_dir))
    if refusals:
        blocks.append(not_started(config, loaded, refusals))
    told = {one.code for one in (*loaded.diagnostics, *refusals)}
    if kept.exists():
        blocks.append(fenced("console", kept.read_text()))
        told.update(_TOLD.findall(kept.read_text()))
    is_refused = loaded.is_refused or bool(refusals) or kept.exists()
    return Example(code, _group(config, is_refused), frozenset(told), "\n\n".join(blocks))


def _tested(code: str, source: Path) -> Example:
    """Return an example that is a file of tests, with the config that stands beside it."""
    suite = load_suite(source, catalogue())
    beside = [Path(f"{code}.yaml"), Path(f"{code}.connections.yaml")]
    blocks = [listed(source)]
    for each in filter(Path.exists, beside):
        blocks += [f"Beside it, `{each}`:", listed(each)]
    told = frozenset(one.code for one in suite.diagnostics)
    return Example(code, "tested", told, "\n\n".join([*blocks, transcript_of_tests(source)]))


def _made(code: str, commands: Path) -> tuple[Path, str]:
    """Run the commands that make an example; return its name and the commands."""
    subprocess.run(["sh", commands], check=True)
    text = commands.read_text()
    name = re.search(rf"{code}\.(yaml|json)", text)
    assert name is not None, f"{commands} makes no {code}.yaml or {code}.json"
    return Path(name[0]), fenced("sh", text)


def refusals_of(loaded: Loaded) -> list[Diagnostic]:
    """Return why the pipelines cannot be built, which only a start tells."""

    async def started() -> list[Diagnostic]:
        engine = Engine(
            Clock(asyncio.get_running_loop()),
            connections=loaded.connections,
            secrets=loaded.secrets,
            data_dir=DataDir(Path.cwd()),
        )
        assert loaded.program is not None
        try:
            await engine.load(loaded.program)
        except Refused as refused:
            return refused.diagnostics
        finally:
            await engine.close()
        return []

    return asyncio.run(started())


def _group(config: Path, is_refused: bool) -> str:
    try:
        read_file(config)
    except Unreadable:
        return "unreadable"
    return "refused" if is_refused else "remarked"
