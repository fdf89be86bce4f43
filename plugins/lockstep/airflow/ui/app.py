"""The application that Airflow's api-server mounts at /lockstep: one function a page.

Every page but the style sheet needs Airflow's login, a pipeline's page the right to read the runs of a DAG of it, and
whatever changes something the right to change them. Nothing is changed by GET.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, TypeAlias
from urllib.parse import quote

from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.core_api.security import get_user
from fastapi import Depends, FastAPI, Form, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException as AnyHTTPException

from lockstep.airflow.connections import LEDGER, login
from lockstep.airflow.page import MOUNT
from lockstep.airflow.ui._access import Right, may, permitted
from lockstep.airflow.ui._actions import ACTIONS, Action, commands
from lockstep.airflow.ui._dag_actions import (
    ERRANDS,
    DagAction,
    choices_of_resolving,
    conf_of_recovery,
    conf_of_resolving,
    dag_of,
    effects_of_recovery,
    effects_of_resolving,
    refuse_resolving,
)
from lockstep.airflow.ui._forms import (
    FormCutShort,
    FormRefused,
    Question,
    open_seal,
    require_reason,
    require_same_origin,
    require_unmoved,
)
from lockstep.airflow.ui._range import MOST_TOGETHER, Wish, interval_between, question_of_all, refuse_range
from lockstep.airflow.ui._rendering import Links, render, timeline
from lockstep.airflow.ui._runs import find_asked, number_of, recovery_dags, require_triggerable, trigger
from lockstep.epoch import Epoch, Interval, RunKey
from lockstep.errors import LedgerRefused, LedgerUnavailable, LockstepError, NotConfigured, Retryable, UnknownEpoch
from lockstep.ledger import Ledger
from lockstep.ledger.report import EpochStatus, PipelineStatus, Report
from lockstep.operations.resolve import RESOLUTIONS, Resolution, ask
from lockstep.protocol.generations import current_life
from lockstep.protocol.planned_sinks import describe_redefined, find_redefined
from lockstep.states import EpochState

UNFINISHED = 50  #: of a pipeline's unfinished epochs: the oldest, which the others wait for
AT_ONCE = 8  #: pages that ask the ledger
PATIENCE_SECONDS = 5.0  #: of a page that is one too many
MOST_EPOCH = 2**63 - 1
MOST_SHOWN = 200  #: epochs of one table
ON_THE_LINE = 1000  #: epochs of a time line, those of the table among them
MOST_RESTORABLE = 10  #: lives of a range of which a page looks whether their rows can be shown again: the youngest
MOST_HISTORY = 200  #: entries of an epoch's history: the youngest
_log = logging.getLogger(__name__)
_asking = threading.BoundedSemaphore(AT_ONCE)
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'self'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}

User: TypeAlias = Annotated[BaseUser, Depends(get_user)]
Before: TypeAlias = Annotated[int | None, Query(ge=1, le=MOST_EPOCH)]
Shown: TypeAlias = Annotated[int, Query(ge=10, le=MOST_SHOWN)]
Reason: TypeAlias = Annotated[str, Form(max_length=10_000)]
Seal: TypeAlias = Annotated[str, Form(max_length=10_000)]
Moment: TypeAlias = Annotated[str, Query(max_length=40)]
Choice: TypeAlias = Annotated[str, Form(max_length=100)]


app = FastAPI(title="Lockstep", docs_url=None, redoc_url=None, openapi_url=None)
app.mount("/static", StaticFiles(packages=[("lockstep.airflow.ui", "static")]), name="static")


@app.middleware("http")
async def add_headers(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
    request.state.root = root = request.scope.get("root_path", "")  # what is mounted below writes its own there
    path = request.scope["path"]
    # no text of a database holds it; no number has so many digits, and no name begins with one
    if "\0" in path or "%00" in request.url.query or re.search(r"/[0-9]{20}", path):
        answer: Response = render(request, "told.html", 404, title="Lockstep", told="there is no such page")
    else:
        try:
            answer = await go_on(request)
        except Exception:
            _log.exception("%s %s", request.method, path)
            told = "This page has failed; the log of Airflow's api-server says why."
            answer = render(request, "told.html", 500, title="Lockstep", told=told)
    static = request.url.path.startswith(f"{root}/static/")
    for name, value in _HEADERS.items():
        if not (static and name == "Cache-Control"):
            answer.headers[name] = value
    return answer


# --- what goes wrong ---


@app.exception_handler(LockstepError)
def tell_error(request: Request, error: LockstepError) -> Response:
    """One sentence; Lockstep's errors hold no secrets."""
    down = isinstance(error, Retryable | LedgerRefused | NotConfigured)
    status = 503 if down else 404 if isinstance(error, UnknownEpoch) else 409
    return render(request, "told.html", status, title=type(error).__name__, told=str(error))


