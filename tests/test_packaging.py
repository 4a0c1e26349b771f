"""The wheel is the rooms, the engine is its folder, and the versions asked for are pinned."""

import compileall
import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import distribution, entry_points, version
from pathlib import Path

import pytest

from tests.rooms import REPOSITORY, ROOMS
from tests.web import console

CONSOLE = "web/console"
PAGE = (
    "index.html",
    *("console/" + name for name in ("letters.woff2", "notes.txt", "start.js", "start.js.gz")),
)
ENGINE = REPOSITORY / "rhai-python"
SETTINGS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
ENGINE_SETTINGS = tomllib.loads((ENGINE / "pyproject.toml").read_text())
PROJECT = SETTINGS["project"]
ENGINE_VERSION = ENGINE_SETTINGS["project"]["version"]


def canonical(requirement: str) -> str:
    """Return the name of what is asked for, as an index spells it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[<>=\[;]", requirement)[0]).lower()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy: a build in place would pack what an older one left in build/."""
    source = tmp_path_factory.mktemp("source")
    for room in (*ROOMS, "package"):
        shutil.copytree(REPOSITORY / room, source / room, ignore=shutil.ignore_patterns("built"))
        compileall.compile_dir(source / room, quiet=1)  # as a checkout is that has run
    console.build(source / CONSOLE / "built")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, source)

    # The installed setuptools, asked as an installer asks it, because a test asks no registry.
    build = "from setuptools import build_meta; build_meta.build_wheel('wheels')"
    subprocess.run([sys.executable, "-c", build], cwd=source, check=True, capture_output=True)

    [built] = (source / "wheels").glob("*.whl")
    return built


@pytest.mark.long
def test_the_wheel_has_the_files_of_the_rooms_and_no_others(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}

    assert packed == {
        f"headrace/{file.relative_to(REPOSITORY).as_posix()}"
        for room in ROOMS
        for file in (REPOSITORY / room).rglob("*")
        if file.is_file()
        and not {"__pycache__", "page", "built"} & {*file.relative_to(REPOSITORY).parts}
    } | {f"headrace/{CONSOLE}/built/{name}" for name in PAGE} | {
        f"headrace/{file.name}" for file in (REPOSITORY / "package").iterdir() if file.is_file()
    }


def test_each_room_says_that_it_is_typed(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        typed = {f"headrace/{room}/py.typed" for room in ROOMS}

        assert typed <= set(archive.namelist())


def test_the_licence_is_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        [licence] = [name for name in archive.namelist() if name.endswith("/LICENSE")]

        assert archive.read(licence) == (REPOSITORY / "LICENSE").read_bytes()


def test_the_rooms_of_the_wheel_are_imported_under_one_name(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    show = "; ".join(
        ["import sys", f"sys.path.insert(0, {str(tmp_path)!r})"]
        + [f"import headrace.{room} as room; print(room.__file__)" for room in ROOMS]
    )

    # Without site-packages, or the editable install would answer for the wheel.
    told = subprocess.run(
        [sys.executable, "-I", "-S", "-c", show], check=True, capture_output=True, text=True
    )

    assert told.stdout.splitlines() == [
        str(tmp_path / "headrace" / room / "__init__.py") for room in ROOMS
    ]


def test_the_command_is_the_web_rooms() -> None:
    [command] = entry_points(group="console_scripts", name="headrace")

    assert command.value == "headrace.web.commands.cli:main"


def test_the_version_is_the_projects() -> None:
    assert version("headrace") == PROJECT["version"]


def test_the_constraints_are_plain_pins_in_order() -> None:
    pins = (REPOSITORY / "constraints.txt").read_text().splitlines()

    assert [pin for pin in pins if not re.fullmatch(r"[a-z0-9-]+==[0-9a-z.]+", pin)] == []
    assert pins == sorted(set(pins))


def test_everything_asked_for_is_pinned_but_the_engine_which_comes_from_its_folder() -> None:
    pins = (REPOSITORY / "constraints.txt").read_text().splitlines()
    extras = PROJECT["optional-dependencies"].values()
    asked = [*PROJECT["dependencies"], *(name for extra in extras for name in extra)]
    asked += [
        name for one in (SETTINGS, ENGINE_SETTINGS) for name in one["build-system"]["requires"]
    ]

    assert {canonical(name) for name in asked} - {pin.partition("==")[0] for pin in pins} == {
        "rhai-python"
    }


def test_for_scripts_the_wheel_asks_for_exactly_the_engine_beside_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        [metadata] = [name for name in archive.namelist() if name.endswith("/METADATA")]
        asked = archive.read(metadata).decode().splitlines()

    assert [line for line in asked if line.startswith("Requires-Dist: rhai")] == [
        f'Requires-Dist: rhai-python=={ENGINE_VERSION}; extra == "script"'
    ]


def test_the_engine_has_its_crates_version_and_a_label_that_no_public_index_takes() -> None:
    crate = tomllib.loads((ENGINE / "Cargo.toml").read_text())["package"]

    assert f"{crate['version']}+headrace" == ENGINE_VERSION
    assert crate["license"] == ENGINE_SETTINGS["project"]["license"] == PROJECT["license"]


def test_the_installed_engine_is_the_one_of_its_folder() -> None:
    installed = distribution("rhai-python")
    folder = ENGINE / "python"
    written = {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and file.suffix not in (".pyc", ".so")
    }
    packed = {
        str(file): file.read_binary()
        for file in installed.files or ()
        if file.parts[0] == "rhai" and file.suffix not in (".pyc", ".so")
    }

    assert installed.version == ENGINE_VERSION
    assert packed == written, "run 'make test' or 'make .venv/.tests', which install what changed"


def test_the_engine_is_typed_and_brings_its_licence() -> None:
    packed = {str(file): file for file in distribution("rhai-python").files or ()}

    assert {"rhai/py.typed", "rhai/_rhai.pyi"} <= packed.keys()
    [licence] = [file for name, file in packed.items() if name.endswith("/LICENSE")]
    assert licence.read_binary() == (REPOSITORY / "LICENSE").read_bytes()


def test_what_builds_and_tests_the_page_is_pinned_to_one_version_each() -> None:
    packages = json.loads((REPOSITORY / CONSOLE / "page" / "package.json").read_text())
    versions = {**packages["dependencies"], **packages["devDependencies"]}

    assert [
        name for name, asked in versions.items() if not re.fullmatch(r"\d+\.\d+\.\d+", asked)
    ] == []


def test_the_lock_file_of_the_page_has_a_digest_of_each_package_and_no_address() -> None:
    lock = json.loads((REPOSITORY / CONSOLE / "page" / "package-lock.json").read_text())
    packages = {name: each for name, each in lock["packages"].items() if name}

    assert packages
    assert [name for name, each in packages.items() if not each.get("integrity")] == []
    assert [name for name, each in packages.items() if "resolved" in each] == []
    assert [name for name, each in packages.items() if each.get("hasInstallScript")] == []
