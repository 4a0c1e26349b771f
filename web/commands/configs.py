"""The config that a command is about: read, and on standard error all that is wrong with it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from headrace.authoring.configfiles import ConfigFiles, LoadedConfig, load_config
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.text.diagnostics import Diagnostic, Severity
from headrace.compiler.text.render import render, style_for


def load_or_tell(config: Path, known: Catalogue) -> LoadedConfig[ConfigFiles] | None:
    """Return a config with nothing wrong but warnings; None: what is wrong with it was told."""
    loaded = load_config(ConfigFiles(config), known)
    wrong = [one for one in loaded.diagnostics if one.severity is Severity.ERROR]
    if wrong:
        tell_refusal(wrong, loaded.sources)
    return None if loaded.program is None or wrong else loaded


def tell_refusal(diagnostics: Iterable[Diagnostic], sources: Mapping[str, str]) -> None:
    """Tell what is wrong, as `check` does, on standard error."""
    print(render(diagnostics, style=style_for(sys.stderr), sources=sources), file=sys.stderr)
