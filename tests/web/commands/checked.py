"""Configs with scripts, as they are checked."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from headrace.web.commands.cli import commands


def written(name: str, text: str) -> str:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_bytes(text.encode())  # line ends as they are
    return name


def check(*arguments: str) -> tuple[int, list[str]]:
    result = CliRunner().invoke(commands, ["check", *arguments])
    return result.exit_code, result.stdout.splitlines()


def config_of(source: str, more: str = "") -> str:
    """Return a config of one script."""
    return f"""\
- inputs: [{{type: dummy, duration: 1}}]
  outputs: [{{type: stdout}}]
  transforms: [{{type: script, source: {source}{more}}}]
"""
