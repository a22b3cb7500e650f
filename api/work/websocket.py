# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A WebSocket whose bytes are a process's standard input and output: within bounds, whatever either end sends.

It holds a thread of the server while it lasts. No side is read faster than the other one takes, and no more than LIMIT
is kept of either. Nothing that comes is looked into: it is for a page in a browser, or for a guest.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import select
import signal
import socket
import subprocess
import time
import typing as t

from flask import Response, request
from werkzeug.exceptions import BadRequest
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Event, Ping, Request, TextMessage
from wsproto.utilities import ProtocolError

from ..web.logs import log

if t.TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

PROTOCOL = "binary"
PIECE = 32 << 10  # bytes of one message
LIMIT = 256 << 10  # bytes that wait for a side that is slow
SAID = 2000  # bytes of what the process says of itself
PING = 20.0  # seconds; a browser answers by itself
STUCK = 60.0  # seconds in which nothing comes from a browser, or it takes nothing
LOOK = 15.0  # seconds between two looks at whether it may still be
LAST = 2.0  # seconds for the last bytes
_HEADERS = ("Host", "Upgrade", "Connection", "Sec-WebSocket-Key", "Sec-WebSocket-Version", "Sec-WebSocket-Protocol")
_IN, _OUT = select.POLLIN | select.POLLHUP | select.POLLERR, select.POLLOUT


@dataclasses.dataclass
class Upgrade:
    """A request to go on as a WebSocket, which names PROTOCOL, and perhaps a word that only its server knows."""

    connection: WSConnection
    words: tuple[str, ...]

    @classmethod
    def of_request(cls) -> Upgrade:
        """Raises BadRequest where the current request is not one from a page of this site."""
        # a browser says where a page is from, and no page can say otherwise
        if request.headers.get("Origin") != request.host_url.rstrip("/"):
            raise BadRequest("a console is for pages of this site")
        lines = [f"{name}: {request.headers[name]}" for name in _HEADERS if name in request.headers]
        connection = WSConnection(ConnectionType.SERVER)
        try:
            connection.receive_data("\r\n".join(["GET / HTTP/1.1", *lines, "", ""]).encode("latin-1", "replace"))
            (asked,) = connection.events()
        except (ProtocolError, ValueError):
            raise BadRequest("this is not a request for a WebSocket") from None
        if not isinstance(asked, Request) or PROTOCOL not in asked.subprotocols:
            raise BadRequest(f"a console is a WebSocket of the protocol {PROTOCOL}")
        return cls(connection, tuple(word for word in asked.subprotocols if word != PROTOCOL))


class Upgraded(Response):
    """The answer that goes on as a WebSocket with `command` behind it. `may_go_on` is asked now and then; `idle` is the
    number of seconds after which one that carries nothing ends; `ended` is called at the end."""

    def __init__(
        self,
        upgrade: Upgrade,
        command: t.Sequence[str],
        may_go_on: t.Callable[[], bool],
        idle: float,
        ended: t.Callable[[], None],
    ) -> None:
        super().__init__(status=101)
        self._upgrade, self._command, self._may_go_on = upgrade, command, may_go_on
        self._idle, self._ended = idle, ended

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> t.Iterable[bytes]:
        try:
            client: socket.socket = environ.get("gunicorn.socket") or environ["werkzeug.socket"]
            client.setblocking(False)
            with started(self._command) as process:
                Relay(client, self._upgrade.connection, process, self._may_go_on, self._idle).run()
        finally:
            self._ended()
        # the server has nothing to add, and closes it
        raise ConnectionResetError(errno.ECONNRESET, "the WebSocket has ended")


