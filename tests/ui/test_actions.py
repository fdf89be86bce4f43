"""What a person does from a page: told before, with a reason, in that person's name, and by nobody else's form."""

from __future__ import annotations

from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from lockstep.epoch import PACKED, AuditResult, Epoch, Outcome, RunKey
from lockstep.errors import IllegalTransition
from lockstep.ledger import Ledger
from lockstep.ledger.report import Report
from lockstep.states import EpochState, Role
from tests.cases import cases
from tests.ledger.epochs import (
    CLICKS,
    FLIGHTS,
    HASH,
    OTHER_RUN,
    RUN,
    a_plan,
    attempt_of,
    cleaned,
    clicked,
    committed,
    planned,
    published,
    show,
    vote_all,
    voted,
)
from tests.ledger.epochs import seal as sealed
from tests.ui.conftest import GRANTS, Browser, seal_in

EPOCH = f"/lockstep/pipelines/{FLIGHTS}/epochs/1"
ABORT, VOID, RELEASE, RECOVER = (
    f"{EPOCH}/abort",
    f"{EPOCH}/void",
    f"{EPOCH}/release",
    f"/lockstep/pipelines/{FLIGHTS}/recover",
)
RESTORE = f"{EPOCH}/restore"
RESTATE, REPLAN, RESOLVE = f"{EPOCH}/restate", f"{EPOCH}/replan", f"{EPOCH}/resolve/delays"


def answer(browser: Browser, path: str, user: str = "operator", **said: str) -> Any:
    """Opens the form and sends it, with `said` instead of what is said there."""
    opened = browser(user)
    form = {"reason": "the disk was full", "seal": seal_in(opened.get(path).text), **said}
    return opened.post(path, data=form)


def last_entry(report: Report) -> tuple[str, str, str | None]:
    entry = [one for one in report.history(FLIGHTS, 1) if one.sink is None][-1]
    return entry.target, entry.actor, entry.reason


@pytest.fixture
def an_epoch(ledger: Ledger) -> Epoch:
    """That is planned."""
    return planned(ledger)


@pytest.fixture
def report(dsn: str) -> Report:
    return Report(dsn)


def test_an_attempt_is_aborted_with_a_reason_in_the_users_name(
    browser: Browser, ledger: Ledger, report: Report
) -> None:
    before = voted(ledger, planned(ledger))
    shown = browser("operator").get(ABORT).text
    for effect in (f"run {RUN.run_id} of {RUN.dag_id}", "votes of delays, warehouse are void", "sealed WAL stays"):
        assert effect in shown, effect
    assert ledger.epoch(FLIGHTS, 1) == before, "looking changes nothing"
    done = answer(browser, ABORT)
    assert (done.status_code, done.headers["location"]) == (303, EPOCH)
    epoch = ledger.epoch(FLIGHTS, 1)
    assert epoch.attempt > before.attempt and epoch.wal == before.wal
    assert last_entry(report)[1:] == ("airflow-ui:operator", "the disk was full")
    assert not [one for one in ledger.participants(FLIGHTS, 1).values() if one.state == "prepared"]
    assert ABORT not in browser("operator").get(EPOCH).text, "there is nobody's attempt to abort"


def test_a_range_is_given_up_with_a_reason_in_the_users_name(browser: Browser, ledger: Ledger, report: Report) -> None:
    planned(ledger)
    assert "The range 2013-01-01 of landing is given up permanently" in browser("operator").get(VOID).text
    assert answer(browser, VOID, user="<b>Eve</b>").status_code == 303
    assert ledger.epoch(FLIGHTS, 1).state is EpochState.VOID
    assert last_entry(report) == ("void", "airflow-ui:<b>Eve</b>", "the disk was full")
    assert "airflow-ui:&lt;b&gt;Eve" in browser("operator").get(EPOCH).text


