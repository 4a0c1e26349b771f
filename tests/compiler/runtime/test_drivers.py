"""Drivers are imported before what needs them is built, and not on the loop."""

from __future__ import annotations

import importlib.util
import sys
import threading

import pytest

from headrace.compiler.clock import run_virtual
from headrace.compiler.component.catalogue import scan
from headrace.compiler.config.program import Program
from tests.stand_ins import Kept, Taking, Told, engine, pipeline, reads, with_attribute

CATALOGUE = scan("headrace.operators", "headrace.connectors")


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """Give the name of a module that nobody has imported, and that tells who did."""
    (tmp_path / "slow_driver.py").write_text("import threading\nby = threading.current_thread()\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "slow_driver"
    sys.modules.pop("slow_driver", None)


class Needing(Taking, kind="needing"):
    """An output that notes who imported its driver."""

    drivers = ("slow_driver",)

    def open(self, ctx):
        self.seen.append(sys.modules["slow_driver"].by)
        return super().open(ctx)


@pytest.mark.parametrize("is_file", [True, False])
def test_a_driver_is_there_when_a_component_is_built_and_was_imported_in_another_thread(
    driver, is_file
):
    seen = []
    output = with_attribute(with_attribute(Needing(), "made", Kept()), "seen", seen)

    async def main():
        it = engine()
        config = pipeline("p", [reads(Told(it.clock, []))], [], [output])

        await (it.load(Program((config,))) if is_file else it.compile(config))
        await it.close()

    run_virtual(main)

    assert len(seen) == 1
    assert seen[0] is not threading.main_thread()


@pytest.mark.parametrize(
    "component", list(CATALOGUE), ids=lambda each: f"{each.family}-{each.kind}"
)
def test_every_driver_that_a_component_names_is_installed(component):
    assert all(importlib.util.find_spec(name) for name in component.drivers)
