"""The application that Airflow's api-server mounts at /lockstep: one function a page.

Every page but the style sheet needs Airflow's login, a pipeline's page the right to read the runs of a DAG of it, and
whatever changes something the right to change them. Nothing is changed by GET.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from typing import Annotated, TypeAlias
from urllib.parse import quote

from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.core_api.security import get_user
from fastapi import Depends, FastAPI, Form, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException as AnyHTTPException

from lockstep.epoch import RunKey
from lockstep.errors import LedgerRefused, LedgerUnavailable, LockstepError, NotConfigured, Retryable, UnknownEpoch
from lockstep.ledger import Ledger
from lockstep.ledger.report import EpochStatus, PipelineStatus, Report
from lockstep.orchestration.connections import LEDGER, connection, dsn_of
from lockstep.orchestration.page import MOUNT
from lockstep.states import EpochState
from lockstep.ui._access import Right, may, permitted
from lockstep.ui._actions import (
    ACTIONS,
    Action,
    commands,
    effects_of_recovery,
    effects_of_restating,
    recovery_dags,
    refuse_restating,
    restate,
    trigger_recovery,
)
from lockstep.ui._forms import FormRefused, Question, require_answer, require_reason, require_same_origin
from lockstep.ui._rendering import Links, render

UNFINISHED = 50  #: of a pipeline's unfinished epochs: the oldest, which the others wait for
AT_ONCE = 8  #: pages that ask the ledger
PATIENCE_SECONDS = 5.0  #: of a page that is one too many
MOST_EPOCH = 2**63 - 1
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
Shown: TypeAlias = Annotated[int, Query(ge=10, le=1000)]
Reason: TypeAlias = Annotated[str, Form(max_length=10_000)]
Seal: TypeAlias = Annotated[str, Form(max_length=10_000)]

app = FastAPI(title="Lockstep", docs_url=None, redoc_url=None, openapi_url=None)
app.mount("/static", StaticFiles(packages=[("lockstep.ui", "static")]), name="static")


@app.middleware("http")
async def add_headers(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
    request.state.root = root = request.scope.get("root_path", "")  # what is mounted below writes its own there
    if "\0" in request.scope["path"] or "%00" in request.url.query:  # no text of a database holds it
        answer: Response = render(request, "told.html", 404, title="Lockstep", told="there is no such page")
    else:
        answer = await go_on(request)
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
    return render(request, "told.html", 403, title="Nothing was done", told=str(refused))


@app.exception_handler(AnyHTTPException)
def tell_status(request: Request, error: AnyHTTPException) -> Response:
    """Without a login Airflow's page for it, if this is a page that somebody opens."""
    if error.status_code == 401 and request.method == "GET" and "hx-request" not in request.headers:
        here = quote(request.url.path + (f"?{request.url.query}" if request.url.query else ""), safe="")
        return RedirectResponse(f"{request.state.root.removesuffix(MOUNT)}/api/v2/auth/login?next={here}", 303)
    return render(request, "told.html", error.status_code, title="Lockstep", told=str(error.detail))


# --- what is asked of the ledger ---


@contextmanager
def open_report() -> Iterator[Report]:
    with _one_of_a_few(), closing(Report(dsn_of(connection(LEDGER)))) as report:
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
    with closing(Ledger(dsn_of(connection(LEDGER)), f"airflow-ui:{user.get_name()}")) as ledger:
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
    found = report.pipeline(pipeline, limit=limit, before=before, unfinished=unfinished)
    if found is None:
        raise UnknownEpoch(f"the ledger has no pipeline {pipeline!r}")
    return found


# --- pages ---


@app.get("/", response_class=HTMLResponse)
def show_pipelines(request: Request, user: User) -> Response:
    """All that the user may look at."""
    with open_report() as report:
        every = report.pipelines(limit=1, unfinished=UNFINISHED)
        dags = report.dags([one.name for one in every])
    allowed = permitted(user, Right.READ, {one.name: dags.get(one.name, frozenset()) for one in every})
    return render(request, "pipelines.html", pipelines=[one for one in every if one.name in allowed])


