"""A TCP proxy on the loopback that breaks connections at a chosen moment, for faults of the network.

    with CuttingProxy("127.0.0.1", port) as proxy:
        proxy.cut(before=b"COMMIT PREPARED")      # the request never arrives
        proxy.cut(after=b"COMMIT PREPARED")       # it arrives and is answered, the answer is lost
        proxy.cut(after_bytes=100_000)            # in mid-stream, counted from now on, client to server

A cut happens once, or as often as is said; other connections pass. Requests are seen only when they travel in the
clear.
"""

from __future__ import annotations

import selectors
import socket
import threading
from contextlib import suppress
from typing import Any

_CHUNK = 1 << 16


class CuttingProxy:
    """Passes everything from its own `port` to `host`:`port` until told to cut. `cuts`: how many were made."""

    def __init__(self, host: str, port: int) -> None:
        self._upstream = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cuts = 0
        self._before: bytes | None = None
        self._after: bytes | None = None
        self._left: int | None = None
        self._times = 1
        self._open: set[socket.socket] = set()

    def __enter__(self) -> CuttingProxy:
        threading.Thread(target=self._accept, name="cutting-proxy", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._close(self._listener)
        for one in list(self._open):
            self._close(one)

    def cut(
        self,
        *,
        before: bytes | None = None,
        after: bytes | None = None,
        after_bytes: int | None = None,
        times: int = 1,
    ) -> None:
        """Break the connection on which this is seen next, and with a request the next `times`; see the module."""
        self._before, self._after, self._left, self._times = before, after, after_bytes, times

    def cut_around(self, when: str, request: str, times: int = 1) -> None:
        """`cut` with `when` "before" or "after"."""
        found = request.encode()
        self.cut(before=found if when == "before" else None, after=found if when == "after" else None, times=times)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(self._upstream)
                except OSError:  # down for now: so is the proxy
                    client.close()
                    continue
                self._open |= {client, server}
                threading.Thread(target=self._relay, args=(client, server), daemon=True).start()

    def _relay(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError), selectors.DefaultSelector() as ready:
            ready.register(client, selectors.EVENT_READ)
            ready.register(server, selectors.EVENT_READ)
            going = True
            while going:
                going = all(self._pass(key.fileobj, client, server) for key, _ in ready.select())
        for one in (client, server):
            self._close(one)

    def _pass(self, source: Any, client: socket.socket, server: socket.socket) -> bool:
        data = source.recv(_CHUNK)
        if not data:
            return False
        if source is server:
            client.sendall(data)
            return True
        return self._request(data, server)

    def _request(self, data: bytes, server: socket.socket) -> bool:
        """False where the connection is to break."""
        if self._before is not None and self._before in data:
            self._count_cut()
            return False
        if self._left is not None and (left := self._left - len(data)) < 0:
            server.sendall(data[: self._left])
            self._left = None
            self.cuts += 1
            return False
        self._left = None if self._left is None else left
        server.sendall(data)
        if self._after is not None and self._after in data:
            server.recv(_CHUNK)  # the answer: done, and lost
            self._count_cut()
            return False
        return True

    def _count_cut(self) -> None:
        self.cuts += 1
        self._times -= 1
        if not self._times:
            self._before = self._after = None

    def _close(self, one: socket.socket) -> None:
        self._open.discard(one)
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
