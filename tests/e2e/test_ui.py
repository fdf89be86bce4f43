"""The pages as a person meets them: a browser, Airflow's own login, its frame around them, its theme.

With LOCKSTEP_PICTURES=docs/pictures the tests leave the pictures of docs/ui.md there.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from playwright.sync_api import FrameLocator, Locator, Page, expect

from lockstep.epoch import Epoch
from lockstep.ledger.report import Report
from stack.airflow import ADMIN
from tests.chromium import chromium, needs_chromium
from tests.e2e.conftest import TestedStack
from tests.e2e.world import World

expect.set_options(timeout=30_000)  # Airflow's frame takes its time where other tests want the processor, too
DAYS = {"2024-06-01": 20, "2024-06-02": 300, "2024-06-03": 90}

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(900), needs_chromium]


@pytest.fixture(scope="module")
def runs(world: World) -> dict[str, str]:
    """Three days of `orders` that are shown, and one of `mistaken` that is stuck: {pipeline: its last run}."""
    for day, rows in DAYS.items():
        world.land("orders", day, rows)
        last = world.run("orders", day)
    world.land("mistaken", "2024-06-01")
    stuck = world.trigger("mistaken", "2024-06-01")
    assert world.api.wait_run("mistaken", stuck) == "failed"
    return {"orders": last, "mistaken": stuck}


@pytest.fixture(scope="module")
def page(stack: TestedStack, runs: dict[str, str]) -> Iterator[Page]:
    """Logged in as the admin, after having asked for a page of Lockstep's."""
    password = json.loads(stack.airflow.passwords.read_text())[ADMIN]
    with chromium() as browser:
        page = browser.new_context(viewport={"width": 1180, "height": 660}).new_page()
        page.set_default_timeout(60_000)
        page.goto(f"{stack.airflow.url}/lockstep/")
        page.fill("input[name=username]", ADMIN)
        page.fill("input[name=password]", password)
        page.keyboard.press("Enter")
        page.wait_for_url(f"{stack.airflow.url}/lockstep/")
        yield page


@pytest.fixture(scope="module")
def stuck(world: World, runs: dict[str, str]) -> int:
    """The number of the epoch that waits for a person."""
    epoch = world.epoch("mistaken", "2024-06-01")
    assert epoch is not None
    return epoch.id


@pytest.fixture
def refused(page: Page) -> Iterator[list[str]]:
    """What the browser complains of; nothing, at the end."""
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on("console", lambda said: found.append(said.text) if said.type == "error" else None)
    yield found
    assert found == []


def take_picture(page: Page, name: str) -> None:
    if folder := os.environ.get("LOCKSTEP_PICTURES"):
        page.screenshot(path=Path(folder, f"{name}.png"))


def point_at(line: Locator, day: str) -> None:
    """At the bar of the epoch of that day, wherever those of other tests stand."""
    told, box = line.get_attribute("data-labels"), line.bounding_box()
    assert told is not None and box is not None
    [place] = [place for place, one in enumerate(told.split("\n")) if f" {day}:" in one]
    width = float(line.evaluate("line => line.viewBox.baseVal.width"))
    line.hover(position={"x": (place + 0.5) / width * box["width"], "y": 70})


def framed(page: Page) -> FrameLocator:
    return page.frame_locator("iframe")


def test_the_pages_are_in_airflows_navigation_and_lead_to_an_epoch_and_back_to_its_run(
    page: Page, stack: TestedStack, runs: dict[str, str], refused: list[str]
) -> None:
    page.goto(stack.airflow.url)
    page.get_by_role("button", name="Browse").click()
    page.get_by_role("menuitem", name="Lockstep").click()
    frame = framed(page)
    mistaken = frame.get_by_role("link", name="mistaken", exact=True)  # others' names may begin with it
    expect(frame.get_by_role("row").filter(has=mistaken)).to_contain_text("no task is active")
    take_picture(page, "ui-pipelines")
    frame.get_by_role("link", name="orders", exact=True).click()
    line = frame.locator("svg.timeline")
    expect(line).to_have_attribute("data-labels", re.compile(r" 2024-06-01: cleaned, 21 rows\n"))
    point_at(line, "2024-06-01")
    expect(frame.locator("figcaption output")).to_contain_text("2024-06-01: cleaned, 21 rows")
    frame.get_by_role("row").filter(has_text="2024-06-03").get_by_role("link").first.click()
    expect(frame.get_by_role("heading", level=1)).to_contain_text("orders, epoch")
    made = frame.get_by_role("link", name=re.compile(r"commit#\d+$"))
    expect(made).to_have_attribute("href", re.compile(r"/dags/orders/runs/[^/]+/tasks/commit$"))
    frame.get_by_role("link", name=runs["orders"], exact=True).click()
    page.wait_for_url(re.compile(r"/dags/orders/runs/"))


