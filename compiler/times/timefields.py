"""The options that times are described with: formats, and zones."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError

from headrace.compiler.schema.fields import Text
from headrace.compiler.text.diagnostics import Codes, Fault, Spot, shown
from headrace.compiler.text.suggest import nearest, others
from headrace.compiler.times.directives import FormatRefused
from headrace.compiler.times.numbers import OTHER_UNITS, UNITS
from headrace.compiler.times.timereading import reader
from headrace.compiler.times.timewriting import writer
from headrace.compiler.times.zones import UnknownZone, zone_named, zone_names

CODES: Codes = {
    "not-a-time-format": "A format of times is not written as one, or does not tell enough.",
}

EXPECTED_FORMAT = "a format such as %Y-%m-%d %H:%M:%S"

_USUAL = frozenset({"rfc3339", "rfc_3339", "iso", "iso8601", "iso_8601", "iso8601_date", "auto"})


class ZoneName(Text):
    """The name of a zone of the IANA list: `Europe/Berlin`.

    There are hundreds, so it is a text and no choice.
    """

    type_name = "zone"
    noun = "zone"
    expects = "a name of the IANA list, such as Europe/Berlin or UTC"

    def read(self, value: Any) -> str:
        """Take the name of a zone that is in the tables."""
        name: str = super().read(value)
        try:
            zone_named(name)
        except UnknownZone:
            said = f"there is no zone {shown(name)}"
            fault = Fault("not-a-choice", said, shown(name), self.expects)
            raise ValidationError([fault.meaning(_meant(name))]) from None
        return name


def _meant(name: str) -> str | None:
    """Return the zone that is probably meant: one with this name, or of a place of this name."""
    places = {each.rpartition("/")[2]: each for each in sorted(zone_names(), reverse=True)}
    bare = name.strip().replace(" ", "_")
    return places.get(bare.title()) or nearest(bare, zone_names())


class WrittenFormat(Text):
    """How a time is written: literal text and directives."""

    type_name = "format"
    noun = "format"
    expects = EXPECTED_FORMAT

    def read(self, value: Any) -> str:
        """Take a format that can be written."""
        pattern: str = super().read(value)
        try:
            writer(pattern)
        except FormatRefused as cause:
            raise _refused(pattern, cause) from cause
        return pattern


class ReadFormat(Text):
    """How a time is written that is read: literal text and directives, or a word for a unit of numbers."""

    type_name = "format"
    noun = "format"
    expects = f"{EXPECTED_FORMAT}, or one of {', '.join(UNITS)}"
    units_elsewhere = others(OTHER_UNITS)

    def read(self, value: Any) -> str:
        """Take a format that can be read, or a unit."""
        pattern: str = super().read(value)
        if pattern in UNITS:
            return pattern
        try:
            reader(pattern)
        except FormatRefused as cause:
            raise self._refused(pattern, cause) from cause
        return pattern

    def _refused(self, pattern: str, cause: FormatRefused) -> ValidationError:
        if "%" in pattern:
            return _refused(pattern, cause, self.expects)
        if pattern.strip().casefold().replace("-", "_") in _USUAL:
            hint = (
                "leave 'format' out: RFC 3339, a date and seconds since 1970 are read without one"
            )
            return _refused(pattern, cause, self.expects, hint)
        said = f"{shown(pattern)} is no format: {cause}"
        fault = Fault("not-a-time-format", said, shown(pattern), self.expects)
        return ValidationError([fault.meaning(nearest(pattern, UNITS, self.units_elsewhere))])


def _refused(
    pattern: str, cause: FormatRefused, expected: str = EXPECTED_FORMAT, hint: str | None = None
) -> ValidationError:
    spot = None if cause.at is None or "\n" in pattern else Spot(1, cause.at + 1)
    said = f"{shown(pattern)} is no format: {cause}"
    fault = Fault("not-a-time-format", said, shown(pattern), expected, hint, spot=spot)
    return ValidationError([fault])