def test_what_audits_hold_is_shown_and_released_with_a_reason_in_the_users_name(
    browser: Browser, ledger: Ledger
) -> None:
    epoch = sealed(ledger, planned(ledger))
    results = [AuditResult("unique <id>", 3, blocking=True), AuditResult("fresh", 0, blocking=False)]
    ledger.record_verdict(attempt_of(epoch), HASH, results)
    for path in (EPOCH, "/lockstep/", f"/lockstep/pipelines/{FLIGHTS}"):
        assert "unique &lt;id&gt; (3 rows)" in browser("reader").get(path).text
    assert "Audit unique &lt;id&gt; (3 rows) no longer holds it." in browser("operator").get(RELEASE).text
    assert answer(browser, RELEASE, reason="a strike, the day is right").status_code == 303
    verdict = ledger.verdict(FLIGHTS, epoch.id)
    assert verdict is not None and verdict.outcome is Outcome.RELEASED
    assert (verdict.actor, verdict.reason) == ("airflow-ui:operator", "a strike, the day is right")
    shown = browser("operator").get(EPOCH).text
    assert "released by airflow-ui:operator: a strike" in shown and RELEASE not in shown
    assert "Not now: no audit holds it" in browser("operator").get(RELEASE).text


@pytest.mark.fault("N11")
def test_rows_that_are_staged_while_the_form_is_answered_are_not_released_by_it(
    browser: Browser, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `begin` throws a damaged WAL away between the page's last look and the release."""
    epoch = sealed(ledger, planned(ledger))
    ledger.record_verdict(attempt_of(epoch), HASH, [AuditResult("few", 12, blocking=True)])
    assert f"The rows of manifest {HASH[:12]} go to every sink" in browser("operator").get(RELEASE).text
    release = Ledger.release_epoch

    def overtaken(acting: Ledger, *of: Any, **more: Any) -> Epoch:
        again = sealed(ledger, ledger.discard_seal(attempt_of(epoch), "damaged"), "another", "b" * 64)
        ledger.record_verdict(attempt_of(again), "b" * 64, [AuditResult("many", 2_000_000, blocking=True)])
        return release(acting, *of, **more)

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "release_epoch", overtaken)
        refused = answer(browser, RELEASE)
    assert refused.status_code != 303 and "it was staged again since" in refused.text
    verdict = ledger.verdict(FLIGHTS, epoch.id)
    assert verdict is not None and verdict.outcome is Outcome.HELD
    assert answer(browser, RELEASE).status_code == 303


def test_a_form_of_another_attempt_or_of_what_is_decided_does_nothing(browser: Browser, ledger: Ledger) -> None:
    planned(ledger)
    opened = browser("operator")
    seals = {path: seal_in(opened.get(path).text) for path in (ABORT, VOID)}
    ledger.raise_attempt(FLIGHTS, 1, Role.ABORT, reason="somebody else was quicker")
    again = ledger.take_over(FLIGHTS, 1, RUN)
    for path, seal in seals.items():
        refused = opened.post(path, data={"reason": "the disk was full", "seal": seal})
        assert refused.status_code == 403 and "its state has changed" in refused.text
    assert ledger.epoch(FLIGHTS, 1) == again
    seals = {path: seal_in(opened.get(path).text) for path in (ABORT, VOID)}
    committed(ledger, again)
    for path, seal in seals.items():
        assert opened.post(path, data={"reason": "too late", "seal": seal}).status_code == 403
        assert ledger.epoch(FLIGHTS, 1).state is EpochState.COMMITTED
        assert "seal" not in opened.get(path).text and "Not now: it is committed" in opened.get(path).text


def test_an_attempt_that_begins_between_the_look_and_the_deed_isnt_voided(ledger: Ledger) -> None:
    old = planned(ledger)
    ledger.raise_attempt(FLIGHTS, 1, Role.ABORT)
    new = ledger.take_over(FLIGHTS, 1, RUN)
    with pytest.raises(IllegalTransition, match="another attempt began"):
        ledger.void_epoch(FLIGHTS, 1, "given up", only=old.attempt)
    assert ledger.epoch(FLIGHTS, 1) == new


@cases("reason", ["", "   ", "two\nlines", "a nul \0", "x" * 501])
def test_a_reason_is_one_line_of_text(browser: Browser, ledger: Ledger, an_epoch: Epoch, reason: str) -> None:
    assert answer(browser, ABORT, reason=reason).status_code in (403, 422)
    assert ledger.epoch(FLIGHTS, 1).reason is None


