"""The examples of the README do what it says, and its table of limits is right."""

import inspect
import re
from pathlib import Path

import pytest
from rhai import Script, ScriptError

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
CLAIM = re.compile(r"(?P<expression>\S.*?)  # -> (?P<result>.*)")


def steps():
    """Pieces of code to execute, and expressions with what they are said to give."""
    for block in BLOCKS:
        piece = []
        for line in block.splitlines():
            claim = CLAIM.fullmatch(line)
            if claim is None:
                piece.append(line)
            else:
                yield "\n".join(piece), claim["expression"], claim["result"]
                piece = []
        yield "\n".join(piece), None, None


def test_every_example_gives_what_it_claims():
    names = {}
    claims = 0

    for piece, expression, result in steps():
        exec(piece, names)
        if expression is not None:
            claims += 1
            assert repr(eval(expression, names)) == result, expression
    assert claims > 12


def test_the_limits_have_the_defaults_of_the_table():
    rows = re.findall(r"^\| `(\w+)` \| ([\d,.]+) \|", README, re.MULTILINE)
    options = inspect.signature(Script).parameters

    assert {name for name, _ in rows} == {
        name for name in options if name.startswith(("max_", "time_"))
    }
    for name, default in rows:
        assert options[name].default in (float(default.replace(",", "")), ...), name


@pytest.mark.parametrize(
    "name", ["eval", "sleep", "timestamp", "blob", "get_fn_metadata_list", "tag"]
)
def test_what_is_said_not_to_be_there_is_not(name):
    for arguments in ("", "1", "`1`"):
        with pytest.raises(ScriptError, match=name):
            Script(f"{name}({arguments})").run(None)
