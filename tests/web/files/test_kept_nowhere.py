"""What is to be kept is warned of where nobody has said in which directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.web.commands.cli import commands

CONFIG = """\
state: { kept: { durable: true }, other: {} }
pipelines:
  - inputs: [{ type: http, durable: true }]
"""


@pytest.mark.parametrize(
    ("option", "warned"), [(False, ["state.kept", "pipelines[0].inputs[0]"]), (True, [])]
)
def test_a_check_warns_of_what_has_no_directory(
    tmp_path: Path, option: bool, warned: list[str]
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(CONFIG)
    options = ["--data-dir", str(tmp_path)] if option else []

    checked = CliRunner().invoke(commands, ["check", *options, str(file)])

    lines = [each for each in checked.output.splitlines() if "nothing can be kept" in each]
    assert [line.split(": ")[1] for line in lines] == [f"{each}.durable" for each in warned]
    assert checked.exit_code == 0
