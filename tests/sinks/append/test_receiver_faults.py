"""HttpSink and TcpSink before receivers that fail in every way that they can."""

from __future__ import annotations

import base64
import logging
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lockstep.errors import InvalidPipeline, PublishBlocked, SinkUnavailable
from lockstep.sinks.append_only.base import AppendOnlySink
from lockstep.sinks.append_only.http import HttpSink, seconds_of
from lockstep.sinks.append_only.lines import TcpSink
from lockstep.sinks.values import Publication
from lockstep.testing import OUTPUT
from tests.proxy import CuttingProxy
from tests.sinks.append.receiving import Request, Script, Sent, hang_up, line, scripted, status, too_late

PASSWORD, PATH, QUERY = "s3cret-word", "/hooks/s3cret-path", "key=s3cret-query"


def to(script: Script, folder: Path, *, rows: int = 20, login: str = f"clerk:{PASSWORD}", **arguments: Any) -> Sent:
    settings = {"committer": str(folder / "sent"), "records_per_request": 10, "requests_at_once": 1, **arguments}
    url = f"http://{login}@127.0.0.1:{script.port}{PATH}?{QUERY}"
    return Sent(HttpSink("feed", output=OUTPUT, connection="receiver", **settings), {"receiver": url}, rows)


def test_an_answer_that_may_pass_is_tried_again_with_the_same_key_and_body(tmp_path: Path) -> None:
    passing = [status(code) for code in (408, 409, 425, 429, 500, 502, 503, 504, 520)] + [hang_up, too_late]
    with scripted("http", *[answer for one in passing for answer in (one, status(200))]) as script:
        sent = to(script, tmp_path, rows=110, timeout=0.5)
        assert sent.publish() is Publication.SENT
        assert sent.publish() is Publication.FOUND
    firsts, agains = script.requests[::2], script.requests[1::2]
    assert firsts == agains and len(firsts) == len(passing)
    for number, request in enumerate(firsts):
        assert request.headers["Idempotency-Key"].endswith(f"/pipe/rows/1/{10 * number}-{10 * number + 9}")
        assert request.ordinals == list(range(10 * number, 10 * number + 10))


@pytest.mark.fault("L9")
def test_requests_that_are_cut_otherwise_at_the_next_try_are_no_repeats(tmp_path: Path) -> None:
    """A receiver that drops requests by their key would lose the rows that a larger one has more."""
    with scripted("http", status(200), status(422), status(200)) as script:
        with pytest.raises(PublishBlocked):
            to(script, tmp_path, records_per_request=5).publish()
        to(script, tmp_path, records_per_request=20).publish()
    bodies = {request.headers["Idempotency-Key"]: request.ordinals for request in script.requests}
    assert [len(body) for body in bodies.values()] == [5, 5, 20]


def test_requests_at_once_are_as_many_as_allowed(tmp_path: Path) -> None:
    together, too_many = threading.Barrier(3), threading.Barrier(4)
    exceeded = threading.Event()

    def answer(handler: Any, request: Request) -> None:
        with suppress(threading.BrokenBarrierError):  # nothing but time shows that no fourth one comes
            too_many.wait(0.3)
            exceeded.set()
        together.wait(20)  # broken, if there are fewer
        status(200)(handler, request)

    with scripted("http", answer) as script:
        to(script, tmp_path, rows=60, records_per_request=5, requests_at_once=3).publish()
    assert not exceeded.is_set()
    assert sorted(ordinal for request in script.requests for ordinal in request.ordinals) == list(range(60))