@app.exception_handler(FormRefused)
def tell_refusal(request: Request, refused: FormRefused) -> Response:
    return render(request, "told.html", 403, title=refused.title, told=str(refused))


@app.exception_handler(AnyHTTPException)
def tell_status(request: Request, error: AnyHTTPException) -> Response:
    """Without a login Airflow's page for it, if this is a page that somebody opens. A form that somebody had open when
    the login ended has a page that leads there: what a redirect would lead to after it isn't what was sent."""
    if error.status_code == 401 and request.method == "GET" and "hx-request" not in request.headers:
        return RedirectResponse(_login(request), 303)
    if error.status_code == 401 and request.method == "POST":
        told = "You are not logged in, or not any more. Log in, and the form opens again."
        return render(request, "told.html", 401, title="Nothing was done", told=told, login=_login(request))
    return render(request, "told.html", error.status_code, title="Lockstep", told=str(error.detail))


def _login(request: Request) -> str:
    """Airflow's page for it, which leads back here."""
    here = quote(request.url.path + (f"?{request.url.query}" if request.url.query else ""), safe="")
    return f"{request.state.root.removesuffix(MOUNT)}/api/v2/auth/login?next={here}"


# --- what is asked of the ledger ---


@contextmanager
def open_report() -> Iterator[Report]:
    with _one_of_a_few(), closing(Report(login(LEDGER))) as report:
        yield report


@contextmanager
def _one_of_a_few() -> Iterator[None]:
    """Airflow's own pages share their threads with these: a ledger that hangs must not take them all."""
    if not _asking.acquire(timeout=PATIENCE_SECONDS):
        raise LedgerUnavailable(f"{AT_ONCE} others are asking the ledger at this moment; try again")
    try:
        yield
    finally:
        _asking.release()


@contextmanager
def open_ledger(user: BaseUser) -> Iterator[Ledger]:
    """In whose name the history tells it."""
    with closing(Ledger(login(LEDGER), f"airflow-ui:{user.get_name()}")) as ledger:
        yield ledger


def require(report: Report, user: BaseUser, right: Right, pipeline: str) -> frozenset[str]:
    """The pipeline's DAGs. 403, whether there is such a pipeline or not: who may not look isn't told."""
    dag_ids = report.dags([pipeline]).get(pipeline, frozenset())
    if not may(user, right, dag_ids):
        does = "look at" if right is Right.READ else "act on"
        raise HTTPException(403, f"you may not {does} pipeline {pipeline}: that needs a right to the runs of its DAG")
    return dag_ids


def require_epoch(report: Report, pipeline: str, number: int) -> EpochStatus:
    """Raises `UnknownEpoch`."""
    if number > MOST_EPOCH:
        raise UnknownEpoch(f"the ledger has no epoch {number} of pipeline {pipeline}")
    return report.epoch_status(report.epoch(pipeline, number))


def require_pipeline(report: Report, pipeline: str, limit: int = 0, before: int | None = None) -> PipelineStatus:
    """Raises `UnknownEpoch`."""
    unfinished = UNFINISHED if before is None else 0
    found = report.pipeline(pipeline, limit=limit, before=before, unfinished=unfinished, brief=True)
    if found is None:
        raise UnknownEpoch(f"the ledger has no pipeline {pipeline!r}")
    return found


# --- pages ---


@app.get("/", response_class=HTMLResponse)
def show_pipelines(request: Request, user: User) -> Response:
    """All that the user may look at."""
    with open_report() as report:
        return _list_pipelines(request, user, report, _links(request)(""))


def _list_pipelines(
    request: Request, user: BaseUser, report: Report, here: str, only: Collection[str] | None = None
) -> Response:
    """`here`: where the list is; `only`: those of them."""
    found = report.pipelines(limit=1, unfinished=UNFINISHED, brief=True)
    every = [one for one in found if only is None or one.name in only]
    dags = report.dags([one.name for one in every])
    allowed = permitted(user, Right.READ, {one.name: dags.get(one.name, frozenset()) for one in every})
    shown = [one for one in every if one.name in allowed]
    return render(request, "pipelines.html", pipelines=shown, here=here)


