"""A pipeline that is written while others run: to run beside them, or in the place of one of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path as FilePath

from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.drafts import is_refused
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.config.connectionsfile import Filed
from headrace.compiler.config.program import load_pipeline
from headrace.compiler.lint.rings import Configs, rings
from headrace.compiler.text.diagnostics import Diagnostic, Fault, in_file_order, shown
from headrace.compiler.text.documents import Document, Site


def load_edited(
    document: Document,
    catalogue: Catalogue,
    *,
    running: Configs,
    id: str | None = None,
    connections: Mapping[str, Filed] | None = None,
    buckets: Collection[str] | None = None,
    base: FilePath | None = None,
) -> tuple[PipelineConfig | None, list[Diagnostic]]:
    """Read a pipeline as `load_pipeline` does, and judge it beside those that are ``running``.

    It is to take the place of the one under ``id``, or to run besides if that is None.
    """
    config, said = load_pipeline(
        document,
        catalogue,
        running=running,
        connections=connections,
        buckets=buckets,
        base=base,
    )
    site = Site(document)
    given = document.value.get("id") if isinstance(document.value, dict) else None
    if isinstance(given, str):
        said += map(site.diagnose, _misnamed(given, running, id))
    if config is not None and (runs_as := id or config.id) is not None:
        said += rings(runs_as, {**running, runs_as: config})
    return None if is_refused(said) else config, in_file_order(said)


def _misnamed(given: str, running: Configs, id: str | None) -> Iterator[Fault]:
    """Yield what is wrong with the id that a pipeline is given."""
    if id is None and given in running:
        message = f"the id '{given}' is taken by a pipeline that runs"
        expected = "an id that no other pipeline has"
        yield Fault("duplicate", message, shown(given), expected, path=("id",))
    elif id not in (None, given):
        message = f"the id of this pipeline is '{id}', and stays so"
        expected = f"'{id}', or no id"
        yield Fault("not-a-choice", message, shown(given), expected, path=("id",)).meaning(id)
