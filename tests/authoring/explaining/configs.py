"""Configs that are explained in tests."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from headrace.authoring.configfiles import ConfigFiles, catalogue, load_config
from headrace.authoring.explaining.explained import ExplainedPipeline
from headrace.authoring.explaining.explanation import explained
from headrace.compiler.component.catalogue import Catalogue

GOLDEN = Path(__file__).parent / "golden"
SPECS = Path(__file__).parents[3] / "specs"


@cache
def known() -> Catalogue:
    return catalogue()


def explained_file(file: Path, ids: Sequence[str] = ()) -> list[ExplainedPipeline]:
    return explained(load_config(ConfigFiles(file), known()), ids)


def explained_text(
    text: str, *ids: str, components: Catalogue | None = None
) -> list[ExplainedPipeline]:
    files = ConfigFiles(connections=GOLDEN / "any.connections.yaml", piped=text.encode())
    return explained(load_config(files, components or known()), ids)