@app.get("/dag", response_class=HTMLResponse)
def go_to_pipelines(request: Request, user: User, dag_id: str) -> Response:
    """Where a DAG's tab leads."""
    require_dag(user, dag_id)
    with open_report() as report:
        moved = report.pipelines_of_dag(dag_id)
        if len(moved) > 1:
            return _list_pipelines(request, user, report, _links(request)("dag", dag_id=dag_id), moved)
    if not moved:
        return render(
            request, "told.html", title=dag_id, told="No run of this DAG has begun an epoch of Lockstep's yet."
        )
    return RedirectResponse(_links(request)("pipelines", moved[0]), 303)


@app.get("/run", response_class=HTMLResponse)
def go_to_epochs(request: Request, user: User, dag_id: str, run_id: str, pipeline: str | None = None) -> Response:
    """Where a run's tab leads, and its tasks' links, which name their `pipeline`. A run that moves a pack has many
    epochs: to their pipeline."""
    require_dag(user, dag_id)
    with open_report() as report:
        moved = report.pipelines_of_dag(dag_id)
        asked = [pipeline] if pipeline is not None else moved
        begun = report.epochs_of_run(RunKey(dag_id, run_id), asked)
    if len(begun) == 1:
        return RedirectResponse(_links(request)("pipelines", begun[0].pipeline, "epochs", begun[0].id), 303)
    if begun:
        return render(request, "run.html", dag_id=dag_id, run=RunKey(dag_id, run_id), epochs=begun)
    if pipeline in moved or len(moved) == 1:
        return RedirectResponse(_links(request)("pipelines", pipeline or moved[0]), 303)
    if moved:
        return RedirectResponse(_links(request)("dag", dag_id=dag_id), 303)
    return render(request, "told.html", title=run_id, told="This run has begun no epoch of Lockstep's yet.")


@app.get("/asked", response_class=HTMLResponse)
def show_asked(request: Request, user: User, dag_id: str, run_id: str, pipeline: str) -> Response:
    """Where a form leads that had a run triggered, for `pipeline`. Who may trigger a DAG may see what came of it."""
    if not any(may(user, right, frozenset({dag_id})) for right in (Right.READ, Right.TRIGGER)):
        raise HTTPException(403, f"you may not look at the runs of DAG {dag_id}")
    asked = find_asked(RunKey(dag_id, run_id))
    if asked is None:
        raise HTTPException(404, f"Airflow has no run {run_id} of DAG {dag_id}, or no more")
    return render(request, "asked.html", asked=asked, pipeline=pipeline)


def require_dag(user: BaseUser, dag_id: str) -> None:
    if not may(user, Right.READ, frozenset({dag_id})):
        raise HTTPException(403, f"you may not look at the runs of DAG {dag_id}")


@app.get("/pipelines/{pipeline:path}/epochs/{epoch:int}", response_class=HTMLResponse)
def show_epoch(request: Request, user: User, pipeline: str, epoch: int) -> Response:
    with open_report() as report:
        acts = may(user, Right.ACT, require(report, user, Right.READ, pipeline))
        found = require_epoch(report, pipeline, epoch)
        history = report.history(pipeline, epoch)
        lives = report.generations(found.epoch)
        restorable = _restorable(report, lives) if acts else frozenset()
        newest = report.last_original(pipeline)
        redefined = find_redefined(found.epoch, newest.plan.sinks, newest.plan.reads) if newest else ()
        errands = [one for one in ERRANDS.values() if acts and one.refused(found, report) is None]
    return render(
        request,
        "epoch.html",
        found=found,
        history=history[-MOST_HISTORY:],
        earlier=max(0, len(history) - MOST_HISTORY),
        lives=lives,
        restorable=restorable,
        redefined=describe_redefined(found.epoch, redefined) if redefined else None,
        actions=[one for one in ACTIONS.values() if acts and one.refused(found) is None],
        errands=errands,
        recoverable=acts and found.epoch.state in (EpochState.COMMITTED, EpochState.PUBLISHED),
        unresolved=[
            one.sink for one in found.participants if acts and found.stuck and not refuse_resolving(found, one.sink)
        ],
        commands=commands(found) if acts else [],
    )


def _restorable(report: Report, lives: Sequence[Epoch]) -> frozenset[int]:
    """Those of a range's lives whose rows can be shown again."""
    replaced = [one for one in lives if one.state is EpochState.REPLACED][-MOST_RESTORABLE:]
    asked = [report.epoch_status(one) for one in replaced]
    return frozenset(one.epoch.id for one in asked if ERRANDS["restore"].refused(one, report) is None)


