"""Field flow: what is known of fields along a chain, and who is to blame for what is missing."""

import pytest

from headrace.compiler.component.fieldflow import (
    FieldUse,
    Passing,
    Paths,
    Shape,
    ValueRange,
    merged,
)


def keys(*names, by="inputs[0]"):
    return Passing(Shape.of(names, by))


def used(passing, by="transforms[0]", **use):
    return passing.seen_by(by).after(FieldUse.of(**use))


def test_nothing_is_missing_where_anything_may_come():
    assert Passing().missing("a") is None
    assert Passing().missing("a.b") is None


def test_an_input_that_knows_its_fields_has_no_others():
    passing = keys("value", "current_time")

    assert passing.missing("value") is None
    assert passing.missing("value.unit") is None
    assert passing.missing("temp") == ("inputs[0]",)
    assert passing.missing("temp.unit") == ("inputs[0]",)


def test_a_written_path_is_there_and_so_is_the_way_to_it():
    passing = used(keys("a"), writes=["m.n.o"])

    assert [passing.missing(path) for path in ("a", "m", "m.n", "m.n.o", "m.n.o.p")] == [None] * 5
    assert passing.missing("m.x") == ("inputs[0]",)


def test_what_keeps_nothing_is_to_blame_for_the_rest():
    passing = used(Passing(), writes=["a.b"], keeps=False)

    assert passing.missing("a.b") is None
    assert passing.missing("a.c") == ("transforms[0]",)
    assert passing.missing("c") == ("transforms[0]",)


def test_a_key_that_is_written_whole_is_no_way_to_anywhere():
    passing = used(Passing(), keys=["_meta.machine"], keeps=False)

    assert passing.missing("_meta.machine") is None
    assert passing.missing("_meta") == ("transforms[0]",)
    assert passing.missing("_meta.subject") == ("transforms[0]",)


def test_a_path_is_written_into_the_literal_key_if_that_may_be_there():
    reduced = used(Passing(), keys=["a.b"], keeps=False)

    passing = used(reduced, "transforms[1]", writes=["a.b"])

    assert passing.missing("a.b") is None
    assert passing.missing("a") is None


def test_what_is_removed_is_missing_until_it_is_written_again():
    passing = used(keys("a", "b"), removes=["a"])
    assert passing.missing("a") == ("transforms[0]",)
    assert passing.missing("a.b") == ("transforms[0]",)
    assert passing.missing("b") is None

    passing = used(passing, "transforms[1]", writes=["a.b"])
    assert passing.missing("a.b") is None
    assert passing.missing("a.c") == ("transforms[0]",)


def test_removing_a_path_may_have_taken_the_literal_key_instead():
    assert used(Passing(), removes=["a.b"]).missing("a.b") is None
    assert used(keys("a", "a.b"), removes=["a.b"]).missing("a.b") is None


def test_removing_a_path_takes_what_is_below_where_there_is_no_literal_key():
    passing = used(keys("a"), removes=["a.b"])

    assert passing.missing("a.b") == ("transforms[0]",)
    assert passing.missing("a.b.c") == ("transforms[0]",)
    assert passing.missing("a") is None
    assert passing.missing("a.c") is None


def test_removing_what_is_not_there_blames_whoever_took_it_first():
    passing = used(used(Passing(), removes=["a"]), "transforms[1]", removes=["a", "a.b"])

    assert passing.missing("a") == ("transforms[0]",)
    assert passing.missing("a.b") == ("transforms[0]",)


def test_what_is_removed_and_written_in_one_go_is_there():
    assert used(Passing(), removes=["a"], writes=["a"]).missing("a") is None


def test_a_component_that_cannot_tell_makes_anything_possible():
    passing = keys("a").seen_by("transforms[0]").where("a", ValueRange(above=3))

    after = passing.after(FieldUse.unknown())

    assert after.missing("b") is None
    assert after.values == {}


def test_what_is_known_before_a_component_does_not_change_with_it():
    before = keys("a")

    used(before, writes=["b", "a.c"], removes=["a"])

    assert before.missing("b") == ("inputs[0]",)
    assert before.missing("a") is None


@pytest.mark.parametrize(
    ("path", "who"),
    [
        ("a", None),
        ("b", None),
        ("c", None),
        ("c.x", None),
        ("c.z", ("transforms[1]", "inputs[1]")),
        ("d", ("inputs[0]", "inputs[1]")),
    ],
)
def test_where_streams_meet_a_field_is_missing_if_none_has_it(path, who):
    one = used(keys("a"), "transforms[1]", writes=["c.x"])
    other = used(keys("b", by="inputs[1]"), writes=["c.y"])

    closed = used(one, "transforms[1]", writes=["a", "c.x"], keeps=False)
    met = merged([closed if path == "c.z" else one, other])

    assert met.missing(path) == who


