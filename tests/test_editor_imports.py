"""Editors follow imports from one room to another (`tool.pyright` of pyproject.toml)."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.services.node_packages import modules
from tests.services.programs import program

REPOSITORY = Path(__file__).parents[1]
IMPORTS = {
    "Delivery": "headrace.compiler.delivery",
    "Filter": "headrace.operators.filter",
    "DummyInput": "headrace.connectors.dummy",
    "Access": "headrace.web.auth.access",
}


@pytest.mark.long
def test_a_name_of_each_room_is_found_where_it_is_imported(tmp_path: Path) -> None:
    # given
    editing = tmp_path / "editing.py"
    imported = [f"from {module} import {name}" for name, module in IMPORTS.items()]
    editing.write_text("\n".join([*imported, *(f"reveal_type({name})" for name in IMPORTS)]))
    # when
    node = program("node", "install Node.js 18 or newer")
    pyright = [node, modules("pyright") / "pyright" / "index.js", "--outputjson"]
    answer = subprocess.run([*pyright, "-p", REPOSITORY, editing], capture_output=True, check=False)
    # then
    said = [each["message"] for each in json.loads(answer.stdout)["generalDiagnostics"]]
    assert said == [f'Type of "{name}" is "type[{name}]"' for name in IMPORTS]
