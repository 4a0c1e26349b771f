"""Ids for pipelines that were given none."""

import re

import petname

from headrace.compiler.component.pipelineconfig import LETTERS, generated_id


def test_an_id_is_an_adverb_an_adjective_and_an_animal():
    for _ in range(100):
        assert re.fullmatch("[a-z]+-[a-z]+-[a-z]+", generated_id())


def test_an_id_that_is_taken_is_drawn_again(monkeypatch):
    drawn = iter(["gladly-quiet-heron", "gladly-quiet-heron", "only-smart-lynx"])
    asked = []

    def generate(*arguments):
        asked.append(arguments)
        return next(drawn)

    monkeypatch.setattr(petname, "generate", generate)

    assert generated_id({"gladly-quiet-heron": "runs"}) == "only-smart-lynx"
    assert asked == [(3, "-", LETTERS)] * 3
