"""Two configs beside each other: what a revert would keep, restart, add and remove, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.authoring.replaying.configdiff import ConfigDifference
from headrace.authoring.replaying.report import config_lines
from tests.authoring.replaying.comparing import configs_differ

ONE = """\
- id: one
  inputs: [{type: http}]
  transforms: [{type: filter, Numeric: {field: temp, operator: greater_than, value: 10}}]
"""
TWO = "- {id: two, inputs: [{type: http}]}\n"
STATE = """\
state: { machines: { max_keys: %d } }
pipelines:
  - id: p
    state: { bucket: machines, key: m }
    inputs: [{type: http}]
    transforms: [{type: remember, remember: [{field: a, as: b}]}]
"""


def whys(found: ConfigDifference) -> list[str]:
    return [each.path for one in found.changed for each in one.settings]


def test_equal_configs_do_not_differ(tmp_path: Path) -> None:
    found = configs_differ(tmp_path, ONE + TWO, TWO + "# a remark\n" + ONE)

    assert found.is_empty
    assert {*found.kept} == {"one", "two"}


def test_a_default_that_is_written_out_is_no_difference(tmp_path: Path) -> None:
    written = TWO.replace("type: http", "type: http, capacity: 1024")

    assert configs_differ(tmp_path, TWO, written).is_empty


def test_a_setting_is_told_with_its_values_and_its_place(tmp_path: Path) -> None:
    found = configs_differ(tmp_path, ONE + TWO, ONE.replace("10", "15") + TWO)

    assert (found.kept, found.added, found.removed) == (("two",), (), ())
    [change] = found.changed[0].settings
    assert (change.path, change.before, change.after) == (
        "transforms[0].Numeric.value",
        "10",
        "15",
    )
    assert change.where.endswith("config.yaml:3:85")


def test_one_and_true_are_told_apart(tmp_path: Path) -> None:
    constant = "- {id: p, inputs: [{type: http}], transforms: [{type: map, mappings: [%s]}]}\n"
    mapping = "{type: constant, as: a, value: {type: number, value: %s}}"
    old, new = constant % mapping % 1, constant % mapping % 0

    [change] = configs_differ(tmp_path, old, new).changed

    assert [(each.before, each.after) for each in change.settings] == [("1", "0")]


def test_what_comes_and_what_goes_is_told(tmp_path: Path) -> None:
    found = configs_differ(tmp_path, ONE, TWO)

    assert (found.added, found.removed, found.is_empty) == (("two",), ("one",), False)
    assert [*config_lines(found)] == ["added      two", "removed    one"]


def test_one_without_an_id_is_the_same_if_it_says_the_same(tmp_path: Path) -> None:
    nameless = "- {inputs: [{type: http}]}\n"

    assert configs_differ(tmp_path, nameless, nameless).is_empty
    changed = configs_differ(tmp_path, nameless, nameless.replace("http}", "http, capacity: 2}"))
    assert changed.removed[0].endswith("old/config.yaml:1:3")
    assert changed.added[0].endswith("new/config.yaml:1:3")


def test_a_bucket_with_other_bounds_loses_what_it_holds(tmp_path: Path) -> None:
    found = configs_differ(tmp_path, STATE % 10, STATE % 20)

    assert [each.name for each in found.buckets.changed] == ["machines"]
    assert found.changed[0].built_on == ("bucket 'machines'",)
    assert "it loses what it holds" in "\n".join(config_lines(found))


def test_a_connection_that_says_something_else_restarts_who_names_it(tmp_path: Path) -> None:
    naming = "- {id: p, inputs: [{type: mqtt, connection: plant, topic: t}]}\n" + TWO
    secret = "plant: {type: mqtt, host: '%s', username: ann, password: '${PASSWORD}'}\n"

    found = configs_differ(tmp_path, naming, naming, secret % "a", secret % "b")

    assert found.connections.changed == ("plant",)
    assert found.kept == ("two",)
    assert found.changed[0].built_on == ("connection 'plant'",)


@pytest.mark.engine
def test_a_script_that_says_something_else_restarts_who_runs_it(tmp_path: Path) -> None:
    scripted = "- {id: p, inputs: [{type: http}], transforms: [{type: script, source: %s}]}\n"
    config = scripted % "{type: file, path: s.rhai}"
    for name, text in (("old", "emit(msg)"), ("new", "emit(msg); emit(msg)")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "s.rhai").write_text(text)

    assert configs_differ(tmp_path, config, config).changed[0].built_on == ("file 's.rhai'",)
    (tmp_path / "new" / "s.rhai").write_text("emit(msg)")
    assert configs_differ(tmp_path, config, config).is_empty
