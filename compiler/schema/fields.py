"""The fields options are made of: strict, each with its words for the reference and its faults.

Nothing is coerced: ``"1"`` is no integer, ``true`` is no number, ``1.0`` is no integer. Every field
says what it takes (`expects`), its readable name (`type_name`) and its wire description
(`field_type`, contract 12.8).
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import marshmallow
from marshmallow import ValidationError

from headrace.compiler.jsontext import MAX_DEPTH
from headrace.compiler.schema.records import Record, faults_of, of_another_type
from headrace.compiler.schema.secrets import Secret
from headrace.compiler.schema.templates import Fixed
from headrace.compiler.text.diagnostics import Fault, shown, spelled
from headrace.compiler.text.scalars import plain
from headrace.compiler.text.suggest import NO_OTHERS, Others, nearest, others

_R = TypeVar("_R", bound=Record)

_WITH_UNIT = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,9})? ?[A-Za-zµ%]{1,9}")
_WITH_COMMAS = re.compile(r"[0-9]{1,3}(?:[_,][0-9]{3}){1,5}|[0-9]{1,18},")
"""Numbers as people write them: ``10s``, ``1_000``, ``1,000``, and with a comma left over from JSON."""

_BOOLEANS = {"true": ("true", "yes", "on", "y", "1"), "false": ("false", "no", "off", "n", "0")}
"""What booleans are called where they are not written as JSON writes them."""

# What nobody sees, whatever it is made of. U+2800 and U+1D159 are drawn, as nothing.
# Source: Unicode 16, `PropList.txt` (White_Space) and `DerivedCoreProperties.txt`
# (Default_Ignorable_Code_Point: fillers of Hangul, joiners, marks of direction, selectors of variants).
_UNSEEN = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
)
_UNSEEN_BEYOND = r"\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
_SEEN = re.compile(rf"[^\s{_UNSEEN}{_UNSEEN_BEYOND}]")

SOMETHING_SEEN = rf"[^\s{_UNSEEN}]"
"""A pattern for JSON Schema. What lies beyond the first 65,536 characters has no spelling that all of its
readers know."""


def is_blank(text: str) -> bool:
    """Return whether nothing of a text can be seen."""
    return _SEEN.search(text) is None


def refused(
    code: str,
    message: str,
    *,
    found: Any = None,
    expected: str | None = None,
    hint: str | None = None,
) -> ValidationError:
    """Return the error that carries one fault."""
    fault = Fault(code, message, None if found is None else shown(found), expected, hint)
    return ValidationError([fault])


class Strict(marshmallow.fields.Field[Any]):
    """A field that takes exactly one JSON type."""

    takes_null: ClassVar[bool] = False
    """Whether null is one of its values."""
    is_null_absent: bool = True
    """Whether null says the same as leaving an optional key out."""
    is_null_told: ClassVar[bool] = False
    """Whether null is told beside its type, as a value that says something else than leaving it out."""
    never_absent: bool = False
    """Whether leaving it out is just another way to say its default."""
    of: ClassVar[type] = object
    """What its values are in a decoded document."""
    is_told: ClassVar[bool] = True
    """Whether a value of another type is repeated where it is refused; else its type alone is told."""
    expects: str = "a JSON value"
    """What would be accepted, as a noun phrase."""
    type_name: str = "json"
    field_type: Any = "json"
    noun: str = ""
    """What one of its values is called where a list of them is wanted; its `type_name` if empty."""
    keys_inside: Collection[str] = ()
    """Keys of the object it takes, or of the objects in the list it takes."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(allow_none=self.takes_null, **keywords)

    def make_error(self, key: str, **_: Any) -> ValidationError:
        """Return the error for a key that is missing, or null where null is no value."""
        missing = refused("missing-key", "this key is required", expected=self.expects)
        return missing if key == "required" else self.wrong(None)

    def wrong(self, value: Any) -> ValidationError:
        """Return the error for a value of another type."""
        hint = self.remedy(value)
        if self.is_told and hint is None and isinstance(value, str) and Secret(value).names():
            hint = "references stand only in texts: write the value itself"
        if not self.is_told:
            return ValidationError([replace(of_another_type(value, self.expects), suggestion=hint)])
        return refused(
            "wrong-type",
            f"expected {self.expects}, found {shown(value)}",
            found=value,
            expected=self.expects,
            hint=hint,
        )

    def remedy(self, value: Any) -> str | None:
        """Return what to do with a value of another type, where that can be told."""
        return None

    def form(self, value: Any) -> str | None:
        """Return how one is written, of what stands in place of a list of them and is none itself."""
        return None

    def takes(self, value: Any) -> bool:
        """Return whether it would take a value."""
        try:
            self.deserialize(value)
        except ValidationError:
            return False
        return True

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        return self.read(value)

    def read(self, value: Any) -> Any:
        """Return what the option holds for a decoded value, or raise a `ValidationError`."""
        if not isinstance(value, self.of):
            raise self.wrong(value)
        return value


