"""What tells the config of a pipeline from another one, and where they differ, without a word of either.

    0123abcd… inputs:89ab0123 transforms:4567cdef,0123ab89 outputs:89abcdef state=cdef0123

First the version of the whole, then for each setting a hash of it; of a list of components one for each,
unless it is long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

from headrace.compiler.jsontext import encode
from headrace.compiler.text.diagnostics import path_text

MOST_APART = 16
"""Components of a list that have a hash each: what is told of a config stands in every dead letter."""
HASH_BYTES = 4
"""What differs is told wrongly to be the same once in four thousand million times."""


def digest_of(version: str, config: Mapping[str, Any]) -> str:
    """Return what is told of a config, which is as the API echoes it, with its version."""
    told = (_told(name, value) for name, value in config.items() if name != "id")
    return " ".join((version, *told))


def version_in(digest: str) -> str:
    """Return the version of the whole config."""
    return digest.partition(" ")[0]


def changed_since(digests: Iterable[str | None], now: str) -> list[str]:
    """Return the settings of a config that are others in any of some digests.

    They are named as in a plan, but no deeper than a component. Of a digest that is a version alone, or of
    none, nothing is known.
    """
    changed: dict[str, None] = {}
    for then in digests:
        if then is not None and " " in then:
            changed |= dict.fromkeys(_differing(_settings(then), _settings(now)))
    return [*changed]


def _told(name: str, value: Any) -> str:
    if isinstance(value, list) and 0 < len(value) <= MOST_APART:
        return f"{name}:{','.join(map(_hash, value))}"
    return f"{name}={_hash(value)}"


def _hash(value: Any) -> str:
    return blake2b(encode(value), digest_size=HASH_BYTES).hexdigest()


def _settings(digest: str) -> dict[str, list[str] | str]:
    """Return the hash of each setting, or those of its components."""
    found: dict[str, list[str] | str] = {}
    for each in digest.split(" ")[1:]:
        name, of, hashes = each.partition(":")
        if of:
            found[name] = hashes.split(",")
        else:
            name, _, hashes = each.partition("=")
            found[name] = hashes
    return found


def _differing(
    then: Mapping[str, list[str] | str], now: Mapping[str, list[str] | str]
) -> Iterator[str]:
    for name in {**now, **then}:
        before, after = then.get(name), now.get(name)
        if before == after:
            continue
        if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
            pairs = enumerate(zip(before, after, strict=True))
            yield from (path_text((name, at)) for at, (one, other) in pairs if one != other)
        else:
            yield name