def test_a_run_and_a_dag_have_a_tab_and_a_task_a_link(
    page: Page, stack: TestedStack, runs: dict[str, str], stuck: int, refused: list[str]
) -> None:
    run = f"{stack.airflow.url}/dags/orders/runs/{quote(runs['orders'], safe='')}"
    page.goto(run)
    page.get_by_role("link", name="Epoch", exact=True).click()
    expect(framed(page).get_by_role("heading", level=1)).to_contain_text("orders, epoch")
    expect(framed(page).get_by_text("2024-06-03 (UTC)")).to_be_visible()
    take_picture(page, "ui-epoch")
    page.goto(f"{stack.airflow.url}/dags/orders")
    page.get_by_role("link", name="Epochs", exact=True).click()
    expect(framed(page).get_by_role("heading", level=1)).to_have_text("orders")
    links = page.request.get(
        f"{stack.airflow.url}/api/v2/dags/mistaken/dagRuns/{quote(runs['mistaken'], safe='')}/taskInstances/stage/links"
    ).json()["extra_links"]
    page.goto(f"{stack.airflow.url}{links['Epoch']}")
    assert page.url.endswith(f"/lockstep/pipelines/mistaken/epochs/{stuck}"), "of a task that failed"


def test_the_pages_follow_airflows_theme(
    page: Page, stack: TestedStack, runs: dict[str, str], refused: list[str]
) -> None:
    brightness = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).reduce((a, b) => +a + +b)"
    page.goto(f"{stack.airflow.url}/lockstep/pipelines/orders")
    for scheme, theme, dark in (("light", "dark", True), ("dark", "light", False), ("dark", None, True)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.evaluate("theme => theme ? localStorage.setItem('theme', theme) : localStorage.removeItem('theme')", theme)
        page.reload()
        assert (page.evaluate(brightness) < 200) is dark
        if theme == "dark":
            page.goto(f"{stack.airflow.url}/dags/orders/plugin/lockstep-epochs")
            expect(framed(page).get_by_role("heading", level=1)).to_have_text("orders")
            take_picture(page, "ui-pipeline-dark")
            page.goto(f"{stack.airflow.url}/lockstep/pipelines/orders")
    page.emulate_media(color_scheme="light")


def test_a_range_is_given_up_by_keyboard_alone(
    page: Page, stack: TestedStack, world: World, stuck: int, refused: list[str]
) -> None:
    page.goto(f"{stack.airflow.url}/lockstep/pipelines/mistaken")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
    page.keyboard.press("Enter")
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == f"epoch-{stuck}":
            break
    page.keyboard.press("Enter")
    give_up = page.get_by_role("link", name="Give up the range…")
    give_up.focus()
    page.keyboard.press("Enter")
    reason = page.get_by_label("Reason")
    expect(reason).to_be_focused()
    take_picture(page, "ui-give-up")
    page.keyboard.type("the file <b>never</b> comes")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("void")
    written = page.get_by_role("row").filter(has_text="airflow-ui:admin").last
    expect(written).to_contain_text("the file <b>never</b> comes")
    report = Report(world.ledger_dsn)
    entry = [one for one in report.history("mistaken", stuck) if one.target == "void"][-1]
    report.close()
    assert (entry.actor, entry.reason) == ("airflow-ui:admin", "the file <b>never</b> comes")


def ask_for(page: Page, deed: str, why: str, picture: str | None = None) -> str:
    """Press the button, say why, and follow the link to the run: its id. `picture`: of what is told before."""
    page.get_by_role("link", name=f"{deed}…").first.click()
    expect(page.get_by_role("heading", name="Effects")).to_be_visible()
    page.get_by_label("Reason").fill(why)
    if picture:
        take_picture(page, picture)
    page.get_by_role("button", name=deed).click()
    page.get_by_role("link", name="To the run").click()
    page.wait_for_url(re.compile(r"/runs/[^/]+$"))
    return unquote(page.url.rpartition("/")[2])


def test_a_day_is_replanned_restated_and_restored_by_runs_and_its_generations_tell_of_each_other(
    page: Page, stack: TestedStack, world: World, runs: dict[str, str], refused: list[str]
) -> None:
    day, pages = "2024-06-01", f"{stack.airflow.url}/lockstep/pipelines/audited/epochs"

    def current() -> Epoch:
        found = world.epoch("audited", day)
        assert found is not None
        return found

    world.land("audited", day, 3)
    assert world.api.wait_run("audited", world.trigger("audited", day)) == "failed"
    page.goto(f"{pages}/{current().id}")
    expect(page.get_by_text("Held by row_count_orders").first).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("^row_count_orders"))).to_contain_text("holds")
    take_picture(page, "ui-held")
    rows = world.land("audited", day, 30)
    world.require_success("audited", ask_for(page, "Replan", "the whole file came"))
    world.require_published_once("audited", day, rows)

    first = current().id
    more = world.land("audited", day, 40)
    page.goto(f"{pages}/{first}")
    world.require_success("audited", ask_for(page, "Restate", "ten more rows came", "ui-restate"))
    world.require_published_once("audited", day, more)
    second = current()
    assert second.generation is not None
    page.goto(f"{pages}/{first}")
    expect(page.get_by_text("Its rows are no longer visible")).to_contain_text("ten more rows came")
    page.get_by_role("link", name=re.compile(r"^epoch \d+$")).first.click()
    expect(page.get_by_text("Generation 1 of its range")).to_be_visible()

    world.land("audited", day, 50)
    page.goto(f"{pages}/{second.generation.replaces}")
    world.require_success("audited", ask_for(page, "Restore", "the ten rows were another day's", "ui-restore"))
    world.require_published_once("audited", day, rows)
    page.goto(f"{pages}/{second.id}")
    expect(page.get_by_text("Its rows are no longer visible")).to_contain_text("the ten rows were another day's")
    page.get_by_role("link", name=re.compile(r"^epoch \d+$")).first.click()
    expect(page.get_by_text("Generation 2 of its range")).to_be_visible()
    page.get_by_role("heading", name="Sinks").evaluate("heading => heading.scrollIntoView()")
    take_picture(page, "ui-generations")


