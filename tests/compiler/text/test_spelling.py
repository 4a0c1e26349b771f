"""Where the characters of a string stand in the text that spells it."""

import json
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headrace.compiler.text.diagnostics import Fault, Spot
from headrace.compiler.text.documents import Document, Site, read
from headrace.compiler.text.positions import LineIndex

CODE = ("a", 0, "code")


def found(document: Document, index: int) -> int:
    """Return the offset in a document of one character of its only string."""
    spot = Spot(*LineIndex(document.value["a"][0]["code"]).at(index))
    position = document.place_of(Fault("blank", "here", path=CODE, spot=spot))[0][:2]
    assert position is not None
    return LineIndex(document.text).offset(*position)


def marked(text: str, mark: str = "!") -> str:
    """Return the lines of a document, with a caret below the mark that stands in its string."""
    document = read(text, None, "json" if text.startswith("{") else "yaml")
    string = document.value["a"][0]["code"]
    line, column = LineIndex(text).at(found(document, string.index(mark)))
    lines = re.split(r"\r\n|\r|\n", text)
    return f"{lines[line - 1]}\n{' ' * (column - 1)}^"


SPELT = {
    "a literal block": ("a:\n - code: |\n     x\n       y!\n     z\n", "       y!\n        ^"),
    "blank lines before it": ("a:\n - code: |\n\n\n     x!\n", "     x!\n      ^"),
    "an indentation indicator": ("a:\n - code: |2-\n       x\n     y!\n", "     y!\n      ^"),
    "an indicator and a comment": ("a:\n - code: |-2 # c\n      x!\n", "      x!\n       ^"),
    "a line of blanks": ("a:\n - code: |\n     x\n       \n     y!\n", "     y!\n      ^"),
    "tabs": ("a:\n - code: |\n     x\n     \ty!\n", "     \ty!\n       ^"),
    "a folded block": ("a:\n - code: >-\n     x\n     y!\n\n     z\n", "     y!\n      ^"),
    "a folded block with deeper lines": (
        "a:\n - code: >\n     x\n\n       y\n\n     z!\n",
        "     z!\n      ^",
    ),
    "plain text": ("a:\n - code: x y!\n", " - code: x y!\n            ^"),
    "plain text of several lines": ("a:\n - code: x\n    y\n\n    z!\n", "    z!\n     ^"),
    "single quotes": ("a:\n - code: 'x''y!'\n", " - code: 'x''y!'\n              ^"),
    "folded single quotes": ("a:\n - code: 'x\n\n    y''!'\n", "    y''!'\n       ^"),
    "double quotes": (
        'a:\n - code: "\\x41\\u00e9\\t\\"!"\n',
        ' - code: "\\x41\\u00e9\\t\\"!"\n                        ^',
    ),
    "folded double quotes": ('a:\n - code: "x\n\n    y\\n!"\n', '    y\\n!"\n       ^'),
    "an escaped break": ('a:\n - code: "x\\\n\n    y!"\n', '    y!"\n     ^'),
    "an anchor": ("a:\n - code: &c !x\n".replace("!x", "x!"), " - code: &c x!\n             ^"),
    "an anchor on a line of its own": (
        "a:\n - code: &c # c\n     'x!'\n",
        "     'x!'\n       ^",
    ),
    "an alias": ("b: &c |\n  x!\na:\n - code: *c\n", "  x!\n   ^"),
    "a key": ("? &c x!\n: 1\na:\n - code: *c\n", "? &c x!\n      ^"),
    "line ends of Windows": ("a:\r\n - code: |\r\n     x\r\n     y!\r\n", "     y!\n      ^"),
    "line ends of old": ("a:\r - code: >\r     x\r\r     y!\r", "     y!\n      ^"),
    "characters beyond the basic plane": (
        "a:\n - code: |\n     😀é!\n",
        "     😀é!\n       ^",
    ),
    "the same as escapes of YAML": (
        'a:\n - code: "\\U0001F600!"\n',
        ' - code: "\\U0001F600!"\n                    ^',
    ),
    "the same as escapes of JSON": (
        '{"a": [{"code": "\\ud83d\\ude00\\n\\/!"}]}',
        '{"a": [{"code": "\\ud83d\\ude00\\n\\/!"}]}\n                                 ^',
    ),
}


