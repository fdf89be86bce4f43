"""What the pages tell: what `lockstep status` tells, by page, and as text whatever it is called."""

from __future__ import annotations

import re
from contextlib import closing
from html import unescape
from html.parser import HTMLParser

import psycopg2
import pytest

from lockstep.epoch import Plan, RunKey, SourceRange
from lockstep.ledger import Ledger
from lockstep.ledger.report import Report
from lockstep.states import Role
from tests.ledger.epochs import (
    CLICKS,
    FLIGHTS,
    RUN,
    Sql,
    cleaned,
    clicked,
    committed,
    planned,
    show,
)
from tests.ui.conftest import GRANTS, Browser

PIPELINE = f"/lockstep/pipelines/{FLIGHTS}"
HOSTILE = "<img src=x onerror=alert(1)>\"' &amp; </script><script>alert(2)</script> {{ 7 * 7 }} .."


def page(browser: Browser, path: str, user: str = "admin") -> str:
    answer = browser(user).get(path)
    assert answer.status_code == 200, answer.text
    return str(answer.text)


def elements_of(text: str) -> list[tuple[str, dict[str, str | None]]]:
    """As a browser finds them: tag and attributes."""
    found: list[tuple[str, dict[str, str | None]]] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append((tag, dict(attrs)))

    Reader().feed(text)
    return found


def rows_of(text: str) -> list[int]:
    """The numbers of the epochs in the first table, from above."""
    table = text.partition("<tbody>")[2].partition("</tbody>")[0]
    return [int(number) for number in re.findall(r'id="epoch-(\d+)"', table)]


def lines_of(text: str) -> list[int]:
    """The numbers of the epochs on the time line, from the left."""
    [line] = [attributes for tag, attributes in elements_of(text) if tag == "svg"]
    return [int(told.split()[0].rstrip(":")) for told in (line["data-labels"] or "").split("\n")]


def test_what_is_stuck_is_told_in_the_words_of_the_command_line(browser: Browser, ledger: Ledger, dsn: str) -> None:
    ledger.raise_attempt(FLIGHTS, planned(ledger, 1).id, Role.ABORT, reason="disk full")
    with closing(Report(dsn)) as report:
        found = report.pipeline(FLIGHTS)
    assert found is not None and found.stuck[0].stuck
    told = found.stuck[0].stuck.replace("`", "")
    for path in ("/lockstep/", PIPELINE, f"{PIPELINE}/epochs/1"):
        assert told in unescape(re.sub(r"</?code>", "", page(browser, path)))


def test_epochs_are_turned_page_by_page_and_the_unfinished_stand_on_the_first(browser: Browser, ledger: Ledger) -> None:
    for number in range(1, 36):
        epoch = planned(ledger, number)
        if number != 3:
            cleaned(ledger, epoch)
    first = page(browser, f"{PIPELINE}?limit=10")
    assert rows_of(first) == list(range(35, 25, -1)) and "Older and not finished" in first and 'id="epoch-3"' in first
    assert lines_of(first) == list(range(1, 36)), "the line shows more than the table"
    second = page(browser, f"{PIPELINE}?limit=10&before=26")
    assert rows_of(second) == list(range(25, 15, -1)) and "Older and not finished" not in second
    assert f"{PIPELINE}?before=16&amp;limit=10" in second
    last = page(browser, f"{PIPELINE}?limit=10&before=6")
    assert rows_of(last) == [5, 4, 3, 2, 1] and 'rel="next"' not in last
    assert lines_of(last) == [1, 2, 3, 4, 5]
    assert "There is no epoch before 1" in page(browser, f"{PIPELINE}?before=1")
    for query in ("before=0", "before=x", "before=99999999999999999999", "limit=9", "limit=201"):
        assert browser("admin").get(f"{PIPELINE}?{query}").status_code == 422, query


