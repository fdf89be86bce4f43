"""The application that Airflow's api-server mounts at /lockstep: one function for each page.

Every page but the style sheet needs Airflow's login, a pipeline's page the right to read the runs of one of its
DAGs, and every change the right to change them. GET changes nothing.
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
from lockstep.airflow.ui._access import (
    FormCutShort,
    FormRefused,
    Question,
    Right,
    may,
    open_seal,
    permitted,
    require_reason,
    require_same_origin,
    require_unchanged,
)
from lockstep.airflow.ui._actions import (
    ACTIONS,
    DAG_ACTIONS,
    MAX_EPOCHS,
    Action,
    DagAction,
    RestateCandidate,
    choices_of_resolving,
    commands,
    conf_of_recovery,
    conf_of_resolving,
    dag_of,
    effects_of_recovery,
    effects_of_resolving,
    interval_between,
    question_of_all,
    refuse_range,
    refuse_resolving,
)
from lockstep.airflow.ui._rendering import Links, render, timeline
from lockstep.airflow.ui._runs import find_run, number_of, recovery_dags, require_triggerable, trigger
from lockstep.epoch import Epoch, Interval, RunKey
from lockstep.errors import LedgerRefused, LedgerUnavailable, LockstepError, NotConfigured, Retryable, UnknownEpoch
from lockstep.features.generations import current_generation
from lockstep.ledger import Ledger
from lockstep.ledger.report import EpochStatus, PipelineStatus, Report
from lockstep.operations.resolve import RESOLUTIONS, Resolution, ask
from lockstep.protocol.planned_sinks import describe_redefined, find_redefined
from lockstep.states import EpochState

UNFINISHED = 50  #: oldest unfinished epochs of a pipeline, for which the others wait
MAX_CONCURRENT = 8  #: pages that read the ledger
MAX_WAIT_SECONDS = 5.0  #: for which a page waits for other pages
MAX_EPOCH = 2**63 - 1
MAX_LIMIT = 200  #: epochs in a table
ON_THE_LINE = 1000  #: epochs in a time line, including those in the table
MAX_RESTORABLE = 10  #: newest generations of a range that a page checks for being restorable
MAX_HISTORY = 200  #: newest entries of an epoch's history
_log = logging.getLogger(__name__)
_ledger_slots = threading.BoundedSemaphore(MAX_CONCURRENT)
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'self'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}

User: TypeAlias = Annotated[BaseUser, Depends(get_user)]
Before: TypeAlias = Annotated[int | None, Query(ge=1, le=MAX_EPOCH)]
Shown: TypeAlias = Annotated[int, Query(ge=10, le=MAX_LIMIT)]
Reason: TypeAlias = Annotated[str, Form(max_length=10_000)]
Seal: TypeAlias = Annotated[str, Form(max_length=10_000)]
Moment: TypeAlias = Annotated[str, Query(max_length=40)]
Choice: TypeAlias = Annotated[str, Form(max_length=100)]


app = FastAPI(title="Lockstep", docs_url=None, redoc_url=None, openapi_url=None)
app.mount("/static", StaticFiles(packages=[("lockstep.airflow.ui", "static")]), name="static")


@app.middleware("http")
async def add_headers(request: Request, handle: Callable[[Request], Awaitable[Response]]) -> Response:
    request.state.root = root = request.scope.get("root_path", "")  # sub-applications overwrite it
    path = request.scope["path"]
    # NUL can't be in a database's text; no number has 20 digits, and no name begins with one
    if "\0" in path or "%00" in request.url.query or re.search(r"/[0-9]{20}", path):
        answer: Response = render(request, "message.html", 404, title="Lockstep", message="there is no such page")
    else:
        try:
            answer = await handle(request)
        except Exception:
            _log.exception("%s %s", request.method, path)
            message = "This page has failed; see the log of Airflow's api-server."
            answer = render(request, "message.html", 500, title="Lockstep", message=message)
    static = request.url.path.startswith(f"{root}/static/")
    for name, value in _HEADERS.items():
        if not (static and name == "Cache-Control"):
            answer.headers[name] = value
    return answer


# --- errors ---


@app.exception_handler(LockstepError)
def show_error(request: Request, error: LockstepError) -> Response:
    """One sentence; Lockstep's errors contain no secrets."""
    down = isinstance(error, Retryable | LedgerRefused | NotConfigured)
    status = 503 if down else 404 if isinstance(error, UnknownEpoch) else 409
    return render(request, "message.html", status, title=type(error).__name__, message=str(error))


