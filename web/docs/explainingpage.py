"""The page about `headrace explain`: its example, explained again with every `make docs`."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path

from headrace.web.docs.markdown import RegionTexts, fenced
from headrace.web.docs.transcripts import explained, listed, transcript_of_explain

CONFIG = Path("config.yaml")


def pages(docs: Path) -> dict[str, RegionTexts]:
    """Return the generated parts of the page, from the example beside it."""
    with chdir(docs / "explain"):
        parts = {
            "config": listed(CONFIG),
            "text": transcript_of_explain(CONFIG),
            "code": transcript_of_explain(CONFIG, "alarms", with_code=True),
            "graph": fenced("mermaid", explained(CONFIG, form="mermaid")),
        }
    return {"explain.md": parts}
