"""How pipelines failed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.console.browser import Console
from tests.console.passing import shown_when_told
from tests.console.rules import rule
from tests.forked import serving
from tests.server import Server
from tests.services.server import free_port


def failures(page: Page, id: str = "orders") -> Locator:
    """Return the rows of the failures of a pipeline."""
    return page.get_by_role("list", name=f"failures of {id}").get_by_role("listitem")


def failures_of_all(page: Page) -> Locator:
    """Return the rows of the failures of all pipelines."""
    return page.get_by_role("list", name="failures, the latest first").get_by_role("listitem")


@rule(28)
def test_forty_equal_failures_are_one_row(console: Console) -> None:
    page = console.open("p/orders/failures")
    expect(page.get_by_text("No failures, as far back")).to_be_visible()

    for _ in range(40):
        console.server.post("press-readings", {"press": "north", "temp": 1})

    expect(failures(page)).to_have_count(1)
    expect(failures(page)).to_contain_text("40\N{MULTIPLICATION SIGN}")
    expect(failures(page)).to_contain_text("transform 0, map")
    expect(failures(page)).to_contain_text(re.compile(r"first \d+ s ago.*last \d+ s ago"))


@rule(29)
def test_the_dry_run_of_a_failure_opens_with_the_message_that_is_known(console: Console) -> None:
    page = console.open("p/orders/live")
    log = page.get_by_role("list", name="messages of orders")
    shown_when_told(console, log.get_by_text("63.5"), {"press": "north", "temp": 63.5})
    page.get_by_label("what is shown of orders").get_by_role("link", name="failures").click()

    failures(page).get_by_role("button", name="Dry run").click()

    expect(page).to_have_url(re.compile(r"#/dryrun/orders"))
    expect(page.get_by_role("row", name="message 0")).to_contain_text("63.5")
    expect(page.get_by_text("field 'order.id' is missing").first).to_be_visible()


def test_failures_of_all_pipelines_are_one_list(console: Console) -> None:
    console.server.post("press-readings", {"press": "north", "temp": 1})
    console.server.post("line-pressure", {"bar": "x"})
    page = console.open("failures")
    rows = failures_of_all(page)
    expect(rows).to_have_count(2)

    page.get_by_role("searchbox", name="show failures that contain").fill("LINE")

    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("transform 0, map")
    page.get_by_role("button", name="input", exact=True).click()
    expect(page.get_by_text("No failure fits")).to_be_visible()
    page.get_by_role("button", name="all", exact=True).click()
    rows.get_by_role("link", name="line-pressure").click()
    expect(failures(page, "line-pressure")).to_have_count(1)


def test_that_nothing_has_failed_is_said(console: Console) -> None:
    page = console.open("failures")

    expect(page.get_by_text("Nothing has failed")).to_be_visible()


class TestClasses:
    """Of posts that are no numbers, and of a broker that is away; of the others answers are made."""

    @pytest.fixture
    def config(self) -> Any:
        cast = {"type": "cast", "from": "bar", "to": "float"}
        gone = {"type": "nats", "connection": "gone", "subject": "orders"}
        return [
            {
                "id": "line-pressure",
                "inputs": [{"type": "http"}],
                "transforms": [{"type": "map", "mappings": [cast]}],
                "outputs": [],
            },
            {"id": "from-broker", "inputs": [gone], "outputs": []},
        ]

    @pytest.fixture
    def server(self, tmp_path: Path, config: Any) -> Iterator[Server]:
        gone = {"type": "nats", "urls": f"nats://127.0.0.1:{free_port()}"}
        (tmp_path / "config.connections.json").write_text(json.dumps({"gone": gone}))
        with serving(tmp_path, config) as server:
            server.post("line-pressure", {"bar": "x"})
            yield server

    @rule(63)
    def test_a_failure_has_a_label_of_its_class_and_what_would_help(self, console: Console) -> None:
        page = console.open("failures")

        content = failures_of_all(page).filter(has_text="line-pressure")
        broker = failures_of_all(page).filter(has_text="from-broker")
        expect(content.get_by_title("it is the content", exact=True)).to_have_text(
            "invalid: it is the content"  # of which a reader of the screen alone has the end
        )
        expect(broker.get_by_title("time heals it", exact=True)).to_contain_text("unavailable")
        content.get_by_role("link", name="line-pressure").click()
        expect(failures(page, "line-pressure").get_by_title("it is the content")).to_be_visible()

    @rule(64)
    def test_only_failures_of_the_class_that_is_chosen_show(self, console: Console) -> None:
        page = console.open("failures")
        rows, chosen = failures_of_all(page), page.get_by_role("combobox", name="of which class")
        expect(rows.filter(has_text="line-pressure")).to_be_visible()
        expect(rows.filter(has_text="from-broker").first).to_be_visible()

        chosen.select_option("invalid: it is the content")

        expect(rows).to_have_count(1)
        expect(rows).to_contain_text("line-pressure")
        chosen.select_option("misconfigured: somebody has to act")
        expect(page.get_by_text("No failure fits")).to_be_visible()
        chosen.select_option("any class")
        expect(rows.filter(has_text="from-broker").first).to_be_visible()

    @pytest.mark.parametrize(
        ("name", "help"),
        [
            ("misconfigured", "somebody has to act"),
            ("unclear", "it may have arrived"),
        ],
    )
    def test_the_other_classes_have_labels_as_well(
        self, console: Console, name: str, help: str
    ) -> None:
        console.page.route("**/api/failures", answered(lambda each: each.update({"class": name})))
        page = console.open("failures")

        row = failures_of_all(page).filter(has_text="line-pressure")
        expect(row.get_by_title(help, exact=True)).to_contain_text(name)

    def test_a_class_that_only_a_later_server_knows_shows_by_its_name(
        self, console: Console
    ) -> None:
        later = {"class": "throttled"}
        console.page.route("**/api/failures", answered(lambda each: each.update(later)))
        page = console.open("failures")

        row = failures_of_all(page).filter(has_text="line-pressure")
        expect(row.get_by_text("throttled", exact=True)).to_be_visible()

    def test_failures_of_a_server_that_tells_no_class_are_shown_without(
        self, console: Console
    ) -> None:
        def forget(failure: dict[str, Any]) -> None:
            del failure["class"]

        console.page.route("**/api/failures", answered(forget))
        console.page.route("**/api/pipelines/line-pressure/history*", answered(forget))
        page = console.open("failures")
        row = failures_of_all(page).filter(has_text="line-pressure")
        expect(row).to_contain_text("transform 0, map")

        expect(row.locator(".chip")).to_have_count(0)
        expect(page.get_by_role("combobox", name="of which class")).to_have_count(0)
        row.get_by_role("link", name="line-pressure").click()
        expect(failures(page, "line-pressure")).to_contain_text("transform 0, map")
        expect(failures(page, "line-pressure").locator(".chip")).to_have_count(0)
        page.unroute_all(behavior="ignoreErrors")  # it asks again and again, also as it is closed


def answered(change: Callable[[dict[str, Any]], object]) -> Callable[[Route], None]:
    """Return what answers as the server does, but for a change of each failure."""

    def answer(route: Route) -> None:
        told = route.fetch()
        changed = told.json()
        for failure in changed.get("failures", changed.get("errors")):
            change(failure)
        route.fulfill(response=told, json=changed)

    return answer