@app.get("/dag", response_class=HTMLResponse)
def go_to_pipeline(request: Request, user: User, dag_id: str) -> Response:
    """Where a DAG's tab leads."""
    require_dag(user, dag_id)
    with open_report() as report:
        pipeline = report.pipeline_of_dag(dag_id)
    if pipeline is None:
        return render(
            request, "told.html", title=dag_id, told="No run of this DAG has begun an epoch of Lockstep's yet."
        )
    return RedirectResponse(_links(request)("pipelines", pipeline), 303)


@app.get("/run", response_class=HTMLResponse)
def go_to_epoch(request: Request, user: User, dag_id: str, run_id: str) -> Response:
    """Where a run's tab and its tasks' links lead. A run that moves a pack has many epochs: to their pipeline."""
    require_dag(user, dag_id)
    with open_report() as report:
        attempt = report.find_run(RunKey(dag_id, run_id))
        pipeline = attempt.pipeline if attempt else report.pipeline_of_dag(dag_id)
    if attempt is not None:
        return RedirectResponse(_links(request)("pipelines", attempt.pipeline, "epochs", attempt.epoch), 303)
    if pipeline is not None:
        return RedirectResponse(_links(request)("pipelines", pipeline), 303)
    return render(request, "told.html", title=run_id, told="This run has begun no epoch of Lockstep's yet.")


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
    possible = [one for one in ACTIONS.values() if acts and one.refused(found) is None]
    decided_late = acts and found.epoch.state in (EpochState.COMMITTED, EpochState.PUBLISHED)
    return render(
        request,
        "epoch.html",
        found=found,
        history=history,
        lives=lives,
        actions=possible,
        recoverable=decided_late,
        restatable=acts and refuse_restating(found) is None,
        commands=commands(found) if acts else [],
    )


@app.get("/pipelines/{pipeline:path}/epochs/{epoch:int}/restate", response_class=HTMLResponse)
def ask_about_restating(request: Request, user: User, pipeline: str, epoch: int) -> Response:
    with open_report() as report:
        require(report, user, Right.ACT, pipeline)
        found = require_epoch(report, pipeline, epoch)
    refused = refuse_restating(found) or _refuse_triggering(user, found)
    question = _question(user, "restate", found)
    title = f"Restate {pipeline}, epoch {epoch}"
    return _ask(request, question, title, refused, effects_of_restating(found), verb="Restate")


@app.post("/pipelines/{pipeline:path}/epochs/{epoch:int}/restate")
def restate_epoch(
    request: Request, user: User, pipeline: str, epoch: int, reason: Reason = "", seal: Seal = ""
) -> Response:
    require_same_origin(request)
    with open_report() as report:
        require(report, user, Right.ACT, pipeline)
        found = require_epoch(report, pipeline, epoch)
    require_answer(_question(user, "restate", found), seal)
    if refused := refuse_restating(found) or _refuse_triggering(user, found):
        raise FormRefused(refused)
    run = restate(found, user.get_name(), require_reason(reason))
    return render(request, "told.html", title="It is being restated", told=f"Run {run.run_id} does it.", run=run)


def _refuse_triggering(user: BaseUser, found: EpochStatus) -> str | None:
    dag_ids = frozenset({found.last_run.dag_id}) if found.last_run else frozenset()
    return None if may(user, Right.TRIGGER, dag_ids) else "that needs the right to trigger its DAG"


@app.get("/pipelines/{pipeline:path}/epochs/{epoch:int}/{action}", response_class=HTMLResponse)
def ask_about_epoch(request: Request, user: User, pipeline: str, epoch: int, action: str) -> Response:
    """What it would do, and a form that asks for a reason."""
    wanted = _action(action)
    with open_report() as report:
        require(report, user, Right.ACT, pipeline)
        found = require_epoch(report, pipeline, epoch)
    title = f"{wanted.title}: {pipeline}, epoch {epoch}"
    question = _question(user, action, found)
    return _ask(request, question, title, wanted.refused(found), wanted.effects(found), verb=wanted.title)


