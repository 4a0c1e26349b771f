"""How these tests write in the text of an editor, as somebody with a keyboard does."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from tests.console.browser import Console


def text_of(page: Page) -> Locator:
    """Return the text that is edited."""
    return page.get_by_role("textbox", name="config of")


def edited(console: Console, id: str) -> Page:
    """Open the editor of a pipeline, and wait until its text has been checked."""
    page = console.open(f"edit/{id}")
    expect(problems(page)).to_contain_text("The server would take this.")
    return page


def problems(page: Page) -> Locator:
    """Return the list of problems."""
    return page.get_by_role("list", name="problems")


def word(page: Page, written: str) -> Locator:
    """Return a word of the text."""
    return text_of(page).get_by_text(written, exact=True).first


def at(page: Page, written: str) -> None:
    """Put the cursor behind a word, at the end of its line."""
    word(page, written).click()
    page.keyboard.press("End")


def exchange(page: Page, old: str, new: str) -> None:
    """Write another word in the place of one."""
    word(page, old).dblclick()
    page.keyboard.type(new)


def write(page: Page, text: str) -> None:
    """Have the text be another one; the pointer is over no word of it, whose help would cover others."""
    page.mouse.move(0, 0)
    text_of(page).press("Control+a")
    page.keyboard.insert_text(text)


def form(console: Console) -> Locator:
    """Return chain and form; where the page is narrow they are behind a tab."""
    page = console.page
    if console.look.is_narrow:
        page.get_by_role("tab", name="form").click()
    return page.get_by_role("complementary", name="chain and form")


def shows_text(console: Console) -> None:
    """Show the text, where the page has no room for both."""
    if console.look.is_narrow:
        console.page.get_by_role("tab", name="text").click()


def settled(page: Page) -> None:
    """Wait until the text as it is has been checked."""
    expect(problems(page)).to_have_attribute("aria-busy", "false")
