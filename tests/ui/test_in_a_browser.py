"""The pages in a browser, by keyboard and by an impatient hand: Airflow's own application, without its scheduler.

With a scheduler, and in Airflow's frame: tests/e2e/test_ui.py.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg2
import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Locator, Page, expect

from lockstep.epoch import AuditResult, Epoch, Identity, Outcome, RunKey
from lockstep.ledger import Ledger
from lockstep.states import EpochState
from tests.chromium import chromium, needs_chromium
from tests.ledger.epochs import FLIGHTS, HASH, Sql, attempt_of, cleaned, committed, planned
from tests.ledger.epochs import seal as sealed
from tests.ui.conftest import Browser, point_to
from tests.ui.test_actions import kept, shown_otherwise
from tests.ui.test_pages import HOSTILE, PIPELINE, multiply

if TYPE_CHECKING:
    from fastapi import FastAPI

EPOCH = f"{PIPELINE}/epochs/1"
FAR = "Pacific/Auckland"  #: where a day begins half a day before it does in UTC
pytestmark = needs_chromium


@pytest.fixture(scope="module")
def served(application: FastAPI) -> Iterator[str]:
    """Its URL."""
    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(application, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True, name="api-server")
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(timeout=20)


@pytest.fixture(scope="module")
def window() -> Iterator[Chromium]:
    with chromium() as opened:
        yield opened


Open = Callable[..., Page]


@pytest.fixture
def open_as(window: Chromium, served: str, browser: Browser, triggered: list[dict[str, Any]]) -> Iterator[Open]:
    """A page for a user who is logged in. At the end it has shown no dialog, and complained of nothing but answers that
    were refusals."""
    contexts: list[Any] = []
    complaints: list[str] = []

    def complain(said: Any) -> None:
        if said.type == "error" and not re.match("Failed to load resource|Response Status Error Code", said.text):
            complaints.append(said.text)

    def dismiss(dialog: Any) -> None:
        complaints.append(dialog.message)
        dialog.dismiss()

    def opened(user: str, path: str, **how: Any) -> Page:
        context = window.new_context(base_url=served, timezone_id=FAR, **how)
        contexts.append(context)
        log_in(context, user, served)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", complain)
        page.on("dialog", dismiss)
        page.goto(path)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def log_in(context: Any, user: str, url: str) -> None:
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=user, role="VIEWER"))
    context.add_cookies([{"name": "_token", "value": token, "url": url}])


def tab_to(page: Page, wanted: Locator, most: int = 60) -> None:
    """By the key alone; where the focus is can be seen at every step."""
    for _ in range(most):
        page.keyboard.press("Tab")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", "nobody sees the focus"
        if wanted.evaluate("one => one === document.activeElement"):
            return
    raise AssertionError(f"{most} steps don't lead to {wanted}")


def grow_old(dsn: str) -> None:
    """Nobody has been at any epoch for an hour."""
    with closing(psycopg2.connect(dsn)) as connection:
        sql = Sql(connection)
        with sql.unwatched():
            for table in ("epoch", "participant"):
                sql(f"UPDATE lockstep.{table} SET changed_at = now() - interval '1 h', lease_until = NULL")


def as_it_is(ledger: Ledger, epoch: Epoch) -> Epoch:
    return epoch


def held(ledger: Ledger, epoch: Epoch) -> Epoch:
    """By an audit that says much about rows of long names."""
    told = sealed(ledger, epoch)
    results = [AuditResult("unique_" + "very_long_column_name_" * 6, 3, blocking=True, told="x" * 300)]
    ledger.record_verdict(attempt_of(told), HASH, results)
    return told


# --- what is asked for once is done once ---


@pytest.mark.parametrize(
    "user, path, verb, runs",
    [
        ("admin", f"{EPOCH}/restore", "Restore", 1),
        ("admin", f"{PIPELINE}/restate?since=2013-01-01T00:00&until=2013-01-04T00:00", "Restate 2 epochs", 2),
    ],
)
def test_a_form_says_first_what_it_would_do_and_does_it_once_however_often_it_is_clicked_loaded_and_gone_back_to(
    open_as: Open, ledger: Ledger, triggered: list[dict[str, Any]], user: str, path: str, verb: str, runs: int
) -> None:
    old = kept(ledger)
    if verb == "Restore":
        shown_otherwise(ledger, old, 9)
    cleaned(ledger, planned(ledger, 2, RunKey("flights", "run 2")))
    page = open_as(user, path)
    expect(page.get_by_role("heading", name="What it would do")).to_be_visible()
    button = page.get_by_role("button", name=verb, exact=True)
    button.click()
    assert page.evaluate("document.activeElement.id") == "reason", "without a reason the browser sends nothing"
    assert triggered == []
    page.get_by_label("Why?").fill("the carrier corrected it")
    button.dblclick()
    expect(page.get_by_text(re.compile("the carrier corrected it|asked for by")).first).to_be_visible()
    for go in (page.reload, page.go_back):
        go()
        assert len(triggered) == runs, "neither asks for anything"
    expect(page.get_by_text(re.compile("has asked for this already|asked for by")).first).to_be_visible()
    page.get_by_label("Why?").fill("once more")
    with page.expect_response(lambda answer: answer.request.method == "POST"):
        page.get_by_role("button", name=verb, exact=True).click()
    assert len(triggered) == runs, "it is led to the run that is there"
    assert {run["note"] for run in triggered} == {"the carrier corrected it"}


def test_a_range_is_typed_in_utc_wherever_the_browser_is(open_as: Open, ledger: Ledger) -> None:
    for number in (1, 2):
        cleaned(ledger, planned(ledger, number, RunKey("flights", f"run {number}")))
    page = open_as("admin", f"{PIPELINE}/restate")
    page.get_by_label("From (UTC)").fill("2013-01-01T00:00")
    page.get_by_label("To (UTC), not included").fill("2013-01-02T00:00")
    page.get_by_role("button", name="Show what it would do").click()
    expect(page.get_by_role("row").filter(has_text="2013-01-01")).to_have_count(1)
    expect(page.get_by_role("row").filter(has_text="2013-01-02")).to_have_count(0)
    expect(page.get_by_role("button", name="Restate 1 epoch", exact=True)).to_be_visible()
    expect(page.get_by_label("From (UTC)")).to_have_value("2013-01-01T00:00")


def test_a_form_whose_login_has_ended_does_nothing_and_leads_to_the_login_and_back(
    open_as: Open, ledger: Ledger, served: str
) -> None:
    before = planned(ledger)
    page = open_as("operator", f"{EPOCH}/abort")
    page.context.clear_cookies()
    page.get_by_label("Why?").fill("the disk was full")
    page.get_by_role("button", name="Abort").click()
    expect(page.get_by_role("heading", name="Nothing was done")).to_be_visible()
    assert ledger.epoch(FLIGHTS, 1) == before
    login = page.get_by_role("link", name="Log in")
    expect(login).to_have_attribute("href", f"/api/v2/auth/login?next={f'{EPOCH}/abort'.replace('/', '%2F')}")
    log_in(page.context, "operator", served)
    page.goto(f"{EPOCH}/abort")
    page.get_by_label("Why?").fill("the disk was full")
    page.keyboard.press("Enter")
    expect(page.get_by_text("its attempt was voided")).to_be_visible()


def test_an_old_tabs_form_does_nothing_once_the_epoch_has_moved(open_as: Open, ledger: Ledger) -> None:
    planned(ledger)
    page = open_as("operator", f"{EPOCH}/void")
    decided = committed(ledger, ledger.epoch(FLIGHTS, 1))
    page.get_by_label("Why?").fill("it never comes")
    page.keyboard.press("Enter")
    expect(page.get_by_text("it has moved since the form was shown")).to_be_visible()
    assert ledger.epoch(FLIGHTS, 1) == decided


def test_another_sites_form_does_nothing_even_with_a_seal_that_was_stolen(
    open_as: Open, ledger: Ledger, served: str
) -> None:
    """A page of this host has the browser send the login, too."""
    before = planned(ledger)
    page = open_as("operator", f"{EPOCH}/void")
    seal = page.locator("input[name=seal]").get_attribute("value")
    fields = f"<input name=reason value=why><input name=seal value='{seal}'><button>Win</button>"
    theirs = f"<form method=post action='{served}{EPOCH}/void'>{fields}</form>"
    for site in ("http://127.0.0.1:8765", "http://evil.test"):
        page.route(f"{site}/", lambda route: route.fulfill(body=theirs, content_type="text/html"))
        page.goto(f"{site}/")
        page.get_by_role("button", name="Win").click()
        expect(page.get_by_role("heading", name="Nothing was done")).to_be_visible()
        assert ledger.epoch(FLIGHTS, 1) == before


def test_a_list_that_can_not_be_renewed_says_so_until_it_can(
    open_as: Open, ledger: Ledger, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(ledger)
    page = open_as("reader", "about:blank")
    page.clock.install()
    page.goto(PIPELINE)
    stale = page.get_by_text("it may be out of date")
    expect(stale).to_be_hidden()
    point_to("host=127.0.0.1 port=1 user=postgres dbname=gone", monkeypatch)
    page.clock.run_for(11_000)
    expect(stale).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="2013-01-01")).to_have_count(1)
    point_to(dsn, monkeypatch)
    page.clock.run_for(11_000)
    expect(stale).to_be_hidden()


# --- by keyboard, in the dark, in a narrow window ---


def test_what_audits_hold_is_released_by_keyboard_alone(open_as: Open, ledger: Ledger) -> None:
    held(ledger, planned(ledger))
    page = open_as("operator", "/lockstep/", color_scheme="dark")
    tab_to(page, page.get_by_role("link", name=FLIGHTS, exact=True))
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{PIPELINE}")
    tab_to(page, page.get_by_role("region", name="Stuck").get_by_role("link", name="epoch 1"))
    page.keyboard.press("Enter")
    expect(page.get_by_text("Held by unique_").first).to_be_visible()
    tab_to(page, page.get_by_role("link", name="Release…"))
    page.keyboard.press("Enter")
    expect(page.get_by_label("Why?")).to_be_focused()
    page.keyboard.type("a strike, the day is right")
    page.keyboard.press("Enter")
    expect(page.get_by_text("released by airflow-ui:operator: a strike, the day is right").first).to_be_visible()
    verdict = ledger.verdict(FLIGHTS, 1)
    assert verdict is not None and verdict.outcome is Outcome.RELEASED


def test_what_became_of_a_transaction_in_doubt_is_said_by_keyboard_alone(
    open_as: Open, ledger: Ledger, dsn: str, triggered: list[dict[str, Any]]
) -> None:
    epoch = committed(ledger, planned(ledger))
    grow_old(dsn)
    page = open_as("operator", EPOCH)
    expect(page.get_by_text("decided, not published in delays, warehouse")).to_be_visible()
    tab_to(page, page.get_by_role("row").filter(has_text="delays").get_by_role("link", name="Resolve…"))
    page.keyboard.press("Enter")
    expect(page.get_by_text("looks into sink delays first")).to_be_visible()
    tab_to(page, page.get_by_role("radio").first)
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("radio", name="Not applied")).to_be_checked()
    tab_to(page, page.get_by_label("Why?"))
    page.keyboard.type("I looked")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="A run does it")).to_be_visible()
    word = ledger.last_word(epoch, "delays")
    assert word is not None and word.reason == "asked to resolve it as not-applied: I looked"
    assert [run["conf"]["resolve_word"] for run in triggered] == [word.id]


def test_ten_thousand_epochs_are_gone_through_by_keyboard(open_as: Open, ledger: Ledger, dsn: str) -> None:
    cleaned(ledger, planned(ledger))
    multiply(dsn, 10_000)
    page = open_as("admin", PIPELINE)
    expect(page.get_by_text("10,000 cleaned")).to_be_visible()
    tab_to(page, page.locator("#epoch-10000"), most=20)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=f"{FLIGHTS}, epoch 10000")).to_be_visible()
    page.go_back()
    older = page.get_by_role("link", name="Older")
    older.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#epoch-9950")).to_be_visible()
    line = page.locator("svg.timeline")
    assert (line.get_attribute("data-told") or "").count("\n") == 999
    line.hover(position={"x": 2, "y": 70})
    expect(page.locator("figcaption output")).to_contain_text("epoch 895")


#: of text on what is behind it, as WCAG 2 counts it: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio
FAINT = """
() => {
  const shown = one => one.checkVisibility() && one.getBoundingClientRect().width > 1;
  const part = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const colour = text => text.match(/[\\d.]+/g).map(Number);
  const behind = one => {
    for (; one; one = one.parentElement) {
      const found = colour(getComputedStyle(one).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found;
    }
    return colour(getComputedStyle(document.body).backgroundColor);
  };
  const faint = [];
  for (const one of document.querySelectorAll("body *")) {
    const own = [...one.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!own || !shown(one)) continue;
    const [a, b] = [light(colour(getComputedStyle(one).color)), light(behind(one))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const told = `${one.tagName}.${one.className} ${ratio.toFixed(1)}: ${one.textContent.trim().slice(0, 40)}`;
    if (ratio < 4.5) faint.push(told);
  }
  return faint;
}
"""


def test_all_text_can_be_read_in_both_themes_and_a_narrow_window_is_never_scrolled_sideways(
    open_as: Open, ledger: Ledger, dsn: str
) -> None:
    """Tables aside, which scroll within the page."""
    why = "the_carrier_corrected_" * 20
    old = kept(ledger)
    new = ledger.plan_generation(old, old.plan, {}, RunKey("flights", "manual__" + "x" * 200), why)
    assert new is not None
    for number, become in enumerate((held, committed, cleaned, as_it_is), 2):
        become(ledger, planned(ledger, number, RunKey("flights", f"run {number}")))
    ledger.void_epoch(FLIGHTS, planned(ledger, 6, RunKey("flights", "run 6")).id, why)
    ledger.ensure_pipeline("a_pipeline_of_the_longest_name_" * 2, Identity.INTERVAL)
    grow_old(dsn)
    page = open_as("admin", "/lockstep/", viewport={"width": 360, "height": 700})
    span = "since=2013-01-01T00:00&until=2013-01-07T00:00"
    paths = ["/lockstep/", PIPELINE, f"{PIPELINE}/restate?{span}", f"{PIPELINE}/recover"]
    paths += [f"{PIPELINE}/epochs/{number}" for number in range(1, 8)]
    paths += [f"{PIPELINE}/epochs/{number}/{deed}" for number, deed in ((3, "release"), (3, "void"), (5, "restate"))]
    paths += [f"{PIPELINE}/epochs/4/resolve/delays", f"{PIPELINE}/epochs/99"]
    paths += ["/lockstep/pipelines/" + "a_pipeline_of_the_longest_name_" * 2]
    for path in paths:
        page.goto(path)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate(FAINT) == [], (path, scheme)
        for disclosed in page.locator("summary").all():
            disclosed.click()
        wide = "[...document.querySelectorAll('body *')].filter(one => !one.closest('.wide, svg, .skip')"
        wide += " && one.getBoundingClientRect().right > innerWidth + 1).map(one => one.outerHTML.slice(0, 100))"
        assert page.evaluate(wide) == [], path
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path


def test_whatever_the_ledger_holds_runs_nothing_in_a_browser(
    open_as: Open, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch = sealed(ledger, planned(ledger, 1, RunKey("flights", HOSTILE)))
    ledger.record_verdict(attempt_of(epoch), HASH, [AuditResult(HOSTILE, 3, blocking=True, told=HOSTILE)])
    ledger.release_epoch(FLIGHTS, 1, HOSTILE)
    page = open_as("admin", "/lockstep/")
    for path in ("/lockstep/", PIPELINE, EPOCH, f"{EPOCH}/void", f"{EPOCH}/abort", f"{PIPELINE}/<b onclick=alert(3)>"):
        page.goto(path)
        page.wait_for_load_state("networkidle")
        assert page.locator("img, b[onclick], [onerror]").count() == 0
        assert page.locator("script").count() == 2
    page.goto(f"{EPOCH}/void")
    page.get_by_label("Why?").fill("</script><img src=x onerror=alert(4)>")
    page.keyboard.press("Enter")
    expect(page.get_by_text("</script><img src=x onerror=alert(4)>").first).to_be_visible()
    assert ledger.epoch(FLIGHTS, 1).state is EpochState.VOID and page.locator("img").count() == 0
