"""What makes a submitted form one that this user was shown: a signed seal in it, and a browser that sends it from here.

The session's cookie is SameSite=Lax, so another site's form comes without a login. The rest is for sites of the same
domain: they neither know a seal nor send our origin. A seal names what was looked at, too: whoever answers a question
about attempt 3 doesn't void attempt 4.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import astuple, dataclass
from urllib.parse import urlsplit

from airflow.api_fastapi.auth.tokens import get_signing_key
from airflow.configuration import conf
from fastapi import Request
from itsdangerous import BadSignature, URLSafeTimedSerializer

from lockstep.epoch import RunKey

VALID_SECONDS = 3600
MOST_CHARACTERS = 500


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
        asked = Question(*_serializer().loads(seal, max_age=VALID_SECONDS))
    except (BadSignature, TypeError):
        raise FormRefused("the form is too old, or was not made here: open it again") from None
    if _deed(asked) != _deed(question):
        raise FormRefused("the form was made for another deed, or for somebody else: open it here")
    return asked


def _deed(question: Question) -> tuple[str, str, str, int]:
    return question.user, question.action, question.pipeline, question.epoch


def require_unmoved(asked: Question, question: Question) -> None:
    """Raises `FormRefused` unless just this is what would be asked now."""
    if asked != question:
        raise FormRefused("it has moved since the form was shown: look again")


def require_reason(reason: str) -> str:
    """Raises `FormRefused` for none, for one that is no line of text, and for one that is too long."""
    reason = reason.strip()
    if not reason:
        raise FormRefused("say why: the reason is kept in the history")
    if not reason.isprintable() or len(reason) > MOST_CHARACTERS:
        raise FormRefused(f"the reason has to be one line of at most {MOST_CHARACTERS} characters")
    return reason


def _serializer() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(get_signing_key("api", "secret_key"), salt="lockstep.airflow.ui")
