"""State in a config: the buckets a file declares, and the bucket that a pipeline uses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from headrace.compiler.buckets import Bounds
from headrace.compiler.schema.fields import Boolean, BucketName, Integer, MessageField
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import Setting
from headrace.compiler.text.diagnostics import Codes, Fault, shown
from headrace.compiler.text.suggest import nearest, one_of

CODES: Codes = {
    "no-state": "A component uses state in a pipeline that names no bucket.",
    "unknown-bucket": "A name of a bucket that the config does not declare.",
}


class BucketDeclaration(Record):
    """How much a bucket holds, for how long, and whether it outlasts the server."""

    max_keys: int = option(
        Integer(),
        "Most keys held; a new one then takes the place of the one written longest ago. 0 is read as 1.",
        default=10_000,
        elsewhere="capacity limit max max_size",
    )
    idle_timeout_secs: int | None = option(
        Integer(),
        "Seconds after which a key that was not written is forgotten; 0: never.",
        default=None,
        elsewhere="expires idle_timeout timeout ttl",
    )

    durable: bool = option(
        Boolean(),
        "Whether what it holds is on the disk as well, and there again after a restart. It takes a server"
        " with `--data-dir`.",
        default=False,
        additive=True,
        elsewhere="persist persistence persistent",
    )

    @property
    def bounds(self) -> Bounds:
        """What it means."""
        return Bounds(max(self.max_keys, 1), self.idle_timeout_secs or None, self.durable)


class PipelineState(Record):
    """Which bucket a pipeline remembers in, and what its messages are filed under there."""

    bucket: str = option(
        BucketName(), "A bucket that the config declares under `state`.", elsewhere="name"
    )
    key: str | None = option(
        MessageField(),
        "Field whose value a message is filed under; left out, what is remembered concerns the "
        "bucket as a whole.",
        default=None,
        elsewhere="by field key_by key_field",
    )


def undeclared(
    found: Iterable[Setting], declared: Collection[str], *, is_list: bool = False
) -> Iterator[Fault]:
    """Yield the settings that name a bucket which is not declared.

    ``is_list``: the file is a bare list of pipelines, which has no place to declare one.
    """
    for path, field, name in found:
        if isinstance(field, BucketName) and name not in declared:
            yield replace(undeclared_bucket(name, declared, is_list=is_list), path=path)


def undeclared_bucket(name: str, declared: Collection[str], *, is_list: bool = False) -> Fault:
    """Return the fault of naming a bucket that is not declared."""
    fault = Fault("unknown-bucket", f"there is no bucket '{name}'", found=shown(name))
    if declared:
        known = replace(fault, expected=one_of(sorted(declared)))
        return known.meaning(nearest(name, declared))
    written = f"'state: {{ {shown(name)}: {{}} }}'"
    return replace(
        fault,
        expected="a bucket that the config declares under 'state', beside 'pipelines'; it has none",
        suggestion=f"make the file an object: {written} and this list as 'pipelines'"
        if is_list
        else f"declare it in the config file: {written} beside 'pipelines'",
    )


def no_state(what: str) -> Fault:
    """Return the fault of using state in a pipeline that names no bucket; ``what`` is what uses it."""
    return Fault(
        "no-state",
        f"{what} needs to know which bucket: the pipeline has no 'state'",
        expected="'state' on the pipeline, such as 'state: { bucket: machines, key: machine_id }'",
    )


def bounds_of(declared: Mapping[str, BucketDeclaration]) -> dict[str, Bounds]:
    """Return the bounds of the declared buckets, by name."""
    return {name: each.bounds for name, each in declared.items()}