def test_the_receiver_says_how_long_to_wait_and_a_long_wait_is_left_to_the_retries_of_the_task(tmp_path: Path) -> None:
    with scripted("http", status(429, Retry_After="1"), status(200)) as script:
        before = time.monotonic()
        to(script, tmp_path / "short").publish()
        assert time.monotonic() - before >= 1
    assert len(script.requests) == 3
    for answer, tries, told in (
        (status(503, Retry_After="3600"), 1, "answered 503, asks to wait 3600 s"),
        (status(500), 2, "answered 500: the epoch will be sent again"),
    ):
        with scripted("http", answer) as script:
            sent = to(script, tmp_path / "long", tries=2)
            with pytest.raises(SinkUnavailable, match=told):
                sent.publish()
            assert not sent.recorded
        assert len(script.requests) == tries
    assert (seconds_of("Wed, 21 Oct 2199 07:28:00 GMT") or 0) > 1e9
    assert seconds_of("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert [seconds_of(text) for text in ("soon", "-1", "", "1e3", None)] == [None] * 5


def test_an_answer_that_lasts_blocks_the_publication_at_once(tmp_path: Path) -> None:
    with scripted("http", status(200)) as script:
        sent = to(script, tmp_path)
        for code in (301, 307, 400, 401, 403, 404, 413, 422, 501):
            script.requests.clear()
            script.answers = [status(200), status(code, "order 7 has no amount", Location="/elsewhere")]
            told = f"answered {code} to the records from .*/pipe/rows/1/10 on: 'order 7"
            with pytest.raises(PublishBlocked, match=told):
                sent.publish()
            assert not sent.recorded
            assert len(script.requests) == 2
        script.answers = [status(200)]
        assert sent.publish() is Publication.SENT
        assert sent.recorded


# --- logins and secrets ----------------------------------------------------------------------------------------------


def test_the_login_comes_from_the_connection(tmp_path: Path) -> None:
    cases: list[tuple[str, dict[str, Any], str, str]] = [
        (f"clerk:{PASSWORD}", {}, "Authorization", "Basic " + base64.b64encode(f"clerk:{PASSWORD}".encode()).decode()),
        (f":{PASSWORD}", {}, "Authorization", f"Bearer {PASSWORD}"),
        (f":{PASSWORD}", {"key_header": "X-Api-Key"}, "X-Api-Key", PASSWORD),
        (":a%2Fb%40c", {}, "Authorization", "Bearer a/b@c"),
    ]
    for number, (login, arguments, header, value) in enumerate(cases):
        with scripted("http", status(200)) as script:
            to(script, tmp_path / str(number), login=login, **arguments).publish()
        assert {request.headers[header] for request in script.requests} == {value}
        assert {request.path for request in script.requests} == {f"{PATH}?{QUERY}"}


def test_no_secret_is_told_anywhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def parrot(handler: Any, request: Request) -> None:
        status(403, f"{request.path} {request.headers['Authorization']} {PASSWORD}")(handler, request)

    caplog.set_level(logging.DEBUG)
    told = []
    for login in (f"clerk:{PASSWORD}", f":{PASSWORD}"):
        with scripted("http", parrot) as script:
            sent = to(script, tmp_path, login=login)
            with pytest.raises(PublishBlocked) as refused:
                sent.publish()
        with pytest.raises(SinkUnavailable) as unreachable:
            to(script, tmp_path, login=login, tries=1).publish()
        told += [str(refused.getrepr(style="long")), str(unreachable.getrepr(style="long")), str(sent.sink.spec())]
    everything = " ".join([*told, caplog.text])
    for secret in (PASSWORD, "s3cret-path", "s3cret-query", base64.b64encode(f"clerk:{PASSWORD}".encode()).decode()):
        assert secret not in everything


def test_what_is_no_address_is_refused_without_quoting_it(tmp_path: Path) -> None:
    http = HttpSink("feed", output=OUTPUT, connection="receiver", committer=str(tmp_path))
    tcp = TcpSink("feed", output=OUTPUT, connection="receiver", committer=str(tmp_path))
    cases: list[tuple[AppendOnlySink, str, tuple[str, ...]]] = [
        (http, r"http\(s\) URL", ("http://clerk:{}@h:port/", "clerk:{}@h", "ftp://:{}@h/")),
        (tcp, "tcp://host:port", ("tcp://:{}@h:x", "http://:{}@h:1", "tcp://:{}@h", "tcp://[:{}")),
    ]
    for sink, told, urls in cases:
        for url in urls:
            with pytest.raises(InvalidPipeline, match=f"connection receiver is no {told}") as refused:
                Sent(sink, {"receiver": url.format(PASSWORD)})
            assert PASSWORD not in str(refused.getrepr(style="long"))


def test_a_token_that_no_header_can_carry_is_refused_without_quoting_it(tmp_path: Path) -> None:
    for token in (f"{PASSWORD}%0A", f"{PASSWORD}%C3%A9", f"{PASSWORD}%20"):
        with pytest.raises(InvalidPipeline, match="printable ASCII") as refused:
            to(Script([]), tmp_path, login=f":{token}")
        assert PASSWORD not in str(refused.value)
    with pytest.raises(InvalidPipeline, match="no name of a header"):
        HttpSink("feed", output=OUTPUT, connection="receiver", committer=str(tmp_path), key_header="X-Key: a\r\n")


# --- without a guarantee ---------------------------------------------------------------------------------------------


def test_without_a_guarantee_each_request_is_tried_once_and_no_answer_counts(tmp_path: Path) -> None:
    with scripted("http", status(500), hang_up, status(422)) as script:
        sent = to(script, tmp_path, committer=None, guarantee="none", rows=30)
        assert sent.publish() is Publication.SENT
        assert not sent.recorded
    assert [request.ordinals[0] for request in script.requests] == [0, 10, 20]


# --- over TCP --------------------------------------------------------------------------------------------------------


def by_tcp(port: int, folder: Path, rows: int = 20, **arguments: Any) -> Sent:
    settings = {"committer": str(folder / "sent"), "timeout": 0.5, **arguments}
    sink = TcpSink("feed", output=OUTPUT, connection="receiver", **settings)
    return Sent(sink, {"receiver": f"tcp://127.0.0.1:{port}"}, rows)


def test_without_a_whole_answer_nothing_is_taken_for_sent(tmp_path: Path) -> None:
    with scripted("tcp", too_late, hang_up, line("ok"), line(""), line("ok\n")) as script:
        sent = by_tcp(script.port, tmp_path)
        for _ in range(4):
            with pytest.raises(SinkUnavailable, match="the receiver behind connection receiver"):
                sent.publish()
            assert not sent.recorded
        assert [sent.publish(), sent.publish()] == [Publication.SENT, Publication.FOUND]
    assert [request.ordinals for request in script.requests] == [list(range(20))] * 5
    with pytest.raises(SinkUnavailable, match="ConnectionRefused"):
        by_tcp(script.port, tmp_path / "nobody there").publish()


def test_a_connection_that_breaks_in_the_middle_sends_all_again(tmp_path: Path) -> None:
    with scripted("tcp", line("")) as script, CuttingProxy("127.0.0.1", script.port) as proxy:
        sent = by_tcp(proxy.port, tmp_path, rows=5000)
        proxy.cut(after_bytes=100_000)
        with pytest.raises(SinkUnavailable):
            sent.publish()
        assert proxy.cuts == 1 and not sent.recorded
        script.answers = [line("ok\n")]
        assert sent.publish() is Publication.SENT
        assert script.requests[-1].ordinals == list(range(5000))


def test_another_answer_blocks_the_publication_and_is_told(tmp_path: Path) -> None:
    with scripted("tcp", line("no: the disk is full\n")) as script:
        sent = by_tcp(script.port, tmp_path)
        with pytest.raises(PublishBlocked, match="no: the disk is full"):
            sent.publish()
        assert not sent.recorded


def test_without_a_guarantee_no_answer_is_awaited(tmp_path: Path) -> None:
    with scripted("tcp", too_late) as script:
        sent = by_tcp(script.port, tmp_path, committer=None, guarantee="none", timeout=60)
        assert sent.publish() is Publication.SENT
        assert not sent.recorded
