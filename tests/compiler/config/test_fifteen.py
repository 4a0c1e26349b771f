"""A config with fifteen different mistakes: fifteen diagnostics, each at the right place."""

from pathlib import Path

import pytest

from headrace.compiler.component.catalogue import scan
from headrace.compiler.config.program import load_program
from headrace.compiler.text.documents import read_file
from tests.compiler.catalogued import plain

CONFIG = Path(__file__).with_name("fifteen.yaml")

TOLD = """
6:15: pipelines[0].inputs[0].auth.token: this key is required
7:9: pipelines[0].inputs[1]: a pipeline has at most one http input, and inputs[0] (http, line 5) is one
8:15: pipelines[0].inputs[2].type: unknown type "dumy"
11:19: pipelines[0].inputs[3].duration: expected an integer of at least 1 and of at most 1000000000, found "1"
13:9: pipelines[0].transforms[0]: a buffer needs a trigger that releases what it holds
19:35: pipelines[0].transforms[1].aggregations[1].as: 'machine' is written by group_by[0] already
23:42: pipelines[0].transforms[2].mappings[1].as: cannot write 'site.hall': mappings[0] (constant) makes 'site' a value that is no object
29:41: pipelines[0].transforms[3].mappings[0].right.value: cannot divide by zero
34:15: pipelines[0].outputs[0].verb: a GET request has no body to put the messages in
37:15: pipelines[0].outputs[1].path: expected a relative path without '.' and '..', found "../means"
38:9: pipelines[0].outputs[1].fromat: unknown key 'fromat'
40:21: pipelines[0].outputs[2].connection: there is no file connection 'archiv'
42:9: pipelines[1].id: the id 'press-line' is taken by the pipeline on line 3
45:19: pipelines[1].inputs[0].upstream: there is no pipeline 'oven' to read from
46:14: pipelines[1].inputs[0].ack: a message from 'pipeline' is acknowledged to nobody, so 'ack' cannot be on_delivery
"""  # noqa: E501

CODES = """
missing-key second-input unknown-kind wrong-type no-trigger duplicate scalar-in-the-way zero-divisor
not-a-choice outside-root unknown-key unknown-connection duplicate missing-upstream
nothing-to-acknowledge
"""


@pytest.fixture(scope="module")
def diagnostics():
    catalogue = scan("headrace.operators", "headrace.connectors")
    known = {"archive": catalogue.family("connection")["file"]}

    loaded, diagnostics = load_program(read_file(CONFIG), catalogue, connections=known)

    assert loaded is None
    return diagnostics


def test_every_mistake_is_told_at_once_with_its_place_and_its_path(diagnostics):
    assert plain(diagnostics) == TOLD.strip().split("\n")


def test_every_mistake_has_its_code_and_says_what_would_be_accepted(diagnostics):
    assert [each.code for each in diagnostics] == CODES.split()
    assert all(each.expected for each in diagnostics)


def test_every_mistake_is_on_the_line_that_says_so(diagnostics):
    lines = CONFIG.read_text().splitlines()

    for number, diagnostic in enumerate(diagnostics, 1):
        assert f"  # {number}: " in lines[diagnostic.line - 1]
        assert diagnostic.file == str(CONFIG)
