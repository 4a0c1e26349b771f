"""Results as JUnit has them."""

import re
from typing import get_args
from xml.etree.ElementTree import fromstring

import pytest

from headrace.authoring.verdicts.junit import CaseResult, Outcome, junit


def test_each_file_is_a_suite_and_each_test_a_case():
    root = fromstring(
        junit(
            [
                CaseResult(file="a.tests.yaml", line=3, name="one", outcome="passed", seconds=0.5),
                CaseResult(
                    file="a.tests.yaml",
                    line=9,
                    name="two",
                    outcome="failed",
                    seconds=0.25,
                    text="why\nmore",
                ),
                CaseResult(
                    file="b.tests.yaml",
                    line=None,
                    name="three",
                    outcome="skipped",
                    seconds=0,
                    text="later",
                ),
            ]
        )
    )

    assert {key: root.get(key) for key in ("tests", "failures", "errors", "skipped", "time")} == {
        "tests": "3",
        "failures": "1",
        "errors": "0",
        "skipped": "1",
        "time": "0.750",
    }
    assert [(suite.get("name"), len(suite)) for suite in root] == [
        ("a.tests.yaml", 2),
        ("b.tests.yaml", 1),
    ]
    failure = root.find(".//failure")
    assert failure is not None
    assert (failure.get("message"), failure.text) == ("why", "why\nmore")


def test_what_xml_cannot_hold_is_replaced():
    result = CaseResult(
        file="a", line=1, name="\x00<b>", outcome="error", seconds=0, text="\x1b\ud800"
    )

    case = fromstring(junit([result])).find(".//testcase")

    assert case is not None
    assert case.get("name") == "\ufffd<b>"


SUMS = {"name", "tests", "failures", "errors", "skipped", "time"}
SCHEMA: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (SUMS, SUMS | {"assertions", "timestamp"}, {"testsuite"}),
    "testsuite": (
        SUMS,
        SUMS | {"assertions", "timestamp", "file"},
        {"testcase", "properties", "system-out", "system-err"},
    ),
    "testcase": (
        {"name", "classname", "time"},
        {"name", "classname", "time", "assertions", "file", "line"},
        {"failure", "error", "skipped", "properties", "system-out", "system-err"},
    ),
    "failure": ({"message"}, {"message", "type"}, set()),
    "error": ({"message"}, {"message", "type"}, set()),
    "skipped": ({"message"}, {"message"}, set()),
}
"""By element: the attributes that readers ask for, those there may be, and the elements inside.

Source: https://github.com/testmoapp/junitxml
"""
DECIMAL = re.compile(r"\d+\.\d{3}")


@pytest.mark.parametrize("line", [None, 7])
@pytest.mark.parametrize("outcome", get_args(Outcome))
def test_what_is_written_satisfies_the_schema(outcome: Outcome, line: int | None):
    result = CaseResult(
        file="a/b.tests.yaml", line=line, name="n & m", outcome=outcome, seconds=1e-9, text="<why>"
    )

    root = fromstring(junit([result, result]))

    assert root.tag == "testsuites"
    for element in root.iter():
        required, known, inside = SCHEMA[element.tag]
        assert required <= {*element.attrib} <= known
        assert {each.tag for each in element} <= inside
        for name in {"tests", "failures", "errors", "skipped", "line"} & {*element.attrib}:
            assert element.attrib[name].isdecimal()
        assert DECIMAL.fullmatch(element.get("time", "0.000"))
        if element.tag == "testcase":
            assert len(element) == (outcome != "passed")
