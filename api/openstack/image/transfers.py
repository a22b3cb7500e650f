# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Limits of uploads and downloads: a bounded number at a time, and an end to those that stall."""

from __future__ import annotations

import contextlib
import io
import socket
import threading
import typing as t

from flask import current_app, g, request

from ...settings import Settings
from ...web.errors import TooManyRequestsError

STALL = 60.0  # seconds in which something must come, or be taken
DRAINED = 64 << 20  # bytes of a refused upload that are read so that its sender gets to see why
DRAIN_SECONDS = 30.0  # for that
PIECE = 64 << 10
ANY = 1 << 62  # None would mean the application's own limit

EXTENSION = "image_transfers"


def slots(settings: Settings) -> threading.BoundedSemaphore:
    """Half of a process's threads, at most, are busy with images; the others answer."""
    return threading.BoundedSemaphore(max(1, settings.api_threads // 2))


def take_slot() -> threading.BoundedSemaphore:
    """Raises TooManyRequestsError when there is none left. Whoever has it releases it."""
    limiter: threading.BoundedSemaphore = current_app.extensions[EXTENSION]
    if not limiter.acquire(blocking=False):
        raise TooManyRequestsError("too many images are on their way just now: try again soon", 5)
    return limiter


@contextlib.contextmanager
def incoming() -> t.Iterator[Incoming]:
    """The request's body as a stream, for as long as the context lasts."""
    slot = take_slot()
    try:
        stream = Incoming()
        try:
            yield stream
        finally:
            stream.stop()
    finally:
        slot.release()


class Incoming:
    """A body that is read in small pieces, and ends when its sender stalls."""

    def __init__(self) -> None:
        request.max_content_length = ANY  # bounded by whoever reads
        self._stream = request.stream
        self._socket: socket.socket | None = request.environ.get("gunicorn.socket")
        self._moved = True
        self._timer: threading.Timer | None = None
        self._watch()

    def read(self, size: int) -> bytes:
        content = bytearray()
        while len(content) < size:
            piece = self._stream.read(min(PIECE, size - len(content)))
            if not piece:
                break
            self._moved = True
            content += piece
        return bytes(content)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _watch(self) -> None:
        """A timeout of the socket is not enough: a byte now and then would hold a thread for ever."""
        if self._socket is None:
            return
        if not self._moved:
            _shut(self._socket)
            return
        self._moved = False
        self._timer = threading.Timer(STALL, self._watch)
        self._timer.daemon = True
        self._timer.start()


def drain() -> None:
    """Read what a sender still sends, within bounds: it looks for an answer only then. The connection ends with it."""
    g.image_close = True
    left = DRAINED
    connection: socket.socket | None = request.environ.get("gunicorn.socket")
    # not by a timeout of the socket, which each byte would put off
    end = threading.Timer(DRAIN_SECONDS, _shut, [connection])
    end.daemon = True
    end.start()
    with contextlib.suppress(Exception):  # there is an error to tell of already
        request.max_content_length = ANY
        while left > 0 and (piece := request.stream.read(PIECE)):
            left -= len(piece)
    end.cancel()


def _shut(connection: socket.socket | None) -> None:
    if connection is not None:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RD)


class Outgoing(io.FileIO):
    """A file that gives its slot back when it is closed, or forgotten."""

    def __init__(self, path: str) -> None:
        self._slot: threading.BoundedSemaphore | None = take_slot()
        try:
            super().__init__(path)
        except BaseException:
            self._release()
            raise
        connection: socket.socket | None = request.environ.get("gunicorn.socket")
        if connection is not None:
            connection.settimeout(STALL)

    def close(self) -> None:
        super().close()
        self._release()

    def __del__(self) -> None:  # of an answer that nobody read: to HEAD, to a range that is none
        self.close()

    def _release(self) -> None:
        slot, self._slot = getattr(self, "_slot", None), None
        if slot is not None:
            slot.release()
