"""Where somebody has put cards."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from tests.console.browser import Console
from tests.console.plane import Box, box_of
from tests.console.rules import rule

pytestmark = pytest.mark.wide_only
GRID = 20


def drag(console: Console, id: str, across: float, down: float) -> None:
    """Drag a card by so many pixels of the page."""
    left, top, right, _ = box_of(console.card(id))
    x, y = (left + right) / 2, top + 12
    mouse = console.page.mouse
    mouse.move(x, y)
    mouse.down()
    mouse.move(x + across / 2, y + down / 2, steps=15)
    mouse.move(x + across, y + down, steps=15)
    mouse.up()


def moved(before: Box, after: Box) -> tuple[float, float]:
    """Return by how much a card has moved."""
    return after[0] - before[0], after[1] - before[1]


def kept(console: Console) -> dict[str, tuple[float, float]]:
    """Return where the server's layout has cards."""
    layout = json.loads(console.server.get("/api/layout").body)
    return {id: (at["x"], at["y"]) for id, at in layout["pipelines"].items()}


@rule(55)
def test_a_card_that_is_dragged_snaps_and_stands_there_after_a_reload(console: Console) -> None:
    page = console.open()
    expect(console.card("audit")).to_be_visible()
    before = box_of(console.card("audit"))

    with page.expect_response(lambda it: it.request.method == "PUT" and it.ok):
        drag(console, "audit", -33, 147)

    assert list(kept(console)) == ["audit"]
    assert [at % GRID for at in kept(console)["audit"]] == [0, 0]
    across, down = moved(before, box_of(console.card("audit")))
    assert across == pytest.approx(-33, abs=GRID)
    assert down == pytest.approx(147, abs=GRID)
    expect(page.get_by_text("unsaved")).to_have_count(0)
    console.picture("moved")
    fusion = moved(box_of(console.card("fusion")), box_of(console.card("audit")))
    page.reload()

    expect(console.card("audit")).to_be_visible()
    apart = moved(box_of(console.card("fusion")), box_of(console.card("audit")))
    assert apart[1] / apart[0] == pytest.approx(fusion[1] / fusion[0], rel=0.05)


@rule(56)
def test_chosen_cards_move_together(console: Console) -> None:
    page = console.open()
    expect(console.card("audit")).to_be_visible()
    ids = ("press-means", "press-alarms", "orders")
    for id in ids:
        console.card(id).click(modifiers=["Control"], position={"x": 60, "y": 10})
    before = {id: box_of(console.card(id)) for id in (*ids, "fusion")}

    with page.expect_response(lambda it: it.request.method == "PUT" and it.ok):
        drag(console, "press-means", 60, 30)

    assert sorted(kept(console)) == sorted(ids)
    steps = {moved(before[id], box_of(console.card(id))) for id in ids}
    assert len({(round(across), round(down)) for across, down in steps}) == 1
    assert moved(before["fusion"], box_of(console.card("fusion"))) == (0, 0)
    assert page.url == f"{console.origin}/#/"


def test_a_chosen_card_is_moved_by_the_arrows_and_stays_there(console: Console) -> None:
    page = console.open()
    card = page.locator(".svelte-flow__node[data-id=audit]")
    expect(card).to_be_visible()
    card.focus()
    page.keyboard.press("Space")

    with page.expect_response(lambda it: it.request.method == "PUT" and it.ok):
        page.keyboard.press("ArrowDown")

    assert list(kept(console)) == ["audit"]


def test_what_another_client_moves_is_moved_here_and_ours_is_kept(console: Console) -> None:
    page = console.open()
    expect(console.card("audit")).to_be_visible()
    before = box_of(console.card("heartbeat"))
    layout = json.dumps({"pipelines": {"heartbeat": {"x": 0, "y": -400}}}).encode()
    headers = {"Content-Type": "application/json"}

    assert console.server.request("PUT", "/api/layout", layout, headers).status == 204

    page.wait_for_function(
        "(top) => document.querySelector('.svelte-flow__node[data-id=heartbeat]')"
        ".getBoundingClientRect().top !== top",
        arg=before[1],
    )
    with page.expect_response(lambda it: it.request.method == "PUT" and it.ok):
        drag(console, "audit", 20, 60)
    assert sorted(kept(console)) == ["audit", "heartbeat"]


def test_all_cards_are_laid_out_again_and_that_is_undone(console: Console) -> None:
    page = console.open()
    expect(console.card("audit")).to_be_visible()
    with page.expect_response(lambda it: it.request.method == "PUT" and it.ok):
        drag(console, "audit", 40, 80)
    put = kept(console)

    with page.expect_response(lambda it: it.request.method == "PUT" and it.ok):
        page.get_by_role("button", name="lay all cards out").click()
    assert kept(console) == {}
    with page.expect_response(lambda it: it.request.method == "PUT" and it.ok):
        page.get_by_role("button", name="put cards back where they were").click()

    assert kept(console) == put
