"""Documents made to be expensive: large once they are read, deep, endless, or a million of something."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

MIB = 1 << 20
Bombs = Mapping[str, Callable[[], str]]


def _aliases() -> str:
    """A billion values in ten lines."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 9):
        inner = ", ".join([f"*a{level - 1}"] * 9)
        lines.append(f"a{level}: &a{level} [{inner}]")
    return "\n".join(lines)


def _ladder() -> str:
    """Each line one level deeper than the last."""
    return "- &a0 [x]\n" + "".join(f"- &a{n} [*a{n - 1}]\n" for n in range(1, 200))


YAML: Bombs = {
    "aliases of aliases": _aliases,
    "aliases, each deeper": _ladder,
    "an alias of itself": lambda: "&a [*a]",
    "aliases of a long text": lambda: f'- &a "{"x" * MIB}"\n' + "- *a\n" * 20_000,
    "deep in brackets": lambda: "[" * 4_000_000,
    "deep in braces": lambda: "{a: " * MIB,
    "deep in dashes": lambda: "- " * 2_000_000 + "x",
    "deep in keys": lambda: "".join(f"{' ' * n}a:\n" for n in range(2000)),
    "deep in question marks": lambda: "? " * MIB,
    "a million directives": lambda: "%YAML 1.2\n" * MIB,
    "a million documents": lambda: "---\n" * MIB,
    "line breaks alone": lambda: "\n" * 4 * MIB,
    "a number without an end": lambda: f"- {'9' * 10 * MIB}",
    "a text without an end": lambda: f'- "{"x" * 10 * MIB}',
    "too many values": lambda: f"[{'1,' * 1_100_000}1]",
}
"""None of them is a document."""

JSON: Bombs = {
    "deep in brackets": lambda: "[" * 4_000_000,
    "deep in braces": lambda: '{"a":' * MIB,
    "deep, and complete": lambda: "[" * 100_000 + "]" * 100_000,
    "too many values": lambda: f"[{'1,' * 1_100_000}1]",
    "one key a million times": lambda: "{" + ",".join(['"a":1'] * 300_000) + "}",
    "a number without an end": lambda: f"[{'9' * 10 * MIB}]",
    "an exponent without an end": lambda: f"[1e{'9' * MIB}]",
    "a text without an end": lambda: f'["{"x" * 10 * MIB}',
    "escapes alone": lambda: '["' + "\\u0061" * MIB + '\\ud800"]',
    "line breaks alone": lambda: "\n" * 4 * MIB,
    "more than a document has": lambda: "[" + " " * 17 * MIB + "]",
}
"""None of them is a document."""

HTTP = {"type": "http"}

CONFIGS: Bombs = {
    "twenty thousand that are none": lambda: json.dumps([1] * 20_000),
    "ten thousand of one id": lambda: json.dumps([{"id": "p", "inputs": [HTTP]}] * 10_000),
    "ten thousand in a circle": lambda: json.dumps(
        [
            {"id": f"p{n}", "inputs": [{"type": "pipeline", "upstream": f"p{(n + 1) % 10_000}"}]}
            for n in range(10_000)
        ]
    ),
    "a hundred thousand keys": lambda: json.dumps(
        [{"inputs": [HTTP], **{f"k{n}": n for n in range(100_000)}}]
    ),
    "a hundred thousand inputs": lambda: json.dumps([{"inputs": [HTTP] * 100_000}]),
    "a hundred thousand transforms": lambda: json.dumps(
        [{"inputs": [HTTP], "transforms": [{"type": "splitter", "out_size": 1}] * 100_000}]
    ),
    "a hundred thousand outputs": lambda: json.dumps(
        [{"inputs": [HTTP], "outputs": [{"type": "stdout"}] * 100_000}]
    ),
    "an id of ten million letters": lambda: json.dumps(
        [{"id": "x" * 10_000_000, "inputs": [HTTP]}]
    ),
    "a kind of ten million letters": lambda: json.dumps([{"inputs": [{"type": "h" * 10_000_000}]}]),
    "a key of ten million letters": lambda: json.dumps([{"inputs": [HTTP], "k" * 10_000_000: 1}]),
    "a reference that never ends": lambda: json.dumps(
        [{"inputs": [{**HTTP, "auth": {"type": "bearer", "token": "${" * 3_000_000}}]}]
    ),
}
"""Documents, and no configs."""