@app.exception_handler(FormRefused)
def show_refusal(request: Request, refused: FormRefused) -> Response:
    return render(request, "message.html", 403, title=refused.title, message=str(refused))


@app.exception_handler(AnyHTTPException)
def show_status(request: Request, error: AnyHTTPException) -> Response:
    """Without a login, redirect a page view to Airflow's login. A form that was submitted after the login expired
    gets a page with a link there: after a redirect what was submitted would be lost."""
    if error.status_code == 401 and request.method == "GET" and "hx-request" not in request.headers:
        return RedirectResponse(_login(request), 303)
    if error.status_code == 401 and request.method == "POST":
        message = "You are not logged in. Log in, and the form opens again."
        return render(request, "message.html", 401, title="Nothing was done", message=message, login=_login(request))
    return render(request, "message.html", error.status_code, title="Lockstep", message=str(error.detail))


def _login(request: Request) -> str:
    """Path of Airflow's login page, which leads back here."""
    here = quote(request.url.path + (f"?{request.url.query}" if request.url.query else ""), safe="")
    return f"{request.state.root.removesuffix(MOUNT)}/api/v2/auth/login?next={here}"


# --- access to the ledger ---


@contextmanager
def open_report() -> Iterator[Report]:
    with _limit_concurrency(), closing(Report(login(LEDGER))) as report:
        yield report


@contextmanager
def _limit_concurrency() -> Iterator[None]:
    """Limit concurrent reads of the ledger: Airflow's own pages share their threads with these, and a ledger that
    hangs must not block them all."""
    if not _ledger_slots.acquire(timeout=MAX_WAIT_SECONDS):
        raise LedgerUnavailable(f"{MAX_CONCURRENT} other pages are reading the ledger; try again")
    try:
        yield
    finally:
        _ledger_slots.release()


@contextmanager
def open_ledger(user: BaseUser) -> Iterator[Ledger]:
    """The ledger, with the user as the actor in the history."""
    with closing(Ledger(login(LEDGER), f"airflow-ui:{user.get_name()}")) as ledger:
        yield ledger


def require(report: Report, user: BaseUser, right: Right, pipeline: str) -> frozenset[str]:
    """The pipeline's DAGs. Raises 403 without the right, also if there is no such pipeline, so that its existence
    isn't revealed."""
    dag_ids = report.dags([pipeline]).get(pipeline, frozenset())
    if not may(user, right, dag_ids):
        does = "view" if right is Right.READ else "act on"
        raise HTTPException(403, f"you may not {does} pipeline {pipeline}: it needs a right to the runs of its DAG")
    return dag_ids


def require_epoch(report: Report, pipeline: str, number: int) -> EpochStatus:
    """Raises `UnknownEpoch`."""
    if number > MAX_EPOCH:
        raise UnknownEpoch(f"the ledger has no epoch {number} of pipeline {pipeline}")
    return report.epoch_status(report.epoch(pipeline, number))


def require_pipeline(report: Report, pipeline: str, limit: int = 0, before: int | None = None) -> PipelineStatus:
    """Raises `UnknownEpoch`."""
    unfinished = UNFINISHED if before is None else 0
    status = report.pipeline(pipeline, limit=limit, before=before, unfinished=unfinished, brief=True)
    if status is None:
        raise UnknownEpoch(f"the ledger has no pipeline {pipeline!r}")
    return status


# --- pages ---


@app.get("/", response_class=HTMLResponse)
def show_pipelines(request: Request, user: User) -> Response:
    """List all pipelines that the user may view."""
    with open_report() as report:
        return _list_pipelines(request, user, report, _links(request)(""))


def _list_pipelines(
    request: Request, user: BaseUser, report: Report, here: str, only: Collection[str] | None = None
) -> Response:
    """`here`: path of the list; `only`: restricts it to these pipelines."""
    pipelines = report.pipelines(limit=1, unfinished=UNFINISHED, brief=True)
    listed = [status for status in pipelines if only is None or status.name in only]
    dags = report.dags([status.name for status in listed])
    allowed = permitted(user, Right.READ, {status.name: dags.get(status.name, frozenset()) for status in listed})
    visible = [status for status in listed if status.name in allowed]
    return render(request, "pipelines.html", pipelines=visible, here=here)


