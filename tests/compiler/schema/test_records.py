"""Records: what is declared once, and read, refused and echoed from it."""

import pytest
from marshmallow import ValidationError

from headrace.compiler.schema.fields import AnyJson, Choice, Integer, MessageField, SecretText, Text
from headrace.compiler.schema.records import Record, dumped, faults_of, option
from headrace.compiler.schema.secrets import Secret
from headrace.compiler.schema.structures import ListOf, RecordOf
from headrace.compiler.text.diagnostics import Fault


class Plank(Record):
    """A plank."""

    length: int = option(Integer(), "How long.")
    wood: str | None = option(Text(), "What of.", default=None)


class Raft(Record):
    """Planks and a rope."""

    planks: tuple[Plank, ...] = option(ListOf(RecordOf(Plank), at_least=1), "What it is made of.")
    from_: str = option(MessageField(), "Where it sets off.")
    mast: Plank | None = option(RecordOf(Plank), "The mast.", default=None)
    speed: str = option(Choice("slow", "fast", never_absent=True), "How it goes.", default="slow")
    flag: str = option(Choice("red", "blue"), "What it shows.", default="red")
    lock: Secret | None = option(SecretText(), "What it is locked with.", default=None)
    cargo: object = option(AnyJson(), "What it carries.", default="nothing", wire="Cargo")

    def rules(self):
        if self.mast is not None and self.mast.length > 9:
            yield Fault("out-of-range", "the mast is too long", path=("mast", "length"))
        if self.from_ == "nowhere":
            yield Fault("conflict", "it sets off nowhere", path=("from",))


RAFT = {"planks": [{"length": 3}], "from": "here"}


def faults(record, document):
    with pytest.raises(ValidationError) as caught:
        record.load(document)
    return [(fault.path, fault.code, fault.message) for fault in faults_of(caught.value)]


def test_the_keys_of_an_object_are_the_arguments_of_the_class():
    raft = Raft.load({**RAFT, "mast": {"length": 4, "wood": "oak"}, "Cargo": [None]})

    assert raft == Raft(
        planks=(Plank(length=3),), from_="here", mast=Plank(length=4, wood="oak"), cargo=[None]
    )


def test_a_python_keyword_has_no_underscore_on_the_wire():
    assert [*Raft.options()] == ["planks", "from", "mast", "speed", "flag", "lock", "Cargo"]


def test_every_fault_is_told_with_its_path():
    document = {
        "planks": [{"length": 1.0}, "oak", {"lenth": 3, "wood": 4}],
        "mast": {"length": 4, "sail": "white"},
        "speed": "fasst",
        "crew": 3,
    }

    assert faults(Raft, document) == [
        (("planks", 0, "length"), "wrong-type", "expected an integer of at least 0, found 1.0"),
        (("planks", 1), "wrong-type", "expected an object with 'length', found a string"),
        (("planks", 2, "wood"), "wrong-type", "expected a string, found 4"),
        (("planks", 2, "lenth"), "unknown-key", "unknown key 'lenth'"),
        (("from",), "missing-key", "this key is required"),
        (("mast", "sail"), "unknown-key", "unknown key 'sail'"),
        (("speed",), "not-a-choice", 'expected one of slow, fast, found "fasst"'),
        (("crew",), "unknown-key", "unknown key 'crew'"),
    ]


def test_an_unknown_key_says_what_is_known_and_what_may_be_meant():
    with pytest.raises(ValidationError) as caught:
        Plank.load({"length": 3, "Wod": "oak"})

    (fault,) = faults_of(caught.value)
    assert (fault.found, fault.expected, fault.suggestion, fault.on_key) == (
        "Wod",
        "one of length, wood",
        "did you mean 'wood'?",
        True,
    )


def test_a_key_that_is_given_already_is_not_what_is_meant():
    with pytest.raises(ValidationError) as caught:
        Plank.load({"length": 3, "lengths": 4})

    (fault,) = faults_of(caught.value)
    assert fault.suggestion is None


class Fleet(Record):
    """Rafts, and where they lie."""

    raft: Raft = option(RecordOf(Raft), "The largest one.")
    others: tuple[Plank, ...] = option(ListOf(RecordOf(Plank)), "What is left.", default=())
    spare: Plank | None = option(RecordOf(Plank), "One more.", default=None)


@pytest.mark.parametrize(
    ("key", "suggestion"),
    [
        ("flag", "'flag' belongs in 'raft'"),
        ("length", "'length' belongs in 'others' or 'spare'"),
        ("spar", "did you mean 'spare'?"),
        ("anchor", None),
    ],
)
def test_a_key_of_an_object_further_in_is_told_where_it_belongs(key, suggestion):
    with pytest.raises(ValidationError) as caught:
        Fleet.load({"raft": RAFT, key: 3})

    (fault,) = faults_of(caught.value)
    assert (fault.message, fault.suggestion) == (f"unknown key '{key}'", suggestion)


def test_a_key_that_is_one_level_too_high_is_one_mistake():
    assert faults(Fleet, {"from": "here"}) == [(("from",), "unknown-key", "unknown key 'from'")]


def test_an_object_says_which_keys_it_needs():
    with pytest.raises(ValidationError) as caught:
        Raft.load("s3cret")

    (fault,) = faults_of(caught.value)
    assert (fault.message, fault.found, fault.expected) == (
        "expected an object with 'planks' and 'from', found a string",
        "a string",
        "an object with 'planks' and 'from'",
    )


def test_a_misspelt_required_key_is_one_mistake():
    assert faults(Plank, {"lenght": 3}) == [(("lenght",), "unknown-key", "unknown key 'lenght'")]


def test_a_strange_key_beside_a_missing_one_is_two_mistakes():
    assert faults(Plank, {"colour": "red"}) == [
        (("length",), "missing-key", "this key is required"),
        (("colour",), "unknown-key", "unknown key 'colour'"),
    ]


