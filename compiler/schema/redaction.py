"""Redaction: what of a resolved secret is hidden in texts, and what shows instead.

Drivers put what they were given into what they say: urls whole, taken apart and written anew,
passwords decoded and encoded. So what is looked for is the value, what each reference stands for, and
the credentials inside a url, every character of them however it is written. What shows instead is what
the config says, or `HIDDEN` where that is the credential itself.

Nothing shorter than `SHORTEST` is looked for: to hide every ``a`` would mangle all texts and tell what
it is. Up to `LONGEST_WORD` characters count only as a word of their own. What stands before the host of
a url is hidden in any text, known or not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock

from headrace.compiler.schema.spellings import Spelling, forms

REFERENCE = re.compile(r"\$\{([A-Za-z0-9_.\-]+)\}")
"""A ``${NAME}`` in a template."""
HIDDEN = "***"
"""What shows of a credential that the config itself spells out."""
SHORTEST = 5
"""Characters of a value that is looked for at all."""
LONGEST_WORD = 7
"""Characters of a value that an innocent word may hold."""

_HARMLESS = re.compile(rf"(?:{REFERENCE.pattern}|{re.escape(HIDDEN)})*")
_WORD = re.compile(r"\w")
_BEFORE_A_HOST = re.compile(r"""(://(?:[^\s/@:"'<>,]*:)?)([^\s/@"'<>,]+)@""")
_Shown = tuple[str, bool]
"""What shows instead, and whether what is hidden counts only as a word of its own."""


class Redaction:
    """Hides the values of the secrets that it was told of. Any thread may tell, and ask.

    They are filed by how they begin: a text takes as long with a thousand values as with ten, and one
    more value takes no time but its own.
    """

    def __init__(self) -> None:
        self._owners: dict[str, dict[Hidden | None, _Shown]] = {}
        self._shown: dict[str, _Shown] = {}
        self._alike: dict[str, set[str]] = {}
        self._sizes: dict[str, Sequence[int]] = {}
        """How long those are that begin alike, the longest first. Replaced, as others may read it."""
        self._longer: Counter[str] = Counter()
        """How they go on: their first 10, 20, 40, ... characters, and how many have them and more."""
        self._changing = Lock()

    def __len__(self) -> int:
        """Return how many readings of values are looked for."""
        return len(self._shown)

    def learn(
        self,
        template: str,
        value: str,
        lookup: Callable[[str], str | None],
        owner: Hidden | None = None,
    ) -> None:
        """Hide from now on what ``template`` resolved to; ``lookup`` answers its references.

        With an ``owner``, what the template itself says is hidden until that lets go; what the
        references stand for is hidden for good: there are no more of them than names.
        """
        names = REFERENCE.findall(template)
        # Of a value that is hidden for several reasons, the first of them shows.
        for name in names:
            self.hide(lookup(name) or "", f"${{{name}}}")
        if names:
            shown = template  # but for the credentials that its urls spell out
            for _, credential in sorted(_credentials(template), key=lambda pair: -len(pair[1])):
                if not _HARMLESS.fullmatch(credential):
                    shown = shown.replace(f"{credential}@", f"{HIDDEN}@")
            self.hide(value, shown, owner)
        for user, credential in _credentials(value):
            self.hide(credential, owner=owner)
            if user not in template:
                self.hide(user, owner=owner)

    def hide(self, value: str, shown: str = HIDDEN, owner: Hidden | None = None) -> None:
        """Hide from now on a value, unless it is too short: for good, or until its owner lets go."""
        readings = {each for each in forms(value) if len(each) >= SHORTEST}
        with self._changing:
            if owner is not None:
                if owner.is_over:
                    return
                owner.readings |= readings
            for reading in readings:
                owners = self._owners.setdefault(reading, {})
                owners.setdefault(owner, (shown, len(reading) <= LONGEST_WORD))
                self._file(reading, owners)

    def let_go(self, owner: Hidden) -> None:
        """Look no longer for what nobody but this owner has hidden."""
        with self._changing:
            owner.is_over = True
            while owner.readings:
                reading = owner.readings.pop()
                owners = self._owners[reading]
                owners.pop(owner, None)
                self._file(reading, owners)

    def __call__(self, text: str) -> str:
        """Return a text without what is hidden."""
        if self._shown:
            text = "".join(self._pieces(text))
        return _BEFORE_A_HOST.sub(_harmless, text)

    def _file(self, reading: str, owners: Mapping[Hidden | None, _Shown]) -> None:
        """Have a reading looked for, as its first owner said, or no longer if it has none."""
        beginning = reading[:SHORTEST]
        alike = self._alike.setdefault(beginning, set())
        if owners:
            if reading not in self._shown:
                self._longer.update(_beginnings_of(reading))
            self._shown[reading] = next(iter(owners.values()))
            alike.add(reading)
            if len(reading) in self._sizes.get(beginning, ()):
                return
        else:
            del self._owners[reading]
            if self._shown.pop(reading, None):
                for each in _beginnings_of(reading):
                    self._longer[each] -= 1
                    if not self._longer[each]:
                        del self._longer[each]
            alike.discard(reading)
        self._sizes[beginning] = sorted({len(each) for each in alike}, reverse=True)
        if not alike:
            del self._alike[beginning], self._sizes[beginning]

    def _pieces(self, text: str) -> Iterator[str]:
        """Yield what is left of a text and what shows instead; what is put in is not looked at again."""
        spelling, done = Spelling(text), 0
        plain, sizes = spelling.plain, self._sizes
        # Where a value may begin.
        starts = [
            at for at in range(len(plain) - SHORTEST + 1) if plain[at : at + SHORTEST] in sizes
        ]
        escaped = [at for at, read in spelling.beginnings(SHORTEST).items() if read in sizes]
        for start in sorted({*starts, *escaped}) if escaped else starts:
            if start >= done and (found := self._longest(text, spelling, start)):
                yield text[done:start]
                shown, done = found
                yield shown
        yield text[done:]

    def _longest(self, text: str, spelling: Spelling, start: int) -> tuple[str, int] | None:
        """Return what shows instead of the longest value that begins here, and where that ends."""
        found: tuple[str, int] | None = None

        def as_it_stands(size: int) -> str:
            return spelling.plain[start : start + size]

        sizes = self._sizes.get(as_it_stands(SHORTEST), ())
        most = self._most(sizes, as_it_stands)
        for size in sizes:
            if size <= most and (found := self._at(text, as_it_stands(size), start, start + size)):
                break
        sizes = self._sizes.get(spelling.read(start, SHORTEST)[0], ())
        read, borders = spelling.read(
            start, self._most(sizes, lambda size: spelling.read(start, size)[0])
        )
        for size in sizes:
            if size > len(read) or (found and borders[size] <= found[1]):
                continue
            ends = [(read[size - 1], borders[size]), *spelling.alone(borders[size - 1])]
            for last, end in ends:
                if longer := self._at(text, read[: size - 1] + last, start, end):
                    return longer
        return found

    def _most(self, sizes: Sequence[int], read: Callable[[int], str]) -> int:
        """Return how many characters may be those of a value: no more than go on as one does, doubled.

        Or a text that repeats how a long value begins would be read to the end of that everywhere.
        """
        most, size = max(sizes, default=0), 2 * SHORTEST
        while size < most and read(size) in self._longer:
            size *= 2
        return min(size, most)

    def _at(self, text: str, reading: str, start: int, end: int) -> tuple[str, int] | None:
        """Return what shows instead of a reading of this part of a text, and where that ends."""
        if (hidden := self._shown.get(reading)) is None:
            return None
        shown, is_word = hidden
        if is_word and ((start and _WORD.match(text, start - 1)) or _WORD.match(text, end)):
            return None
        return shown, end


class Hidden:
    """What one owner has a redaction hide, until it lets go of all of it, once."""

    def __init__(self, redaction: Redaction | None = None) -> None:
        self.redaction = Redaction() if redaction is None else redaction
        self.readings: set[str] = set()
        """What is looked for because of it."""
        self.is_over = False

    def hide(self, value: str) -> None:
        """Hide a credential until `let_go`; after that, nothing."""
        self.redaction.hide(value, owner=self)

    def let_go(self) -> None:
        """Hide no longer what nobody else has hidden."""
        self.redaction.let_go(self)


def _beginnings_of(reading: str) -> Iterator[str]:
    """Yield how a reading begins. All of it is none: its last character may be written in more ways."""
    size = 2 * SHORTEST
    while size < len(reading):
        yield reading[:size]
        size *= 2


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


def _harmless(found: re.Match[str]) -> str:
    return found[0] if _HARMLESS.fullmatch(found[2]) else f"{found[1]}{HIDDEN}@"