@app.get("/pipelines/{pipeline:path}/epochs/{epoch:int}/resolve/{sink:path}", response_class=HTMLResponse)
def ask_about_resolving(request: Request, user: User, pipeline: str, epoch: int, sink: str) -> Response:
    with open_report() as report:
        require(report, user, Right.ACT, pipeline)
        found = require_epoch(report, pipeline, epoch)
        dag_id = _recovery_dag(user)
        question = _question_of_resolving(user, found, sink, dag_id, report)
    return _ask(
        request,
        question,
        f"What became of {pipeline}, epoch {epoch}, in {sink}?",
        refuse_resolving(found, sink) or (None if dag_id else _NO_RECOVERY),
        effects_of_resolving(sink, dag_id or ""),
        verb="Resolve",
        choices=choices_of_resolving(sink),
    )


@app.post("/pipelines/{pipeline:path}/epochs/{epoch:int}/resolve/{sink:path}")
def resolve(
    request: Request,
    user: User,
    pipeline: str,
    epoch: int,
    sink: str,
    reason: Reason = "",
    seal: Seal = "",
    choice: Choice = "",
) -> Response:
    require_same_origin(request)
    with open_report() as report:
        require(report, user, Right.ACT, pipeline)
        found = require_epoch(report, pipeline, epoch)
        dag_id = _recovery_dag(user)
        question = _question_of_resolving(user, found, sink, dag_id, report)
    said = next((one for one in RESOLUTIONS if one == choice), None)
    asked = open_seal(question, seal)
    if find_asked(run := asked.run(choice)):
        return _lead_to_run(request, pipeline, run)
    require_unmoved(asked, question)
    if refused := refuse_resolving(found, sink):
        raise FormRefused(refused)
    if said is None:
        raise FormRefused(f"say which: {' or '.join(RESOLUTIONS)}")
    reason = require_reason(reason)
    if dag_id is None:
        raise FormRefused(_NO_RECOVERY)
    require_triggerable(dag_id, conf_of_resolving(found.epoch, sink, 1))  # or the word would stay without its run
    with open_ledger(user) as ledger:
        word = ask(ledger, found.epoch, sink, said, reason, after=question.number)
    trigger(run, conf_of_resolving(found.epoch, sink, word), user.get_name(), reason)
    return _lead_to_run(request, pipeline, run)


def _question_of_resolving(
    user: BaseUser, found: EpochStatus, sink: str, dag_id: str | None, report: Report
) -> Question:
    """Told from others by what was told last of the sink's part: a word that somebody has left makes it another."""
    question = _question(user, f"resolve {sink}", found)
    last = report.last_note(found.epoch, sink)
    return replace(question, dag_id=dag_id or "", number=last.id if last else 0)


@app.get("/pipelines/{pipeline:path}/epochs/{epoch:int}/{action}", response_class=HTMLResponse)
def ask_about_epoch(request: Request, user: User, pipeline: str, epoch: int, action: str) -> Response:
    """What it would do, and a form that asks for a reason."""
    wanted = _action(action)
    with open_report() as report:
        require(report, user, Right.ACT, pipeline)
        found = require_epoch(report, pipeline, epoch)
        refused = _refused(wanted, user, found, report)
        if refused is not None:
            effects = []
        else:
            effects = wanted.effects(found, report) if isinstance(wanted, DagAction) else wanted.effects(found)
        question = _question_of(wanted, user, found, report)
    title = f"{wanted.title}: {pipeline}, epoch {epoch}"
    return _ask(request, question, title, refused, effects, verb=wanted.title)


@app.post("/pipelines/{pipeline:path}/epochs/{epoch:int}/{action}")
def act_on_epoch(
    request: Request, user: User, pipeline: str, epoch: int, action: str, reason: Reason = "", seal: Seal = ""
) -> Response:
    wanted = _action(action)
    require_same_origin(request)
    with open_report() as report:
        require(report, user, Right.ACT, pipeline)
        found = require_epoch(report, pipeline, epoch)
        question = _question_of(wanted, user, found, report)
        asked = open_seal(question, seal)
        if asked.dag_id and find_asked(run := asked.run()):
            return _lead_to_run(request, pipeline, run)
        require_unmoved(asked, question)
        if refused := _refused(wanted, user, found, report):
            raise FormRefused(refused)
        reason = require_reason(reason)
        conf = wanted.conf(found, report, reason) if isinstance(wanted, DagAction) else {}
    if isinstance(wanted, DagAction):
        trigger(asked.run(), conf, user.get_name(), reason)
        return _lead_to_run(request, pipeline, asked.run())
    with open_ledger(user) as ledger:
        wanted.act(ledger, found, reason)
    return RedirectResponse(_links(request)("pipelines", pipeline, "epochs", epoch), 303)