@app.get("/dag", response_class=HTMLResponse)
def go_to_pipelines(request: Request, user: User, dag_id: str) -> Response:
    """Target of a DAG's tab."""
    require_dag(user, dag_id)
    with open_report() as report:
        moved = report.pipelines_of_dag(dag_id)
        if len(moved) > 1:
            return _list_pipelines(request, user, report, _links(request)("dag", dag_id=dag_id), moved)
    if not moved:
        return render(request, "message.html", title=dag_id, message="No run of this DAG has begun an epoch yet.")
    return RedirectResponse(_links(request)("pipelines", moved[0]), 303)


@app.get("/run", response_class=HTMLResponse)
def go_to_epochs(request: Request, user: User, dag_id: str, run_id: str, pipeline: str | None = None) -> Response:
    """Target of a run's tab, and of its tasks' links, which name their `pipeline`. A run of a pack has many epochs:
    it leads to their pipeline."""
    require_dag(user, dag_id)
    with open_report() as report:
        moved = report.pipelines_of_dag(dag_id)
        names = [pipeline] if pipeline is not None else moved
        epochs = report.epochs_of_run(RunKey(dag_id, run_id), names)
    if len(epochs) == 1:
        return RedirectResponse(_links(request)("pipelines", epochs[0].pipeline, "epochs", epochs[0].id), 303)
    if epochs:
        return render(request, "run.html", dag_id=dag_id, run=RunKey(dag_id, run_id), epochs=epochs)
    if pipeline in moved or len(moved) == 1:
        return RedirectResponse(_links(request)("pipelines", pipeline or moved[0]), 303)
    if moved:
        return RedirectResponse(_links(request)("dag", dag_id=dag_id), 303)
    return render(request, "message.html", title=run_id, message="This run has begun no epoch yet.")


@app.get("/requested", response_class=HTMLResponse)
def show_requested(request: Request, user: User, dag_id: str, run_id: str, pipeline: str) -> Response:
    """Shown after a form has triggered a run for `pipeline`. A user with the right to trigger a DAG may see the
    run's state."""
    if not any(may(user, right, frozenset({dag_id})) for right in (Right.READ, Right.TRIGGER)):
        raise HTTPException(403, f"you may not view the runs of DAG {dag_id}")
    requested = find_run(RunKey(dag_id, run_id))
    if requested is None:
        raise HTTPException(404, f"Airflow has no run {run_id} of DAG {dag_id}, or no longer")
    return render(request, "requested.html", requested=requested, pipeline=pipeline)


def require_dag(user: BaseUser, dag_id: str) -> None:
    if not may(user, Right.READ, frozenset({dag_id})):
        raise HTTPException(403, f"you may not view the runs of DAG {dag_id}")


@app.get("/pipelines/{pipeline:path}/epochs/{epoch:int}", response_class=HTMLResponse)
def show_epoch(request: Request, user: User, pipeline: str, epoch: int) -> Response:
    with open_report() as report:
        acts = may(user, Right.ACT, require(report, user, Right.READ, pipeline))
        status = require_epoch(report, pipeline, epoch)
        history = report.history(pipeline, epoch)
        generations = report.generations(status.epoch)
        restorable = _restorable(report, generations) if acts else frozenset()
        newest = report.last_original(pipeline)
        redefined = find_redefined(status.epoch, newest.plan.sinks, newest.plan.reads) if newest else ()
        dag_actions = [action for action in DAG_ACTIONS.values() if acts and action.refused(status, report) is None]
    return render(
        request,
        "epoch.html",
        status=status,
        history=history[-MAX_HISTORY:],
        earlier=max(0, len(history) - MAX_HISTORY),
        generations=generations,
        restorable=restorable,
        redefined=describe_redefined(status.epoch, redefined) if redefined else None,
        actions=[action for action in ACTIONS.values() if acts and action.refused(status) is None],
        dag_actions=dag_actions,
        recoverable=acts and status.epoch.state in (EpochState.COMMITTED, EpochState.PUBLISHED),
        unresolved=[
            participant.sink
            for participant in status.participants
            if acts and status.stuck and not refuse_resolving(status, participant.sink)
        ],
        commands=commands(status) if acts else [],
    )


def _restorable(report: Report, generations: Sequence[Epoch]) -> frozenset[int]:
    """The epochs among a range's generations whose rows can be shown again."""
    replaced = [generation for generation in generations if generation.state is EpochState.REPLACED][-MAX_RESTORABLE:]
    statuses = [report.epoch_status(generation) for generation in replaced]
    return frozenset(
        generation.epoch.id for generation in statuses if DAG_ACTIONS["restore"].refused(generation, report) is None
    )


