"""TcpSink before receivers that fail in every way that they can."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lockstep.errors import InvalidPipeline, PublishBlocked, SinkUnavailable
from lockstep.sinks.append_only.tcp import TcpSink
from lockstep.sinks.values import Publication
from lockstep.testing import OUTPUT
from tests.proxy import CuttingProxy
from tests.sinks.append.scripted import Sent, hang_up, line, scripted, too_late


def to(port: int, folder: Path, rows: int = 20, **arguments: Any) -> Sent:
    settings = {"committer": str(folder / "sent"), "timeout": 0.5, **arguments}
    sink = TcpSink("feed", output=OUTPUT, connection="receiver", **settings)
    return Sent(sink, {"receiver": f"tcp://127.0.0.1:{port}"}, rows)


def test_an_epoch_is_sent_in_order_and_recorded_after_the_receivers_ok(tmp_path: Path) -> None:
    with scripted("tcp", line("ok\n")) as script:
        sent = to(script.port, tmp_path, rows=3000)
        assert sent.publish() is Publication.SENT
        assert sent.publish() is Publication.FOUND
    [request] = script.requests
    assert request.ordinals == list(range(3000))


def test_without_a_whole_answer_nothing_is_taken_for_sent(tmp_path: Path) -> None:
    with scripted("tcp", too_late, hang_up, line("ok"), line(""), line("ok\n")) as script:
        sent = to(script.port, tmp_path)
        for _ in range(4):
            with pytest.raises(SinkUnavailable, match="the receiver behind connection receiver"):
                sent.publish()
            assert not sent.recorded
        assert sent.publish() is Publication.SENT
    assert [request.ordinals for request in script.requests] == [list(range(20))] * 5


def test_a_connection_that_breaks_in_the_middle_sends_all_again(tmp_path: Path) -> None:
    with scripted("tcp", line("")) as script, CuttingProxy("127.0.0.1", script.port) as proxy:
        sent = to(proxy.port, tmp_path, rows=5000)
        proxy.cut(after_bytes=100_000)
        with pytest.raises(SinkUnavailable):
            sent.publish()
        assert proxy.cuts == 1 and not sent.recorded
        script.answers = [line("ok\n")]
        assert sent.publish() is Publication.SENT
        assert script.requests[-1].ordinals == list(range(5000))


def test_another_answer_blocks_the_publication_and_is_told(tmp_path: Path) -> None:
    with scripted("tcp", line("no: the disk is full\n")) as script:
        sent = to(script.port, tmp_path)
        with pytest.raises(PublishBlocked, match="no: the disk is full"):
            sent.publish()
        assert not sent.recorded


def test_without_a_guarantee_no_answer_is_awaited(tmp_path: Path) -> None:
    with scripted("tcp", too_late) as script:
        sent = to(script.port, tmp_path, committer=None, guarantee="none", timeout=60)
        assert sent.publish() is Publication.SENT
        assert not sent.recorded


def test_a_receiver_that_is_not_there_is_tried_again_later(tmp_path: Path) -> None:
    with scripted("tcp", line("ok\n")) as script:
        sent = to(script.port, tmp_path)
    with pytest.raises(SinkUnavailable, match="ConnectionRefused"):
        sent.publish()


def test_what_is_no_address_is_refused_without_quoting_it(tmp_path: Path, subtests: pytest.Subtests) -> None:
    sink = TcpSink("feed", output=OUTPUT, connection="receiver", committer=str(tmp_path))
    for url in ("tcp://:pass-w0rd@h:x", "http://:pass-w0rd@h:1", "tcp://:pass-w0rd@h", "tcp://[:pass-w0rd"):
        with subtests.test(url):
            with pytest.raises(InvalidPipeline, match="connection receiver is no tcp://host:port") as refused:
                Sent(sink, {"receiver": url})
            assert "pass-w0rd" not in str(refused.value) and refused.value.__cause__ is None
