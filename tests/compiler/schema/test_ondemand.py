"""The variants of a union, each imported when somebody asks for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.compiler.schema import ondemand
from headrace.compiler.schema.ondemand import VariantsOnDemand, import_variants
from headrace.compiler.schema.variants import Tagged

PACKAGE = "variants_of_a_test"
VARIANT = """
from {package} import Root

class Variant(Root, tag="{tag}", listed={listed}):
    pass
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Tagged]]:
    """Give the root of a union with two variants and a module that has none."""
    folder = tmp_path / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from headrace.compiler.schema.variants import Tagged\n"
        f"class Root(Tagged, package='{PACKAGE}'): pass\n"
    )
    (folder / "common.py").write_text("")
    for tag, listed in [("first", 1), ("second", 2)]:
        text = VARIANT.format(package=PACKAGE, tag=tag, listed=listed)
        (folder / f"{tag}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(ondemand, "_IN_FILES", [])
    package = __import__(PACKAGE)
    yield package.Root
    for name in imported():
        del sys.modules[name]


def imported() -> set[str]:
    """Return the modules of the package that are imported."""
    return {name for name in sys.modules if name.partition(".")[0] == PACKAGE}


def test_one_is_imported_when_it_is_asked_for(root: type[Tagged]) -> None:
    assert imported() == {PACKAGE}

    assert root.variants["second"].tag == "second"

    assert imported() == {PACKAGE, f"{PACKAGE}.second"}


def test_who_goes_through_them_has_all_in_their_order(root: type[Tagged]) -> None:
    assert root.variants["second"].tag == "second"  # whatever was asked for first

    assert list(root.variants) == ["first", "second"]
    assert len(root.variants) == 2


def test_those_of_all_unions_can_be_imported(root: type[Tagged]) -> None:
    import_variants()

    assert imported() == {f"{PACKAGE}{each}" for each in ("", ".common", ".first", ".second")}


@pytest.mark.parametrize(
    "tag", ["common", "third", "__init__", "..", "os", "first.Root", "", "common/../first"]
)
def test_what_is_no_variant_is_not_found_and_nothing_else_imported(
    root: type[Tagged], tag: str
) -> None:
    assert tag not in root.variants
    assert imported() <= {PACKAGE, f"{PACKAGE}.common"}


def test_without_a_package_there_are_those_that_are_defined() -> None:
    class Root(Tagged):
        pass

    class Only(Root, tag="only"):
        pass

    assert isinstance(Root.variants, VariantsOnDemand)
    assert dict(Root.variants) == {"only": Only}
    assert "sys" not in Root.variants
