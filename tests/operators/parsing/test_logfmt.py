"""`preset: logfmt`: names, values, quotes."""

import pytest

from tests.operators.parsed import read


def logfmt(text, **options):
    made = read({"preset": "logfmt"}, text, as_="x", **options)
    return made["x"] if isinstance(made, dict) else made


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("at=info status=200", {"at": "info", "status": "200"}),
        ('path="/a b" cached\tx=\n', {"path": "/a b", "cached": True, "x": ""}),
        ('a="" b=- c="-"', {"a": "", "b": None, "c": None}),
        (r'a="say \"x\" \\ \n \t \/ \q"', {"a": 'say "x" \\ \n \t / \\q'}),
        ("a=1 a=2", {"a": "2"}),
        ("a=b=c url=http://x/?y=1", {"a": "b=c", "url": "http://x/?y=1"}),
        ("", {}),
        ("  ", {}),
        ("ä=ö", {"ä": "ö"}),
    ],
)
def test_each_pair_is_a_field(text, made):
    assert logfmt(text) == made


@pytest.mark.parametrize("text", ['a="x', 'a="x"y', '="x"', "=x", 'a"b', 'a=b"c', '"a"=b', "a =b"])
def test_what_is_no_pair_does_not_fit(text):
    assert logfmt(text) == "'value' does not fit logfmt"


def test_values_have_types_by_name():
    assert logfmt("a=7 b=7 c", types={"a": "integer", "d": "json"}) == {"a": 7, "b": "7", "c": True}
    assert logfmt("a=x", types={"a": "integer"}).startswith(
        "'value' does not fit logfmt: 'a': cannot read a string as an integer"
    )


def test_more_than_a_thousand_pairs_are_not_taken():
    def text(count):
        return " ".join(f"k{n}={n}" for n in range(count))

    assert len(logfmt(text(1_000))) == 1_000
    assert logfmt(text(1_001)) == "'value' does not fit logfmt: more than 1,000 pairs"
    assert logfmt("a " * 32_768) == "'value' does not fit logfmt: more than 1,000 pairs"
