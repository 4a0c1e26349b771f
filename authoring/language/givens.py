"""What is given at a moment: a message, a batch, or bytes, and what an envelope tells of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headrace.authoring.language.timelines import Moment, type_fault
from headrace.authoring.playing.scenario import Arriving
from headrace.compiler.component.families import Input
from headrace.compiler.delivery import JsonValue
from headrace.compiler.schema.records import unknown_key
from headrace.compiler.text.diagnostics import Codes, Fault
from headrace.compiler.text.suggest import nearest, one_of

CODES: Codes = {
    "unknown-metadata": "What is told of a message is nothing that its input tells.",
}

WORDS = ("$message", "$batch", "$raw", "$meta")


def arriving(moment: Moment, component: Input) -> tuple[Arriving | None, list[Fault]]:
    """Return what arrives at an input, and what is wrong with it; nothing where that is too much."""
    what = moment.what
    if isinstance(what, Arriving):
        return _captured(what, moment, component)
    words = [key for key in what if is_word(key)] if isinstance(what, dict) else []
    if not words:
        return Arriving(_batch(what)), []
    faults = [replace(each, path=(*moment.path, *each.path)) for each in _wrong(what, component)]
    if any(fault.code != "unknown-metadata" for fault in faults):
        return None, faults
    meta = what.get("$meta") or {}
    if "$raw" in what:
        return Arriving(what["$raw"].encode(), meta), faults
    return Arriving(_batch(what["$batch"] if "$batch" in what else what["$message"]), meta), faults


def is_word(key: str) -> bool:
    """Return whether a key is a word of the language: a field that begins with ``$`` has two."""
    return key[:1] == "$" and key[:2] != "$$"


def plain(value: JsonValue) -> JsonValue:
    """Return a value as it is given: ``$$x`` is the field ``$x``."""
    if isinstance(value, dict):
        return {key[1:] if key[:2] == "$$" else key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def taken(arriving: Arriving, component: Input) -> Arriving | None:
    """Return what was captured as an input may be given it; None where it takes no bytes.

    What another kind of input told of it, this one does not.
    """
    if isinstance(arriving.payload, bytes) and not _takes_bytes(component):
        return None
    known = component.attaches
    meta = {key: value for key, value in arriving.meta.items() if key in known}
    if component.fed_by == "posts" and [*_wrong_post(meta)]:
        meta = {}
    return Arriving(arriving.payload, meta)


def _takes_bytes(component: Input) -> bool:
    """Return whether an input can be given a payload: one that decodes it, also if another does first."""
    return component.is_raw or component.payload_format() is not None


def _captured(
    what: Arriving, moment: Moment, component: Input
) -> tuple[Arriving | None, list[Fault]]:
    if (given := taken(what, component)) is not None:
        return given, []
    said = (
        f"what arrives at an input of type '{component.kind}' is JSON, and in the capture it is not"
    )
    return None, [Fault("conflict", said, "not JSON", "a capture of this input", path=moment.path)]


def _batch(what: JsonValue) -> list[JsonValue]:
    given = plain(what)
    return given if isinstance(given, list) else [given]


def _wrong(what: dict[str, JsonValue], component: Input) -> Iterator[Fault]:
    for key in what:
        if key not in WORDS:
            fault = unknown_key(key, WORDS, what)
            hint = f"a field of this name is written '${key}'" if is_word(key) else None
            yield replace(fault, path=(key,), suggestion=fault.suggestion or hint)
    forms = [key for key in WORDS[:3] if key in what]
    if len(forms) != 1 and all(key in WORDS for key in what):
        expected = "exactly one of $message, $batch and $raw"
        found = " and ".join(forms) or "none of them"
        yield Fault("conflict", f"expected {expected}, found {found}", found, expected)
    if "$batch" in what and not isinstance(what["$batch"], list):
        yield type_fault(what["$batch"], "a list of messages", ("$batch",))
    if "$raw" in what:
        yield from _wrong_raw(what["$raw"], component)
    if "$meta" in what:
        yield from _wrong_meta(what["$meta"], component)


def _wrong_raw(raw: JsonValue, component: Input) -> Iterator[Fault]:
    if not isinstance(raw, str):
        yield type_fault(raw, "a text, of which the bytes are UTF-8", ("$raw",))
    elif not _takes_bytes(component):
        said = f"what arrives at an input of type '{component.kind}' has been decoded"
        yield Fault("conflict", said, "$raw", "$message or $batch", path=("$raw",), on_key=True)


def _wrong_meta(meta: JsonValue, component: Input) -> Iterator[Fault]:
    if not isinstance(meta, dict):
        yield type_fault(meta, "an object of metadata by name", ("$meta",))
        return
    known = component.attaches
    for key in meta:
        if key not in known:
            yield Fault(
                "unknown-metadata",
                f"an input of type '{component.kind}' tells nothing called '{key}'",
                found=key,
                expected=one_of(known) if known else "no metadata",
                path=("$meta", key),
                on_key=True,
            ).meaning(nearest(key, known))
    if component.fed_by == "posts":
        yield from _wrong_post(meta)


def _wrong_post(meta: dict[str, JsonValue]) -> Iterator[Fault]:
    """Yield what no post can be told with."""
    headers = meta.get("headers", {})
    is_right = isinstance(headers, dict) and all(isinstance(e, str) for e in headers.values())
    if not is_right:
        yield type_fault(headers, "an object of texts by header", ("$meta", "headers"))
    if not isinstance(meta.get("method", ""), str):
        yield type_fault(meta["method"], "a text", ("$meta", "method"))
    if not isinstance(meta.get("remote_addr"), str | None):
        yield type_fault(meta["remote_addr"], "a text, or null", ("$meta", "remote_addr"))