def test_an_epoch_tells_its_sinks_plan_history_and_run(browser: Browser, ledger: Ledger) -> None:
    show(ledger, committed(ledger, planned(ledger, 1)), "warehouse")
    text = page(browser, f"{PIPELINE}/epochs/1")
    for told in ("2013-01-01", "warehouse", "delays", "landing", "staged → committed", "tester", "handle "):
        assert told in text, told
    assert 'href="/dags/flights/runs/scheduled%201"' in text
    assert "lockstep resolve flights 1 delays applied" in text and "resolve flights 1 warehouse" not in text
    assert "<code>lockstep" not in page(browser, f"{PIPELINE}/epochs/1", "reader")
    assert "another definition" not in text
    planned(ledger, 2, sinks=["warehouse", "elsewhere"])
    redefined = "another definition of sink delays, sink elsewhere"
    assert redefined in page(browser, f"{PIPELINE}/epochs/1", "reader")
    assert redefined not in page(browser, f"{PIPELINE}/epochs/2")


def test_the_tabs_of_a_dag_and_of_a_run_lead_to_what_they_moved(browser: Browser, ledger: Ledger) -> None:
    planned(ledger, 1)
    opened = browser("reader")
    asked = {"dag_id": RUN.dag_id, "run_id": RUN.run_id}
    assert opened.get("/lockstep/run", params=asked).headers["location"] == f"{PIPELINE}/epochs/1"
    asked["run_id"] = "a pack's, which has many"
    assert opened.get("/lockstep/run", params=asked).headers["location"] == PIPELINE
    assert opened.get("/lockstep/dag", params={"dag_id": RUN.dag_id}).headers["location"] == PIPELINE
    strange = browser("admin")
    assert "No run of this DAG" in strange.get("/lockstep/dag?dag_id=another").text
    assert "no epoch" in strange.get("/lockstep/run?dag_id=another&run_id=x").text
    assert strange.get("/lockstep/run?dag_id=another").status_code == 422


def test_a_dag_of_several_pipelines_and_its_run_list_them_and_a_task_leads_to_its_own(
    browser: Browser, ledger: Ledger
) -> None:
    run = RunKey(RUN.dag_id, "of both")
    flown = planned(ledger, 1, run.part(FLIGHTS))
    clicked(ledger, 0, run.part(CLICKS))
    listed = page(browser, f"/lockstep/dag?dag_id={RUN.dag_id}", "reader")
    assert f'href="{PIPELINE}"' in listed and 'href="/lockstep/pipelines/clicks"' in listed
    assert f'hx-get="/lockstep/dag?dag_id={RUN.dag_id}"' in listed
    both = page(browser, f"/lockstep/run?dag_id={RUN.dag_id}&run_id=of%20both", "reader")
    assert f'href="{PIPELINE}/epochs/{flown.id}"' in both and 'href="/lockstep/pipelines/clicks/epochs/1"' in both
    assert 'href="/dags/flights/runs/of%20both"' in both
    asked = {"dag_id": RUN.dag_id, "run_id": "of both", "pipeline": CLICKS}
    opened = browser("reader")
    assert opened.get("/lockstep/run", params=asked).headers["location"] == "/lockstep/pipelines/clicks/epochs/1"
    asked["run_id"] = "another"
    assert opened.get("/lockstep/run", params=asked).headers["location"] == "/lockstep/pipelines/clicks"
    del asked["pipeline"]
    assert opened.get("/lockstep/run", params=asked).headers["location"] == f"/lockstep/dag?dag_id={RUN.dag_id}"


