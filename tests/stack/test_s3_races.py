"""The private S3 server keeps to the conditions of a put however many ask at once: it waits seconds to be sure."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, PreconditionError

from stack.s3 import S3Server

WRITERS, ROUNDS = 20, 10


@pytest.mark.parametrize("condition", ["If-None-Match", "If-Match"])
def test_of_many_who_put_at_once_exactly_one_does(s3_server: S3Server, condition: str) -> None:
    store, start = s3_server.store("races"), threading.Barrier(WRITERS)

    def won(number: int, path: str, mode: Any) -> bool:
        start.wait()
        try:
            obstore.put(store, path, f"{number}".encode(), mode=mode, use_multipart=False)
        except (AlreadyExistsError, PreconditionError):
            return False
        return True

    with ThreadPoolExecutor(WRITERS) as writers:
        for turn in range(ROUNDS):
            path = f"{condition}/{turn}"
            known = {"e_tag": obstore.put(store, path, b"before")["e_tag"]} if condition == "If-Match" else "create"
            tried = writers.map(won, range(WRITERS), [path] * WRITERS, [known] * WRITERS)
            winners = [number for number, one in enumerate(tried) if one]
            assert len(winners) == 1, f"round {turn}: {len(winners)} of {WRITERS} put it"
            assert bytes(obstore.get(store, path).bytes()) == f"{winners[0]}".encode()