def test_a_form_is_one_users_for_one_deed_for_a_while_by_post_and_from_here(
    browser: Browser, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, opened = planned(ledger), browser("operator")
    seal = seal_in(opened.get(ABORT).text)
    form = {"reason": "the disk was full", "seal": seal}
    for headers in (
        {"Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "null"},
        {"Origin": "http://["},
    ):
        assert opened.post(ABORT, data=form, headers=headers).status_code == 403
    for path, user, given in (
        (VOID, "operator", seal),
        (ABORT, "admin", seal),
        (ABORT, "operator", ""),
        (ABORT, "operator", "x"),
    ):
        assert browser(user).post(path, data={**form, "seal": given}).status_code == 403
    with monkeypatch.context() as patched:
        patched.setattr("lockstep.airflow.ui._access.VALID_SECONDS", -1)
        refused = opened.post(ABORT, data=form)
        assert refused.status_code == 403 and "too old" in refused.text
    for path in (ABORT, VOID, RECOVER):
        opened.get(path, params={**form, "seal": seal_in(opened.get(ABORT).text)})
    assert opened.get(f"{EPOCH}/explode").status_code == 404
    assert ledger.epoch(FLIGHTS, 1) == before
    assert opened.post(ABORT, data=form, headers={"Origin": "http://testserver"}).status_code == 303


@pytest.fixture
def may_trigger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GRANTS, "operator", {**GRANTS["operator"], "flights": {"GET", "PUT", "POST"}})


def led_to_a_run(browser: Browser, done: Any, user: str = "operator") -> str:
    """The page that a form's answer leads to; it may be loaded as often as one likes."""
    assert done.status_code == 303 and done.headers["location"].startswith("/lockstep/requested?"), done.text
    opened = browser(user)
    pages = [opened.get(done.headers["location"]) for _ in range(2)]
    assert [one.status_code for one in pages] == [200, 200]
    return str(pages[0].text)


def require_told_once(told: str) -> None:
    for shown in ("requested by</dt><dd>operator", "&lt;b&gt;once&lt;/b&gt;", f'href="/lockstep/pipelines/{FLIGHTS}"'):
        assert shown in told, shown


@cases("path", [RECOVER, REPLAN, RESTATE])
def test_one_wish_is_one_run_whoever_asks_and_however_often(
    browser: Browser, ledger: Ledger, triggered: list[dict[str, Any]], colleague: None, an_epoch: Epoch, path: str
) -> None:
    triggered.clear()
    if path == RESTATE:
        cleaned(ledger, an_epoch)
    opened, another = browser("operator"), browser("colleague")
    form = {"reason": "why not", "seal": seal_in(opened.get(path).text)}
    other_tab = {"reason": "me too", "seal": seal_in(another.get(path).text)}
    answers = [opened.post(path, data=form), opened.post(path, data=form), another.post(path, data=other_tab)]
    assert {(one.status_code, one.headers["location"]) for one in answers} == {(303, answers[0].headers["location"])}
    [run] = triggered
    shown = another.get(path).text
    assert "operator has requested this already" in shown and run["run_id"] in shown
    end(run["run_id"])
    late = opened.post(path, data=form)
    assert late.headers["location"] == answers[0].headers["location"], "a form stays that wish"
    assert len(triggered) == 1
    require_told_once(led_to_a_run(browser, answer(browser, path, reason="<b>once</b> more")))
    assert len(triggered) == 2 and triggered[1]["run_id"] != run["run_id"]


@pytest.mark.fault("R4")
@pytest.mark.parametrize("named", ["{run}", "{run}" + PACKED + "2013-01-01T00:00:00+00:00"])
def test_a_run_that_was_deleted_gives_its_id_to_no_other_wish(
    browser: Browser, ledger: Ledger, triggered: list[dict[str, Any]], colleague: None, an_epoch: Epoch, named: str
) -> None:
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import delete

    cleaned(ledger, an_epoch)
    opened = browser("operator")
    form = {"reason": "then", "seal": seal_in(opened.get(RESTATE).text)}
    opened.post(RESTATE, data=form)
    run = triggered[-1]["run_id"]
    current = ledger.epoch(FLIGHTS, 1)
    ledger.plan_generation(current, current.plan, {}, RunKey("flights", named.format(run=run)), "then")
    ledger.void_epoch(FLIGHTS, 2, "a mistake")
    with create_session() as session:
        session.execute(delete(DagRun).where(DagRun.run_id == run))
    assert opened.post(RESTATE, data=form).status_code == 403, "an old form stays the old wish"
    answer(browser, RESTATE, reason="now")
    assert triggered[-1]["run_id"] == run.removesuffix("1") + "2"


@pytest.fixture
def colleague(may_trigger: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who may do what the operator may."""
    monkeypatch.setitem(GRANTS, "colleague", GRANTS["operator"])


def end(run_id: str) -> None:
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from airflow.utils.state import DagRunState
    from sqlalchemy import update

    with create_session() as session:
        session.execute(update(DagRun).where(DagRun.run_id == run_id).values(state=DagRunState.FAILED))


def test_two_who_ask_at_the_same_moment_get_one_run(ledger: Ledger, triggered: list[dict[str, Any]]) -> None:
    """Between the look for the run and the wish for it somebody else was quicker."""
    from lockstep.airflow.ui._runs import find_run, trigger

    run = RunKey("flights", "lockstep_restate__1")
    for user in ("first", "second"):
        trigger(run, {}, user, "why not")
    asked = find_run(run)
    assert asked is not None and asked.by == "first" and len(triggered) == 1


def test_of_two_words_on_what_was_seen_the_first_is_kept_and_the_other_is_asked_to_look_again(
    browser: Browser, ledger: Ledger, triggered: list[dict[str, Any]], colleague: None
) -> None:
    epoch = committed(ledger, planned(ledger))
    forms = {user: seal_in(browser(user).get(RESOLVE).text) for user in ("operator", "colleague")}

    def say(user: str, choice: str) -> Any:
        form = {"reason": f"I, {user}, looked", "seal": forms[user], "choice": choice}
        return browser(user).post(RESOLVE, data=form)

    first = say("operator", "applied")
    assert say("operator", "applied").headers["location"] == first.headers["location"], "a double click"
    assert say("colleague", "applied").headers["location"] == first.headers["location"]
    for user in forms:
        refused = say(user, "not-applied")
        assert refused.status_code == 403 and "its state has changed" in refused.text
    assert len(triggered) == 1
    word = ledger.last_note(epoch, "delays")
    assert word is not None and word.reason == "asked to resolve it as applied: I, operator, looked"
    assert triggered[0]["conf"]["resolve_entry"] == word.id


def test_recovery_is_a_run_of_its_dag_for_the_pipeline_in_the_users_name(
    browser: Browser, ledger: Ledger, triggered: list[dict[str, Any]]
) -> None:
    committed(ledger, planned(ledger, 1))
    planned(ledger, 2)
    shown = browser("operator").get(RECOVER).text
    assert "Epoch 1 is published, in order." in shown and "attempts of" not in shown
    assert triggered == []
    told = led_to_a_run(browser, answer(browser, RECOVER))
    assert 'href="/dags/lockstep_recovery/runs/' in told and "the disk was full" in told and "queued" in told
    [run] = triggered
    assert (run["dag_id"], run["triggering_user_name"]) == ("lockstep_recovery", "operator")
    assert (run["conf"], run["note"]) == ({"pipeline": FLIGHTS}, "the disk was full")


def test_an_interval_is_restated_by_a_run_of_its_own_dag_in_the_users_name(
    browser: Browser, ledger: Ledger, triggered: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(ledger)
    assert "Not now: it is planned" in browser("operator").get(RESTATE).text and RESTATE not in answered(browser)
    cleaned(ledger, planned(ledger, 2))
    path = RESTATE.replace("/epochs/1/", "/epochs/2/")
    assert "it needs the right to trigger its DAG" in browser("operator").get(path).text
    monkeypatch.setitem(GRANTS, "operator", {"flights": {"GET", "PUT", "POST"}})
    shown = browser("operator").get(path).text
    assert "Its commit replaces epoch 2 in every sink" in shown and triggered == []
    assert "generation 0 of 2013-01-02, would be replaced; rows: flights 7. The last time it took 0 s" in shown
    assert "<code>lockstep restate flights --epoch 2 --reason … --plan</code>" in shown
    led_to_a_run(browser, answer(browser, path, reason="a late file"))
    [run] = triggered
    assert (run["dag_id"], run["triggering_user_name"], run["note"]) == ("flights", "operator", "a late file")
    span = {"interval_start": "2013-01-02T00:00:00+00:00", "interval_end": "2013-01-03T00:00:00+00:00"}
    assert run["conf"] == {**span, "lockstep_restate": "a late file", "lockstep_replaces": 2}
    seal = seal_in(browser("operator").get(path).text)
    assert browser("<b>Eve</b>").post(path, data={"reason": "me too", "seal": seal}).status_code == 403
    assert triggered == [run]


RANGE = f"/lockstep/pipelines/{FLIGHTS}/restate"


def between(since: str, until: str) -> str:
    return f"{RANGE}?since={since}&until={until}"


def test_a_range_is_restated_by_a_run_for_each_epoch_and_the_plan_of_all_is_told_first(
    browser: Browser, ledger: Ledger, triggered: list[dict[str, Any]], may_trigger: None
) -> None:
    for number in (1, 2, 4):
        cleaned(ledger, planned(ledger, number, RunKey("flights", f"run {number}")))
    planned(ledger, 3, RunKey("flights", "run 3"))
    assert f'href="{RANGE}"' in browser("operator").get(RANGE.removesuffix("/restate")).text
    assert "Show the effects" in browser("operator").get(RANGE).text
    path = between("2013-01-01T00:00", "2013-01-04T00:00")
    shown = browser("operator").get(path).text
    for told in ("2013-01-01", "flights 7", "stays</span>: it is planned", "Restate 2 epochs"):
        assert told in shown, told
    assert "Restate 3" not in shown and ">2013-01-04<" not in shown and triggered == []
    form = {"reason": "the carrier corrected it", "seal": seal_in(shown)}
    answers = [browser("operator").post(path, data=form) for _ in range(2)]
    assert [one.status_code for one in answers] == [303, 303], "asked twice"
    assert [one["conf"]["lockstep_replaces"] for one in triggered] == [1, 2]
    assert {one["conf"]["lockstep_restate"] for one in triggered} == {"the carrier corrected it"}
    told = browser("operator").get(answers[0].headers["location"]).text
    assert all(one["run_id"] in told for one in triggered) and told.count("requested by operator") == 2
    alone = answer(browser, RESTATE, reason="that day alone")
    assert f"run_id={triggered[0]['run_id']}" in alone.headers["location"] and len(triggered) == 2


def test_a_form_for_a_range_is_good_for_the_epochs_alone_that_it_showed(
    browser: Browser, ledger: Ledger, triggered: list[dict[str, Any]], may_trigger: None
) -> None:
    old = cleaned(ledger, planned(ledger, 1))
    path = between("2013-01-01", "2013-01-03")
    form = {"reason": "the carrier corrected it", "seal": seal_in(browser("operator").get(path).text)}
    wider = between("2013-01-01", "2013-01-04")
    cleaned(ledger, planned(ledger, 3, RunKey("flights", "run 3")))
    assert browser("operator").post(wider, data=form).status_code == 403
    assert browser("operator").post(path, data=form, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    shown_otherwise(ledger, old, 9)
    refused = browser("operator").post(path, data=form)
    assert refused.status_code == 403 and "its state has changed" in refused.text
    assert triggered == []


def test_a_dag_of_several_pipelines_is_told_whose_rows_are_restated(
    browser: Browser, ledger: Ledger, triggered: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    cleaned(ledger, planned(ledger, 1, RUN.part(FLIGHTS)))
    monkeypatch.setitem(GRANTS, "operator", {"flights": {"GET", "PUT", "POST"}})
    assert "Other tasks of that DAG also run for the interval." in browser("operator").get(RESTATE).text
    led_to_a_run(browser, answer(browser, RESTATE, reason="a late file"))
    [run] = triggered
    assert run["conf"]["lockstep_restate"] == {FLIGHTS: "a late file"}


def shown_otherwise(ledger: Ledger, old: Epoch, rows: int) -> Epoch:
    """The epoch that has taken the place of `old`, with other rows."""
    new = ledger.plan_generation(old, a_plan(), {}, OTHER_RUN, f"{rows} rows are right")
    assert new is not None
    ledger.take_token(attempt_of(new), Role.STAGE)
    summary = {"outputs": {"flights": {"rows": rows, "digest": "1" * 32}}, "sources": {}}
    vote_all(ledger, ledger.seal_epoch(attempt_of(new), f"folder {new.id}", "b" * 64, summary, "v2"))
    new = ledger.commit_epoch(attempt_of(new))
    for sink in ("warehouse", "delays"):
        new = show(ledger, new, sink)
    return ledger.record_cleanup(new, Role.CLEANUP)


def kept(ledger: Ledger, run: RunKey = RUN) -> Epoch:
    """Cleaned up, but for its WAL."""
    epoch = published(ledger, planned(ledger, 1, run))
    ledger.decide_retention(epoch, Role.CLEANUP, ("folder", 100))
    return ledger.record_cleanup(epoch, Role.CLEANUP)


def test_rows_of_an_earlier_generation_are_shown_again_by_a_run_and_the_plan_of_that_is_told_first(
    browser: Browser, ledger: Ledger, triggered: list[dict[str, Any]], may_trigger: None
) -> None:
    old = kept(ledger)
    assert "Not now: it is cleaned" in browser("operator").get(RESTORE).text
    new = shown_otherwise(ledger, old, 9)
    for page in (EPOCH, EPOCH.replace("/epochs/1", f"/epochs/{new.id}")):
        assert f'href="{RESTORE}"' in browser("operator").get(page).text
        assert "/restore" not in browser("reader").get(page).text
    shown = unescape(browser("operator").get(RESTORE).text)
    for told in (
        "The rows of epoch 1, generation 0 of 2013-01-01, would be shown again: flights 7",
        f"in place of those of epoch {new.id}, generation 1: flights 9",
        "no input is read",
        "<code>lockstep restore flights --epoch 1 --reason … --plan</code>",
    ):
        assert told in shown, told
    assert triggered == []
    form = {"reason": "it was right before", "seal": seal_in(shown)}
    answers = [browser("operator").post(RESTORE, data=form) for _ in range(2)]
    assert answers[0].headers["location"] == answers[1].headers["location"]
    led_to_a_run(browser, answers[0])
    [run] = triggered
    span = {"interval_start": "2013-01-01T00:00:00+00:00", "interval_end": "2013-01-02T00:00:00+00:00"}
    wish = {"lockstep_restate": "it was right before", "lockstep_restore": 1, "lockstep_replaces": new.id}
    assert run["conf"] == {**span, **wish}


def test_a_form_to_restate_or_to_go_back_is_good_for_the_generation_alone_that_was_shown(
    browser: Browser, ledger: Ledger, triggered: list[dict[str, Any]], may_trigger: None
) -> None:
    new = shown_otherwise(ledger, kept(ledger), 9)
    seals = {path: seal_in(browser("operator").get(path).text) for path in (RESTORE, RESTATE.replace("/1/", "/2/"))}
    shown_otherwise(ledger, new, 11)
    for path, seal in seals.items():
        refused = browser("operator").post(path, data={"reason": "it was right before", "seal": seal})
        assert refused.status_code == 403 and "its state has changed" in refused.text
    assert triggered == []


def test_an_undecided_epoch_is_frozen_anew_by_a_run_of_its_own_dag_in_the_users_name(
    browser: Browser, ledger: Ledger, triggered: list[dict[str, Any]], may_trigger: None
) -> None:
    before = voted(ledger, planned(ledger))
    shown = browser("operator").get(REPLAN).text
    for effect in (
        "the current files of 2013-01-01",
        "votes of delays, warehouse are void",
        "WAL is discarded",
    ):
        assert effect in shown, effect
    assert 'href="/dags/flights/runs/' in led_to_a_run(browser, answer(browser, REPLAN, reason="a sink came"))
    span = {"interval_start": "2013-01-01T00:00:00+00:00", "interval_end": "2013-01-02T00:00:00+00:00"}
    [run] = triggered
    assert (run["dag_id"], run["triggering_user_name"], run["note"]) == ("flights", "operator", "a sink came")
    assert run["conf"] == {**span, "lockstep_replan": "a sink came", "lockstep_replan_epoch": 1}
    assert ledger.epoch(FLIGHTS, 1) == before, "the run does it"
    committed(ledger, ledger.take_over(FLIGHTS, 1, RUN))
    assert "Not now: it is committed" in browser("operator").get(REPLAN).text


def test_what_is_to_take_anothers_place_is_frozen_anew_by_a_run_that_restates(
    browser: Browser, ledger: Ledger, triggered: list[dict[str, Any]], may_trigger: None
) -> None:
    """Or the run would find what is published, and have nothing to do."""
    new = ledger.plan_generation(cleaned(ledger, planned(ledger)), a_plan(), {}, OTHER_RUN, "a late file")
    assert new is not None
    answer(browser, f"/lockstep/pipelines/{FLIGHTS}/epochs/{new.id}/replan", reason="a later one")
    [run] = triggered
    assert (run["conf"]["lockstep_restate"], run["conf"]["lockstep_replan"]) == ("a late file", "a later one")


def test_what_shows_earlier_rows_again_is_replanned_by_a_run_that_asks_for_these_rows(
    ledger: Ledger, report: Report, triggered: list[dict[str, Any]]
) -> None:
    """Or begin would wait for it as for another run's, and each look plan it anew."""
    from lockstep.airflow.ui._actions import DAG_ACTIONS
    from lockstep.airflow.ui.app import require_epoch

    new = ledger.plan_generation(cleaned(ledger, planned(ledger)), a_plan(), {}, RUN, "it was right before")
    assert new is not None and new.generation is not None
    found = require_epoch(report, FLIGHTS, new.id)
    found = replace(found, epoch=replace(found.epoch, generation=replace(new.generation, restores=1)))
    told = " ".join(DAG_ACTIONS["replan"].effects(found, report))
    assert "the same rows, those of epoch 1" in told and "the current files of" not in told
    conf = DAG_ACTIONS["replan"].conf(found, report, "a sink came")
    assert (conf["lockstep_restore"], conf["lockstep_restate"]) == (1, "it was right before")


def test_where_no_run_can_freeze_an_epoch_anew_the_page_says_which_command_does(
    browser: Browser, ledger: Ledger, triggered: list[dict[str, Any]]
) -> None:
    def refused(pipeline: str, epoch: int) -> str:
        text = browser("admin").get(f"/lockstep/pipelines/{pipeline}/epochs/{epoch}/replan").text
        assert 'name="seal"' not in text
        return unescape(text)

    command = "use <code>lockstep replan {} {} --reason 'planned anew'</code>"
    planned(ledger, 1, RunKey("run_epoch", "a notebook's"))
    assert f"no DAG moved it: {command.format(FLIGHTS, 1)}" in refused(FLIGHTS, 1)
    planned(ledger, 2, RunKey("renamed", "run 1"))
    assert f"no longer has DAG renamed: {command.format(FLIGHTS, 2)}" in refused(FLIGHTS, 2)
    planned(ledger, 3, RunKey("flights", f"run 1{PACKED}a"))
    assert f"its run moved several epochs: {command.format(FLIGHTS, 3)}" in refused(FLIGHTS, 3)
    clicked(ledger, 0, RunKey("clicks", "run 1"))
    shown = browser("admin").get(f"/lockstep/pipelines/{CLICKS}/epochs/1/replan").text
    assert 'name="seal"' in shown and "DAG clicks is paused" in shown
    clicked(ledger, 1, RunKey("clicks", "run 2"))
    assert "epoch 2 starts where it ends" in refused(CLICKS, 1)
    assert (
        f"epoch 1 before it is undecided, too, and a run would begin that one: {command.format(CLICKS, 2)}"
        in refused(CLICKS, 2)
    )


def test_a_cursors_last_epoch_is_replanned_beside_one_that_takes_an_older_ones_place(
    browser: Browser, ledger: Ledger, triggered: list[dict[str, Any]]
) -> None:
    """That one's number is the youngest, and nothing starts where it ends."""
    first = cleaned(ledger, clicked(ledger, 0, RunKey("clicks", "run 1")))
    last = clicked(ledger, 1, RunKey("clicks", "run 2"))
    again = ledger.plan_generation(first, first.plan, {}, RunKey("clicks", "run 3"), "a late record")
    assert again is not None and again.id > last.id
    confs = []
    for epoch in (last, again):
        answer(browser, f"/lockstep/pipelines/{CLICKS}/epochs/{epoch.id}/replan", user="admin", reason="sinks moved")
        confs.append(triggered[-1]["conf"])
    assert [one["lockstep_replan_epoch"] for one in confs] == [last.id, again.id]
    assert [one.get("lockstep_epoch") for one in confs] == [None, first.id]


def test_a_persons_word_goes_into_the_history_and_a_run_of_the_recovery_dag_takes_it_from_there(
    browser: Browser, ledger: Ledger, triggered: list[dict[str, Any]]
) -> None:
    epoch = show(ledger, committed(ledger, planned(ledger)), "warehouse")
    shown = browser("operator").get(RESOLVE).text
    assert "first checks sink delays" in shown and shown.count('type="radio"') == 2
    assert answer(browser, RESOLVE).status_code == 403, "which of the two"
    assert answer(browser, RESOLVE, choice="perhaps").status_code == 403
    assert triggered == [] and ledger.participants(FLIGHTS, 1)["delays"].publication is None
    led_to_a_run(browser, answer(browser, RESOLVE, choice="applied"))
    [run] = triggered
    assert (run["dag_id"], run["triggering_user_name"]) == ("lockstep_recovery", "operator")
    word = ledger.last_note(epoch, "delays")
    assert word is not None
    where = {"pipeline": FLIGHTS, "resolve_epoch": 1, "resolve_sink": "delays", "resolve_entry": word.id}
    assert run["conf"] == where, "and not what to say"
    assert (word.role, word.actor) == (Role.OPERATOR, "airflow-ui:operator")
    assert word.reason == "asked to resolve it as applied: the disk was full"
    assert ledger.participants(FLIGHTS, 1)["delays"].publication is None, "the run does it, if nothing is proven"
    assert "asked to resolve it as applied" in browser("reader").get(EPOCH).text


def test_there_is_nothing_to_say_of_what_a_sink_has_published_or_nobody_decided(
    browser: Browser, ledger: Ledger, triggered: list[dict[str, Any]]
) -> None:
    epoch = planned(ledger)
    assert "Not now: it is planned" in browser("operator").get(RESOLVE).text
    epoch = committed(ledger, epoch)
    assert "planned without a sink nobody" in browser("operator").get(f"{EPOCH}/resolve/nobody").text
    seal = seal_in(browser("operator").get(RESOLVE).text)
    show(ledger, epoch, "delays")
    assert "Not now: sink delays has published it" in browser("operator").get(RESOLVE).text
    form = {"reason": "too late", "seal": seal, "choice": "applied"}
    assert browser("operator").post(RESOLVE, data=form).status_code == 403
    assert triggered == []


def test_a_word_needs_the_right_to_trigger_the_recovery_dag_and_a_seal_of_its_own_sink(
    browser: Browser, ledger: Ledger, triggered: list[dict[str, Any]]
) -> None:
    epoch = committed(ledger, planned(ledger))
    assert "no recovery DAG that you may trigger" in browser("<b>Eve</b>").get(RESOLVE).text
    other = seal_in(browser("operator").get(f"{EPOCH}/resolve/warehouse").text)
    form = {"reason": "x", "choice": "applied", "seal": other}
    assert browser("operator").post(RESOLVE, data=form).status_code == 403
    own = {**form, "seal": seal_in(browser("operator").get(RESOLVE).text)}
    assert browser("operator").post(RESOLVE, data=own, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert triggered == []
    word = ledger.last_note(epoch, "delays")
    assert word is not None and word.reason is None, "nothing was left that a run could take up"


def answered(browser: Browser) -> str:
    return str(browser("operator").get(EPOCH).text)


def test_recovery_needs_the_right_to_trigger_its_dag_too(
    browser: Browser, ledger: Ledger, triggered: list[dict[str, Any]]
) -> None:
    planned(ledger)
    shown = browser("<b>Eve</b>").get(RECOVER)
    assert shown.status_code == 200 and "no recovery DAG that you may trigger" in shown.text
    seal = seal_in(browser("operator").get(RECOVER).text)
    assert browser("<b>Eve</b>").post(RECOVER, data={"reason": "x", "seal": seal}).status_code == 403
    assert triggered == []
