"""What an error of Postgres means, and its text without secrets and without rows."""

from __future__ import annotations

import psycopg2

from lockstep.connections.postgres import refusals
from lockstep.connections.postgres.dsn import scrub
from lockstep.errors import Failure

_LOST = ("08", "57P0", "25P03", "25P04")
# SQLSTATE classes of what may pass: resources, locks, operator, system, snapshots, wrong server
_PASSING = ("25006", "40", "53", "57", "58", "55P03", "55006")
_DENIED = "42501"


def classify(error: psycopg2.Error) -> Failure:
    """One without a SQLSTATE is the driver's: of the link, or of how it was called."""
    code = error.pgcode
    if code is None:
        of_link = isinstance(error, psycopg2.OperationalError | psycopg2.InterfaceError)
        return Failure.LOST if of_link or type(error) is psycopg2.DatabaseError else Failure.REFUSED
    if code.startswith(_LOST):
        return Failure.LOST
    if code.startswith(_PASSING):
        return Failure.PASSING
    return Failure.DENIED if code == _DENIED else Failure.REFUSED


def is_lost(error: psycopg2.Error) -> bool:
    """Whether the connection broke: what the last statement did is not known."""
    return classify(error) is Failure.LOST


def describe(error: psycopg2.Error, dsn: str) -> str:
    """The error's text on one line, without a secret of the DSN; of a refused row only names."""
    return scrub(refusals.describe(error), dsn)