@pytest.mark.parametrize(("text", "told"), SPELT.values(), ids=SPELT)
def test_a_place_in_a_string_is_found_in(text: str, told: str) -> None:
    assert marked(text) == told


ENDS = {
    "literal": ("a:\n - code: |\n     x\n     yy\nb: 1\n", (4, 8)),
    "literal without a last break": ("a:\n - code: |-\n     x\n     yy\nb: 1\n", (4, 8)),
    "literal at the end of the text": ("a:\n - code: |\n     x\n     yy", (4, 8)),
    "plain": ("a:\n - code: yy # c\n", (2, 12)),
    "single-quoted": ("a:\n - code: 'yy'\n", (2, 13)),
    "JSON": ('{"a": [{"code": "yy"}]}', (1, 20)),
    "one that is empty": ("a:\n - code: ''\n", (2, 11)),
}


@pytest.mark.parametrize(("text", "position"), ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("beyond", [0, 5])
def test_the_end_of_a_string_is_behind_its_last_character(text, position, beyond) -> None:
    document = read(text, None, "json" if text.startswith("{") else "yaml")
    string = document.value["a"][0]["code"]
    line, column = LineIndex(string).at(len(string))
    spot = Spot(line + beyond, column + beyond)

    assert document.place_of(Fault("blank", "here", path=CODE, spot=spot))[0][:2] == position


def test_a_place_in_what_is_no_string_is_that_of_the_value() -> None:
    document = read("a:\n - code: 12\n", None, "yaml")
    fault = Fault("blank", "here", path=CODE, spot=Spot(3, 1))

    assert document.place_of(fault)[0][:2] == (2, 10)
    assert document.place_of(Fault("blank", "here", path=("a", 7), spot=Spot(3, 1)))[0][:2] == (
        2,
        2,
    )


def test_a_place_in_another_file_is_none_of_the_document() -> None:
    document = read("a:\n - code: x\n", "a.yaml", "yaml")
    fault = Fault("blank", "here", path=CODE, spot=Spot(3, 4, "x.rhai", "1\n2\n345"))

    diagnostic = Site(document).diagnose(fault)

    assert (diagnostic.file, diagnostic.line, diagnostic.column) == ("x.rhai", 3, 4)
    assert diagnostic.path == "a[0].code"
    assert document.place_of(fault)[0][:2] == (2, 10)


# --- whatever the text and the style

PRINTABLE = st.characters(
    codec="utf-8", exclude_categories=("Cs", "Cc", "Cf", "Zl", "Zp", "Cn", "Co")
)
WORD = st.text(st.one_of(st.sampled_from("ab'\"\\#:{}&*!|>é😀"), PRINTABLE), min_size=1, max_size=5)
BLANK = st.sampled_from([" ", "  ", "\t", "\n", "\n\n", "\n  ", " \n", "\n\t"])
STRING = st.lists(st.one_of(WORD, BLANK), min_size=1, max_size=12).map("".join)
BLANKS = " \t\r\n"
BREAK = st.sampled_from(["\n", "\r\n", "\r"])


def block(string: str, indent: int, sign: str, chomp: str) -> str:
    """Return a block scalar of such lines, in an object that is indented by two."""
    lines = "\n".join(" " * indent + line if line else "" for line in string.split("\n"))
    return f"{sign}{indent - 2}{chomp}\n{lines}\n"


def double_quoted(string: str, escaped: list[bool], folded: bool) -> str:
    """Return the string in double quotes, every other character written as an escape."""
    text = ""
    for character, is_escaped in zip(string, escaped * len(string), strict=False):
        if character == "\n":
            text += "\n\n  " if folded else "\\n"
        elif character in '"\\\t ' or (is_escaped and ord(character) > 0xFF):
            text += f"\\U{ord(character):08x}"
        elif is_escaped:
            text += f"\\x{ord(character):02x}\\\n    " if folded else f"\\u{ord(character):04x}"
        else:
            text += character
    return f'"{text}"\n'


def document_of(scalar: str, ends: str) -> Document:
    text = f"b: 1\na:\n- code: {scalar}"
    return read(text.replace("\n", ends), None, "yaml")


def offsets(document: Document, means: str) -> list[int]:
    """Return where each character is found that is no blank; check that blanks are between them."""
    every = [found(document, index) for index in range(len(means))]
    assert every == sorted(set(every))
    assert all(
        document.text[at] in f"{BLANKS}\\" for at in every if means[every.index(at)] in BLANKS
    )
    return [at for at, character in zip(every, means, strict=True) if character not in BLANKS]


def solid(text: str, start: int) -> list[int]:
    """Return where a text has characters that are no blanks, from an offset on."""
    return [at for at in range(start, len(text)) if text[at] not in BLANKS]


def unescaped(text: str, at: int) -> str:
    """Return the character that an escape of YAML stands for."""
    width = {"x": 2, "u": 4, "U": 8}[text[at + 1]]
    return chr(int(text[at + 2 : at + 2 + width], 16))


@given(STRING, st.integers(3, 8), st.sampled_from("|>"), st.sampled_from(["", "-", "+"]), BREAK)
def test_every_character_of_a_block_is_found(string, indent, sign, chomp, ends) -> None:
    assume(string.strip(BLANKS))
    document = document_of(block(string, indent, sign, chomp), ends)
    means = document.value["a"][0]["code"]

    assert "".join(means.split()) == "".join(string.split())
    body = document.text.index(f"{sign}{indent - 2}{chomp}") + len(f"{sign}1{chomp}")
    assert offsets(document, means) == solid(document.text, body)


@given(STRING, st.lists(st.booleans(), min_size=1, max_size=5), st.booleans(), BREAK)
def test_every_character_in_double_quotes_is_found(string, escaped, folded, ends) -> None:
    document = document_of(double_quoted(string, escaped, folded), ends)
    means = document.value["a"][0]["code"]
    text = document.text

    assert means.replace("\n", "") == string.replace("\n", "")
    at = offsets(document, means)
    spelt = [unescaped(text, each) if text[each] == "\\" else text[each] for each in at]
    assert "".join(spelt) == "".join(character for character in means if character not in BLANKS)


@given(STRING, BREAK)
def test_every_character_in_single_quotes_is_found(string, ends) -> None:
    quoted = string.replace("'", "''").replace("\n", "\n  ")
    document = document_of(f"'{quoted}'\n", ends)
    means = document.value["a"][0]["code"]
    text = document.text

    assert "".join(means.split()) == "".join(string.split())
    body, end = text.index("'") + 1, text.rindex("'")
    twice = re.compile("''").finditer(text, body, end)
    seconds = {each.end() - 1 for each in twice}
    assert offsets(document, means) == [at for at in solid(text, body) if at not in {*seconds, end}]


PLAIN = st.lists(st.sampled_from(["ab", "é", "😀x", "a'b", 'a"b', "a#b", "x:y"]), min_size=1)
BETWEEN = st.lists(st.sampled_from([" ", "  ", "\n   ", "\n\n   ", " \n \n    "]), min_size=1)


@given(PLAIN, BETWEEN, BREAK)
def test_every_character_of_plain_text_is_found(words, blanks, ends) -> None:
    pieces = [piece for pair in zip(words, blanks * len(words), strict=False) for piece in pair]
    document = document_of("".join(pieces[:-1]) + " # c\n", ends)
    means = document.value["a"][0]["code"]

    assert means.split() == words
    body = document.text.index("code: ") + len("code: ")
    assert offsets(document, means) == solid(document.text.removesuffix(f"# c{ends}"), body)


@given(STRING, st.booleans())
def test_every_character_of_json_is_found(string, is_ascii) -> None:
    text = json.dumps({"a": [{"code": string}]}, ensure_ascii=is_ascii)
    document = read(text, None, "json")
    start = text.index(json.dumps(string, ensure_ascii=is_ascii)) + 1

    for index in range(len(string)):
        before = json.dumps(string[:index], ensure_ascii=is_ascii)
        assert found(document, index) == start + len(before) - 2
