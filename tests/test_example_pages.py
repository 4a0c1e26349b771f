"""The pages about what several components share: the configs that they show load without a word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headrace.authoring.configfiles import catalogue
from headrace.web.files.reading import Files, load

DOCS = Path(__file__).parent.parent / "docs"
PAGES = (
    "conditions.md",
    "formats.md",
    "patterns.md",
    "times.md",
    "concepts/state.md",
)
CONFIG = "config.yaml"
_FENCED = re.compile(
    r"^```yaml\n(?:# (?P<file>\S+\.yaml)\n)?(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)


@pytest.mark.parametrize("page", PAGES)
def test_each_config_of_a_page_loads_without_a_word(page: str, tmp_path: Path) -> None:
    blocks = [
        (found["file"] or CONFIG, found["text"])
        for found in _FENCED.finditer((DOCS / page).read_text())
    ]
    configs = [text for file, text in blocks if file == CONFIG]
    for file, text in blocks:
        (tmp_path / file).write_text(text)  # what stands beside all of them

    assert configs
    for config in configs:
        (tmp_path / CONFIG).write_text(config)
        loaded = load(Files(tmp_path / CONFIG), catalogue())

        assert [each.message for each in loaded.diagnostics] == [], config