def test_whatever_the_ledger_holds_is_text(
    browser: Browser, ledger: Ledger, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names that no version of Lockstep takes, as a hand on the ledger's tables may leave them."""
    monkeypatch.setitem(GRANTS, "reader", {HOSTILE: {"GET", "PUT"}})
    ranges = {HOSTILE: SourceRange(None, {HOSTILE: HOSTILE})}
    plan = Plan(ranges, {HOSTILE: {"type": HOSTILE, "password": "hunter2"}}, {HOSTILE: HOSTILE})
    run = RunKey(HOSTILE, HOSTILE)
    epoch = ledger.plan_epoch(CLICKS, plan, {}, run, interval=None, after=0)
    assert epoch is not None
    ledger.raise_attempt(CLICKS, epoch.id, Role.ABORT, reason=HOSTILE)
    with closing(psycopg2.connect(dsn)) as connection:
        sql = Sql(connection)
        with sql.unwatched():
            sql("INSERT INTO lockstep.pipeline (name, keyed_by, last_epoch) VALUES (%s, 'cursor', 1)", HOSTILE)
            for table in ("epoch", "participant", "run", "transition"):
                sql(f"UPDATE lockstep.{table} SET pipeline = %s WHERE pipeline = %s", HOSTILE, CLICKS)
            sql("UPDATE lockstep.epoch SET code_version = %s", HOSTILE)
    paths = re.findall(r'href="(/lockstep/pipelines/[^"]+)"', page(browser, "/lockstep/", "reader"))
    [to] = {path for path in paths if "/epochs/" not in path}
    for path in (to, f"{to}/epochs/1", f"{to}/epochs/1/void", f"{to}/recover", "/lockstep/"):
        text = page(browser, path, "reader")
        assert "&lt;img src=x" in text, "it is there, as text"
        elements = elements_of(text)
        assert "img" not in dict(elements)
        assert [attributes.keys() - {"defer"} for tag, attributes in elements if tag == "script"] == [{"src"}] * 2
        assert not [one for _, attributes in elements for one in attributes if one.startswith("on")]
        assert "hunter2" not in text and "{{ 7 * 7 }}" in text


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What the pages have asked the ledger, and how many rows came."""
    from lockstep.ledger._connection import LedgerConnection, Row

    found: list[tuple[str, int]] = []
    read = LedgerConnection.read

    def counted(self: LedgerConnection, name: str, **parameters: object) -> list[Row]:
        rows = read(self, name, **parameters)
        found.append((name, len(rows)))
        return rows

    monkeypatch.setattr(LedgerConnection, "read", counted)
    return found


def test_a_page_asks_as_much_of_a_long_ledger_as_of_a_short_one(
    browser: Browser, ledger: Ledger, asked: list[tuple[str, int]], dsn: str
) -> None:
    """Each question once, and no more rows than a page shows, however many epochs there are."""
    from lockstep.airflow.ui import app

    cleaned(ledger, planned(ledger, 1))
    paths = {"/lockstep/": 12, PIPELINE: 13, f"{PIPELINE}/epochs/1": 12, f"{PIPELINE}/epochs/1/restate": 12}
    few = {}
    for path in paths:
        asked.clear()
        page(browser, path)
        few[path] = sorted(name for name, _ in asked)
    multiply(dsn, 2500)
    for path, most in paths.items():
        asked.clear()
        page(browser, path)
        assert sorted(name for name, _ in asked) == few[path] and len(asked) <= most, asked
        assert len({name for name, _ in asked}) >= len(asked) - 1, asked
        assert max(rows for name, rows in asked if name != "list_timeline") <= 2 * 50, asked
    asked.clear()
    text = page(browser, f"{PIPELINE}?limit=200")
    assert dict(asked)["list_timeline"] == app.ON_THE_LINE == 1000 and dict(asked)["list_epochs"] == 200
    assert len(elements_of(text)) < 200 * 20 and text.count("<path") == 1, "a thousand bars are one element"
    assert lines_of(text) == list(range(1501, 2501)) and len(rows_of(text)) == 200


def multiply(dsn: str, epochs: int) -> None:
    """Epoch 1 of flights again and again, as years leave it."""
    with closing(psycopg2.connect(dsn)) as connection:
        sql = Sql(connection)
        with sql.unwatched():
            sql(
                "INSERT INTO lockstep.epoch SELECT (jsonb_populate_record(e, jsonb_build_object('id', n, 'span',"
                " tstzrange(lower(e.span) + n * interval '1 d', upper(e.span) + n * interval '1 d')))).*"
                " FROM lockstep.epoch e, generate_series(2, %s) n WHERE e.id = 1",
                epochs,
            )
            sql(
                "INSERT INTO lockstep.participant SELECT (jsonb_populate_record(p, jsonb_build_object('epoch', n))).*"
                " FROM lockstep.participant p, generate_series(2, %s) n WHERE p.epoch = 1",
                epochs,
            )