def test_rules_between_options_are_told_together():
    assert faults(Raft, {**RAFT, "mast": {"length": 10}, "from": "nowhere"}) == [
        (("mast", "length"), "out-of-range", "the mast is too long"),
        (("from",), "conflict", "it sets off nowhere"),
    ]


def test_of_what_is_made_to_be_wrong_the_first_hundred_faults_are_told():
    keys = {f"key{n}": n for n in range(1000)}
    planks = [{"length": "long"}] * 1000

    assert len(faults(Raft, {**RAFT, **keys})) == 100
    assert faults(Raft, {**RAFT, "planks": planks})[-1][0] == ("planks", 99, "length")


def test_rules_are_asked_although_there_is_an_unknown_key():
    assert faults(Raft, {**RAFT, "mast": {"length": 10}, "crew": 3}) == [
        (("crew",), "unknown-key", "unknown key 'crew'"),
        (("mast", "length"), "out-of-range", "the mast is too long"),
    ]


def test_rules_are_not_asked_when_an_option_is_wrong():
    assert faults(Raft, {**RAFT, "mast": {"length": 10}, "speed": 1}) == [
        (("speed",), "wrong-type", "expected one of slow, fast, found 1")
    ]


def test_a_record_made_by_hand_keeps_the_rules():
    with pytest.raises(ValidationError):
        Raft(planks=(), from_="nowhere")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, "null"),
        (True, "a boolean"),
        (3, "a number"),
        (1.5, "a number"),
        ("nats://app:s3cret@bus", "a string"),
        ([], "a list"),
    ],
)
def test_what_is_no_object_is_told_by_its_type_alone(value, found):
    message = f"expected an object with 'length', found {found}"
    assert faults(Plank, value) == [((), "wrong-type", message)]


def test_null_for_an_optional_scalar_or_object_is_absent():
    raft = Raft.load({**RAFT, "mast": None, "lock": None, "flag": None})

    assert raft == Raft.load(RAFT)
    assert raft.dump() == Raft.load(RAFT).dump()


def test_null_for_what_is_required_is_refused():
    assert faults(Plank, {"length": None}) == [
        (("length",), "wrong-type", "expected an integer of at least 0, found null")
    ]


def test_null_for_a_list_is_refused():
    assert faults(Raft, {**RAFT, "planks": None}) == [
        (("planks",), "wrong-type", "expected a list of at least one object, found null")
    ]


def test_null_for_a_choice_that_is_never_absent_is_refused():
    assert faults(Raft, {**RAFT, "speed": None}) == [
        (("speed",), "wrong-type", "expected one of slow, fast, found null")
    ]


def test_null_is_a_value_where_any_json_is():
    assert Raft.load({**RAFT, "Cargo": None}).cargo is None


def test_two_options_may_share_a_field():
    shared = Integer(min=1)

    class Pair(Record):
        """Two of a kind."""

        left: int = option(shared, "The left one.")
        right: int = option(shared, "The right one.", default=2)

    assert faults(Pair, {}) == [(("left",), "missing-key", "this key is required")]
    described = {name: field.metadata for name, field in Pair.schema().fields.items()}
    assert described == {
        "left": {"description": "The left one."},
        "right": {"description": "The right one."},
    }


def test_an_option_may_be_called_like_something_of_the_schema():
    class Odd(Record):
        """Names that a schema uses itself."""

        record: str = option(Text(), "A word.")
        fields: str = option(Text(), "A word.")
        context: str = option(Text(), "A word.")

    document = {"record": "a", "fields": "b", "context": "c"}

    assert Odd.load(document).dump() == document


def test_options_of_its_own_come_before_inherited_ones_wherever_they_are_told():
    class Common(Record):
        first: int = option(Integer(), "One.", default=0)
        shared: int = option(Integer(), "Another.", default=0)

    class Own(Common):
        name: int = option(Integer(), "Its own.", default=0)
        first: int = option(Integer(), "Its own as well.", default=1)

    assert [*Own.options()] == ["name", "first", "shared"]
    assert [*Own.load({"shared": 3, "first": 2, "name": 1}).dump()] == ["name", "first", "shared"]


def test_an_echo_leaves_out_what_was_not_given():
    assert Raft.load(RAFT).dump() == RAFT


def test_an_echo_keeps_what_was_given_even_if_it_is_the_default():
    document = {**RAFT, "flag": "red", "Cargo": "nothing", "mast": {"length": 4}}

    assert Raft.load(document).dump() == document


def test_an_echo_leaves_out_the_default_of_a_choice_that_is_never_absent():
    assert Raft.load({**RAFT, "speed": "slow"}).dump() == RAFT
    assert Raft.load({**RAFT, "speed": "fast"}).dump() == {**RAFT, "speed": "fast"}


def test_an_echo_shows_a_secret_as_its_template():
    document = {**RAFT, "lock": "${LOCK}"}

    assert Raft.load(document).dump() == document


def test_a_record_made_by_hand_is_echoed_without_its_defaults():
    raft = Raft(planks=(Plank(length=3),), from_="here", flag="blue", cargo="nothing")

    assert raft.dump() == {**RAFT, "flag": "blue"}


def test_tuples_are_dumped_as_lists():
    assert dumped(((1, "a"), Plank(length=2))) == [[1, "a"], {"length": 2}]


def test_a_record_does_not_change():
    with pytest.raises(AttributeError):
        Plank(length=3).length = 4


def test_faults_are_all_that_a_validation_error_may_carry():
    with pytest.raises(TypeError, match=r"a fault was expected at a\[0\], found 'text'"):
        list(faults_of(ValidationError({"a": {0: "text"}})))
