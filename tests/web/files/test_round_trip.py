"""What is saved loads again, and is the same graph: every component, in both formats."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given

from headrace.compiler.component.families import Component
from headrace.compiler.component.pipelineconfig import differing, is_same
from headrace.compiler.config.dumping import Snapshot
from headrace.compiler.text.diagnostics import Severity
from headrace.web.files.filing import Save
from headrace.web.files.layoutfile import LayoutFile
from headrace.web.files.reading import Files, Loaded, load
from headrace.web.files.replacing import replace
from headrace.web.files.targets import targets_of
from tests.examples import examples
from tests.web.files.graphs import components, known, samples, snapshots


def saved(folder: Path, snapshot: Snapshot, name: str) -> Loaded:
    """Save a graph, and return what a start finds."""
    targets = targets_of(name, folder, Files())
    format: Any = "yaml" if name.endswith("yaml") else "json"
    replace([*Save(snapshot, LayoutFile(), targets, format, is_new=True).changes(known())])
    return load(Files(config=targets.config), known())


def found(loaded: Loaded) -> Snapshot:
    """Return the graph that was loaded."""
    errors = [one for one in loaded.diagnostics if one.severity is Severity.ERROR]
    assert [(one.path, one.message) for one in errors] == []
    assert loaded.program is not None
    pipelines = {str(each.id): each for each in loaded.program.pipelines}
    return Snapshot(pipelines, loaded.connections, loaded.program.buckets)


def loadable(snapshot: Snapshot) -> bool:
    """Return whether nothing dangles that the pages of two components call alike."""
    return not [*snapshot.dangling()]


@examples(60)
@given(snapshots())
def test_a_graph_that_is_saved_loads_again_as_the_same_graph(snapshot: Snapshot) -> None:
    if not loadable(snapshot):
        return event("dangling")
    event(f"{len(snapshot.pipelines)} pipelines")
    with tempfile.TemporaryDirectory() as folder:
        for config_file in ("one.json", "other.yaml"):
            again = found(saved(Path(folder), snapshot, config_file))

            assert not again.differs_from(snapshot)
            assert again.order() == snapshot.order()
            for id, config in snapshot.pipelines.items():
                assert [*differing(config, again.pipelines[id])] == []
            for name, connection in snapshot.connections.items():
                assert is_same(connection, again.connections[name])
            assert {**again.buckets} == snapshot.buckets


@pytest.mark.parametrize("component", [*known()], ids=lambda each: f"{each.kind} {each.family}")
def test_every_component_is_among_them(component: type[Component]) -> None:
    assert samples()[component]


@pytest.mark.long
@pytest.mark.parametrize("component", [*known()], ids=lambda each: f"{each.kind} {each.family}")
def test_what_a_component_is_written_as_reads_as_the_same(component: type[Component]) -> None:
    @examples(25)
    @given(components(component))
    def check(drawn: dict[str, Any]) -> None:
        one = component.load({key: value for key, value in drawn.items() if key != "type"})
        written = one.dump(masked=False)
        other = component.load({key: value for key, value in written.items() if key != "type"})

        assert written["type"] == component.kind
        assert is_same(one, other)
        assert other.dump(masked=False) == written

    check()
