"""The template language: a text with fields of a message in braces.

    "{machine} is at {site.temp} °C"        a field is a dotted path, as everywhere
    "{{{id}}}"                              two braces are one: {7}

There is nothing else: no formats, no functions, no conditions. A string is put there as it is, a number or
boolean as JSON writes it. A list or an object is an error, and where a field is missing or null there is no
text. It is read when the config is, and written twice: `TextTemplate.fill` is the plain truth, and
`TextTemplate.expression` the same as source, which `made_texts` makes a function over a batch of.

Measured on 3.11, ns a message, batches of 100: three fields, two of them strings and one a number, 420 as a
function over a batch (as JSON such a message takes 230).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from marshmallow import ValidationError

from headrace.compiler.batchloops import of_each
from headrace.compiler.casts import CASTS, CastError
from headrace.compiler.code import Code, GiveUp
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.dottedpaths import MISSING, DottedPath, Missing
from headrace.compiler.errors import BatchFailed
from headrace.compiler.jsontext import encode
from headrace.compiler.schema.fields import MessageField, Text
from headrace.compiler.schema.records import faults_of, listed
from headrace.compiler.text.diagnostics import Codes, Fault, Spot, shown

CODES: Codes = {
    "not-a-template": "A template has a brace without its other, names no field, or too many.",
}

LONGEST_TEXT = 16 * 1024 * 1024
"""Characters of a text that is made, which is as much as a message that comes in may have."""
TOO_LONG = f"the result is longer than {LONGEST_TEXT:,} characters"
TEXT_COST = 55
"""Nanoseconds that a character takes of a text that is made: of the digits of one long integer."""
MOST_FIELDS = 100
"""Fields of one template, each counted as often as it stands there."""
PLAIN_TEXT = 100_000
"""Characters of a string that is put into a text unseen: so many fields stay below the longest text."""
_IS_SHORT = f"len({{0}}) <= {PLAIN_TEXT}"

_BRACES = re.compile(r"\{\{|\}\}|\{|\}")
_FORM = "a text with fields in braces, as in \"{machine} is at {temp}\"; '{{' and '}}' are braces"


@dataclass(frozen=True, slots=True)
class Escape:
    """How the value of a field is made safe for what stands around it, before it is put there.

    Units: ``longest`` is characters, of all values of a text together; ``cost`` nanoseconds for each.
    """

    apply: Callable[[str], str]
    longest: int
    cost: int


def _percent_encoded(text: str) -> str:
    return text if text.isascii() and text.isalnum() else quote(text, safe="")


ESCAPES: Mapping[str, Escape | None] = {
    "none": None,
    # Control characters become six each.
    "json": Escape(lambda text: encode(text).decode()[1:-1], 262_144, 16),
    # Nobody takes a longer url.
    "url": Escape(_percent_encoded, 65_536, 80),
}
"""The ways by their word in a config."""


@dataclass(frozen=True)
class TextTemplate:
    """A template that was read: its text, and what it is made of."""

    text: str
    pieces: tuple[str | DottedPath, ...]

    @property
    def paths(self) -> Sequence[str]:
        """The fields that it reads, each once."""
        return [*dict.fromkeys(each.text for each in self._fields)]

    @property
    def _fields(self) -> Iterator[DottedPath]:
        return (each for each in self.pieces if isinstance(each, DottedPath))

    def dump(self, *, masked: bool = True) -> str:
        """Return it as it is written."""
        return self.text

    def __str__(self) -> str:
        return self.text

    def fill(self, message: JsonValue, escape: str = "none") -> str | Missing:
        """Return the text for a message, or `MISSING` where one of the fields is, or is null.

        Raises:
            BatchFailed: a field holds something that is no text, or the text would be too long.
        """
        found = {each.text: each.read(message) for each in self._fields}
        texts = {
            path: _text(value, path)
            for path, value in found.items()
            if value is not MISSING and value is not None
        }
        if len(texts) < len(found):
            return MISSING
        if (way := ESCAPES[escape]) is not None:
            if sum(len(texts[each.text]) for each in self._fields) > way.longest:
                raise BatchFailed(
                    f"the fields to escape are longer than {way.longest:,} characters together"
                )
            texts = {path: way.apply(text) for path, text in texts.items()}
        filled = [each if isinstance(each, str) else texts[each.text] for each in self.pieces]
        if sum(map(len, filled)) > LONGEST_TEXT:
            raise BatchFailed(TOO_LONG)
        return "".join(filled)

    def demand(self, message: JsonValue) -> str:
        """Return the text for a message that has to have one.

        Raises:
            BatchFailed: as `fill` does, or a field is missing.
        """
        filled = self.fill(message)
        if filled is MISSING:
            found = ((each.text, each.read(message)) for each in self._fields)
            absent = [path for path, value in found if value is MISSING or value is None]
            named = [*dict.fromkeys(absent)]
            said = f"field {listed(named)} is" if len(named) == 1 else f"fields {listed(named)} are"
            raise BatchFailed(f"{said} missing or null")
        return filled

    def expression(self, code: Code, *, escape: str = "none", optional: bool = False) -> FilledText:
        """Return the text as source, and write what it reads.

        Whatever is unusual raises, and so does None: `fill` has to speak.
        """
        names = {
            path: code.read(DottedPath(path), optional=optional)
            for path in dict.fromkeys(each.text for each in self._fields)
        }
        read = [names[each.text] for each in self._fields]
        way = ESCAPES[escape]
        longest = LONGEST_TEXT - len(self.text) if way is None else way.longest
        # One that is longer may be too long, or not: `fill` counts them together.
        most = longest // len(read)
        within = text_within(most, way)
        if way is not None:
            for name in names.values():
                code.spend_on(name, way.cost * read.count(name))
        if not code.takes_in_place(len(read)):
            filling = code.constant(self._filling(within, way), "filled")
            return FilledText(f"{filling}({', '.join(dict.fromkeys(read))})", read)
        text = code.constant(within, "text")
        is_plain = _IS_SHORT if way is None else "False"
        filled = "".join(
            _quoted(each)
            if isinstance(each, str)
            else f"{{{put_in(name, is_plain.format(name), f'{text}({name})')}}}"
            for each, name in zip(self.pieces, self._names(names), strict=True)
        )
        return FilledText(f"f'{filled}'", read)

    def _filling(self, text: Callable[[JsonValue], str], way: Escape | None) -> Callable[..., str]:
        """Return what fills it with the values of `paths`, of each of which ``text`` makes a text."""
        places = {path: f"{{{place}}}" for place, path in enumerate(self.paths)}
        filled = "".join(
            places[each.text]
            if isinstance(each, DottedPath)
            else each.replace("{", "{{").replace("}", "}}")
            for each in self.pieces
        ).format
        if way is not None:
            return lambda *values: filled(*map(text, values))
        return lambda *values: filled(
            *[
                each if each.__class__ is str and len(each) <= PLAIN_TEXT else text(each)
                for each in values
            ]
        )

    def _names(self, names: Mapping[str, str]) -> Iterator[str]:
        """Yield the name for each piece; an empty one for a text."""
        return (names[each.text] if isinstance(each, DottedPath) else "" for each in self.pieces)


@dataclass(frozen=True, slots=True)
class FilledText:
    """A text as source, and the names that it is made of, each as often as it stands there."""

    expression: str
    names: Sequence[str]


def put_in(name: str, is_plain: str, otherwise: str) -> str:
    """Return what is put into an f-string for a value, as source.

    That is a string, where ``is_plain`` holds for it, and a number as JSON writes it. Doubles that Python
    writes in another way, all that have an exponent, are left to ``otherwise``, as everything else is.
    """
    is_usual = f"1e-4 <= {name} < 1e15 or -1e15 < {name} <= -1e-4 or {name} == 0.0"
    return (
        f"{name} if {name}.__class__ is str and {is_plain} or {name}.__class__ is int"
        f" else repr({name}) if {name}.__class__ is float and ({is_usual}) else {otherwise}"
    )


def text_within(most: int, way: Escape | None = None) -> Callable[[JsonValue], str]:
    """Return what makes a text of a value that is not plain, and escapes it; of a longer one it raises."""
    cast: Callable[..., Any] = CASTS["text"]
    apply = str if way is None else way.apply

    def text(value: JsonValue) -> str:
        made: str = value if value.__class__ is str else cast(value)
        if len(made) > most:
            raise GiveUp
        return apply(made)

    return text


def _text(value: JsonValue, path: str) -> str:
    try:
        made: Any = CASTS["text"](value)
    except CastError as cause:
        raise BatchFailed(f"field '{path}': {cause}") from cause
    return str(made)


def _quoted(text: str) -> str:
    """Return a text as it stands in an f-string of single quotes."""
    plain = text.encode("unicode_escape").decode().replace("'", "\\'")
    return plain.replace("{", "{{").replace("}", "}}")


def made_texts(template: TextTemplate, place: str) -> Callable[[Batch], list[bytes]]:
    """Return what makes the texts of a batch, one for each message, in UTF-8.

    ``place`` names its source in tracebacks: ``p1 outputs[0]``. What it returns raises `BatchFailed`, which
    names all messages that have not got the fields.
    """
    usual = of_each(lambda code: f"{template.expression(code).expression}.encode()", place)

    def made(batch: Batch) -> list[bytes]:
        try:
            return usual(batch)
        except Exception:  # told by the plain way, if there is a fault at all
            return _plainly(template, batch)

    return made


def _plainly(template: TextTemplate, batch: Batch) -> list[bytes]:
    """Return the texts of a batch, one message after the other."""
    texts, refused = list[bytes](), dict[int, str]()
    for place, message in enumerate(batch):
        try:
            texts.append(template.demand(message).encode())
        except BatchFailed as cause:
            refused[place] = str(cause)
    if refused:
        raise BatchFailed(next(iter(refused.values())), refused=refused)
    return texts


class TemplateText(Text):
    """A template."""

    type_name = "template"
    is_literal = False
    expects = _FORM

    def read(self, value: Any) -> TextTemplate:
        """Read a template; what is wrong with it is told with its place."""
        text: str = super().read(value)
        return TextTemplate(text, tuple(_pieces(text)))


def _pieces(text: str) -> Iterator[str | DottedPath]:
    """Yield what a template is made of.

    Raises:
        ValidationError: it is none.
    """
    literal, at, fields = "", 0, 0
    while (brace := _BRACES.search(text, at)) is not None:
        literal += text[at : brace.start()]
        at = brace.end()
        if len(brace[0]) == 2:
            literal += brace[0][0]
            continue
        if brace[0] == "}":
            raise _wrong(text, brace.start(), "a '}' closes nothing", "'}}', which is one brace")
        end = _BRACES.search(text, at)
        if end is None or not end[0].startswith("}"):
            raise _wrong(text, brace.start(), "a '{' is not closed", "'}' behind the field")
        if literal:
            yield literal
        yield _field(text, at, end.start())
        literal, at, fields = "", end.start() + 1, fields + 1
        if fields > MOST_FIELDS:
            expected = f"at most {MOST_FIELDS} fields"
            raise _wrong(text, brace.start(), f"more than {MOST_FIELDS} fields", expected)
    if literal := literal + text[at:]:
        yield literal
    if not fields:
        hint = None
        if _FOREIGN.search(text):
            hint = "a field has one brace on each side; two are a brace that is written"
        fault = Fault(
            "not-a-template",
            "names no field, so the text would be the same for every message",
            shown(text),
            _FORM,
            hint,
        )
        raise ValidationError([fault])


_FOREIGN = re.compile(r"\{\{[^{}]{1,200}\}\}")


def _field(text: str, start: int, end: int) -> DottedPath:
    """Return the field that is named there."""
    try:
        return DottedPath(MessageField().deserialize(text[start:end]))
    except ValidationError as error:
        [fault] = faults_of(error)
        said = "no field is named between braces" if fault.code == "blank" else fault.message
        raise _wrong(text, start - 1, said, fault.expected) from None


def _wrong(text: str, at: int, said: str, expected: str | None) -> ValidationError:
    """Return the error about a character of a template."""
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    place = f"character {column}" if line == 1 else f"line {line}, character {column}"
    fault = Fault(
        "not-a-template",
        f"{said}: {place}",
        shown(text),
        expected,
        spot=Spot(line, column, text=text),
    )
    return ValidationError([fault])
