"""The catalogue: what there is, found by scanning."""

import subprocess
import sys
import textwrap

import pytest

from headrace.compiler.component.catalogue import Catalogue, scan
from headrace.compiler.component.families import FAMILIES, Input, Transform
from tests.compiler.catalogued import CATALOGUE, Pipe, Sieve, Sink, Spring, Well


def kinds(catalogue, family):
    return [*catalogue.family(family)]


@pytest.fixture
def room(tmp_path, monkeypatch):
    """A package with two modules, one of which imports from the other."""
    package = tmp_path / "headrace_test_room"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "first.py").write_text(
        textwrap.dedent(
            """
            from headrace.compiler.component.families import Transform

            class Half(Transform):
                "No kind, so no component."

            class First(Half, kind="first", listed=2):
                "A component."
            """
        )
    )
    (package / "second.py").write_text(
        textwrap.dedent(
            """
            from headrace_test_room.first import First

            class Second(First, kind="second", listed=1):
                "Another one."
            """
        )
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield "headrace_test_room"
    for name in [name for name in sys.modules if name.startswith("headrace_test_room")]:
        del sys.modules[name]


def test_components_are_found_by_family_and_kind():
    assert CATALOGUE.family("input")["spring"] is Spring
    assert CATALOGUE.family("transform")["sieve"] is Sieve
    assert CATALOGUE.family("connection")["well"] is Well


def test_they_come_in_the_order_of_the_reference():
    catalogue = Catalogue([Pipe, Sink, Spring])

    assert kinds(catalogue, "input") == ["spring", "pipe"]
    assert [*catalogue] == [Spring, Pipe, Sink]


def test_one_kind_may_be_in_several_families_but_only_once_in_each():
    class Mouth(Input, kind="river"):
        """An input."""

    class Bed(Transform, kind="river"):
        """A transform."""

    class Delta(Input, kind="river"):
        """Another input."""

    assert kinds(Catalogue([Mouth, Bed]), "transform") == ["river"]
    with pytest.raises(ValueError, match="two input components named 'river'"):
        Catalogue([Mouth, Bed, Delta])


def test_a_scan_finds_what_is_defined_in_the_modules_of_a_room(room):
    catalogue = scan(room)

    assert {family: kinds(catalogue, family) for family in FAMILIES} == {
        "input": [],
        "transform": ["second", "first"],
        "output": [],
        "connection": [],
    }


def test_scanning_the_rooms_loads_no_driver_and_nothing_that_serves():
    heavy = (
        *("aiobotocore", "aiohttp", "aiokafka", "asyncpg", "asyncua", "botocore"),
        *("cryptography", "falcon", "hiredis", "nats", "petname", "rapidfuzz", "reactivex"),
        *("redis", "rhai", "rich", "uvicorn", "yaml", "zstandard"),
    )
    program = (
        "import sys\n"
        "import headrace.compiler.config.program\n"
        "from headrace.compiler.component.catalogue import scan\n"
        "assert list(scan('headrace.operators', 'headrace.connectors'))\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert (done.stdout, done.stderr) == ("[]\n", "")
