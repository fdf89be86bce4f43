"""Authorization of users, and protection of forms against forgery.

A user may look at a pipeline, or act on it, who may do as much with one of its DAGs, by Airflow's auth manager.

The session cookie is SameSite=Lax, so forms of another site come without a login. The seal and the origin check are for
sites of the same domain: they can't know a seal and don't send our origin. A seal also contains the state that was
shown, so that a form about attempt 3 can't void attempt 4.
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


class Right(Enum):
    """To the runs of a DAG, as Airflow's auth managers call it."""

    READ = "GET"
    TRIGGER = "POST"
    ACT = "PUT"  #: what clearing a run, or marking it failed, needs


def may(user: BaseUser, right: Right, dag_ids: frozenset[str]) -> bool:
    """Whether the user has the right to one of these DAGs; where there is none, to all DAGs that there are."""
    return bool(permitted(user, right, {"": dag_ids}))


def permitted(user: BaseUser, right: Right, pipelines: Mapping[str, frozenset[str]]) -> set[str]:
    """Those of `pipelines`, given with their DAGs, for which `may` is true."""
    all_dags = sorted({dag_id for dag_ids in pipelines.values() for dag_id in dag_ids})
    teams = teams_of(all_dags)
    granted = {dag for dag in all_dags if _is_granted(user, right, DagDetails(id=dag, team_name=teams.get(dag)))}
    of_no_dag = not all(pipelines.values()) and _is_granted_everywhere(user, right)
    return {name for name, dag_ids in pipelines.items() if (dag_ids & granted if dag_ids else of_no_dag)}


def _is_granted_everywhere(user: BaseUser, right: Right) -> bool:
    """To all DAGs and to all runs. Asked for runs without a DAG, FAB's auth manager looks at the right to the resource
    "DAG Runs" alone, which a role has that may change the runs of one DAG. Like it, no run without changing the DAG."""
    of_dags = Right.READ if right is Right.READ else Right.ACT
    every_dag = bool(get_auth_manager().is_authorized_dag(method=of_dags.value, user=user))
    return every_dag and _is_granted(user, right, None)


def _is_granted(user: BaseUser, right: Right, details: DagDetails | None) -> bool:
    return bool(
        get_auth_manager().is_authorized_dag(
            method=right.value, access_entity=DagAccessEntity.RUN, details=details, user=user
        )
    )


VALID_SECONDS = 3600
MAX_CHARACTERS = 500


class FormRefused(Exception):
    """What was submitted isn't what was shown, or says too little. The message is for the page, below `title`."""

    title = "Nothing was done"


class FormCutShort(FormRefused):
    """Some of what was submitted is done."""

    title = "Done in part"


@dataclass(frozen=True)
class Question:
    """What a person was asked: to do this to an epoch (0: to the pipeline) that stood so.

    `shown`: the epoch that showed the range then, where that is to be replaced. `dag_id`: whose run does it, if one
    does; `number`: tells it from what was asked before, and has come to an end.
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
        """Of the DAG, whoever asks: who has seen the same and says the same, asks for the same run."""
        return RunKey(self.dag_id, f"{self.stem(choice)}{self.number}")

    def stem(self, choice: str = "") -> str:
        """How the ids of all runs begin that were asked for so. A digest: names may be such as no run's id may have."""
        seen = json.dumps([self.action, self.pipeline, self.epoch, self.state, self.attempt, self.shown, choice])
        return f"lockstep_{self.action.partition(' ')[0]}__{hashlib.sha256(seen.encode()).hexdigest()[:16]}__"


def require_same_origin(request: Request) -> None:
    """Raises `FormRefused` for what a browser sends from somewhere else."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise FormRefused("another site sent this form: open the page here")
    origin = request.headers.get("origin")
    own = {request.headers.get("host"), urlsplit(conf.get("api", "base_url", fallback="")).netloc} - {"", None}
    if origin is not None and origin.partition("://")[2] not in own:
        raise FormRefused("another site sent this form: open the page here")


def open_seal(question: Question, seal: str) -> Question:
    """As it was put, an hour ago at most, to the same user about the same deed. Raises `FormRefused` otherwise."""
    try:
        sealed = Question(*_serializer().loads(seal, max_age=VALID_SECONDS))
    except (BadSignature, TypeError):
        raise FormRefused("the form is too old, or was not made here: open it again") from None
    if _subject(sealed) != _subject(question):
        raise FormRefused("the form was made for another deed, or for somebody else: open it here")
    return sealed


def _subject(question: Question) -> tuple[str, str, str, int]:
    return question.user, question.action, question.pipeline, question.epoch


def require_unchanged(sealed: Question, question: Question) -> None:
    """Raises `FormRefused` unless just this is what would be asked now."""
    if sealed != question:
        raise FormRefused("it has moved since the form was shown: look again")


def require_reason(reason: str) -> str:
    """Raises `FormRefused` for none, for one that is no line of text, and for one that is too long."""
    reason = reason.strip()
    if not reason:
        raise FormRefused("say why: the reason is kept in the history")
    if not reason.isprintable() or len(reason) > MAX_CHARACTERS:
        raise FormRefused(f"the reason has to be one line of at most {MAX_CHARACTERS} characters")
    return reason


def _serializer() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(get_signing_key("api", "secret_key"), salt="lockstep.airflow.ui")
