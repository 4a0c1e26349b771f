"""The page of recipes: each config loads, what is shown to come out does, and its own tests pass."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from headrace.authoring.configfiles import catalogue
from headrace.authoring.testing.runs import RunOptions, run, suites_of
from headrace.web.files.reading import Files, load
from tests.authoring.dryrun.dryrunning import handed_on, tried
from tests.recipes import CONFIG, PAGE, RECIPES, TESTS

QUESTIONS = (
    "Filter on a boolean",
    "Write the means of sensors to a table",
    "Aggregate by minutes of event time",
    "Write a file per key",
    "Drop messages that come twice",
    "Make a message of each line of an order",
    "Add what a table knows",
    "Route messages",
    "Convert units",
    "Raise an alarm with hysteresis",
    "Notice that nothing comes any more",
    "Read and write CSV",
    "Keep an access log",
    "Clean up a record",
    "Keep what cannot be processed",
    "Keep what cannot be done, and send it again",
    "Handle time zones",
)
SECRETS = {"DB_PASSWORD": "open-sesame", "HOOK_TOKEN": "token", "SALT": "sixteen letters!"}


def test_every_question_has_its_answer_and_is_listed_above() -> None:
    assert [*RECIPES] == [*QUESTIONS]
    assert re.findall(r"^- \[(.+?)\]", PAGE, re.MULTILINE) == [*QUESTIONS]
    assert all(each.shown or TESTS in each.files for each in RECIPES.values())


@pytest.mark.parametrize("title", QUESTIONS)
def test_its_config_loads_without_a_remark(
    title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)

    monkeypatch.chdir(tmp_path)
    loaded = load(Files(RECIPES[title].file(tmp_path)), catalogue(), data_dir=tmp_path)

    assert [each.message for each in loaded.diagnostics] == []


@pytest.mark.parametrize("title", [*RECIPES])
def test_nothing_is_left_to_a_script(title: str) -> None:
    assert "type: script" not in RECIPES[title].files[CONFIG]


@pytest.mark.parametrize(
    ("title", "pipeline"),
    [(title, pipeline) for title, each in RECIPES.items() for pipeline in each.shown],
)
def test_what_comes_out_is_what_is_shown(title: str, pipeline: str) -> None:
    document = yaml.safe_load(RECIPES[title].files[CONFIG])
    pipelines = document if isinstance(document, list) else document["pipelines"]
    [config] = [each for each in pipelines if each["id"] == pipeline]
    shown = RECIPES[title].shown[pipeline]

    trial = tried(config["transforms"], shown.came, state=config.get("state"))

    assert [*map(str, trial.refusals)] == []
    at_once, later = handed_on(trial)[-1], handed_on(trial, flushed=True)[-1]
    left = [message for batch in (*at_once, *later) for message in batch]
    assert json.dumps(left) == json.dumps(shown.left)


@pytest.mark.parametrize("title", [title for title, each in RECIPES.items() if TESTS in each.files])
def test_its_own_tests_pass(title: str, tmp_path: Path) -> None:
    RECIPES[title].file(tmp_path)

    outcomes = [*run(suites_of([tmp_path / TESTS]), RunOptions())]

    assert outcomes
    assert [line for each in outcomes if each.outcome != "passed" for line in each.lines] == []