class AnyJson(Strict):
    """Any JSON value, null included."""

    takes_null = True
    is_null_absent = False


class Boolean(Strict):
    """`true` or `false`."""

    type_name = field_type = "boolean"
    of = bool
    expects = "true or false"

    def remedy(self, value: Any) -> str | None:
        """Return what a boolean is written as that stands in quotes, or as YAML 1.1 had it."""
        word = shown(value).strip('"').strip().lower()
        meant = next((each for each, words in _BOOLEANS.items() if word in words), None)
        bare = ", without quotes" if word == meant else ""
        return None if meant is None else f"write {meant}{bare}"


class Number(Strict):
    """Any finite JSON number, as it is written (8 stays 8)."""

    type_name = field_type = "number"
    _noun = "a number"

    def __init__(
        self, *, min: float | None = None, max: float | None = None, above: float | None = None
    ) -> None:
        self.min, self.max, self.above = min, max, above
        bounds = {"of at least": min, "above": above, "of at most": max}
        said = " and ".join(f"{word} {each}" for word, each in bounds.items() if each is not None)
        self.expects = f"{self._noun} {said}".strip()
        super().__init__()

    def remedy(self, value: Any) -> str | None:
        """Return the number that stands in quotes, or has a point, a comma or a unit it does not need."""
        if isinstance(value, str) and _WITH_UNIT.fullmatch(value):
            return "write the number alone, without a unit"
        is_odd = isinstance(value, str) and _WITH_COMMAS.fullmatch(value)
        bare = re.sub("[_,]", "", value) if is_odd else value
        number = plain(bare.strip()) if isinstance(bare, str) else bare
        if type(number) is float and number.is_integer() and not self._is_kind(number):
            number = int(number)
        if not self._is_kind(number) or not self.takes(number):
            return None
        is_quoted = isinstance(value, str) and not is_odd
        return f"write {spelled(number)}" + (", without quotes" if is_quoted else "")

    def _is_kind(self, value: Any) -> bool:
        # Not for an integer: one that is larger than every double has no answer.
        return type(value) is int or (type(value) is float and math.isfinite(value))

    def read(self, value: Any) -> Any:
        """Take a number within the bounds."""
        if not self._is_kind(value):
            raise self.wrong(value)
        if (
            (self.min is not None and value < self.min)
            or (self.max is not None and value > self.max)
            or (self.above is not None and value <= self.above)
        ):
            raise refused(
                "out-of-range",
                f"expected {self.expects}, found {shown(value)}",
                found=value,
                expected=self.expects,
            )
        return value


class Integer(Number):
    """A JSON integer: no point, no exponent, no quotes."""

    type_name = field_type = "integer"
    _noun = "an integer"

    def __init__(self, *, min: int | None = 0, max: int | None = None) -> None:
        super().__init__(min=min, max=max)

    def _is_kind(self, value: Any) -> bool:
        return type(value) is int


class Scalar(Strict):
    """A string, a finite number or a boolean."""

    type_name = "string | number | boolean"
    noun = "value"
    expects = "a string, a number or a boolean"

    def read(self, value: Any) -> str | float | bool:
        """Take one, as it is written."""
        if isinstance(value, float) and not math.isfinite(value):
            raise self.wrong(value)
        if not isinstance(value, str | int | float):
            raise self.wrong(value)
        return value


class Text(Strict):
    """A string."""

    type_name = "string"
    field_type: Any = "text"
    of = str
    is_literal: ClassVar[bool] = True
    """Whether it is taken as it stands, whatever is written there."""
    expects = "a string"

    def __init__(self, *, fixed: Fixed | None = None, **keywords: Any) -> None:
        """Take what to do instead of a template, where the text is part of a name and holds none."""
        self.fixed = fixed
        super().__init__(**keywords)

    def instead(self, text: str) -> str | None:
        """Return what to do instead, of a text that looks like a template."""
        return None if self.fixed is None else self.fixed.remedy(text)

    def remedy(self, value: Any) -> str | None:
        """Return that quotes make a string of it, or that the one string of a list is meant."""
        if isinstance(value, bool | int | float) and self.takes(shown(value)):
            return "put it in quotes"
        only = value[0] if isinstance(value, list) and len(value) == 1 else None
        is_meant = isinstance(only, str) and self.takes(only)
        return f"write {spelled(only)}, without a list" if is_meant else None


class Name(Text):
    """A string that says something: trimmed, never blank."""

    expects = "a string that is not blank"

    def read(self, value: Any) -> Any:
        """Take a string with something in it, without the blanks around it."""
        text = super().read(value).strip()
        if is_blank(text):
            raise refused("blank", "this must not be blank", found=value, expected=self.expects)
        return text


