"""Objects whose methods are written once: what `dataclass(frozen=True, kw_only=True)` would give."""

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, is_dataclass, replace

import pytest

from headrace.compiler.schema.frozen import Frozen


class Oven(Frozen):
    """Ours."""

    name: str
    degrees: int = 180
    note: str = field(default="", repr=False, compare=False)


class Kiln(Oven):
    """One more field, and another default."""

    degrees: int = 900
    fuel: str | None = None


@dataclass(frozen=True, kw_only=True)
class Generated:
    """The same as the library has it."""

    name: str
    degrees: int = 180
    note: str = field(default="", repr=False, compare=False)


def test_it_is_a_dataclass_with_the_fields_of_its_bases_first():
    kiln = Kiln(name="a", fuel="gas")

    assert is_dataclass(kiln)
    assert [each.name for each in fields(kiln)] == ["name", "degrees", "note", "fuel"]
    assert vars(kiln) == {"name": "a", "degrees": 900, "note": "", "fuel": "gas"}


@pytest.mark.parametrize("kind", [Oven, Generated])
def test_it_is_equal_to_one_of_its_class_that_holds_the_same(kind):
    assert kind(name="a") == kind(name="a", degrees=180, note="new")
    assert hash(kind(name="a")) == hash(kind(name="a", degrees=180, note="new"))
    assert kind(name="a") != kind(name="b")
    assert kind(name="a") != "a"


def test_one_of_a_subclass_is_another():
    assert Oven(name="a", degrees=900) != Kiln(name="a")


def test_what_cannot_be_hashed_makes_it_so_that_it_cannot():
    with pytest.raises(TypeError, match="unhashable type: 'list'"):
        hash(Oven(name=["a"]))


@pytest.mark.parametrize("kind", [Oven, Generated])
def test_it_is_shown_as_its_call(kind):
    assert repr(kind(name="a", note="new")) == f"{kind.__name__}(name='a', degrees=180)"


@pytest.mark.parametrize("kind", [Oven, Generated])
def test_it_is_frozen(kind):
    oven = kind(name="a")

    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'name'"):
        oven.name = "b"
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'name'"):
        del oven.name
    assert oven.name == "a"


@pytest.mark.parametrize(
    ("given", "wrong"),
    [({}, "Oven needs 'name'"), ({"name": "a", "heat": 1}, "Oven does not know 'heat'")],
)
def test_what_is_missing_or_unknown_is_told(given, wrong):
    with pytest.raises(TypeError, match=wrong):
        Oven(**given)


def test_it_is_replaced_copied_and_pickled():
    oven = Oven(name="a", degrees=200, note="new")

    assert vars(replace(oven, name="b")) == {"name": "b", "degrees": 200, "note": "new"}
    assert vars(copy.copy(oven)) == vars(copy.deepcopy(oven)) == vars(oven)
    assert vars(pickle.loads(pickle.dumps(oven))) == vars(oven)


def test_what_it_is_given_is_looked_at_when_all_is_there():
    seen = []

    class Looking(Oven):
        """Looks."""

        def __post_init__(self):
            seen.append((self.name, self.degrees))

    Looking(name="a")

    assert seen == [("a", 180)]