def _refused(wanted: Action | DagAction, user: BaseUser, found: EpochStatus, report: Report) -> str | None:
    """Why it can't be done, or why not by this user; None: it can."""
    if isinstance(wanted, Action):
        return wanted.refused(found)
    if refused := wanted.refused(found, report):
        return refused
    dag_ids = frozenset({found.last_run.dag_id}) if found.last_run else frozenset()
    return None if may(user, Right.TRIGGER, dag_ids) else "that needs the right to trigger its DAG"


@app.get("/pipelines/{pipeline:path}/recover", response_class=HTMLResponse)
def ask_about_recovery(request: Request, user: User, pipeline: str) -> Response:
    with open_report() as report:
        require(report, user, Right.ACT, pipeline)
        require_pipeline(report, pipeline)
        unfinished = report.unfinished_epochs(pipeline)
        abandoned = report.abandoned_epochs(pipeline, report.recovery_grace(pipeline))
    question = _question_of_recovery(user, pipeline)
    refused = None if question.dag_id else _NO_RECOVERY
    effects = effects_of_recovery(unfinished, abandoned)
    return _ask(request, question, f"Recover {pipeline}", refused, effects, verb="Recover")


@app.post("/pipelines/{pipeline:path}/recover")
def recover(request: Request, user: User, pipeline: str, reason: Reason = "", seal: Seal = "") -> Response:
    require_same_origin(request)
    with open_report() as report:
        require(report, user, Right.ACT, pipeline)
    question = _question_of_recovery(user, pipeline)
    asked = open_seal(question, seal)
    if find_asked(run := asked.run()):
        return _lead_to_run(request, pipeline, run)
    require_unmoved(asked, question)
    reason = require_reason(reason)
    if not question.dag_id:
        raise FormRefused(_NO_RECOVERY)
    trigger(run, conf_of_recovery(pipeline), user.get_name(), reason)
    return _lead_to_run(request, pipeline, run)


def _question_of_recovery(user: BaseUser, pipeline: str) -> Question:
    return _numbered(Question(user.get_name(), "recover", pipeline, dag_id=_recovery_dag(user) or ""))


@app.get("/pipelines/{pipeline:path}/restate", response_class=HTMLResponse)
def ask_about_range(request: Request, user: User, pipeline: str, since: Moment = "", until: Moment = "") -> Response:
    """From when to when, and then what it would do, epoch by epoch."""
    span = interval_between(since, until) if since or until else None
    with open_report() as report:
        require(report, user, Right.ACT, pipeline)
        require_pipeline(report, pipeline)
        wishes = _wishes(user, report, pipeline, span) if span else []
    return render(
        request,
        "restate.html",
        pipeline=pipeline,
        since=since,
        until=until,
        span=span,
        wishes=wishes[:MOST_TOGETHER],
        many=sum(one.refused is None for one in wishes),
        refused=refuse_range(wishes, span, pipeline) if span else None,
        seal=question_of_all(user.get_name(), pipeline, wishes).seal(),
    )


@app.post("/pipelines/{pipeline:path}/restate")
def restate_range(
    request: Request, user: User, pipeline: str, since: Moment, until: Moment, reason: Reason = "", seal: Seal = ""
) -> Response:
    require_same_origin(request)
    span = interval_between(since, until)
    with open_report() as report:
        require(report, user, Right.ACT, pipeline)
        wishes = _wishes(user, report, pipeline, span)
        question = question_of_all(user.get_name(), pipeline, wishes)
        require_unmoved(open_seal(question, seal), question)
        if refused := refuse_range(wishes, span, pipeline):
            raise FormRefused(refused)
        reason = require_reason(reason)
        wanted = [one for one in wishes if one.refused is None]
        asked = [(one.question.run(), ERRANDS["restate"].conf(one.found, report, reason)) for one in wanted]
    for done, (run, conf) in enumerate(asked):
        try:
            trigger(run, conf, user.get_name(), reason)
        except (FormRefused, NotConfigured) as error:
            if not done:
                raise
            raise FormCutShort(f"{done} of {len(asked)} epochs are asked for, no more: {error}") from error
    return RedirectResponse(_links(request)("pipelines", pipeline, "restate", since=since, until=until), 303)


