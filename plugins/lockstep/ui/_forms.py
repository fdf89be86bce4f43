"""What makes a submitted form one that this user was shown: a signed seal in it, and a browser that sends it from here.

The session's cookie is SameSite=Lax, so another site's form comes without a login. The rest is for sites of the same
domain: they neither know a seal nor send our origin. A seal names what was looked at, too: whoever answers a question
about attempt 3 doesn't void attempt 4.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from urllib.parse import urlsplit

from airflow.api_fastapi.auth.tokens import get_signing_key
from airflow.configuration import conf
from fastapi import Request
from itsdangerous import BadSignature, URLSafeTimedSerializer

VALID_SECONDS = 3600
MOST_CHARACTERS = 500


class FormRefused(Exception):
    """What was submitted isn't what was shown, or says too little. The message is for the page."""


@dataclass(frozen=True)
class Question:
    """What a person was asked: to do this to an epoch (0: to the pipeline) that stood so."""

    user: str
    action: str
    pipeline: str
    epoch: int = 0
    state: str = ""
    attempt: int = 0

    def seal(self) -> str:
        return _serializer().dumps(astuple(self))


def require_same_origin(request: Request) -> None:
    """Raises `FormRefused` for what a browser sends from somewhere else."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise FormRefused("another site sent this form: open the page here")
    origin = request.headers.get("origin")
    own = {request.headers.get("host"), urlsplit(conf.get("api", "base_url", fallback="")).netloc} - {"", None}
    if origin is not None and urlsplit(origin).netloc not in own:
        raise FormRefused("another site sent this form: open the page here")


def require_answer(question: Question, seal: str) -> None:
    """Raises `FormRefused` unless just this question was put, an hour ago at most."""
    try:
        asked = _serializer().loads(seal, max_age=VALID_SECONDS)
    except BadSignature:
        raise FormRefused("the form is too old, or was not made here: open it again") from None
    if tuple(asked) != astuple(question):
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
    return URLSafeTimedSerializer(get_signing_key("api", "secret_key"), salt="lockstep.ui")
