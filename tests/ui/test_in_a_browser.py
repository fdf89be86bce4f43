"""A page in a browser when the ledger is gone: Airflow's own application, without its scheduler.

With a scheduler, by keyboard, and in Airflow's frame: tests/e2e/test_ui.py.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from lockstep.ledger import Ledger
from tests.chromium import chromium, needs_chromium
from tests.ledger.epochs import planned
from tests.ui.conftest import Browser, point_to
from tests.ui.test_pages import PIPELINE

if TYPE_CHECKING:
    from fastapi import FastAPI


@pytest.fixture
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


@needs_chromium
def test_a_list_that_can_not_be_renewed_says_so_until_it_can(
    served: str, browser: Browser, dags: None, ledger: Ledger, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(ledger)
    token = browser("reader").cookies["_token"]
    with chromium() as window:
        context = window.new_context(base_url=served)
        context.add_cookies([{"name": "_token", "value": token, "url": served}])
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.clock.install()
        page.goto(PIPELINE)
        stale = page.get_by_text("may be out of date")
        expect(stale).to_be_hidden()
        point_to("host=127.0.0.1 port=1 user=postgres dbname=gone", monkeypatch)
        page.clock.run_for(11_000)
        expect(stale).to_be_visible()
        expect(page.get_by_role("row").filter(has_text="2013-01-01")).to_have_count(1)
        point_to(dsn, monkeypatch)
        page.clock.run_for(11_000)
        expect(stale).to_be_hidden()