def _wishes(user: BaseUser, report: Report, pipeline: str, span: Interval) -> list[Wish]:
    """One more than can be asked for at most."""
    restating, wishes = ERRANDS["restate"], []
    for epoch in report.current_epochs(pipeline, span)[: MOST_TOGETHER + 1]:
        found = report.epoch_status(epoch)
        question = _question_of(restating, user, found, report)
        refused = _refused(restating, user, found, report)
        asked = find_asked(question.run()) if refused is None else None
        wishes.append(Wish(found, report.took(epoch), refused, question, asked))
    return wishes


@app.get("/pipelines/{pipeline:path}", response_class=HTMLResponse)
def show_pipeline(request: Request, user: User, pipeline: str, before: Before = None, limit: Shown = 50) -> Response:
    """Its epochs, youngest first, `limit` a page, on a time line with older ones; on the first page also what else
    isn't finished. What it costs doesn't grow with the ledger."""
    with open_report() as report:
        acts = may(user, Right.ACT, require(report, user, Right.READ, pipeline))
        found = require_pipeline(report, pipeline, limit, before)
        line = report.line(pipeline, limit=ON_THE_LINE, before=before)
    page, waiting = found.epochs[:limit], found.epochs[limit:]
    older = page[-1].epoch.id if len(page) == limit and page[-1].epoch.id > 1 else None
    return render(
        request,
        "pipeline.html",
        found=found,
        acts=acts,
        page=page,
        waiting=waiting,
        line=timeline(line, len(page), {one.epoch.id for one in found.stuck}),
        older=older,
        before=before,
        limit=limit,
    )


_NO_RECOVERY = (
    "no recovery DAG that you may trigger is there: `dag = recovery_dag()` in a file of the DAGs folder makes one"
)


def _recovery_dag(user: BaseUser) -> str | None:
    return next((one for one in recovery_dags() if may(user, Right.TRIGGER, frozenset({one}))), None)


def _action(name: str) -> Action | DagAction:
    found = ACTIONS.get(name) or ERRANDS.get(name)
    if found is None:
        raise HTTPException(404, f"there is no {name}")
    return found


def _lead_to_run(request: Request, pipeline: str, run: RunKey) -> Response:
    """After a form is sent: what stands there then may be reloaded, and come back to, and asks for nothing."""
    return RedirectResponse(_links(request)("asked", dag_id=run.dag_id, run_id=run.run_id, pipeline=pipeline), 303)


def _question(user: BaseUser, action: str, found: EpochStatus) -> Question:
    epoch = found.epoch
    return Question(user.get_name(), action, epoch.pipeline, epoch.id, epoch.state.value, epoch.attempt)


def _question_of(wanted: Action | DagAction, user: BaseUser, found: EpochStatus, report: Report) -> Question:
    question = _question(user, wanted.name, found)
    if isinstance(wanted, Action):
        return question
    question = replace(question, dag_id=dag_of(found), shown=current_life(report, found.epoch).id)
    return _numbered(question, lambda run_id: report.knows_run(RunKey(question.dag_id, run_id), found.epoch))


def _numbered(question: Question, is_known: Callable[[str], bool] = lambda run_id: False) -> Question:
    """`is_known`: as of `number_of`; a run of recovery begins no epoch."""
    return (
        replace(question, number=number_of(question.dag_id, question.stem(), is_known)) if question.dag_id else question
    )


def _ask(
    request: Request,
    question: Question,
    title: str,
    refused: str | None,
    effects: list[str],
    *,
    verb: str,
    choices: Mapping[Resolution, str] = MappingProxyType({}),
) -> Response:
    """What the deed would do, and a form that asks for a reason; `refused`: why not, instead of the form; `choices`: of
    which a person has to say one, and what each comes to."""
    epoch = ("epochs", question.epoch) if question.epoch else ()
    asked = find_asked(question.run()) if question.dag_id and not refused else None
    return render(
        request,
        "action.html",
        pipeline=question.pipeline,
        epoch=question.epoch,
        title=title,
        refused=refused,
        effects=effects,
        choices=choices,
        asked=asked,
        seal=question.seal(),
        verb=verb,
        back=_links(request)("pipelines", question.pipeline, *epoch),
    )


def _links(request: Request) -> Links:
    return Links(request.state.root)
