"""The page of recipes: each config loads, and what is shown to come out of a pipeline does."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from headrace.authoring.configfiles import catalogue
from headrace.web.files.reading import Files, load
from tests.authoring.dryrun.dryrunning import handed_on, tried

PAGE = (Path(__file__).parent.parent / "docs" / "recipes.md").read_text()
QUESTIONS = (
    "Filter on a boolean",
    "Aggregate by minutes of event time",
    "Write a file per key",
    "Drop messages that come twice",
    "Route messages",
    "Convert units",
    "Raise an alarm with hysteresis",
    "Notice that nothing comes any more",
    "Read and write CSV",
    "Keep what cannot be processed",
    "Handle time zones",
)


@dataclass
class Shown:
    """What is shown of one pipeline: what its bucket holds, what comes in and what comes out."""

    bucket: dict[str, Any] = field(default_factory=dict)
    came: list[Any] = field(default_factory=list)
    left: list[Any] = field(default_factory=list)


@dataclass
class Recipe:
    """One answer of the page: a text by file, and what is shown of pipelines."""

    files: dict[str, str]
    shown: dict[str, Shown]


def values(text: str) -> list[Any]:
    """Return the JSON values that stand beside each other in a line."""
    found, decoder = [], json.JSONDecoder()
    while text := text.strip():
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:]
    return found


def recipe(section: str) -> Recipe:
    files, shown = {}, {}
    for language, text in re.findall(r"^```(\w*)\n(.*?)^```$", section, re.DOTALL | re.MULTILINE):
        if language == "yaml":
            name = re.match(r"# (\S+)\n", text)
            files[name[1] if name else "config.yaml"] = text
            continue
        for line in text.splitlines():
            pipeline, sign, told = line.split(" ", 2)
            each = shown.setdefault(pipeline, Shown())
            if sign == "=":
                [each.bucket] = values(told)
            else:
                (each.came if sign == "<" else each.left).extend(values(told))
    return Recipe(files, shown)


RECIPES = {
    title: recipe(section)
    for title, section in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
}


def test_every_question_has_its_answer_and_is_listed_above() -> None:
    assert [*RECIPES] == [*QUESTIONS]
    assert re.findall(r"^- \[(.+?)\]", PAGE, re.MULTILINE) == [*QUESTIONS]
    assert all(each.files and each.shown for each in RECIPES.values())


@pytest.mark.parametrize("title", QUESTIONS)
def test_its_config_loads_without_a_remark(title: str, tmp_path: Path) -> None:
    for name, text in RECIPES[title].files.items():
        (tmp_path / name).write_text(text)

    loaded = load(Files(tmp_path / "config.yaml"), catalogue())

    assert [each.message for each in loaded.diagnostics] == []


@pytest.mark.parametrize(
    ("title", "pipeline"),
    [(title, pipeline) for title, each in RECIPES.items() for pipeline in each.shown],
)
def test_what_comes_out_is_what_is_shown(title: str, pipeline: str) -> None:
    document = yaml.safe_load(RECIPES[title].files["config.yaml"])
    pipelines = document if isinstance(document, list) else document["pipelines"]
    [config] = [each for each in pipelines if each["id"] == pipeline]
    shown = RECIPES[title].shown[pipeline]

    trial = tried(
        config["transforms"],
        shown.came,
        state=config.get("state"),
        seeds=shown.bucket,
        advance=3600,  # as long as no buffer of the page holds anything
    )

    assert [*map(str, trial.refusals)] == []
    at_once, later = handed_on(trial)[-1], handed_on(trial, flushed=True)[-1]
    left = [message for batch in (*at_once, *later) for message in batch]
    assert json.dumps(left) == json.dumps(shown.left)
