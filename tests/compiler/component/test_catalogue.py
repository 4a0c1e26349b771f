"""The catalogue: what there is, found by scanning."""

import subprocess
import sys
import textwrap
from importlib import import_module, invalidate_caches
from pathlib import Path
from threading import Thread

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


def test_a_component_that_is_looked_up_is_imported_without_the_others(room):
    transforms = scan(room).family("transform")

    assert "third" not in transforms
    assert imported(room) == set()
    assert transforms["first"].kind == "first"
    assert imported(room) == {"first"}


def test_whoever_goes_through_a_family_gets_all_of_it(room):
    transforms = scan(room).family("transform")

    assert transforms["first"].kind == "first"
    assert [*transforms] == ["second", "first"]
    assert imported(room) == {"first", "second"}


def test_a_component_can_be_looked_up_while_another_thread_imports(room):
    class Watched(str):
        """The name of a module; whoever looks at it first is overtaken by who imports all."""

        def rpartition(self, separator):
            if not overtaken:
                overtaken.append(Thread(target=catalogue.complete))
                overtaken[0].start()
                overtaken[0].join()
            return super().rpartition(separator)

    overtaken = []
    catalogue = Catalogue((), [Watched(f"{room}.first"), f"{room}.second"])

    assert catalogue.family("transform")["second"].kind == "second"
    assert not overtaken[0].is_alive()


def test_where_another_file_has_the_name_the_family_is_behind_it(room):
    define(room, "riverinput", "Input", "river")

    catalogue = scan(room)

    assert catalogue.family("input")["river"].__module__ == f"{room}.riverinput"
    assert "river" not in catalogue.family("transform")


@pytest.mark.parametrize("name", ["inputriver", "rivers", "riveroutput", "stream"])
def test_a_module_that_is_not_called_after_its_kind_is_no_catalogue(room, name):
    define(room, name, "Input", "river")

    with pytest.raises(ValueError, match=f"{name}' is not called after input 'river'"):
        list(scan(room))


def test_two_modules_with_one_kind_are_no_catalogue(room):
    define(room, "river", "Input", "river")
    define(room, "riverinput", "Input", "river")

    with pytest.raises(ValueError, match="two input components named 'river'"):
        scan(room).family("input")["river"]


def define(room, name, family, kind):
    """Write one more module with a component."""
    folder = Path(import_module(room).__path__[0])
    (folder / f"{name}.py").write_text(
        f"from headrace.compiler.component.families import {family}\n"
        f"class Found({family}, kind='{kind}'):\n"
        "    'One more.'\n"
    )
    invalidate_caches()


def imported(room):
    return {name.rpartition(".")[2] for name in sys.modules if name.startswith(f"{room}.")}


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
