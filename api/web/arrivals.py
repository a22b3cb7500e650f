# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""gunicorn's threads for requests that are there: none waits for a client that sends, or closes, drop by drop.

gunicorn gives a connection to a thread with its first byte, and the thread then waits for the rest of the head and of
the body. Here both are gathered in the process's main loop, which waits for all clients at once, and within bounds of
time and size. Only what is too large to be gathered (an image's data) is read by a thread, which looks after itself
(image/transfers.py).
"""

from __future__ import annotations

import contextlib
import re
import selectors
import time
import typing as t
from functools import partial

from gunicorn.workers.gthread import ThreadWorker

HEAD_SECONDS = 10.0  # from a connection's beginning, or a request's first byte, to the end of its head
BODY_SECONDS = 10.0  # from there to the end of the body, and one second more for each SLOWEST bytes
SLOWEST = 16 << 10  # bytes a second
LINGER_SECONDS = 2.0  # for which a client's last bytes are taken after the answer, so that it gets to see it (RFC 9112)
MAX_HEAD = 64 << 10  # bytes
MAX_HELD = 64 << 20  # bytes of all requests that are on their way
DRAIN_SECONDS = 0.05  # in a thread, for a body that nobody read
PIECE = 64 << 10

_LENGTH = re.compile(rb"\r\ncontent-length[ \t]*:[ \t]*([0-9]{1,15})[ \t]*(?=\r\n)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding[ \t]*:", re.IGNORECASE)
_EXPECTED = re.compile(rb"\r\nexpect[ \t]*:[ \t]*100-continue[ \t]*(?=\r\n)", re.IGNORECASE)
# The one kind of request whose length need not be known: its reader bounds it
_STREAMED = re.compile(rb"(PUT|POST) [^\s?]*/images/[^/\s?]+/(file|stage)[? ]")
_END = b"\r\n\r\n"


class Refused(Exception):
    """A request that is broken off, with the status line of the answer."""


class Arrival:
    """A request as far as it is there. `largest` is the largest body (bytes) that is gathered."""

    def __init__(self, data: bytes, largest: int, now: float) -> None:
        self.data = bytearray()
        self.received = 0  # bytes
        self.deadline = now + HEAD_SECONDS
        self.closing = False  # it was answered, and only its client's end is waited for
        self.go_on = False  # the client waits to be told so before it sends the body
        self._largest = largest
        self._needed: int | None = None  # bytes, once the head is there
        self.add(data, now)

    @property
    def whole(self) -> bool:
        """Tell whether the request is complete, so that a thread can have it."""
        return not self.closing and self._needed is not None and len(self.data) >= self._needed

    def add(self, piece: bytes, now: float) -> None:
        """Raises Refused for a head that cannot be."""
        looked_at = max(0, len(self.data) - len(_END))
        self.data += piece
        self.received += len(piece)
        if self._needed is not None:
            return
        if looked_at == 0:  # empty lines before a request are nothing, and would be taken for its head
            del self.data[: len(self.data) - len(self.data.lstrip(b"\r\n"))]
        end = self.data.find(_END, looked_at)
        if end >= 0:
            self._judge(end + len(_END), now)
        elif len(self.data) > MAX_HEAD:
            raise Refused("431 Request Header Fields Too Large")

    def _judge(self, end: int, now: float) -> None:
        """Find out from the head how much belongs to the request."""
        head = bytes(self.data[:end])
        self._needed = end
        if _CHUNKED.search(head) is not None:
            if _STREAMED.match(head) is None:
                raise Refused("411 Length Required")
            return
        length = max((int(number) for number in _LENGTH.findall(head)), default=0)
        if length > self._largest:
            return
        if _EXPECTED.search(head) is not None and length:
            shorter = _EXPECTED.sub(b"", head)
            self.data[:end], end = shorter, len(shorter)
            self.go_on = len(self.data) < end + length
        self._needed = end + length
        self.deadline = now + BODY_SECONDS + length / SLOWEST


class Worker(ThreadWorker):
    """gthread, which gathers requests before it gives them to its threads."""

    def __init__(self, *args: t.Any, **kwargs: t.Any) -> None:
        super().__init__(*args, **kwargs)
        self._arrivals: dict[t.Any, Arrival] = {}  # by connection, the oldest first
        self._held = 0  # bytes that came with them
        self._looked = 0.0
        # who keeps connections and asks nothing leaves room for others
        self.max_keepalived = self.worker_connections // 4

    def enqueue_req(self, conn: t.Any) -> None:
        """Gather the request that begins on a connection. gunicorn calls this for new ones and for kept ones."""
        try:
            conn.init()
            data = conn.parser.unreader.take_buffered()
            conn.sock.setblocking(False)
            arrival = Arrival(data, self.app.settings.max_request_bytes, time.monotonic())
        except (OSError, Refused):
            self._close(conn)
            return
        self._watch(conn, arrival)
        self._receive(conn, conn.sock)

    def finish_request(self, conn: t.Any, fs: t.Any) -> None:
        """Close an answered connection without waiting for its client: the main loop must not."""
        failed = fs.cancelled() or fs.exception() is not None
        if failed or fs.result():
            super().finish_request(conn, fs)
            return
        try:
            conn.sock.setblocking(False)
            conn.sock.shutdown(1)  # SHUT_WR
        except (OSError, ValueError):
            self._close(conn)
            return
        self._linger(conn)

    def murder_pending(self) -> None:
        """Called now and then: end what takes too long, and whatever is not there yet when this process is to end."""
        super().murder_pending()
        now = time.monotonic()
        if self.alive and now - self._looked < 0.5:
            return
        self._looked = now
        for conn, arrival in list(self._arrivals.items()):
            if arrival.deadline <= now:
                self._give_up(conn, "408 Request Timeout" if arrival.data and not arrival.closing else None)
            elif not self.alive and not arrival.data and not arrival.closing:
                self._give_up(conn)

    def _keepalive_after(self, conn: t.Any, keepalive: bool) -> bool:
        """A connection whose body was not read is closed, and not read to its end by a thread."""
        return bool(keepalive and conn.parser.finish_body(deadline=time.monotonic() + DRAIN_SECONDS))

    # --- What is on its way -----------------------------------------------------------------------------------------

    def _watch(self, conn: t.Any, arrival: Arrival) -> None:
        self._arrivals[conn] = arrival
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._receive, conn))
        self._held += arrival.received
        while len(self._arrivals) > self.worker_connections // 2 or self._held > MAX_HELD:
            self._give_up(next(iter(self._arrivals)))  # who is quick has long been served

    def _receive(self, conn: t.Any, _sock: t.Any) -> None:
        arrival = self._arrivals.get(conn)
        if arrival is None:  # ended within this round of events
            return
        try:
            piece = conn.sock.recv(PIECE)
            if not piece:
                self._give_up(conn)
            elif not arrival.closing:
                self._held += len(piece)
                arrival.add(piece, time.monotonic())
        except (BlockingIOError, InterruptedError):
            pass  # what was read ahead may be all of it
        except OSError:
            self._give_up(conn)
        except Refused as error:
            self._give_up(conn, str(error))
        if self._arrivals.get(conn) is not arrival:
            return
        if arrival.whole:
            self._forget(conn)
            conn.sock.setblocking(True)
            conn.parser.unreader.unread(bytes(arrival.data))
            super().enqueue_req(conn)
        elif arrival.go_on:
            arrival.go_on = False
            with contextlib.suppress(OSError):
                conn.sock.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _give_up(self, conn: t.Any, status: str | None = None) -> None:
        self._forget(conn)
        if status is None:
            self._close(conn)
            return
        try:
            conn.sock.send(f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode())
            conn.sock.shutdown(1)
        except OSError:
            self._close(conn)
        else:
            self._linger(conn)

    def _linger(self, conn: t.Any) -> None:
        arrival = Arrival(b"", 0, time.monotonic())
        arrival.closing, arrival.deadline = True, time.monotonic() + LINGER_SECONDS
        self._watch(conn, arrival)

    def _forget(self, conn: t.Any) -> None:
        self._held -= self._arrivals.pop(conn).received
        with contextlib.suppress(KeyError, ValueError, OSError):
            self.poller.unregister(conn.sock)

    def _close(self, conn: t.Any) -> None:
        self.nr_conns -= 1
        conn.close()