@contextlib.contextmanager
def started(command: t.Sequence[str]) -> t.Iterator[subprocess.Popen[bytes]]:
    """A process with pipes that do not block, which ends here at the latest, with what it started."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True)
    try:
        for stream in (process.stdin, process.stdout, process.stderr):
            os.set_blocking(t.cast("t.IO[bytes]", stream).fileno(), False)
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            t.cast("t.IO[bytes]", stream).close()


class Relay:
    """Bytes between a WebSocket and a process."""

    def __init__(
        self,
        client: socket.socket,
        websocket: WSConnection,
        process: subprocess.Popen[bytes],
        may_go_on: t.Callable[[], bool],
        idle: float,
    ) -> None:
        self._client, self._websocket, self._may_go_on, self._idle = client, websocket, may_go_on, idle
        streams = (process.stdin, process.stdout, process.stderr)
        self._stdin, self._stdout, self._stderr = (t.cast("t.IO[bytes]", stream).fileno() for stream in streams)
        self._to_client = bytearray(websocket.send(AcceptConnection(subprotocol=PROTOCOL)))
        self._to_process = bytearray()
        self._said = bytearray()
        self._quiet = False  # the process says no more of itself
        self._closing: float | None = None  # when it is closed at the latest
        self._heard = self._taken = self._carried = self._pinged = self._looked = time.monotonic()

    def run(self) -> None:
        """Carry bytes until one side ends, or a time is over."""
        late = False  # judged before the last turn: a thread that waited long for a processor has yet said nothing
        while self._closing is None or (self._to_client and not late):
            late = self._closing is not None and time.monotonic() > self._closing
            try:
                self._turn()
            except OSError:  # the browser has gone
                break
        if self._said:
            log.info("a console said: %s", self._said.decode(errors="replace").encode("unicode_escape").decode())

    def _turn(self) -> None:
        poller = select.poll()
        interests = {self._client.fileno(): 0}
        if self._to_client:
            interests[self._client.fileno()] |= _OUT
        if self._closing is None:
            if len(self._to_process) < LIMIT:
                interests[self._client.fileno()] |= _IN
            if self._to_process:
                interests[self._stdin] = _OUT
            if len(self._to_client) < LIMIT:
                interests[self._stdout] = _IN
            if not self._quiet:
                interests[self._stderr] = _IN
        for number, events in interests.items():
            poller.register(number, events)
        ready = dict(poller.poll(500))
        now = time.monotonic()
        if ready.get(self._stderr):
            self._listen()
        if ready.get(self._stdout):
            self._from_process(now)
        if ready.get(self._stdin):
            self._into_process(now)
        if ready.get(self._client.fileno(), 0) & ~_OUT:
            self._from_client(now)
        if self._to_client and ready.get(self._client.fileno(), 0) & _OUT:
            with contextlib.suppress(BlockingIOError):
                del self._to_client[: self._client.send(self._to_client[:LIMIT])]
                self._taken = now
        if not self._to_client:
            self._taken = now
        if self._closing is None:
            self._keep_time(now)

    def _keep_time(self, now: float) -> None:
        if now - self._heard > STUCK or now - self._taken > STUCK:
            raise ConnectionResetError
        if now - self._carried > self._idle:
            self._close(1000, "nothing was typed or shown for too long")
        elif now - self._looked > LOOK:
            self._looked = now
            if not self._may_go_on():
                self._close(1008, "this console is no longer yours, or has moved")
        if now - self._pinged > PING and self._closing is None:
            self._pinged = now
            self._send(Ping())

    def _listen(self) -> None:
        piece = os.read(self._stderr, PIECE)
        self._quiet = not piece
        self._said += piece[: SAID - len(self._said)]

    def _from_process(self, now: float) -> None:
        piece = os.read(self._stdout, PIECE)
        if piece:
            self._carried = now
            self._send(BytesMessage(data=piece))
        else:
            self._close(1011, "the console has ended: the guest is off, or its host cannot be reached")

    def _into_process(self, now: float) -> None:
        try:
            del self._to_process[: os.write(self._stdin, self._to_process[:PIECE])]
        except BrokenPipeError:
            self._to_process.clear()  # what it wrote before its end is still read

    def _from_client(self, now: float) -> None:
        try:
            piece = self._client.recv(PIECE)
        except BlockingIOError:
            return
        if not piece:
            raise ConnectionResetError
        self._heard = now
        try:
            self._websocket.receive_data(piece)
            for event in self._websocket.events():
                self._take(event, now)
        except ProtocolError:
            raise ConnectionResetError from None

    def _take(self, event: Event, now: float) -> None:
        if self._closing is not None:
            return
        if isinstance(event, BytesMessage):
            self._carried = now
            self._to_process += event.data
        elif isinstance(event, Ping):
            self._send(event.response())
        elif isinstance(event, TextMessage):
            self._close(1003, "a console takes bytes")
        elif isinstance(event, CloseConnection):
            self._send(event.response())
            self._closing = now + LAST

    def _close(self, code: int, reason: str) -> None:
        self._send(CloseConnection(code=code, reason=reason))
        self._closing = time.monotonic() + LAST

    def _send(self, event: Event) -> None:
        self._to_client += self._websocket.send(event)
