"""The page about durability: its example, tested again with every `make docs`."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path

from headrace.web.docs.markdown import RegionTexts, fenced
from headrace.web.docs.transcripts import listed, transcript_of_tests

CONFIG, TESTS = Path("config.yaml"), Path("config.tests.yaml")


def pages(docs: Path) -> dict[str, RegionTexts]:
    """Return the generated parts of the page, from the example beside it."""
    with chdir(docs / "durability"):
        return {
            "durability.md": {
                "config": fenced("yaml", CONFIG.read_text()),
                "test": f"{listed(TESTS)}\n\n{transcript_of_tests(TESTS)}",
            }
        }
