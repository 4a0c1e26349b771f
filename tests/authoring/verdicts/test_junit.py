"""Results as JUnit has them."""

from xml.etree.ElementTree import fromstring

from headrace.authoring.verdicts.junit import CaseResult, junit


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
