"""What runs, at a glance."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from tests.console.browser import Console
from tests.console.plane import box_of, boxes_of, overlapping
from tests.console.plant import HTTP, IDS, reads
from tests.console.rules import rule


@rule(1)
@pytest.mark.wide_only
def test_ten_pipelines_are_ten_cards_in_view_and_none_overlaps_another(console: Console) -> None:
    page = console.open()

    expect(page.locator("article.card")).to_have_count(len(IDS))
    for id in IDS:
        expect(console.card(id)).to_be_in_viewport(ratio=0.999)
    assert overlapping({id: box_of(console.card(id)) for id in IDS}) == []


@rule(2)
@pytest.mark.wide_only
def test_an_upstream_stands_left_of_those_that_read_it_with_an_edge_to_each(
    console: Console,
) -> None:
    page = console.open()

    upstream = box_of(console.card("press-readings"))
    for reader in ("press-means", "press-alarms"):
        assert box_of(console.card(reader))[0] > upstream[2]
        expect(page.get_by_role("img", name=f"press-readings to {reader}")).to_have_count(1)


@rule(11)
def test_a_card_that_is_clicked_opens_its_panel_and_the_address_names_it(console: Console) -> None:
    page = console.open()

    console.card("press-alarms").click()

    expect(page.get_by_role("heading", name="press-alarms", level=2)).to_be_visible()
    assert page.url == f"{console.origin}/#/p/press-alarms"
    if not console.look.is_narrow:
        panel = box_of(page.get_by_role("complementary"))
        for id in IDS:
            expect(console.card(id)).to_be_in_viewport(ratio=0.999)
            assert overlapping({"panel": panel, id: box_of(console.card(id))}) == []


@rule(12)
def test_the_address_of_a_panel_opens_the_same_tab_of_it_elsewhere(console: Console) -> None:
    page = console.open("p/fusion/history")
    expect(page.get_by_role("link", name="history")).to_have_attribute("aria-current", "page")

    elsewhere = console.tab()
    elsewhere.goto(page.url)

    expect(elsewhere.get_by_role("heading", name="fusion", level=2)).to_be_visible()
    expect(elsewhere.get_by_role("link", name="history")).to_have_attribute("aria-current", "page")


@rule(13)
def test_back_shows_the_screen_before(console: Console) -> None:
    page = console.open()
    console.card("fusion").click()
    expect(page.get_by_role("heading", name="fusion", level=2)).to_be_visible()

    page.go_back()

    expect(page.get_by_role("heading", name="fusion", level=2)).to_have_count(0)
    expect(console.card("fusion")).to_be_visible()


@rule(14)
@pytest.mark.parametrize("address", ["p/pres-alarms/live", "edit/pres-alarms"])
def test_an_unknown_pipeline_is_told_with_the_one_that_may_be_meant(
    console: Console, address: str
) -> None:
    page = console.open(address)

    expect(page.get_by_text("There is no pipeline pres-alarms.")).to_be_visible()
    expect(page.get_by_role("link", name="press-alarms")).to_have_attribute(
        "href", f"#/{address.replace('pres-', 'press-')}"
    )


def test_an_unknown_screen_is_told_with_the_one_that_may_be_meant(console: Console) -> None:
    page = console.open("dryrnu/press-alarms")

    expect(page.get_by_text("There is no screen dryrnu.")).to_be_visible()
    page.get_by_role("link", name="dryrun").click()
    expect(page).to_have_url(f"{console.origin}/#/dryrun/press-alarms")


@rule(58)
def test_a_pipeline_that_another_client_creates_has_a_card_without_a_reload(
    console: Console,
) -> None:
    page = console.open()
    expect(console.card("audit")).to_be_visible()
    made = {"id": "from-elsewhere", "inputs": reads("audit"), "outputs": []}

    client = console.server.client()
    headers = {"Content-Type": "application/json"}
    created = client.request("POST", "/api/pipelines", json.dumps(made).encode(), headers)

    assert created.status == 201
    expect(console.card("from-elsewhere")).to_be_visible()
    assert client.request("DELETE", "/api/pipelines/from-elsewhere").status == 204
    expect(console.card("from-elsewhere")).to_have_count(0)
    expect(page.get_by_text("unsaved")).to_have_count(0)


class TestNothing:
    @pytest.fixture
    def config(self) -> object:
        return []

    def test_a_server_without_pipelines_says_what_to_do(self, console: Console) -> None:
        page = console.open()

        expect(page.get_by_role("heading", name="Nothing runs yet")).to_be_visible()
        expect(page.get_by_role("link", name="Make the first pipeline")).to_have_attribute(
            "href", "#/new"
        )


class TestHostileNames:
    NAMES = (
        "<img src=x onerror=alert(1)>",
        "‮desrever‬ and ⁦isolated",
        "x" * 256,
        "line\nbreak\ttab \x07 bell",
        "👩‍👩‍👧‍👦 🏭 مصنع 工場",
        "../../etc/passwd?a=b#/p/fusion",
        "%E0%A4%A",
    )

    @pytest.fixture
    def config(self) -> object:
        return [{"id": id, "inputs": [HTTP], "outputs": []} for id in self.NAMES]

    def test_names_of_any_kind_are_text_that_overlaps_nothing(self, console: Console) -> None:
        page = console.open()
        expect(page.locator("nav[aria-label=pipelines] li")).to_have_count(len(self.NAMES))

        for index, name in enumerate(sorted(self.NAMES)):
            shown = page.get_by_title(name, exact=True).first
            expect(shown).to_be_visible()
            assert shown.evaluate("(it) => it.textContent") == name, index
        assert page.locator("img[src=x]").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        if not console.look.is_narrow:
            cards = page.locator("article.card")
            expect(cards).to_have_count(len(self.NAMES))
            assert overlapping(boxes_of(cards)) == []

    def test_a_name_of_any_kind_is_an_address(self, console: Console) -> None:
        page = console.open()
        heading = page.get_by_role("complementary").get_by_role("heading", level=2)

        for name in self.NAMES:
            page.locator("nav[aria-label=pipelines]").get_by_title(name, exact=True).click()
            expect(heading).to_have_text(name, use_inner_text=False)
            page.reload()
            expect(heading).to_have_text(name, use_inner_text=False)
            page.get_by_role("link", name="close").click()
