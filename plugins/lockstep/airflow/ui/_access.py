"""Authorization of users, and protection of forms against forgery.

A user with a right to the runs of one of a pipeline's DAGs, by Airflow's auth manager, has it for the pipeline.

The session cookie is SameSite=Lax, so forms of another site come without a login. The seal and the origin check are
for sites of the same domain: they can't know a seal and don't send our origin. A seal also contains the state that
was shown, so that a form about attempt 3 can't void attempt 4.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from enum import Enum
from urllib.parse import urlsplit

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.auth.tokens import get_signing_key
from airflow.configuration import conf
from fastapi import Request
from itsdangerous import BadSignature, URLSafeTimedSerializer

from lockstep.airflow._airflow import teams_of
from lockstep.epoch import RunKey

VALID_SECONDS = 3600
MAX_CHARACTERS = 500


class Right(Enum):
    """A right to the runs of a DAG, as Airflow's auth managers call it."""

    READ = "GET"
    TRIGGER = "POST"
    ACT = "PUT"  #: for clearing a run or marking it failed


def may(user: BaseUser, right: Right, dag_ids: frozenset[str]) -> bool:
    """Return whether the user has the right to one of these DAGs; without any, to all DAGs."""
    return bool(permitted(user, right, {"": dag_ids}))


def permitted(user: BaseUser, right: Right, pipelines: Mapping[str, frozenset[str]]) -> set[str]:
    """The names of `pipelines`, given with their DAGs, for which `may` is true."""
    all_dags = sorted({dag_id for dag_ids in pipelines.values() for dag_id in dag_ids})
    teams = teams_of(all_dags)
    granted = {dag for dag in all_dags if _is_granted(user, right, DagDetails(id=dag, team_name=teams.get(dag)))}
    everywhere = not all(pipelines.values()) and _is_granted_everywhere(user, right)
    return {name for name, dag_ids in pipelines.items() if (dag_ids & granted if dag_ids else everywhere)}


def _is_granted_everywhere(user: BaseUser, right: Right) -> bool:
    """Return whether the user has the right to all DAGs and all runs. If asked about runs without a DAG, FAB's auth
    manager checks only the resource "DAG Runs", which a role with a right to the runs of one DAG has. As there,
    changing runs needs the right to change the DAG."""
    of_dags = Right.READ if right is Right.READ else Right.ACT
    every_dag = bool(get_auth_manager().is_authorized_dag(method=of_dags.value, user=user))
    return every_dag and _is_granted(user, right, None)


def _is_granted(user: BaseUser, right: Right, details: DagDetails | None) -> bool:
    return bool(
        get_auth_manager().is_authorized_dag(
            method=right.value, access_entity=DagAccessEntity.RUN, details=details, user=user
        )
    )


class FormRefused(Exception):
    """The submitted form isn't the one that was shown, or is incomplete. The message is shown on the page below
    `title`."""

    title = "Nothing was done"


class FormCutShort(FormRefused):
    """A part of what was submitted is done."""

    title = "Done in part"


@dataclass(frozen=True)
class Question:
    """The content of a form: apply an action to an epoch (0: to the pipeline) that is in a certain state.

    `shown`: the epoch that showed the range, if it is to be replaced. `dag_id`: the DAG whose run does it, if one
    does; `number`: distinguishes the run from earlier ones that have ended.
    """

    user: str
    action: str
    pipeline: str
    epoch: int = 0
    state: str = ""
    attempt: int = 0
    dag_id: str = ""
    number: int = 1
    shown: int = 0

    def seal(self) -> str:
        return _serializer().dumps(astuple(self))

    def run(self, choice: str = "") -> RunKey:
        """The run that does it. It doesn't depend on the user: the same request about the same state is the same
        run."""
        return RunKey(self.dag_id, f"{self.stem(choice)}{self.number}")

    def stem(self, choice: str = "") -> str:
        """Prefix of the ids of all runs for this request. It contains a digest, as names may have characters that a
        run's id can't."""
        seen = json.dumps([self.action, self.pipeline, self.epoch, self.state, self.attempt, self.shown, choice])
        return f"lockstep_{self.action.partition(' ')[0]}__{hashlib.sha256(seen.encode()).hexdigest()[:16]}__"


def require_same_origin(request: Request) -> None:
    """Raise `FormRefused` for a request that a browser sends from another site."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise FormRefused("another site sent this form: open the page here")
    origin = request.headers.get("origin")
    own = {request.headers.get("host"), urlsplit(conf.get("api", "base_url", fallback="")).netloc} - {"", None}
    if origin is not None and origin.partition("://")[2] not in own:
        raise FormRefused("another site sent this form: open the page here")


def open_seal(question: Question, seal: str) -> Question:
    """The question in the seal, at most an hour old. Raises `FormRefused` if it is for another user or another
    action."""
    try:
        sealed = Question(*_serializer().loads(seal, max_age=VALID_SECONDS))
    except (BadSignature, TypeError):
        raise FormRefused("the form is too old or was not made here: open it again") from None
    if _target(sealed) != _target(question):
        raise FormRefused("the form was made for another action or another user: open it here")
    return sealed


def _target(question: Question) -> tuple[str, str, str, int]:
    return question.user, question.action, question.pipeline, question.epoch


def require_unchanged(sealed: Question, question: Question) -> None:
    """Raise `FormRefused` unless the question would be the same now."""
    if sealed != question:
        raise FormRefused("its state has changed since the form was shown: open it again")


def require_reason(reason: str) -> str:
    """The reason without surrounding space. Raises `FormRefused` if it is empty, not one line of text, or too long."""
    reason = reason.strip()
    if not reason:
        raise FormRefused("give a reason: it is stored in the history")
    if not reason.isprintable() or len(reason) > MAX_CHARACTERS:
        raise FormRefused(f"the reason has to be one line of at most {MAX_CHARACTERS} characters")
    return reason


def _serializer() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(get_signing_key("api", "secret_key"), salt="lockstep.airflow.ui")
