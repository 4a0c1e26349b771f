"""The guide to tests: its examples run again, and the reference of what a file of tests may say."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path

from headrace.authoring.language.givens import WORDS
from headrace.authoring.language.matchers import MATCHERS
from headrace.authoring.language.testfile import TestFileShape, TestShape
from headrace.compiler.describe.reference import listed_options
from headrace.compiler.schema.records import Record
from headrace.web.docs.markdown import RegionTexts, code, table
from headrace.web.docs.transcripts import listed, tested


def pages(docs: Path) -> dict[str, RegionTexts]:
    """Return the generated parts of the guide, from the examples beside it."""
    with chdir(docs / "testing"):
        parts = {
            "config": listed(Path("config.yaml")),
            "tests": f"{listed(Path('config.tests.yaml'))}\n\n{tested(Path('config.tests.yaml'))}",
            "wrong": f"{listed(Path('wrong.tests.yaml'))}\n\n{tested(Path('wrong.tests.yaml'))}",
        }
    return {
        "testing.md": {
            **parts,
            "file": _keys(TestFileShape),
            "test": _keys(TestShape),
            "matchers": _matchers(),
            "words": ", ".join(map(code, WORDS)) + ".",
        }
    }


def _keys(record: type[Record]) -> str:
    rows = [(code(each.wire), each.doc) for each in listed_options(record)]
    return table(["key", "holds"], rows)


def _matchers() -> str:
    rows = [(code(word), each.takes, each.summary) for word, each in MATCHERS.items()]
    return table(["matcher", "takes", "matches"], rows)
