"""Every scenario runs and gives figures. How fast anything is, no test asks."""

from pathlib import Path

import pytest

from bench import measuring_engine
from bench.__main__ import SCENARIOS, apart, page, told
from bench.against import Side, has
from bench.measuring import BRIEF, Compared
from bench.scripts import times_row
from bench.side import MEASURED
from bench.table import Row, markdown, ratio_row

EVALUATIONS = {"runadd", "runif3"}
"""Compiled for these alone, an engine is no part of `make test`: they run where `make bench` left one."""
AMISS = set() if measuring_engine.is_built() else EVALUATIONS
SHORT = {"batch1"}
RATIOS = [
    pytest.param(name, marks=[] if name in SHORT else [pytest.mark.long])
    for name in sorted(set(SCENARIOS) - {"overload", "livez"} - AMISS)
]


@pytest.mark.parametrize("name", RATIOS)
def test_a_scenario_gives_ratios(name):
    rows = apart(SCENARIOS[name][0], BRIEF)

    assert {row.scenario for row in rows} == {name}
    assert all(row.value > 0 for row in rows)


@pytest.mark.long
def test_a_scenario_whose_server_is_not_installed_is_left_out(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))

    assert told("redis100", BRIEF) == []

    assert "not measured: there is no 'redis-server' on this machine" in capsys.readouterr().out


@pytest.mark.long
def test_an_overload_loses_nothing_that_was_accepted():
    [row] = apart(SCENARIOS["overload"][0], BRIEF)

    _, accepted, _, delivered, *_ = row.measured.split()
    assert accepted == delivered + ","
    assert row.measured.endswith(" 0 otherwise")


def test_a_ratio_is_the_middle_one_and_held_against_the_bar():
    compared = Compared(ours=2e-6, limit=1e-6, ratios=(0.9, 0.5, 0.4))

    row = ratio_row("batch1", compared, "a limit", unit="passes/s", least=0.6)

    assert row.cells == (
        "batch1",
        "500 k passes/s",
        "a limit: 1 M passes/s",
        "0.50 (0.40 to 0.90)",
        "at least 0.6",
        "**short**",
    )


@pytest.mark.parametrize("unit", ["msg/s", "msg/CPU s", "batches/s"])
def test_two_commits_are_compared_by_the_rate_of_each_row(unit):
    measured = MEASURED.match(f"7970000.0 {unit}")

    assert measured is not None
    assert (float(measured["rate"]), measured["unit"]) == (7_970_000, unit)


def test_a_scenario_that_a_tree_does_not_have_is_run_for_it_if_it_measures_a_server(tmp_path):
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "__main__.py").write_text('SCENARIOS = {\n    "batch1": [],\n}\n')

    assert has(tmp_path, "batch1")
    assert not has(tmp_path, "alarms")
    with pytest.raises(ValueError, match="has no 'batch10', which runs inside one process"):
        has(tmp_path, "batch10")


def test_a_server_of_another_tree_is_measured_with_what_is_here(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("PYTHONPATH", "rooms of ours")
    for file, text in {
        "bench/__main__.py": "SCENARIOS = {}",
        ".venv/bin/headrace": "#!/bin/sh\necho \"it has '$PYTHONPATH'\" >&2\n",
    }.items():
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(text)
        (tmp_path / file).chmod(0o755)

    side = Side(tmp_path, "alarms")
    with pytest.raises(RuntimeError, match="'alarms' broke off"):
        side.measure(0.001)
    side.end()

    assert "the server does not come up: it has ''" in capfd.readouterr().err


def test_a_cost_may_be_so_many_times_another():
    compared = Compared(ours=3e-6, limit=2e-6, ratios=(0.5, 0.8, 0.625))

    row = times_row("runadd", compared, "a limit", most=1.4)

    assert row.cells == (
        "runadd",
        "33.3 M msg/s",
        "a limit: 50 M msg/s",
        "1.60 x (1.25 to 2.00)",
        "at most 1.4",
        "**short**",
    )


def test_the_page_tells_the_machine_without_its_paths():
    page_text = page(markdown([Row("batch1", "1", "2", "0.5")]))

    assert "| batch1 " in page_text
    assert "cores" in page_text
    assert str(Path.cwd()) not in page_text
