"""The interactions of the console, one sentence each, and which of them are tested.

    @rule(11)
    def test_a_card_that_is_clicked_opens_its_panel(console: Console) -> None: ...

`python -m tests.console.rules` writes the table of README.md beside this file.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

FOLDER = Path(__file__).parent
TABLE = FOLDER / "README.md"
F = TypeVar("F", bound=Callable[..., object])

RULES: Mapping[int, str] = MappingProxyType(
    dict(
        enumerate(
            [
                "ten pipelines → the page opens → ten cards in view, none overlaps another",
                "one upstream of two → the page opens → it stands left of both, an edge to each",
                "a hundred unconnected pipelines → the page opens → they fill shelves, not one column",
                "1,000 pipelines → zoomed out → tiles; fewer than 3,000 elements exist",
                "tiles → zoomed in over 0.42 → those in sight are cards in the same places",
                "messages pass at 50/s → a second goes by → the card says 50/s within a tenth",
                "passes were skipped in the stream → a second goes by → the rate counts them",
                "a pipeline hands nothing on → a second goes by → its edges are thin and grey",
                "an input cannot connect → it fails → its card says why and when it is tried again",
                "a card fails → reload → it still fails, with the same count",
                "a card → clicked → its panel opens, the address names it, the graph still fits",
                "the address of a panel → opened in a new tab → same panel, same tab",
                "any screen → back → the screen before",
                "an unknown id in the address → opened → a sentence says so, with the nearest name",
                "the live tab → a batch passes → its row shows within 500 ms",
                "a row → opened → all its messages show indented, the log pauses",
                "a paused log → messages pass → rows stay, the button counts, rates go on",
                "a paused log → resumed → the newest row is on top",
                "text under *contains* → messages pass → only rows with it show",
                "a number of forty digits → shown → every digit is there",
                "a message cut by the server → opened → it shows as text and says that it was cut",
                "a batch wider than shown → opened → it says how many are not shown",
                "a field of an opened message → *copy path* → `order.id` is on the clipboard",
                "the stages tab → *trace* → each transform shows what it handed on and why it dropped what",
                "a chain with `recall` → traced → it finds what its bucket holds now",
                "the history tab → five seconds go by → the plot has the new bucket and keeps its zoom",
                "a moment in the plot → pointed at → time, in, out and failures of it show",
                "forty equal failures → the failures tab → one row counts forty, first and last",
                "a failure row → *dry run* → the chain opens at the failing stage,"
                " with the message if known",
                "a misspelt key → typing stops 250 ms → line, chain and problems list mark it",
                "a problem with a replacement → *use* → the text has it, the problem goes",
                "a problem → clicked → the cursor is at its place",
                "the cursor in a reducer → moved to `group_by` → form, chain and docs show that key",
                "an empty line in a filter → Ctrl-Space → its keys are offered,"
                " less those that stand there",
                "after `function: ` → Ctrl-Space → the eleven functions are offered",
                "a sampled input → a box for a field → fields that reach that stage, with type and example",
                "a comment in the text → a form box changes a value → the comment is still there",
                "problems → any time → *apply* is off and says how many",
                "a changed draft → *review* → diff and cost show before anything runs",
                "somebody else changed it meanwhile → applied → nothing is applied, both texts show",
                "a draft → the tab is closed → the browser asks; on return the draft is there",
                "a 5 s window → dry run → its marbles stand in one box at 5 s",
                "a marble of six → chosen → its message and six origins show, others fade",
                "a clock at 0 → *next moment* → it stands where something comes out next",
                "a dropped message → its circle is focused → the reason is read",
                "a changed graph → *save* → name, diff and what is lost (comments) show first",
                "a plan that lets held messages go early → *revert* → their number stands on the button",
                "role `read` → any screen → nothing that changes is there; a mark says read-only",
                "a session ends → the stream closes → sign-in shows, afterwards the same screen",
                "`?auth_token=` in the address → opened → exchanged, gone from address and history",
                "the server is gone → ten seconds go by → a bar says since when, figures fade",
                "it comes back → at once → figures go on without a reload, gaps show as gaps",
                "six tabs → a seventh opens → it works",
                "a tab → hidden → its stream is closed; shown again, it opens",
                "a card → dragged → it snaps to 20 px, stands there after a reload; nothing is unsaved",
                "chosen cards → one is dragged → all move together",
                "an edge's channel or end → dragged; double-clicked → kept in the layout; automatic again",
                "another client → creates a pipeline → its card appears without a reload",
                "any screen → Ctrl-K, `press`, Enter → that pipeline opens",
                "`#/wall` → opened → the overview alone, failing pipelines first",
                "conditions inside each other → Ctrl-Space in the innermost → kinds, keys and fields",
                "conditions inside each other → *add* in the form → the text has it, the form is of it",
                "a failure → its row shows → a label has its class, and what would help",
                "failures of several classes → a class is chosen → only those of it show",
                "the dead letters → something is put down → its row shows without a reload",
                "a pipeline with dead letters → its panel → how many, and the way to them",
                "a dead letter → opened → why it is one, and its messages with every digit",
                "a dead letter → edited, replayed → it is gone; text that is no JSON is told by line",
                "dead letters that failed alike → all replayed → how many went through; the others stay",
                "dead letters → one, or all, deleted → asked first; they are gone",
                "role `read` → a dead letter is opened → why it is one; not what is in it",
                "a pipeline whose output is away → what it keeps waits → its card says how much is on disk",
                "a plan that leaves over what is on disk → *revert* → how much stands on the button",
            ],
            1,
        )
    )
)


def rule(*numbers: int) -> Callable[[F], F]:
    """Say which interactions a test is of."""
    assert all(number in RULES for number in numbers)
    return lambda test: test


def tested() -> Mapping[int, list[str]]:
    """Return the tests of each interaction, as `file::test`."""
    found: dict[int, list[str]] = defaultdict(list)
    for file in sorted(FOLDER.glob("test_*.py")):
        for test in ast.walk(ast.parse(file.read_text())):
            if isinstance(test, ast.FunctionDef):
                for number in _numbers(test):
                    found[number].append(f"{file.name}::{test.name}")
    return found


def _numbers(test: ast.FunctionDef) -> list[int]:
    return [
        argument.value
        for mark in test.decorator_list
        if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "rule"
        for argument in mark.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, int)
    ]


def table() -> str:
    """Return the page that says which interactions are tested, and by what."""
    by = tested()
    rows = [
        f"| {number} | {sentence} | {'<br>'.join(f'`{name}`' for name in by[number]) or '**missing**'} |"
        for number, sentence in RULES.items()
    ]
    missing = [number for number in RULES if not by[number]]
    told = f"{len(RULES) - len(missing)} of {len(RULES)} interactions are tested"
    return "\n".join(
        [
            "# The interactions of the console",
            "",
            "Given → when → then; each by a real browser on a real server with real messages.",
            "Written by `python -m tests.console.rules`.",
            "",
            f"{told}{': missing are ' + ', '.join(map(str, missing)) if missing else ''}.",
            "",
            "| | interaction | tests |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    TABLE.write_text(table())