@app.get("/pipelines/{pipeline:path}/epochs/{epoch:int}/resolve/{sink:path}", response_class=HTMLResponse)
def show_resolve_form(request: Request, user: User, pipeline: str, epoch: int, sink: str) -> Response:
    with open_report() as report:
        require(report, user, Right.ACT, pipeline)
        status = require_epoch(report, pipeline, epoch)
        dag_id = _recovery_dag(user)
        question = _question_of_resolving(user, status, sink, dag_id, report)
    return _render_form(
        request,
        question,
        f"What became of {pipeline}, epoch {epoch}, in {sink}?",
        refuse_resolving(status, sink) or (None if dag_id else _NO_RECOVERY),
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
        status = require_epoch(report, pipeline, epoch)
        dag_id = _recovery_dag(user)
        question = _question_of_resolving(user, status, sink, dag_id, report)
    resolution = next((value for value in RESOLUTIONS if value == choice), None)
    sealed = open_seal(question, seal)
    if find_run(run := sealed.run(choice)):
        return _redirect_to_run(request, pipeline, run)
    require_unchanged(sealed, question)
    if refused := refuse_resolving(status, sink):
        raise FormRefused(refused)
    if resolution is None:
        raise FormRefused(f"choose one: {' or '.join(RESOLUTIONS)}")
    reason = require_reason(reason)
    if dag_id is None:
        raise FormRefused(_NO_RECOVERY)
    require_triggerable(
        dag_id, conf_of_resolving(status.epoch, sink, 1)
    )  # else the entry would be stored without a run
    with open_ledger(user) as ledger:
        entry = ask(ledger, status.epoch, sink, resolution, reason, after=question.number)
    trigger(run, conf_of_resolving(status.epoch, sink, entry), user.get_name(), reason)
    return _redirect_to_run(request, pipeline, run)


def _question_of_resolving(
    user: BaseUser, status: EpochStatus, sink: str, dag_id: str | None, report: Report
) -> Question:
    """The question, numbered by the last history entry about the sink: an entry by another user makes it a new
    question."""
    question = _question(user, f"resolve {sink}", status)
    last = report.last_note(status.epoch, sink)
    return replace(question, dag_id=dag_id or "", number=last.id if last else 0)


@app.get("/pipelines/{pipeline:path}/epochs/{epoch:int}/{action}", response_class=HTMLResponse)
def show_action_form(request: Request, user: User, pipeline: str, epoch: int, action: str) -> Response:
    """The effects of an action, and a form that asks for a reason."""
    kind = _action(action)
    with open_report() as report:
        require(report, user, Right.ACT, pipeline)
        status = require_epoch(report, pipeline, epoch)
        refused = _refused(kind, user, status, report)
        if refused is not None:
            effects = []
        else:
            effects = kind.effects(status, report) if isinstance(kind, DagAction) else kind.effects(status)
        question = _question_of(kind, user, status, report)
    title = f"{kind.title}: {pipeline}, epoch {epoch}"
    return _render_form(request, question, title, refused, effects, verb=kind.title)


@app.post("/pipelines/{pipeline:path}/epochs/{epoch:int}/{action}")
def act_on_epoch(
    request: Request, user: User, pipeline: str, epoch: int, action: str, reason: Reason = "", seal: Seal = ""
) -> Response:
    kind = _action(action)
    require_same_origin(request)
    with open_report() as report:
        require(report, user, Right.ACT, pipeline)
        status = require_epoch(report, pipeline, epoch)
        question = _question_of(kind, user, status, report)
        sealed = open_seal(question, seal)
        if sealed.dag_id and find_run(run := sealed.run()):
            return _redirect_to_run(request, pipeline, run)
        require_unchanged(sealed, question)
        if refused := _refused(kind, user, status, report):
            raise FormRefused(refused)
        reason = require_reason(reason)
        conf = kind.conf(status, report, reason) if isinstance(kind, DagAction) else {}
    if isinstance(kind, DagAction):
        trigger(sealed.run(), conf, user.get_name(), reason)
        return _redirect_to_run(request, pipeline, sealed.run())
    with open_ledger(user) as ledger:
        kind.act(ledger, status, reason)
    return RedirectResponse(_links(request)("pipelines", pipeline, "epochs", epoch), 303)


def _refused(kind: Action | DagAction, user: BaseUser, status: EpochStatus, report: Report) -> str | None:
    """Why it can't be done, or why this user may not do it; None if it can."""
    if isinstance(kind, Action):
        return kind.refused(status)
    if refused := kind.refused(status, report):
        return refused
    dag_ids = frozenset({status.last_run.dag_id}) if status.last_run else frozenset()
    return None if may(user, Right.TRIGGER, dag_ids) else "it needs the right to trigger its DAG"


@app.get("/pipelines/{pipeline:path}/recover", response_class=HTMLResponse)
def show_recovery_form(request: Request, user: User, pipeline: str) -> Response:
    with open_report() as report:
        require(report, user, Right.ACT, pipeline)
        require_pipeline(report, pipeline)
        unfinished = report.unfinished_epochs(pipeline)
        abandoned = report.abandoned_epochs(pipeline, report.recovery_grace(pipeline))
    question = _question_of_recovery(user, pipeline)
    refused = None if question.dag_id else _NO_RECOVERY
    effects = effects_of_recovery(unfinished, abandoned)
    return _render_form(request, question, f"Recover {pipeline}", refused, effects, verb="Recover")


@app.post("/pipelines/{pipeline:path}/recover")
def recover(request: Request, user: User, pipeline: str, reason: Reason = "", seal: Seal = "") -> Response:
    require_same_origin(request)
    with open_report() as report:
        require(report, user, Right.ACT, pipeline)
    question = _question_of_recovery(user, pipeline)
    sealed = open_seal(question, seal)
    if find_run(run := sealed.run()):
        return _redirect_to_run(request, pipeline, run)
    require_unchanged(sealed, question)
    reason = require_reason(reason)
    if not question.dag_id:
        raise FormRefused(_NO_RECOVERY)
    trigger(run, conf_of_recovery(pipeline), user.get_name(), reason)
    return _redirect_to_run(request, pipeline, run)


def _question_of_recovery(user: BaseUser, pipeline: str) -> Question:
    return _with_number(Question(user.get_name(), "recover", pipeline, dag_id=_recovery_dag(user) or ""))


@app.get("/pipelines/{pipeline:path}/restate", response_class=HTMLResponse)
def show_restate_form(request: Request, user: User, pipeline: str, since: Moment = "", until: Moment = "") -> Response:
    """A form for the range, and then the effects, epoch by epoch."""
    span = interval_between(since, until) if since or until else None
    with open_report() as report:
        require(report, user, Right.ACT, pipeline)
        require_pipeline(report, pipeline)
        candidates = _candidates(user, report, pipeline, span) if span else []
    return render(
        request,
        "restate.html",
        pipeline=pipeline,
        since=since,
        until=until,
        span=span,
        candidates=candidates[:MAX_EPOCHS],
        many=sum(candidate.refused is None for candidate in candidates),
        refused=refuse_range(candidates, span, pipeline) if span else None,
        seal=question_of_all(user.get_name(), pipeline, candidates).seal(),
    )


@app.post("/pipelines/{pipeline:path}/restate")
def restate_range(
    request: Request, user: User, pipeline: str, since: Moment, until: Moment, reason: Reason = "", seal: Seal = ""
) -> Response:
    require_same_origin(request)
    span = interval_between(since, until)
    with open_report() as report:
        require(report, user, Right.ACT, pipeline)
        candidates = _candidates(user, report, pipeline, span)
        question = question_of_all(user.get_name(), pipeline, candidates)
        require_unchanged(open_seal(question, seal), question)
        if refused := refuse_range(candidates, span, pipeline):
            raise FormRefused(refused)
        reason = require_reason(reason)
        accepted = [candidate for candidate in candidates if candidate.refused is None]
        runs = [
            (candidate.question.run(), DAG_ACTIONS["restate"].conf(candidate.status, report, reason))
            for candidate in accepted
        ]
    for done, (run, conf) in enumerate(runs):
        try:
            trigger(run, conf, user.get_name(), reason)
        except (FormRefused, NotConfigured) as error:
            if not done:
                raise
            raise FormCutShort(f"{done} of {len(runs)} epochs were requested, the others were not: {error}") from error
    return RedirectResponse(_links(request)("pipelines", pipeline, "restate", since=since, until=until), 303)


def _candidates(user: BaseUser, report: Report, pipeline: str, span: Interval) -> list[RestateCandidate]:
    """The epochs of the range; one more than a form may restate, if there are more."""
    restating, candidates = DAG_ACTIONS["restate"], []
    for epoch in report.current_epochs(pipeline, span)[: MAX_EPOCHS + 1]:
        status = report.epoch_status(epoch)
        question = _question_of(restating, user, status, report)
        refused = _refused(restating, user, status, report)
        requested = find_run(question.run()) if refused is None else None
        candidates.append(RestateCandidate(status, report.took(epoch), refused, question, requested))
    return candidates


@app.get("/pipelines/{pipeline:path}", response_class=HTMLResponse)
def show_pipeline(request: Request, user: User, pipeline: str, before: Before = None, limit: Shown = 50) -> Response:
    """The pipeline's epochs, newest first, `limit` on a page, with a time line that reaches further back; on the
    first page also older unfinished ones. Its cost doesn't depend on the size of the ledger."""
    with open_report() as report:
        acts = may(user, Right.ACT, require(report, user, Right.READ, pipeline))
        pipeline_status = require_pipeline(report, pipeline, limit, before)
        line = report.line(pipeline, limit=ON_THE_LINE, before=before)
    page, waiting = pipeline_status.epochs[:limit], pipeline_status.epochs[limit:]
    older = page[-1].epoch.id if len(page) == limit and page[-1].epoch.id > 1 else None
    return render(
        request,
        "pipeline.html",
        pipeline=pipeline_status,
        acts=acts,
        page=page,
        waiting=waiting,
        line=timeline(line, len(page), {status.epoch.id for status in pipeline_status.stuck}),
        older=older,
        before=before,
        limit=limit,
    )


_NO_RECOVERY = (
    "there is no recovery DAG that you may trigger: `dag = recovery_dag()` in a file of the DAGs folder makes one"
)


def _recovery_dag(user: BaseUser) -> str | None:
    return next((dag_id for dag_id in recovery_dags() if may(user, Right.TRIGGER, frozenset({dag_id}))), None)


def _action(name: str) -> Action | DagAction:
    kind = ACTIONS.get(name) or DAG_ACTIONS.get(name)
    if kind is None:
        raise HTTPException(404, f"there is no action {name}")
    return kind


def _redirect_to_run(request: Request, pipeline: str, run: RunKey) -> Response:
    """Redirect after a form is submitted, to a page that can be reloaded without submitting it again."""
    return RedirectResponse(_links(request)("requested", dag_id=run.dag_id, run_id=run.run_id, pipeline=pipeline), 303)


def _question(user: BaseUser, action: str, status: EpochStatus) -> Question:
    epoch = status.epoch
    return Question(user.get_name(), action, epoch.pipeline, epoch.id, epoch.state.value, epoch.attempt)


def _question_of(kind: Action | DagAction, user: BaseUser, status: EpochStatus, report: Report) -> Question:
    question = _question(user, kind.name, status)
    if isinstance(kind, Action):
        return question
    question = replace(question, dag_id=dag_of(status), shown=current_generation(report, status.epoch).id)
    return _with_number(question, lambda run_id: report.knows_run(RunKey(question.dag_id, run_id), status.epoch))


def _with_number(question: Question, is_known: Callable[[str], bool] = lambda run_id: False) -> Question:
    """Number the question's run. `is_known`: as in `number_of`; a run of recovery begins no epoch."""
    return (
        replace(question, number=number_of(question.dag_id, question.stem(), is_known)) if question.dag_id else question
    )


def _render_form(
    request: Request,
    question: Question,
    title: str,
    refused: str | None,
    effects: list[str],
    *,
    verb: str,
    choices: Mapping[Resolution, str] = MappingProxyType({}),
) -> Response:
    """The effects of an action, and a form that asks for a reason. `refused`: why there is no form; `choices`: the
    answers that a user can choose from, with their effects."""
    epoch = ("epochs", question.epoch) if question.epoch else ()
    requested = find_run(question.run()) if question.dag_id and not refused else None
    return render(
        request,
        "action.html",
        pipeline=question.pipeline,
        epoch=question.epoch,
        title=title,
        refused=refused,
        effects=effects,
        choices=choices,
        requested=requested,
        seal=question.seal(),
        verb=verb,
        back=_links(request)("pipelines", question.pipeline, *epoch),
    )


def _links(request: Request) -> Links:
    return Links(request.state.root)
