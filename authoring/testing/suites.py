"""Files of tests: found, read with the config that they are about, and which of their cases are meant."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headrace.authoring.configfiles import ConfigFiles, LoadedConfig, load_config
from headrace.authoring.language.testcase import TestCase
from headrace.authoring.language.testfile import TestFile, load_tests
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.text.diagnostics import Diagnostic, Severity
from headrace.compiler.text.documents import Document, Unreadable, read_file, understood

SUBJECT = "tests"
"""What a file of tests has in its name, behind that of its config: ``config.tests.yaml``."""
FORMATS = (".yaml", ".yml", ".json")


class NothingThere(Exception):
    """A path that was named has no tests; its text says why."""


@dataclass
class Suite:
    """A file of tests and its config, and what is wrong with them."""

    file: Path
    config: LoadedConfig[ConfigFiles] | None = None
    tests: TestFile | None = None
    diagnostics: list[Diagnostic] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)
    """Texts by file, to show the lines in question."""

    def cases(self, words: Sequence[str] = ()) -> Iterator[TestCase]:
        """Yield the cases that are meant: all of them, or those that one of ``words`` selects."""
        for case in self.tests.cases if self.tests else ():
            if not words or any(self._selects(each, case) for each in words):
                yield case

    def _selects(self, words: str, case: TestCase) -> bool:
        """Return whether each of some words is in ``file::name``, or is a tag."""
        name = f"{self.file}::{case.name}".casefold()
        tags = {tag.casefold() for tag in case.shape.tags}
        return all(word in name or word in tags for word in words.casefold().split())


def found(paths: Iterable[Path]) -> list[Path]:
    """Return the files of tests that are meant: those named, those beside configs, those in directories.

    Raises:
        NothingThere: something that was named is no test, and has none.
    """
    files: dict[Path, None] = {}
    for path in paths:
        files |= dict.fromkeys(_found(path))
    return [*files]


def load_suite(file: Path, catalogue: Catalogue) -> Suite:
    """Read a file of tests and its config; what is wrong with either is told at once."""
    suite = Suite(file)
    document = _document(suite)
    if document is None:
        return suite
    config = _config_of(file, document)
    suite.config = loaded = load_config(ConfigFiles(config), catalogue)
    suite.sources |= loaded.sources
    suite.diagnostics += [one for one in loaded.diagnostics if one.severity is Severity.ERROR]
    if loaded.program is not None and not loaded.is_refused:
        suite.tests, said = load_tests(
            document, loaded.program, loaded.connections, file.absolute().parent
        )
        suite.diagnostics += said
    return suite


def _document(suite: Suite) -> Document | None:
    try:
        document = read_file(suite.file)
    except Unreadable as cause:
        told, _ = understood(cause, lambda document: (None, ()))
        suite.diagnostics += told
        suite.sources[str(suite.file)] = cause.text
        return None
    suite.sources[str(suite.file)] = document.text
    return document


def _config_of(file: Path, document: Document) -> Path:
    """Return the config that the tests are about: the one they name, or the one beside them."""
    named = document.value.get("config") if isinstance(document.value, dict) else None
    if isinstance(named, str) and named:
        return file.parent / named
    stem = file.name.removesuffix(file.suffix).removesuffix(f".{SUBJECT}")
    beside = [file.with_name(f"{stem}{suffix}") for suffix in (file.suffix, *FORMATS)]
    return next((each for each in beside if each.exists()), beside[0])


def _is_suite(path: Path) -> bool:
    return path.suffix in FORMATS and path.stem.endswith(f".{SUBJECT}")


def _found(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(_within(path))
        return
    if _is_suite(path) or not path.exists():
        yield path  # reading it tells that it is not there
        return
    beside = [path.with_name(f"{path.stem}.{SUBJECT}{suffix}") for suffix in FORMATS]
    there = [each for each in beside if each.exists()]
    if not there:
        raise NothingThere(f"{path} has no tests: there is no {beside[0].name} beside it")
    yield from there[:1]


def _within(directory: Path) -> Iterator[Path]:
    """Yield the files of tests in a directory and those in it, but for hidden ones."""
    for around, directories, names in os.walk(directory):
        directories[:] = [name for name in directories if not name.startswith(".")]
        for name in names:
            path = Path(around, name)
            if not name.startswith(".") and _is_suite(path) and path.is_file():
                yield path