def test_a_range_of_days_is_restated_by_a_run_for_each(
    page: Page, stack: TestedStack, world: World, runs: dict[str, str], refused: list[str]
) -> None:
    days = {day: world.land("orders", day, rows) for day, rows in {"2024-06-01": 25, "2024-06-02": 310}.items()}
    page.goto(f"{stack.airflow.url}/lockstep/pipelines/orders")
    page.get_by_role("link", name="Restate…").click()
    page.get_by_label("From (UTC)").fill("2024-06-01T00:00")
    page.get_by_label("To (UTC), not included").fill("2024-06-03T00:00")
    page.get_by_role("button", name="Show the effects").click()
    page.get_by_label("Reason").fill("the shop sent corrected files")
    take_picture(page, "ui-range")
    page.get_by_role("button", name="Restate 2 epochs").dblclick()
    asked = page.get_by_role("row").filter(has_text="requested by admin").get_by_role("link", name="lockstep_restate__")
    expect(asked).to_have_count(2)
    for to in [str(one.get_attribute("href")) for one in asked.all()]:
        world.require_success("orders", unquote(to.rpartition("/")[2]))
    for day, rows in days.items():
        world.require_published_once("orders", day, rows)
        current = world.epoch("orders", day)
        assert current is not None and current.generation is not None and current.generation.number == 1
        page.goto(f"{stack.airflow.url}/lockstep/pipelines/orders/epochs/{current.id}")
        expect(page.get_by_text("Generation 1 of its range")).to_contain_text("the shop sent corrected files")
