"""Spellings: a text as it stands, and as what urls, JSON, HTML and Python write in its place.

Each character is read as one of a class of those that are taken for each other: letters whatever their
case, whitespace and ``+``, and all of Latin-1 beyond ASCII, which reads as U+FFFD where it was taken for
UTF-8. An escape is read to its end however often it was escaped: ``%2540`` as ``%40``, ``&amp;lt;`` as
``&lt;``, any number of backslashes as one. So a value and a text that holds it read alike, whatever the
spelling.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import unquote

_SPACE = "+"
_LATIN = "\ufffd"

_HEX = "[0-9a-f]"
_LETTERS = "bfnrtv"
_BACKSLASH = r"(?:\\|%5c|\\u005c|&bsol;|&\#0{0,7}92(?:;|(?![0-9]))|&\#x0{0,7}5c(?:;|(?![0-9a-f])))"


def _octets(mark: str) -> str:
    """Return a pattern for the octets of a character in UTF-8, or for one octet, in hexadecimal."""
    more = f"{mark}[89ab]{_HEX}"
    return f"[cd]{_HEX}{more}|e{_HEX}(?:{more}){{2}}|f[0-4](?:{more}){{3}}|{_HEX}{{2}}"


_OF_URL = _octets("%")
_OF_PYTHON = _octets(r"\\{1,15}x")
# Each repetition has a bound, or a text of nothing else would take time as its square.
_ESCAPE = re.compile(
    rf"""(?:
      {_BACKSLASH}{{1,15}}+(?:
        u(?P<pair>d[89ab]{_HEX}{{2}}\\{{1,15}}ud[c-f]{_HEX}{{2}})
      | u(?P<unit>{_HEX}{{4}})
      | U(?P<point>{_HEX}{{8}})
      | x(?P<python>{_OF_PYTHON})
      | (?P<letter>[{_LETTERS}])
      )
    | {_BACKSLASH}{{0,15}}+(?:
        %(?:25){{0,4}}(?P<url>{_OF_URL})
      | &(?:amp;){{0,4}}(?P<html>\#x{_HEX}{{1,8}};?|\#[0-9]{{1,8}};?|[a-z][a-z0-9]{{1,31}};?)
      )
    | {_BACKSLASH}{{1,15}}+(?P<itself>.)
    | (?P<backslash>{_BACKSLASH}{{1,15}}+)
    )""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_BACKSLASHES = re.compile(rf"{_BACKSLASH}{{1,15}}+", re.IGNORECASE)
_LONGEST_OPEN = 6
"""Characters of a name in HTML that needs no semicolon."""
_TAKEN_FOR_UTF8 = re.compile("[\xc2-\xdf][\x80-\xbf]")
_BEGINNING = re.compile(r"[\\%&]")


class _Classes(dict[int, str]):
    """What each character is read as. Not kept where it is asked for: there are a million."""

    def __missing__(self, code: int) -> str:
        return _class_of(chr(code))


def _class_of(character: str) -> str:
    if character.isspace() or character == "+":
        return _SPACE
    folded = character.upper().lower() if len(character.upper()) == 1 else character.lower()
    character = folded if len(folded) == 1 else character
    # What a name of the system has beyond UTF-8 is kept as half of a pair.
    is_latin = "\x80" <= character <= "\xff" or "\udc80" <= character <= "\udcff"
    return _LATIN if is_latin or character == "\u03bc" else character


_CLASSES = _Classes({code: _class_of(chr(code)) for code in range(256)})


class Spelling:
    """A text, to be read from any of its characters on."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.plain = text.translate(_CLASSES)
        """The text as it stands: as many characters."""
        self._escapes = dict(_escapes(text))
        self._starts = [*self._escapes]

    def beginnings(self, size: int) -> Mapping[int, str]:
        """Return the ``size`` characters from each place on where one of them is written as an escape.

        Each is made of the one after it, or a text of nothing but escapes would be read ``size`` times.
        """
        plain, escapes = self.plain, self._escapes
        read: dict[int, str] = {}
        lowest = len(plain)
        for start in reversed(self._starts):
            for at in range(min(start, lowest - 1), max(start - size, -1), -1):
                character, end = escapes.get(at) or (plain[at], at + 1)
                read[at] = (character + (read.get(end) or plain[end : end + size]))[:size]
                lowest = at
        return read

    def read(self, start: int, most: int) -> tuple[str, Sequence[int]]:
        """Return up to ``most`` characters from ``start`` on, and where each of them begins and ends."""
        plain, escapes = self.plain, self._escapes
        following = bisect_left(self._starts, start)
        if following == len(self._starts) or self._starts[following] >= start + most:
            end = min(start + most, len(plain))
            return plain[start:end], range(start, end + 1)
        read: list[str] = []
        borders = [start]
        while len(read) < most and start < len(plain):
            character, start = escapes.get(start) or (plain[start], start + 1)
            read.append(character)
            borders.append(start)
        return "".join(read), borders

    def alone(self, start: int) -> Iterator[tuple[str, int]]:
        """Yield what else a character may be that is the last one of a value, and where it ends.

        Together with what comes after it, it looks like an escape.
        """
        if start in self._escapes:
            if found := _BACKSLASHES.match(self._text, start):
                yield "\\", found.end()
            yield self.plain[start], start + 1


def forms(value: str) -> Iterator[str]:
    """Yield what a text may read as that holds the value: some may be the same."""
    for each in (value.strip(), unquote(value).strip()):
        spelling = Spelling(each)
        yield spelling.plain
        yield spelling.read(0, len(each))[0]
        # Two octets that are Latin-1 to Python are one character to who takes them for UTF-8.
        yield Spelling(
            _TAKEN_FOR_UTF8.sub(lambda two: two[0].encode("latin-1").decode(), each)
        ).plain


def _escapes(text: str) -> Iterator[tuple[int, tuple[str, int]]]:
    """Yield where an escape begins, with what it is read as and where it ends."""
    known: dict[str, tuple[str, int]] = {}
    for beginning in _BEGINNING.finditer(text):
        start = beginning.start()
        if found := _ESCAPE.match(text, start):
            written = found[0]
            if written not in known:
                character, end = _meant(found)
                known[written] = _CLASSES[ord(character)], end - start
            character, size = known[written]
            if size > 1:
                yield start, (character, start + size)


def _meant(found: re.Match[str]) -> tuple[str, int]:
    """Return the character that an escape stands for, and where it ends."""
    way, end = found.lastgroup, found.end()
    assert way is not None
    said = found[way]
    match way:
        case "itself":
            return said, end
        case "backslash":
            return "\\", end
        case "letter":
            return _of_letter(said), end
        case "html":
            character, end = _of_html(found)
            is_letter = character.lower() in _LETTERS and _BACKSLASHES.match(found[0])
            return _of_letter(character) if is_letter else character, end
        case "url" | "python":
            octets = bytes.fromhex("".join(re.findall(rf"{_HEX}{{2}}", said, re.IGNORECASE)))
            try:
                return octets.decode(), end
            except UnicodeDecodeError:
                return chr(octets[0]), found.start(way) + 2
    units = [int(each, 16) for each in re.findall(rf"{_HEX}{{4,8}}", said, re.IGNORECASE)]
    if way == "pair":
        return chr(0x10000 + ((units[0] & 0x3FF) << 10) + (units[1] & 0x3FF)), end
    return chr(min(units[0], 0x10FFFF)), end


def _of_letter(letter: str) -> str:
    """Return what a backslash and one of the letters of JSON and Python stand for."""
    return "\b" if letter in "bB" else " "


def _of_html(found: re.Match[str]) -> tuple[str, int]:
    """Return the character a reference stands for and where it ends; ``&``, where it stands for none."""
    from html import unescape  # loading the names takes its time, and few texts refer to any

    said, start = found["html"], found.start("html")
    for size in (len(said), *range(min(len(said) - 1, _LONGEST_OPEN), 1, -1)):
        character = unescape(f"&{said[:size]}")
        if len(character) == 1:
            return character, start + size
    return "&", start
