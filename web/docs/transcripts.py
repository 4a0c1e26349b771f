"""Commands and what they print, for pages: run again with every `make docs`."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

from headrace.authoring.testing.outcomes import aligned
from headrace.authoring.testing.runs import RunOptions
from headrace.compiler.text.diagnostics import Diagnostic
from headrace.compiler.text.render import render
from headrace.web.commands.check import check
from headrace.web.commands.diff import diff
from headrace.web.commands.explaining import ExplainForm, explain
from headrace.web.commands.testing import run_tests
from headrace.web.docs.markdown import RegionTexts, fenced
from headrace.web.files.reading import Loaded

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_TOOK = re.compile(r"^(.*?) +(?:(\S+ in )\d+ ms|\d+\.\d s)$", re.M)


def pages(docs: Path) -> dict[str, RegionTexts]:
    """Return the generated parts of the guide: configs, and what is said of them."""
    broken, daily = Path(docs.name, "getting-started", "broken.yaml"), Path("daily.yaml")
    with chdir(docs.parent):
        said_of_broken = checked(broken, command=".venv/bin/headrace")
    with chdir(docs / "concepts"):
        said_of_daily = f"{listed(daily)}\n\n{checked(daily)}"
    return {"getting-started.md": {"": said_of_broken}, "concepts.md": {"": said_of_daily}}


def listed(config: Path) -> str:
    """Return a config as it stands."""
    return fenced(config.suffix.removeprefix("."), config.read_text())


def checked(
    file: Path,
    *,
    command: str = "headrace",
    is_settings: bool = False,
    data_dir: Path | None = None,
) -> str:
    """Return `headrace check` of a config, or of server settings, and what a terminal shows."""
    terminal = _Terminal()
    with redirect_stdout(terminal), redirect_stderr(terminal):
        check(
            [] if is_settings else [file],
            settings=file if is_settings else None,
            data_dir=data_dir,
        )
    option = "--server-config " if is_settings else ""
    if data_dir is not None:
        option = f"--data-dir {data_dir} "
    return _transcript(f"{command} check {option}{file}", terminal.getvalue())


def transcript_of_tests(file: Path, *, updates: bool = False, counts: bool = False) -> str:
    """Return `headrace test` of a file, and what a terminal shows. Times are those of no machine."""
    terminal = _Terminal()
    with redirect_stdout(terminal), redirect_stderr(terminal):
        run_tests(
            [file],
            RunOptions(style="terminal", counts=counts),
            is_json=False,
            junit_file=None,
            updates=updates,
        )
    said = _TOOK.sub(_as_ever, terminal.getvalue())
    return _transcript(f"headrace test {file}{' --update' * updates}{' --coverage' * counts}", said)


def transcript_of_diff(old: Path, new: Path, capture: Path | None = None) -> str:
    """Return `headrace diff` of two configs, and what a terminal shows."""
    terminal = _Terminal()
    with redirect_stdout(terminal), redirect_stderr(terminal):
        diff(old, new, capture, (), is_json=False)
    option = "" if capture is None else f" --capture {capture}"
    return _transcript(f"headrace diff {old} {new}{option}", terminal.getvalue())


def _as_ever(line: re.Match[str]) -> str:
    """Return a line of `headrace test` with a time that no load of the machine changes."""
    said, lasts = line.groups()
    return aligned(said, "0.2 s" if lasts is None else f"{lasts}5 ms")


def explained(
    file: Path, *pipelines: str, form: ExplainForm = "text", with_code: bool = False
) -> str:
    """Return what `headrace explain` prints."""
    with redirect_stdout(_Terminal()) as terminal:
        explain(file, pipelines, form, with_code=with_code)
    return terminal.getvalue()


def transcript_of_explain(file: Path, *pipelines: str, with_code: bool = False) -> str:
    """Return `headrace explain` of a config, and what a terminal shows."""
    words = ["headrace explain", str(file), *pipelines, *(["--code"] if with_code else [])]
    return _transcript(" ".join(words), explained(file, *pipelines, with_code=with_code))


def not_started(config: Path, loaded: Loaded, refusals: Sequence[Diagnostic]) -> str:
    """Return `headrace serve` of a config and the refusal that it prints on a terminal."""
    said = render(refusals, style="terminal", sources=loaded.sources)
    return _transcript(f"headrace serve --config {config}", said)


class _Terminal(io.StringIO):
    """Takes what is printed for people."""

    def isatty(self) -> bool:
        return True


def _transcript(command: str, said: str) -> str:
    plain = [line.rstrip() for line in _COLOUR.sub("", said).splitlines()]
    return fenced("console", "\n".join([f"$ {command}", *plain]))
