"""No message of a connection that fails shows a piece of its password, escaped as it should be or not."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from itertools import product
from urllib.parse import quote

import pytest
from tenacity import wait_none

from lockstep.errors import InvalidPipeline, LedgerRefused, LockstepError, SourceUnavailable
from lockstep.ledger import Ledger
from lockstep.sinks import MariaDbSink, PostgresSink
from lockstep.sinks.base import Sink
from lockstep.sinks.values import SinkContext
from lockstep.sources import (
    DataSourceSource,
    MariaDbTableSource,
    PostgresTableSource,
    Source,
    SourceContext,
)
from lockstep.wal.staging import Staging

PASSWORDS = [f"hush{mark}mute" for mark in ("@", ":", "/", "?", "#", "%", "%zz", " ", "'", '"', "&", "=", "\\", ",")]
PASSWORDS += [
    "@hush@mute",
    "hush/mu@te",
    "hu@sh:mute/still",
    "1234/5678@hush",
    "12:34@9876",
    "[hush]mute",
    "1234?s=hush@mute",
]
PIECES = re.compile(r"hush|mute|still|1234|5678|9876")
LAG = timedelta(0)


def ask_ledger(dsn: str) -> None:
    Ledger(dsn).deployment()


def asked(source: Source) -> Callable[[str], None]:
    def ask(dsn: str) -> None:
        with source.opened(SourceContext("pipe", "source", lambda paths: set(), {"there": dsn})) as opened:
            opened.latest(None, None)

    return ask


def entered(sink: Sink) -> Callable[[str], None]:
    def enter(dsn: str) -> None:
        with sink.opened(SinkContext("deployment", "pipe", {"there": dsn})) as opened:
            opened.preflight(None)

    return enter


PLACES: dict[str, tuple[str, Callable[[str], None]]] = {
    "ledger": ("postgresql", ask_ledger),
    "PostgresSink": ("postgresql", entered(PostgresSink("sink", tables={"rows": "public.rows"}, connection="there"))),
    "PostgresTableSource": (
        "postgresql",
        asked(PostgresTableSource("public.rows", connection="there", order_by="xid")),
    ),
    "MariaDbSink": ("mysql", entered(MariaDbSink("sink", tables={"rows": "rows"}, connection="there"))),
    "MariaDbTableSource": (
        "mysql",
        asked(MariaDbTableSource("rows", connection="there", order_by="id", settle=LAG)),
    ),
}


SOMEWHERE = DataSourceSource("somewhere:Reader", connection_options={"uri": "there"})


@pytest.mark.fault("J14")
@pytest.mark.parametrize("place", PLACES)
def test_no_message_has_a_piece_of_a_password(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lockstep.ledger._connection.wait_exponential", lambda **_: wait_none())
    scheme, use = PLACES[place]
    told: list[tuple[str, BaseException]] = []
    misread: list[str] = []
    for password, escaped in product(PASSWORDS, (True, False)):
        login = quote(password, safe="") if escaped else password
        with pytest.raises(LockstepError) as raised:
            use(f"{scheme}://somebody:{login}@127.0.0.1:1/shop")
        told += [(login, error) for error in (raised.value, raised.value.__cause__) if error is not None]
        if escaped and isinstance(raised.value, InvalidPipeline | LedgerRefused):
            misread.append(login)
    assert [login for login, error in told if PIECES.search(f"{error} {error!r}")] == []
    assert misread == []


@pytest.mark.fault("J14")
def test_what_a_reader_says_of_its_uri_is_told_without_pieces_of_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {}
    for password in PASSWORDS:
        uri = f"db://somebody:{password}@127.0.0.1:1/shop"
        parts = re.split("[@:/?]", password)
        say(f"no host {uri.partition('@')[2]} of {uri} with {password}, {parts}", monkeypatch)
        with pytest.raises(SourceUnavailable) as raised:
            asked(SOMEWHERE)(uri)
        told[password] = str(raised.value)
    assert {password: said for password, said in told.items() if PIECES.search(said)} == {}
    assert {
        password for password, said in told.items() if "somewhere:Reader: ValueError: no host " not in said
    } == set()
    say('found hush, or hu\\"sh mute', monkeypatch)
    for value in "host=x password=hush", '{"secret": "hu\\"sh mute"}', "jdbc:x://h?user=u&password=hush&x=1":
        with pytest.raises(SourceUnavailable, match=r"\*\*\*"):
            asked(SOMEWHERE)(value)


def say(message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the reader fails with."""

    def failing(*arguments: object) -> None:
        raise ValueError(message)

    monkeypatch.setattr("lockstep.spark.python_readers.next_range", failing)


def test_a_staging_uri_with_a_login_is_refused_and_not_shown() -> None:
    for password in PASSWORDS:
        with pytest.raises(LockstepError) as raised:
            Staging(f"s3://somebody:{password}@bucket/prefix")
        assert not PIECES.search(str(raised.value)), password
