"""What an object store takes as names: buckets, regions, and the keys of parts with their numbers."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from weakref import WeakValueDictionary

from headrace.compiler.schema.fields import Name, Text, refused
from headrace.compiler.text.diagnostics import Fault, shown
from headrace.connectors.disk.parts import number_of, renumbered

LONGEST_KEY = 1024
"""Bytes that a key may have."""
LONGEST_PART_NAME = 64
"""Bytes of them that are left for the name of a part, in a run of any length."""
LONGEST_STEP = 255
"""Bytes between two slashes: many stores, and what reads from them, make a name of a file of that."""
MOST_TIMES = 10_000
"""Of how many seconds and prefixes the numbers are remembered, for one bucket."""
LONGEST_SKIP = 1_000
"""How many numbers an output leaves to another server at a time."""

# Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html; capitals,
# underscores and more than 63 characters are of old buckets and of other stores.
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")
_REGION = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)

DIRECTIVES = {
    "Y": "year",
    "m": "month",
    "d": "day",
    "j": "day of the year",
    "H": "hour",
    "M": "minute",
}
"""What a partition may be made of: numbers of a fixed width, so that names sort as time does."""


class S3BucketName(Name):
    """The name of a bucket."""

    expects = "3 to 255 letters, digits, '.', '-' and '_', a letter or digit at both ends"

    def read(self, value: Any) -> str:
        """Take a name that a bucket can have."""
        return _matching(_BUCKET, super().read(value), "the name of a bucket", self.expects)


class Region(Name):
    """The name of a region, which stands in host names."""

    expects = "letters, digits and '-', as in eu-central-1"

    def read(self, value: Any) -> str:
        """Take a name that can stand in a host name."""
        return _matching(_REGION, super().read(value), "the name of a region", self.expects)


def _matching(pattern: re.Pattern[str], text: str, what: str, expected: str) -> str:
    if not pattern.fullmatch(text):
        raise refused(
            "out-of-range", f"{shown(text)} cannot be {what}", found=text, expected=expected
        )
    return text


class Prefix(Text):
    """Where objects land: steps joined by slashes, without those around it; may be empty."""

    expects = "steps joined by '/', none of them '.' or '..'"

    def read(self, value: Any) -> str:
        """Take it without the blanks and slashes around it."""
        # From where a run of them begins only: from each of its characters it would be quadratic.
        text = re.sub(r"\A[\s/]+|(?<![\s/])[\s/]+\Z", "", super().read(value))
        if {".", ".."} & set(text.split("/")):
            # A store would take them, and half of what reads from it would look elsewhere.
            raise refused(
                "outside-root",
                f"expected {self.expects}, found {shown(text)}",
                found=text,
                expected=self.expects,
            )
        if "//" in text:
            raise refused(
                "blank",
                f"{shown(text)} has an empty step, which not every store takes",
                found=text,
                expected=self.expects,
            )
        if holds_control(text):
            raise refused(
                "control-character", "a key holds no control characters", expected=self.expects
            )
        return text


class PartitionPrefix(Prefix):
    """The same with directives for the time at which a part was opened; not empty."""

    expects = "steps such as 'year=%Y/month=%m', with " + ", ".join(
        f"%{each}" for each in DIRECTIVES
    )

    def read(self, value: Any) -> str:
        """Take a text whose every ``%`` begins a directive that is known."""
        text = super().read(value)
        if not text:
            raise refused("blank", "this must not be blank", found=value, expected=self.expects)
        if value.strip("/") != text:
            raise refused(
                "blank",
                f"{shown(value)} has blanks around it, which would be left out",
                found=value,
                expected=self.expects,
            )
        for found in _DIRECTIVE.finditer(text):
            if found[1] not in DIRECTIVES:
                raise refused(
                    "not-a-choice",
                    f"'{found[0]}' is no directive of a partition",
                    found=text,
                    expected=self.expects,
                )
        return text


def holds_control(text: str) -> bool:
    """Return whether a text holds characters that no name has."""
    return _CONTROL.search(text) is not None


def partition_of(template: str | None, opened: datetime) -> str:
    """Return the steps of a part that is opened now; empty without a partition.

    Units: ``opened`` is in UTC.
    """
    # One directive at a time: what stands between them means nothing, whatever the system's locale.
    return _DIRECTIVE.sub(lambda found: f"{opened:%{found[1]}}", template or "")


def folder_of(prefix: str, partition: str) -> str:
    """Return what stands before the name of a part: nothing, or steps and a slash."""
    return "".join(f"{step}/" for step in (prefix, partition) if step)


def key_faults(prefix: str, partition: str | None) -> Iterator[Fault]:
    """Yield why no part would have a key that a store takes."""
    folder = folder_of(prefix, partition_of(partition, datetime(2000, 1, 1, tzinfo=UTC)))
    if (size := len(folder.encode())) > (most := LONGEST_KEY - LONGEST_PART_NAME):
        yield Fault(
            "out-of-range",
            f"{size:,} bytes are too many before the name of an object",
            expected=f"at most {most:,} bytes in 'prefix' and 'partition' together",
            path=("prefix",),
        )
    for step in folder.split("/"):
        if (size := len(step.encode())) > LONGEST_STEP:
            yield Fault(
                "out-of-range",
                f"a step of {size:,} bytes is too long",
                expected=f"at most {LONGEST_STEP} bytes between two slashes",
                path=("prefix",) if step in prefix.split("/") else ("partition",),
            )


class BucketNumbers(dict[str, int]):
    """The last number that was given out in each second and below each prefix of one bucket.

    No two outputs of this process give the same one to a name. In a store that does not know conditions
    they would look first and put then, both at a time, and who is second overwrites.
    """


_BUCKETS: WeakValueDictionary[tuple[str | None, str], BucketNumbers] = WeakValueDictionary()


def bucket_numbers(endpoint: str | None, bucket: str) -> BucketNumbers:
    """Return what all outputs to that bucket have in common, as long as there are any."""
    return _BUCKETS.setdefault((endpoint, bucket), BucketNumbers())


class PartNumbers:
    """The numbers of one output: from 1 on, without those that another one has given out."""

    def __init__(self, given: BucketNumbers) -> None:
        self._given, self._last = given, 0

    def numbered(self, key: str) -> str:
        """Return the key of a part, whatever its number is, with the next one."""
        self._last = max(self._last, self._given.get(renumbered(key, 0), 0)) + 1
        self._note(key, self._last)
        return renumbered(key, self._last)

    def passed_on(self, key: str) -> str:
        """Return the key of a part whose name another server was faster to take.

        Some way on, where that one does not come soon: side by side, they would meet at every part.
        """
        self._last += random.randrange(LONGEST_SKIP)
        return self.numbered(key)

    def note(self, key: str) -> None:
        """Give no part the name of one that an earlier run has left."""
        if (number := number_of(key)) is not None:
            self._note(key, number)

    def _note(self, key: str, number: int) -> None:
        """Have nobody give out a number there that is not larger."""
        stem = renumbered(key, 0)
        self._given[stem] = max(number, self._given.get(stem, 0))
        if len(self._given) > MOST_TIMES:
            del self._given[next(iter(self._given))]