class Identifier(Text):
    """What something is filed under: never blank, taken as it is.

    It stands in paths, in every line of the log and in every figure, so it has a limit.
    """

    longest = 1000

    expects = "a string that is not blank"

    def read(self, value: Any) -> Any:
        """Take a string with something in it."""
        text: str = super().read(value)
        if is_blank(text):
            raise refused("blank", "this must not be blank", found=value, expected=self.expects)
        if len(text) > self.longest:
            raise refused(
                "out-of-range",
                f"a name of {len(text):,} characters is too long",
                found=value,
                expected=f"at most {self.longest:,} characters",
            )
        return text


class MessageField(Name):
    """The place of a field in a message: a literal key, or keys joined by dots."""

    field_type = "message_field"
    noun = "dotted path"

    def read(self, value: Any) -> Any:
        """Take a path that is no deeper than a message can be."""
        path: str = super().read(value)
        if (segments := path.count(".") + 1) > MAX_DEPTH:
            raise refused(
                "too-deep",
                f"a path of {segments} segments leads nowhere: messages nest at most {MAX_DEPTH} deep",
                found=path,
                expected=f"at most {MAX_DEPTH} segments",
            )
        return path


class BucketName(Identifier):
    """The name of a bucket that the config declares."""


class PipelineId(Identifier):
    """The id of another pipeline, which this one reads."""

    type_name = "pipeline id"
    field_type = "pipeline_id"


class ConnectionName(Identifier):
    """The name of a connection of one kind."""

    def __init__(self, kind: str) -> None:
        self.connection_kind = kind
        self.type_name = f"{kind} connection"
        self.field_type = {"connection": kind}
        self.expects = f"the name of a {kind} connection"
        super().__init__()

    def wrong(self, value: Any) -> ValidationError:
        """Return the error; of a connection that stands there itself, credentials and all, its type."""
        if not isinstance(value, dict):
            return super().wrong(value)
        said = f"expected {self.expects}, found an object"
        hint = "put it in the connections file beside the config, and write its name here"
        return ValidationError([Fault("wrong-type", said, "an object", self.expects, hint)])


class SecretText(Text):
    """A string that may hold ``${NAME}`` references."""

    is_told = False  # it may be a secret
    expects = "a string, usually a ${NAME} reference"

    def remedy(self, value: Any) -> str | None:
        """Return nothing of a list, which would be repeated."""
        return None if isinstance(value, list) else super().remedy(value)

    def read(self, value: Any) -> Secret:
        """Take a template."""
        return Secret(super().read(value))


class ScriptText(Text):
    """The text of a script, taken as it is: a place in it is a place in the document."""

    type_name = "rhai script"
    field_type = {"script": "rhai"}
    is_literal = False

    expects = "a script that is not blank"

    def read(self, value: Any) -> str:
        """Take a text with something in it."""
        text: str = super().read(value)
        if not text.strip():
            raise refused("blank", "this script is blank", found=value, expected=self.expects)
        return text


class Choice(Strict):
    """One of several words, spelled exactly.

    ``elsewhere`` says by word what users of other tools would write for it, words in one text.

    One that is ``never_absent`` cannot be taken back: leaving it out says its default, null says
    nothing, and an echo leaves the default out.
    """

    noun = "word"
    of = str

    def __init__(
        self,
        *words: str,
        null_word: bool = False,
        never_absent: bool = False,
        elsewhere: Mapping[str, str] = NO_OTHERS,
    ) -> None:
        self.words = words
        self.others: Others = others(elsewhere)
        self.null_word = null_word
        self.never_absent = never_absent
        self.is_null_absent = not never_absent and not null_word
        self.type_name = " | ".join(words)
        self.field_type = {"enum": list(words)}
        self.expects = "one of " + ", ".join(words)
        super().__init__()

    def deserialize(self, value: Any, *positional: Any, **keywords: Any) -> Any:
        """Read an unquoted YAML null as the word ``null`` where that is a choice."""
        word = "null" if value is None and self.null_word else value
        return super().deserialize(word, *positional, **keywords)

    def wrong(self, value: Any) -> ValidationError:
        """Return the error, with the word that is probably meant by a number: ``qos: 1``."""
        faults = faults_of(super().wrong(value))
        return ValidationError([fault.meaning(self._meant(value)) for fault in faults])

    def _meant(self, value: Any) -> str | None:
        if isinstance(value, list | dict):
            return None
        # YAML takes a `>` without quotes for the beginning of a text, which is then empty.
        word = value or ">" if isinstance(value, str) else shown(value)
        return nearest(word, self.words, self.others)

    def read(self, value: Any) -> str:
        """Take one of the words."""
        word: str = super().read(value)
        if word not in self.words:
            said = f"expected {self.expects}, found {shown(value)}"
            fault = Fault("not-a-choice", said, shown(value), self.expects)
            raise ValidationError([fault.meaning(self._meant(value))])
        return word
