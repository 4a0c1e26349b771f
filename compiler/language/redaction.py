"""Redaction: what of a resolved secret is hidden in texts, and what shows instead.

Drivers put what they were given into what they say: urls whole, taken apart and written anew,
passwords decoded and encoded. So what is looked for is the value, what each reference stands for, and
the credentials inside a url, every character of them however it is written. What shows instead is what
the config says, or `HIDDEN` where that is the credential itself.

A page may escape any of it for HTML: of that, references to letters and digits are read before anything
is looked for, and all others are a way to write a character.

Nothing shorter than `SHORTEST` is looked for: to hide every ``a`` would mangle all texts and tell what
it is. Up to `LONGEST_WORD` characters count only as a word of their own. What stands before the host of
a url is hidden in any text, known or not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from urllib.parse import quote, unquote

REFERENCE = re.compile(r"\$\{([A-Za-z0-9_.\-]+)\}")
"""A ``${NAME}`` in a template."""
HIDDEN = "***"
"""What shows of a credential that the config itself spells out."""
SHORTEST = 5
"""Characters of a value that is looked for at all."""
LONGEST_WORD = 7
"""Characters of a value that an innocent word may hold."""

_HARMLESS = re.compile(rf"(?:{REFERENCE.pattern}|{re.escape(HIDDEN)})*")
_BEFORE_A_HOST = re.compile(r"""(://(?:[^\s/@:"'<>,]*:)?)([^\s/@"'<>,]+)@""")


_REFERENCE_IN_HTML = re.compile(
    r"&(?:#[0-9]{1,8}|#x[0-9a-f]{1,8}|[a-z]{2,31}(?=;));?", re.IGNORECASE
)
_WORD = re.compile(r"[A-Za-z0-9_.\-]")


class Redaction:
    """Hides the values of the secrets that it was told of."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None

    def learn(self, template: str, value: str, lookup: Callable[[str], str | None]) -> None:
        """Hide from now on what ``template`` resolved to; ``lookup`` answers its references."""
        names = REFERENCE.findall(template)
        # Of a value that is hidden for several reasons, the first of them shows.
        for name in names:
            self.hide(lookup(name) or "", f"${{{name}}}")
        if names:
            self.hide(value, _without_credentials(template))
        for user, credential in _credentials(value):
            self.hide(credential)
            if user not in template:
                self.hide(user)

    def hide(self, value: str, shown: str = HIDDEN) -> None:
        """Hide from now on a value, unless it is too short."""
        for form in (value.strip(), unquote(value).strip()):
            if len(form) >= SHORTEST and form not in self._shown:
                self._shown[form] = shown
                self._pattern = None

    def __call__(self, text: str) -> str:
        """Return a text without what is hidden."""
        if self._shown:
            text = self._compiled().sub(self._instead, _REFERENCE_IN_HTML.sub(_plain, text))
        return _BEFORE_A_HOST.sub(_harmless, text)

    def _compiled(self) -> re.Pattern[str]:
        """Return what finds all values in one pass, so that nothing put in is looked at again."""
        if self._pattern is None:
            # The longest first: a value may hold another. The group tells which was found.
            self._shown = dict(sorted(self._shown.items(), key=lambda item: -len(item[0])))
            written = "|".join(f"({_written(value)})" for value in self._shown)
            # Whoever takes a value for a host writes it in lower case.
            self._pattern = re.compile(written, re.IGNORECASE)
        return self._pattern

    def _instead(self, found: re.Match[str]) -> str:
        assert found.lastindex is not None
        return [*self._shown.values()][found.lastindex - 1]


def _credentials(text: str) -> Iterator[tuple[str, str]]:
    """Yield user and password of every url in a list of them; a user alone is a token.

    A password may hold what should have been encoded, ``@``, ``/`` or a comma, and drivers differ in
    what they make of it: each way to read it counts.
    """
    for url in (text, *text.split(",")):
        before, is_url, after = url.partition("://")
        inside = after if is_url else before
        for at in re.finditer("@", inside):
            user, has_password, password = inside[: at.start()].partition(":")
            if has_password and "://" not in password:
                yield user, password
            elif is_url and not has_password:
                yield "", user


def _without_credentials(template: str) -> str:
    """Return a template whose urls spell out no credential."""
    for _, credential in sorted(_credentials(template), key=lambda pair: -len(pair[1])):
        if not _HARMLESS.fullmatch(credential):
            template = template.replace(f"{credential}@", f"{HIDDEN}@")
    return template


def _harmless(found: re.Match[str]) -> str:
    return found[0] if _HARMLESS.fullmatch(found[2]) else f"{found[1]}{HIDDEN}@"


def _written(value: str) -> str:
    """Return a pattern for a value, each of its characters written in any way."""
    pattern = "".join(map(_spelt, value))
    return rf"(?<!\w){pattern}(?!\w)" if len(value) <= LONGEST_WORD else pattern


def _plain(found: re.Match[str]) -> str:
    """Return a letter, a digit or what joins them, for a reference to it; any other as it is."""
    from html import unescape  # loading the names takes its time, and few texts refer to any

    character = unescape(found[0])
    return character if _WORD.fullmatch(character) else found[0]


@cache
def _spelt(character: str) -> str:
    """Return a pattern for a character: itself, or as a url, JSON, HTML or Python write it."""
    if character.isspace():
        # Lines are folded.
        return r"(?:\s|\+|%[0-2][0-9AaDd]|\\[nrt]|&nbsp;|&#0{0,7}(?:9|1[03]|32);?|&#x0{0,7}(?:[9AD]|20);?)"
    if _WORD.fullmatch(character):
        return re.escape(character)
    octets = character.encode("utf-8", "surrogateescape")
    escaped = [text(character)[1:-1] for text in (json.dumps, repr, ascii)]
    ways = {character, f"\\{character}", *escaped, repr(octets)[2:-1], quote(octets, safe="")}
    if "\x80" <= character <= "\xff":  # Latin-1, also where it was read as UTF-8
        ways |= {quote(character, encoding="latin-1"), "\ufffd"}
    patterns = sorted(map(re.escape, ways), key=len, reverse=True)
    references = "|".join(_in_html(character))  # JSON in a page has its backslashes as they are
    return rf"(?:{'|'.join(patterns)}|\\?(?:{references}))"


def _in_html(character: str) -> Iterator[str]:
    """Yield patterns for the references to a character, by number and by name."""
    number = ord(character)
    yield rf"&#0{{0,7}}{number};?"
    yield rf"&#x0{{0,7}}{number:x};?"
    yield from (f"&{re.escape(name)}" for name in _html_names().get(character, ()))


@cache
def _html_names() -> dict[str, list[str]]:
    """Return the names of characters in HTML, each with its semicolon if it needs one; longest first."""
    from html.entities import html5

    names: dict[str, list[str]] = {}
    for name in sorted(html5, key=len, reverse=True):
        names.setdefault(html5[name], []).append(name)
    return names
