"""Who gets to see and to do what: every page without a login, with a stranger's, a reader's and an operator's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from lockstep.epoch import RunKey
from lockstep.ledger import Ledger
from lockstep.states import EpochState
from tests.cases import cases
from tests.ledger.epochs import FLIGHTS, RUN, clicked, planned
from tests.ui.conftest import GRANTS, SECRET, Browser, point_to, seal_in

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.routing import Route

ASKED = "asked.for"
EPOCH = f"/lockstep/pipelines/{FLIGHTS}/epochs/1"
READ = [
    f"/lockstep/dag?dag_id={RUN.dag_id}",
    f"/lockstep/run?dag_id={RUN.dag_id}&run_id={RUN.run_id}",
    f"/lockstep/requested?dag_id={RUN.dag_id}&run_id={ASKED}&pipeline={FLIGHTS}",
    f"/lockstep/pipelines/{FLIGHTS}",
    EPOCH,
]
ACT = [
    f"{EPOCH}/abort",
    f"{EPOCH}/restate",
    f"{EPOCH}/restore",
    f"{EPOCH}/replan",
    f"{EPOCH}/resolve/delays",
    f"{EPOCH}/release",
    f"{EPOCH}/void",
    f"/lockstep/pipelines/{FLIGHTS}/recover",
    f"/lockstep/pipelines/{FLIGHTS}/restate?since=2013-01-01&until=2013-02-01",
]


@pytest.fixture(autouse=True)
def an_epoch(ledger: Ledger, dags: None) -> Iterator[None]:
    """And a run that somebody asked for."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from airflow.utils.state import DagRunState

    planned(ledger)
    with create_session() as session:
        session.add(run := DagRun(dag_id=RUN.dag_id, run_id=ASKED, run_type="manual", state=DagRunState.QUEUED))
    yield
    with create_session() as session:
        session.delete(run)


def routes(application: FastAPI) -> Iterator[Route]:
    from starlette.routing import Route

    from lockstep.airflow.ui.app import app

    for route in app.routes:
        if isinstance(route, Route):
            yield route


def test_every_page_that_there_is_stands_in_these_tests(application: FastAPI) -> None:
    """A new page needs a row here."""
    tried = ["/lockstep/", *READ, *ACT]
    for route in routes(application):
        assert any(route.path_regex.match(path.removeprefix("/lockstep").partition("?")[0]) for path in tried), route


@cases("path", ["/lockstep/", *READ, *ACT])
def test_without_a_login_every_page_leads_to_airflows(browser: Browser, path: str) -> None:
    answer = browser(None).get(path)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/api/v2/auth/login?next=%2Flockstep")
    assert browser(None).get(path, headers={"HX-Request": "true"}).status_code == 401
    assert browser(None).get(path, headers={"Authorization": "Bearer none"}).status_code != 200
    forged = browser(None)
    forged.cookies.set("_token", "forged")
    assert forged.get(path).status_code != 200
    assert forged.post(path, data={"reason": "x", "seal": "y"}).status_code in (401, 403, 405)


@cases("path", READ)
def test_a_reader_of_the_dag_sees_its_pipeline_and_a_stranger_doesnt(browser: Browser, path: str) -> None:
    assert browser("reader").get(path).status_code in (200, 303)
    assert browser("stranger").get(path).status_code == 403