def test_where_one_of_the_streams_may_have_anything_so_may_both():
    assert merged([keys("a"), Passing()]).missing("b") is None
    assert merged([keys("a"), used(Passing(), removes=["a"])]).missing("a") is None
    assert merged([used(Passing(), removes=["a"]), keys("b")]).missing("a") == (
        "transforms[0]",
        "inputs[0]",
    )


def test_where_streams_meet_the_larger_batches_count():
    assert merged([Passing(largest=1), Passing(largest=3)]).largest == 3
    assert merged([Passing(largest=1), Passing()]).largest is None


def test_where_streams_meet_what_is_stopped_does_not_count():
    met = merged([Passing(stopped="dry"), keys("a")])

    assert (met.stopped, met.missing("b")) == (None, ("inputs[0]",))
    assert merged([Passing(stopped="dry")]).stopped == "none of the inputs hands on anything"


def test_a_field_that_is_needed_and_surely_missing_stops_everything():
    passing = used(keys("a"), drops_without=["b", "a"])

    assert passing.stopped == "transforms[0] hands on nothing without 'b'"


def test_the_first_reason_stays():
    assert Passing().stop("dry").stop("closed").stopped == "dry"


def test_values_that_exclude_each_other_stop_everything():
    first = Passing().seen_by("transforms[0]").where("a", ValueRange(above=5))

    passing = first.seen_by("transforms[1]").where("a", ValueRange(below=3))

    assert first.stopped is None
    assert passing.stopped == "transforms[1] drops every message that transforms[0] hands on"


@pytest.mark.parametrize(
    "use",
    [
        FieldUse.of(writes=["a.b"]),
        FieldUse.of(writes=["a"]),
        FieldUse.of(writes=["a.b.c"]),
        FieldUse.of(removes=["a"]),
        FieldUse.of(keys=["a.b"]),
        FieldUse.of(keeps=False),
        FieldUse.unknown(),
    ],
)
def test_values_are_known_until_the_field_is_touched(use):
    passing = Passing().where("a.b", ValueRange(equal="x"))

    assert passing.after(use).where("a.b", ValueRange(equal="y")).stopped is None
    assert (
        passing.after(FieldUse.of(writes=["a.c", "b"])).where("a.b", ValueRange(equal="y")).stopped
    )


def test_who_hands_on_single_messages_is_remembered():
    passing = Passing().seen_by("transforms[0]").at_most(1)
    assert passing.cut_by == "transforms[0]"
    assert passing.seen_by("transforms[1]").at_most(1).cut_by == "transforms[0]"
    assert passing.at_most(5).cut_by is None
    assert Passing(largest=1).at_most(1).cut_by is None


@pytest.mark.parametrize(
    ("path", "is_touched"),
    [("a", True), ("a.b", True), ("a.b.c", True), ("a.c", False), ("ab", False), ("b", False)],
)
def test_a_path_is_touched_by_what_leads_to_it_or_through_it(path, is_touched):
    assert (path in Paths(["a.b"])) is is_touched


def test_very_long_paths_are_told_apart_only_so_far():
    long = ".".join("a" * 100_000)
    passing = used(keys("b"), writes=[long])

    assert passing.missing(long) is None
    assert passing.missing(long + ".b") is None
    assert used(passing, removes=[long]).missing(long) is None
    assert used(keys("b"), removes=[long]).missing(long) == ("inputs[0]",)


def test_what_is_told_apart_can_be_listed():
    passing = used(keys("a"), writes=["m.n"], removes=["a"])

    assert [*passing.fields.listed()] == ["m", "m.n"]


def test_more_fields_than_anybody_writes_are_no_longer_told_apart():
    many = keys(*(f"k{n}" for n in range(1000)))
    one_more = keys(*(f"k{n}" for n in range(1001)))

    assert many.missing("other") == ("inputs[0]",)
    assert used(many, writes=["k1.x"]).missing("other") == ("inputs[0]",)
    assert used(many, writes=["k1000"]).missing("other") is None
    assert merged([many, one_more]).missing("other") is None


def test_only_so_much_is_remembered_of_values():
    passing = Passing().where("a", ValueRange(above=5))
    for number in range(20):
        passing = passing.where("a", ValueRange(above=number)).where(
            f"b{number}", ValueRange(above=1)
        )

    assert passing.where("b19", ValueRange(below=1)).stopped
    assert passing.where("b0", ValueRange(below=1)).stopped is None
