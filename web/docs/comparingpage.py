"""The page about comparing configs: its example, compared again with every `make docs`."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path

from headrace.web.docs.markdown import RegionTexts, fenced
from headrace.web.docs.transcripts import listed, transcript_of_diff, transcript_of_tests

OLD, NEW, CAPTURE = Path("config.yaml"), Path("new.yaml"), Path("c.ndjson")


def pages(docs: Path) -> dict[str, RegionTexts]:
    """Return the generated parts of the page, from the example beside it."""
    with chdir(docs / "comparing"):
        return {
            "comparing.md": {
                "configs": transcript_of_diff(OLD, NEW),
                "capture": fenced("json", CAPTURE.read_text()),
                "played": transcript_of_diff(OLD, NEW, CAPTURE),
                "test": f"{listed(Path('config.tests.yaml'))}\n\n"
                f"{transcript_of_tests(Path('config.tests.yaml'))}",
            }
        }