@app.post("/pipelines/{pipeline:path}/epochs/{epoch:int}/{action}")
def act_on_epoch(
    request: Request, user: User, pipeline: str, epoch: int, action: str, reason: Reason = "", seal: Seal = ""
) -> Response:
    wanted = _action(action)
    require_same_origin(request)
    with open_report() as report:
        require(report, user, Right.ACT, pipeline)
        found = require_epoch(report, pipeline, epoch)
    require_answer(_question(user, action, found), seal)
    if refused := wanted.refused(found):
        raise FormRefused(refused)
    because = require_reason(reason)
    with open_ledger(user) as ledger:
        wanted.act(ledger, found, because)
    return RedirectResponse(_links(request)("pipelines", pipeline, "epochs", epoch), 303)


@app.get("/pipelines/{pipeline:path}/recover", response_class=HTMLResponse)
def ask_about_recovery(request: Request, user: User, pipeline: str) -> Response:
    with open_report() as report:
        require(report, user, Right.ACT, pipeline)
        require_pipeline(report, pipeline)
        unfinished = report.unfinished_epochs(pipeline)
        abandoned = report.abandoned_epochs(pipeline, report.hold(pipeline))
    refused = None if _recovery_dag(user) else _NO_RECOVERY
    question = Question(user.get_name(), "recover", pipeline)
    effects = effects_of_recovery(unfinished, abandoned)
    return _ask(request, question, f"Recover {pipeline}", refused, effects, verb="Recover")


@app.post("/pipelines/{pipeline:path}/recover")
def recover(request: Request, user: User, pipeline: str, reason: Reason = "", seal: Seal = "") -> Response:
    require_same_origin(request)
    with open_report() as report:
        require(report, user, Right.ACT, pipeline)
    require_answer(Question(user.get_name(), "recover", pipeline), seal)
    because = require_reason(reason)
    if (dag_id := _recovery_dag(user)) is None:
        raise FormRefused(_NO_RECOVERY)
    run = trigger_recovery(dag_id, pipeline, user.get_name(), because)
    return render(request, "told.html", title="Recovery is on its way", told=f"Run {run.run_id} does it.", run=run)


@app.get("/pipelines/{pipeline:path}", response_class=HTMLResponse)
def show_pipeline(request: Request, user: User, pipeline: str, before: Before = None, limit: Shown = 50) -> Response:
    """Its epochs, youngest first, `limit` a page; on the first one also what else isn't finished."""
    with open_report() as report:
        acts = may(user, Right.ACT, require(report, user, Right.READ, pipeline))
        found = require_pipeline(report, pipeline, limit, before)
    page, waiting = found.epochs[:limit], found.epochs[limit:]
    older = page[-1].epoch.id if len(page) == limit and page[-1].epoch.id > 1 else None
    return render(
        request,
        "pipeline.html",
        found=found,
        acts=acts,
        page=page,
        waiting=waiting,
        older=older,
        before=before,
        limit=limit,
    )


_NO_RECOVERY = (
    "no recovery DAG that you may trigger is there: `dag = recovery_dag()` in a file of the DAGs folder makes one"
)


def _recovery_dag(user: BaseUser) -> str | None:
    return next((one for one in recovery_dags() if may(user, Right.TRIGGER, frozenset({one}))), None)


def _action(name: str) -> Action:
    if name not in ACTIONS:
        raise HTTPException(404, f"there is no {name}")
    return ACTIONS[name]


def _question(user: BaseUser, action: str, found: EpochStatus) -> Question:
    epoch = found.epoch
    return Question(user.get_name(), action, epoch.pipeline, epoch.id, epoch.state.value, epoch.attempt)


def _ask(
    request: Request, question: Question, title: str, refused: str | None, effects: list[str], *, verb: str
) -> Response:
    """What the deed would do, and a form that asks for a reason; `refused`: why not, instead of the form."""
    epoch = ("epochs", question.epoch) if question.epoch else ()
    return render(
        request,
        "action.html",
        pipeline=question.pipeline,
        title=title,
        refused=refused,
        effects=effects,
        seal=question.seal(),
        verb=verb,
        back=_links(request)("pipelines", question.pipeline, *epoch),
    )


def _links(request: Request) -> Links:
    return Links(request.state.root)
