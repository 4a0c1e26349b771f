"""The guide to tests: its examples run again, and the reference of what a file of tests may say."""

from __future__ import annotations

import shutil
from contextlib import chdir
from inspect import getdoc
from pathlib import Path
from tempfile import TemporaryDirectory

from headrace.authoring.configfiles import catalogue
from headrace.authoring.language.givens import WORDS
from headrace.authoring.language.matchers import MATCHERS
from headrace.authoring.language.testfile import TestFileShape
from headrace.authoring.language.testshape import TestShape
from headrace.compiler.component.families import Component, Input, Output
from headrace.compiler.describe.reference import listed_options
from headrace.compiler.schema.records import Record
from headrace.web.docs.markdown import RegionTexts, code, table
from headrace.web.docs.transcripts import listed, transcript_of_tests


def pages(docs: Path) -> dict[str, RegionTexts]:
    """Return the generated parts of the guide, from the examples beside it."""
    with chdir(docs / "testing"):
        parts = {
            "coverage": transcript_of_tests(Path("config.tests.yaml"), counts=True),
            "config": listed(Path("config.yaml")),
            "tests": _shown(Path("config.tests.yaml")),
            "update": _update(Path("wrong.tests.yaml")),
            "wrong": _shown(Path("wrong.tests.yaml")),
        }
    return {
        "testing.md": {
            **parts,
            "file": _keys(TestFileShape),
            "test": _keys(TestShape),
            "matchers": _matchers(),
            "branches": _branches(),
            "words": ", ".join(map(code, WORDS)) + ".",
        }
    }


def _shown(file: Path) -> str:
    return f"{listed(file)}\n\n{transcript_of_tests(file)}"


def _update(file: Path) -> str:
    """Return what an update of a file does, in a copy of it."""
    with TemporaryDirectory() as copy:
        for each in Path().iterdir():
            shutil.copy(each, copy)
        with chdir(copy):
            return transcript_of_tests(file, updates=True)


def _keys(record: type[Record]) -> str:
    rows = [(code(each.wire), each.doc) for each in listed_options(record)]
    return table(["key", "holds"], rows)


def _branches() -> str:
    """Return what the branches of each kind are, as the components say it."""
    shown: dict[str, type[Component]] = {
        f"transform {code(kind)}": each for kind, each in catalogue().family("transform").items()
    }
    shown |= {"inputs": Input, "outputs": Output}
    return table(["component", "branches"], [(name, _told(each)) for name, each in shown.items()])


def _told(component: type[Component]) -> str:
    """Return what a component says of its branches, without why others are none."""
    return (getdoc(component.branches) or "").split("\n\n")[0].strip()


def _matchers() -> str:
    rows = [(code(word), each.takes, each.summary) for word, each in MATCHERS.items()]
    return table(["matcher", "takes", "matches"], rows)