@cases("path", ACT)
def test_only_who_may_act_is_shown_a_form_and_has_it_done(
    browser: Browser, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """A right that was taken since the form was shown counts no more."""
    reader, opened = browser("reader"), browser("operator")
    assert path not in reader.get(EPOCH).text
    assert reader.get(path).status_code == 403
    assert opened.get(path).status_code == 200
    form = {"reason": "why not", "seal": seal_in(opened.get(f"{EPOCH}/abort").text)}
    assert browser(None).post(path, data=form).status_code == 401
    assert reader.post(path, data=form).status_code == 403
    monkeypatch.setitem(GRANTS, "operator", {"flights": {"GET"}})
    refused = opened.post(path, data=form)
    assert refused.status_code == 403 and "you may not act on" in refused.text
    assert ledger.epoch(FLIGHTS, 1).state is EpochState.PLANNED and ledger.epoch(FLIGHTS, 1).reason is None


def test_the_list_has_what_a_user_may_look_at(browser: Browser, ledger: Ledger) -> None:
    clicked(ledger, 0, RunKey("clicks", "run 1"))
    for user, listed in {"stranger": [], "reader": [FLIGHTS], "auditor": [FLIGHTS, "clicks"]}.items():
        page = browser(user).get("/lockstep/").text
        assert [name for name in (FLIGHTS, "clicks") if f">{name}</a>" in page] == listed


def test_a_pipeline_that_no_dag_moves_is_for_who_may_look_at_every_dag(browser: Browser, ledger: Ledger) -> None:
    clicked(ledger, 0, RunKey("run_epoch", "a notebook's"))
    assert browser("reader").get("/lockstep/pipelines/clicks").status_code == 403
    assert browser("auditor").get("/lockstep/pipelines/clicks").status_code == 200


def test_who_may_change_runs_of_one_dag_gives_up_no_range_of_a_pipeline_that_no_dag_moves(
    browser: Browser, ledger: Ledger
) -> None:
    clicked(ledger, 0, RunKey("run_epoch", "a notebook's"))
    path = "/lockstep/pipelines/clicks/epochs/1/void"
    seal = seal_in(browser("admin").get(path).text)
    assert browser("operator").get(path).status_code == 403
    assert browser("operator").post(path, data={"reason": "why not", "seal": seal}).status_code == 403
    assert ledger.epoch("clicks", 1).state is EpochState.PLANNED
    assert browser("admin").post(path, data={"reason": "its files are gone", "seal": seal}).status_code == 303
    assert ledger.epoch("clicks", 1).state is EpochState.VOID


def test_whoever_may_not_look_isnt_told_what_there_is(browser: Browser) -> None:
    for path in ("/lockstep/pipelines/nothing", "/lockstep/pipelines/nothing/epochs/1"):
        assert browser("reader").get(path).status_code == 403
        assert browser("auditor").get(path).status_code == 404
    assert browser("auditor").get(f"/lockstep/pipelines/{FLIGHTS}/epochs/9").status_code == 404
    numberless = (f"/lockstep/pipelines/{FLIGHTS}/epochs/99999999999999999999", f"/lockstep/pipelines/{FLIGHTS}%00")
    for path in ("/lockstep/nothing", *numberless, f"{EPOCH}/a%00", "/lockstep/dag?dag_id=a%00"):
        assert browser("admin").get(path).status_code == 404


def test_a_ledger_that_hangs_takes_a_few_of_airflows_threads_and_no_more(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockstep.airflow.ui import app

    monkeypatch.setattr(app, "MAX_WAIT_SECONDS", 0.0)
    opened = browser("admin")
    with ExitStack() as hanging:
        for _ in range(app.MAX_CONCURRENT):
            hanging.enter_context(app.open_report())
        answer = opened.get(EPOCH)
        assert answer.status_code == 503 and "other pages are reading the ledger" in answer.text
    assert opened.get(EPOCH).status_code == 200, "each gives its place back"


def test_a_ledger_that_is_down_is_one_sentence(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = browser("admin")
    point_to("host=127.0.0.1 port=1 user=postgres dbname=gone", monkeypatch, SECRET)
    answer = opened.get("/lockstep/")
    assert answer.status_code == 503
    assert "the ledger can&#39;t be reached" in answer.text and SECRET not in answer.text
    monkeypatch.delenv("AIRFLOW_CONN_LOCKSTEP_LEDGER")
    answer = opened.get("/lockstep/")
    assert answer.status_code == 503 and "has no Connection" in answer.text


def test_nothing_may_be_framed_or_run_but_what_is_served_here(browser: Browser) -> None:
    for user, path in (("reader", EPOCH), ("stranger", EPOCH), (None, EPOCH), (None, "/lockstep/static/page.js")):
        headers = browser(user).get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'self'" in policy and "unsafe" not in policy
    assert headers["content-type"].startswith("text/javascript") and "cache-control" not in headers


@pytest.mark.fault("R5")
def test_a_number_beyond_all_numbers_and_a_page_that_fails_have_the_headers_of_any_page(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockstep.airflow.ui import app

    opened, long = browser("admin"), "9" * 5_000
    pages = f"/lockstep/pipelines/{FLIGHTS}"
    paths = [f"{pages}/epochs/{long}", f"{pages}/epochs/{long}/abort", f"{pages}/epochs/{long}/resolve/delays"]
    answers = [opened.get(path) for path in [*paths, f"{pages}?before={long}", f"{pages}/epochs/{'9' * 19}"]]
    assert [one.status_code for one in answers] == [404, 404, 404, 422, 404]
    answers.append(opened.post(f"{pages}/epochs/{long}/abort", data={"reason": "x", "seal": "y"}))
    monkeypatch.setattr(app, "require_epoch", lambda *asked: 1 / 0)
    failed = opened.get(EPOCH)
    assert failed.status_code == 500 and "has failed" in failed.text and "ZeroDivisionError" not in failed.text
    for answer in [*answers, failed]:
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_plugin_tells_airflow_where_the_pages_are(browser: Browser) -> None:
    from airflow import plugins_manager

    views, _ = plugins_manager._get_ui_plugins()
    found = {view["destination"]: view["href"] for view in views if view["url_route"].startswith("lockstep")}
    assert found == {
        "nav": "/lockstep/",
        "dag": "/lockstep/dag?dag_id={DAG_ID}",
        "dag_run": "/lockstep/run?dag_id={DAG_ID}&run_id={RUN_ID}",
    }
