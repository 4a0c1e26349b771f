"""The page about durability: its examples, tested again with every `make docs`."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path

from headrace.web.docs.markdown import RegionTexts, fenced
from headrace.web.docs.transcripts import listed, transcript_of_tests

EXAMPLES = {"": "config", "queue-": "queue", "kill-": "kill"}
"""By what its regions begin with: the example."""


def pages(docs: Path) -> dict[str, RegionTexts]:
    """Return the generated parts of the page, from the examples beside it."""
    texts: dict[str, str] = {}
    with chdir(docs / "durability"):
        for begin, name in EXAMPLES.items():
            tests = Path(f"{name}.tests.yaml")
            texts[f"{begin}config"] = fenced("yaml", Path(f"{name}.yaml").read_text())
            texts[f"{begin}test"] = f"{listed(tests)}\n\n{transcript_of_tests(tests)}"
    return {"durability.md": texts}
