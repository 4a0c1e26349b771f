"""Results of tests as JUnit has them in XML, which is what CI servers read.

Source: https://github.com/testmoapp/junitxml, what the readers of the format have in common
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring

Outcome = Literal["passed", "failed", "skipped", "error"]

_TAGS: Mapping[Outcome, str] = {"failed": "failure", "skipped": "skipped", "error": "error"}
# All that XML 1.0 has no place for, not even escaped.
_IMPOSSIBLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """What came of one test.

    ``text`` tells why it failed, was skipped or could not be run; its first line is what a list shows.
    """

    file: str
    line: int | None
    name: str
    outcome: Outcome
    seconds: float
    text: str = ""


def junit(results: Iterable[CaseResult]) -> str:
    """Return the results as XML, with a suite for each file."""
    listed, files = list(results), dict[str, list[CaseResult]]()
    for result in listed:
        files.setdefault(result.file, []).append(result)
    root = Element("testsuites", {"name": "headrace test", **_sums(listed)})
    for file, cases in files.items():
        suite = SubElement(root, "testsuite", {"name": _possible(file), **_sums(cases)})
        for case in cases:
            _add(suite, case)
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _sums(results: Sequence[CaseResult]) -> dict[str, str]:
    counts = Counter(result.outcome for result in results)
    return {
        "tests": str(len(results)),
        "failures": str(counts["failed"]),
        "errors": str(counts["error"]),
        "skipped": str(counts["skipped"]),
        "time": _time(sum(result.seconds for result in results)),
    }


def _add(suite: Element, result: CaseResult) -> None:
    file = _possible(result.file)
    told = {"classname": file, "name": _possible(result.name), "time": _time(result.seconds)}
    place = {"file": file} if result.line is None else {"file": file, "line": str(result.line)}
    case = SubElement(suite, "testcase", told | place)
    if result.outcome in _TAGS:
        text = _possible(result.text)
        reason = SubElement(
            case, _TAGS[result.outcome], {"message": text.partition("\n")[0].strip()}
        )
        reason.text = text or None


def _time(seconds: float) -> str:
    return f"{seconds:.3f}"


def _possible(text: str) -> str:
    """Return a text with a replacement character for each one that XML cannot hold."""
    return _IMPOSSIBLE.sub("\ufffd", text)
