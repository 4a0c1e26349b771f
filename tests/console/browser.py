"""The page in a real browser, on a real server; and what no page may do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    sync_playwright,
)

from tests.server import Server
from tests.services.programs import program

PICTURES = Path(__file__).parent.parent.parent / "build" / "pictures"
"""Where the pictures of a run are kept."""
# What drops down from an address bar is a page, and each window loads two: as much work as the console. The
# browser takes the last list of features alone, so those that Playwright turns off are in ours as well.
FEATURES_OFF = (
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    "AimEnabled",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "ThirdPartyStoragePartitioning",
)
ARGUMENTS = (
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--font-render-hinting=none",
    f"--disable-features={','.join(FEATURES_OFF)}",
)
# A violation of the policy is an event of the document, and a word in the console.
_TELL = """
addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile ?? ""}`));
"""


@dataclass(frozen=True)
class Look:
    """How wide and high a page is, and whether it is dark."""

    name: str
    width: int
    height: int
    is_dark: bool

    @property
    def is_narrow(self) -> bool:
        """Whether a list stands for the canvas."""
        return self.width < 700


WIDE, NARROW = Look("wide-light", 1440, 900, False), Look("narrow-dark", 390, 844, True)
LOOKS = (WIDE, NARROW)
"""Both sizes and both themes: a page has no rule for one size in one theme."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser of the system."""
    found = program("chromium", "install it with 'apt-get install chromium'")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=[*ARGUMENTS])
        yield browser
        browser.close()


@dataclass
class Console:
    """One browser with the page of one server; further tabs of it are `tab()`."""

    server: Server
    context: BrowserContext
    look: Look
    test: str
    """The name of the test, for its pictures."""
    wrong: list[str] = field(default_factory=list)
    """What went wrong in the page: uncaught errors, errors in the console, violations of the policy."""
    allowed: list[re.Pattern[str]] = field(default_factory=list)
    """What may be said in the console nevertheless."""

    def __post_init__(self) -> None:
        self.context.add_init_script(_TELL)
        self.page = self.tab()

    @property
    def origin(self) -> str:
        """Where the server is."""
        return f"http://127.0.0.1:{self.server.port}"

    def tab(self) -> Page:
        """Open a further tab; it is watched as the first one is."""
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.wrong.append(f"uncaught: {error}"))
        page.on("console", self._heard)
        return page

    def _heard(self, said: ConsoleMessage) -> None:
        if said.type in ("error", "warning"):
            self.wrong.append(f"{said.type}: {said.text} ({said.location.get('url', '')})")

    def open(self, address: str = "") -> Page:
        """Show a screen: `p/press/live`."""
        self.page.goto(f"{self.origin}/#/{address}")
        return self.page

    def allow(self, pattern: str) -> None:
        """Take what the console says as it is meant: the browser tells of every refused request."""
        self.allowed.append(re.compile(pattern))

    def card(self, id: str) -> Locator:
        """Return the card of a pipeline; where the page is narrow its row of the list."""
        if self.look.is_narrow:
            rows = self.page.get_by_role("navigation", name="pipelines").get_by_role("button")
            return rows.filter(has=self.page.get_by_title(id, exact=True))
        return self.page.get_by_role("article", name=id)

    def picture(self, name: str = "") -> None:
        """Keep what is shown."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        file = "-".join(part for part in (self.test, name, self.look.name) if part)
        self.page.screenshot(path=PICTURES / f"{file}.png", animations="disabled")

    def faults(self) -> list[str]:
        """Return what went wrong and was not allowed."""
        return [each for each in self.wrong if not any(one.search(each) for one in self.allowed)]
