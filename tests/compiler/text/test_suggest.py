"""What a misspelt word is taken for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.text.suggest import did_you_mean, nearest, one_of, others

ALLOWED = ["Numeric", "String", "as", "bootstrap_servers", "id", "kafka", "max_batch", "topic"]


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("tpoic", "topic"),
        ("topc", "topic"),
        ("topicc", "topic"),
        ("TOPIC", "topic"),
        ("ids", "id"),
        ("numeric", "Numeric"),
        ("strin", "String"),
        ("max-batch", "max_batch"),
        ("Max Batch", "max_batch"),
        ("bootstrap_server", "bootstrap_servers"),
        ("kafak", "kafka"),
    ],
)
def test_a_typing_error_finds_its_word(word, meant):
    assert nearest(word, ALLOWED) == meant


@pytest.mark.parametrize("word", ["", "is", "subject", "kind", "topic", "x" * 10_000])
def test_another_word_is_no_typing_error(word):
    assert nearest(word, ALLOWED) is None


def test_of_two_equally_near_words_the_first_in_the_alphabet_is_taken():
    assert nearest("mode", {"node", "code"}) == "code"


def test_the_question_names_the_word():
    assert did_you_mean("tpoic", ALLOWED) == "did you mean 'topic'?"
    assert did_you_mean("subject", ALLOWED) is None


@given(st.text(), st.lists(st.text()))
def test_whatever_is_suggested_is_allowed_and_new(word, allowed):
    meant = nearest(word, allowed)

    assert meant is None or (meant in allowed and meant != word)


def test_many_allowed_words_are_not_all_listed_and_none_is_looked_for_among_a_thousand():
    words = [f"word{n:04}" for n in range(1001)]

    assert one_of(["oven", "press"]) == "one of oven, press"
    assert one_of(words).startswith("one of word0000, word0001, ")
    assert one_of(words).endswith(", word0049 and 951 more")
    assert nearest("wrod0001", words[:1000]) == "word0001"
    assert nearest("wrod0001", words) is None


def test_a_word_that_was_begun_finds_the_only_one_that_begins_with_it():
    operators = ["greater_than", "less_than", "equal_to"]

    assert nearest("greater", operators) == "greater_than"
    assert nearest("int", ["text", "integer", "float"]) == "integer"
    assert nearest("gr", operators) is None
    assert nearest("max", ["max_keys", "max_messages"]) is None


def test_what_a_word_is_called_elsewhere_comes_before_typing_errors():
    allowed = ["avg", "median", "count"]
    elsewhere = others({"avg": "average mean", "count": "n"})

    assert nearest("mean", allowed) == "median"
    assert nearest("mean", allowed, elsewhere) == "avg"
    assert nearest("Average", allowed, elsewhere) == "avg"
    assert nearest("cuont", allowed, elsewhere) == "count"


def test_a_word_from_elsewhere_finds_ours_only_where_that_is_allowed():
    assert nearest("mean", ["sum"], others({"avg": "mean"})) is None
