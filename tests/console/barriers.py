"""What keeps somebody from using what is shown: axe-core against WCAG 2.1 AA, and sizes for fingers."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

from playwright.sync_api import Page

REPOSITORY = Path(__file__).parent.parent.parent
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice")
SMALLEST = 40
"""Pixels of height that a control has at least where a finger points at it."""


@cache
def axe() -> str:
    """Return the source of what looks for barriers."""
    command = [sys.executable, str(REPOSITORY / "scripts" / "console.py"), "axe"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return Path(said.strip()).read_text()


COMPLETIONS = ".cm-tooltip-autocomplete"
"""Completions have no focus of their own: it stays in the text, which names the current one."""


def barriers(page: Page) -> list[str]:
    """Return what keeps somebody from using what is shown."""
    page.evaluate(axe())  # as the debugger of a browser does: no policy of the page is in the way
    found = page.evaluate(
        """([rules, exclude]) =>
          axe.run({ exclude }, { runOnly: rules, resultTypes: ["violations"] })""",
        [[*RULES], [COMPLETIONS]],
    )
    return [
        f"{each['id']}: {node['html'][:200]} {node['failureSummary']}"
        for each in found["violations"]
        for node in each["nodes"]
    ]


def small(page: Page) -> list[str]:
    """Return the controls that are too low for a finger; links within a sentence are as high as it is."""
    found: list[str] = page.evaluate(
        """(least) => [...document.querySelectorAll("button, a, input, select, summary, [role=tab]")]
          .filter((it) => it.checkVisibility() && it.getBoundingClientRect().height > 0)
          .filter((it) => !(it.matches("a") && it.closest("p, td, li, dd")))
          .filter((it) => Math.max(it.getBoundingClientRect().height,
                                   it.closest("label")?.getBoundingClientRect().height ?? 0) < least)
          .map((it) => it.outerHTML.slice(0, 160))""",
        SMALLEST,
    )
    return found


def hindering(page: Page, *, is_narrow: bool) -> list[str]:
    """Return all of that; and small controls of a narrow page, what moves, and what has no room."""
    found = barriers(page) + (small(page) if is_narrow else [])
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        found.append("the page has to be scrolled sideways")
    if page.evaluate("document.getAnimations().length"):
        found.append("something moves, for a reader who wants no motion")
    return found
