"""The pages in a browser, once the login or the ledger is gone: Airflow's own application, without its scheduler.

With a scheduler, by keyboard, and in Airflow's frame: tests/e2e/test_ui.py.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, expect

from lockstep.ledger import Ledger
from tests.chromium import chromium, needs_chromium
from tests.ledger.epochs import FLIGHTS, planned
from tests.ui.conftest import Browser, point_to
from tests.ui.test_pages import PIPELINE

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
def open_as(window: Chromium, served: str, browser: Browser, dags: None) -> Iterator[Open]:
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
