"""Each kind of transform, of output and of input buffer: its branches, taken and not taken.

What a transform has is told by its own test, as ``COVERED``.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from headrace.authoring.configfiles import catalogue
from headrace.authoring.playing.countingchain import counting
from headrace.authoring.playing.player import play
from headrace.authoring.testing.coverage import ConfigCoverage, coverage
from headrace.authoring.testing.running import scenario_of
from headrace.authoring.testing.runs import RunOptions, run, suites_of
from headrace.compiler.component.families import Output
from headrace.compiler.component.inputbuffers import InputBuffer
from headrace.compiler.lowering.chain import lower
from tests.authoring.testing.suite import written
from tests.covered import Covered


def cases() -> Iterator[Any]:
    """Yield what the tests of each kind say; a kind whose test says nothing is an error."""
    for kind, component in catalogue().family("transform").items():
        if kind != "script" or find_spec("rhai"):
            name = component.__module__.rpartition(".")[2]
            told = import_module(f"tests.operators.test_{name}").COVERED
            yield from (pytest.param(each, id=f"{kind}-{n}") for n, each in enumerate(told))


ALL = [*cases()]


def config(transform: str) -> str:
    return f"""\
state: {{last: {{}}}}
pipelines:
  - id: a
    inputs: [{{type: http}}]
    state: {{bucket: last, key: id}}
    transforms:
      - {transform}
"""


def case_of(given: str, more: str = "") -> str:
    return f"tests: {{it: {{given: {{{given}}}, {more}until: 1m, expect: {{a: {{}}}}}}}}"


def replies(case: Covered) -> str:
    is_asking = "type: http," in case.transform
    return "replies: {'a.transforms[0]': [{$echo: {}}, 503]}, " if is_asking else ""


def covered(file: Path) -> ConfigCoverage:
    suites = suites_of([file])
    [found] = coverage(suites, [*run(suites, RunOptions(counts=True, tells_why=False))])
    return found


@pytest.mark.parametrize("case", ALL)
def test_what_is_never_taken_is_told(tmp_path: Path, case: Covered):
    found = covered(written(tmp_path, case_of("", replies(case)), config(case.transform)))

    assert tuple(each.branch.untaken for each in found.branches) == case.untaken
    assert [each.count for each in found.branches] == [0] * len(case.untaken)


@pytest.mark.parametrize("case", ALL)
def test_every_branch_can_be_taken(tmp_path: Path, case: Covered):
    found = covered(written(tmp_path, case_of(case.given, replies(case)), config(case.transform)))

    assert len(found.branches) == len(case.untaken)
    assert [each.branch.untaken for each in found.branches if not each.count] == []


@pytest.mark.parametrize("case", ALL)
def test_the_chain_that_counts_makes_what_the_fused_one_makes(tmp_path: Path, case: Covered):
    file = written(tmp_path, case_of(case.given, replies(case)), config(case.transform))
    [suite] = suites_of([file])
    [test] = suite.cases()

    fused, counted = (
        play(suite.config.program, scenario_of(suite.tests, test), lowering=lowering)
        for lowering in (lower, counting)
    )

    assert fused.handed_on == counted.handed_on
    assert (fused.failures, fused.warnings) == (counted.failures, counted.warnings)


def test_each_kind_of_output_has_the_branches_of_all_outputs():
    kinds = catalogue().family("output")

    assert kinds
    assert [kind for kind, each in kinds.items() if each.branches is not Output.branches] == []


def test_an_output_writes_and_fails(tmp_path: Path):
    outputs = "- {id: a, inputs: [{type: http}], outputs: [{type: stdout}]}\n"
    given = "a: {1s: 1, 2s: 2}"
    faults = "faults: {'a.outputs[0]': {2s..: refuses}}, "

    [is_written, has_failed] = covered(written(tmp_path, case_of(given, faults), outputs)).branches

    assert (is_written.branch.name, is_written.count) == ("written", 1)
    assert (has_failed.branch.name, has_failed.count) == ("failed", 1)


SELECTING = """\
- id: a
  inputs: [{type: http}]
  outputs:
    - type: stdout
      when: [{type: not, conditions: [{type: exists, field: n}]}, {type: boolean, field: on}]
- id: b
  inputs: [{type: pipeline, upstream: a, when: [{type: exists, field: n}]}]
"""


def test_conditions_of_outputs_and_readers_are_true_and_false(tmp_path: Path):
    taken = covered(written(tmp_path, case_of("a: {1s: {n: 1}, 2s: {on: true}}"), SELECTING))
    untaken = covered(written(tmp_path, case_of(""), SELECTING))

    assert [each.branch.untaken for each in untaken.branches] == [
        "the condition 'not' of 1 condition was never true",
        "the condition 'not' of 1 condition was never false",
        "the condition on 'n' was never true",
        "the condition on 'n' was never false",
        "the condition on 'on' was never true",
        "the condition on 'on' was never false",
        "nothing was ever written",
        "no write ever failed",
        "the condition on 'n' was never true",
        "the condition on 'n' was never false",
    ]
    assert [each.position for each in untaken.branches][:5:2] == [(5, 14), (5, 39), (5, 67)]
    assert [each.count for each in taken.branches] == [1, 1, 1, 1, 1, 0, 1, 0, 1, 1]


BUFFERS = {
    "static": [("{type: static, size: 2}", "a: {1s: [1, 2]}", ["size"])],
    "tumbling": [
        ("{type: tumbling, window_seconds: 5}", "a: {1s: 1}", ["window_seconds"]),
        ("{type: tumbling, window_seconds: 0}", "a: {1s: 1}", ["window_seconds"]),
    ],
    "batch": [
        (
            "{type: batch, size: 2, window_seconds: 5}",
            "a: {1s: [1, 2], 2s: 1}",
            ["size", "window_seconds"],
        ),
        ("{type: batch, size: 2, window_seconds: 0}", "a: {1s: 1}", ["window_seconds"]),
    ],
}


def test_each_kind_of_input_buffer_is_here():
    assert {*InputBuffer.variants} == {*BUFFERS}


@pytest.mark.parametrize(
    ("buffer", "given", "names"), [case for cases in BUFFERS.values() for case in cases]
)
def test_the_buffer_of_an_input_lets_go(tmp_path: Path, buffer: str, given: str, names: list[str]):
    inputs = f"- {{id: a, inputs: [{{type: http, buffer: {buffer}}}]}}\n"

    taken = covered(written(tmp_path, case_of(given), inputs)).branches
    untaken = covered(written(tmp_path, case_of(""), inputs)).branches

    assert [(each.branch.name, each.count) for each in taken] == [(name, 1) for name in names]
    assert [(each.branch.untaken, each.count) for each in untaken] == [
        (f"'{name}' of its buffer never let go", 0) for name in names
    ]
