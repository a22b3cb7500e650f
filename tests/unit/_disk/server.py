# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""An HTTP server of one file that can be made to fail in every way that a download has to survive."""

from __future__ import annotations

import dataclasses
import http.server
import re
import threading
import types
import typing as t


@dataclasses.dataclass
class Behaviour:
    """Behaviour of the server. `cuts` are after how many bytes of the body each answer ends, None: after all."""

    content: bytes
    etag: str | None = '"one"'
    ranges: bool = True
    length: bool = True
    cuts: list[int | None] = dataclasses.field(default_factory=list)
    statuses: list[int] = dataclasses.field(default_factory=list)  # of the first answers
    redirect: str | None = None  # where /moved leads
    content_range: str | None = None  # a lie


class Server:
    """`with Server(behaviour) as server:`; `server.url`, and `server.requests`: (path, Range, If-Range) of each."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.requests: list[tuple[str, str | None, str | None]] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append((self.path, self.headers.get("Range"), self.headers.get("If-Range")))
                outer.answer(self)

            def log_message(self, format: str, *args: t.Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Server:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        how = self.behaviour
        if how.statuses:
            handler.send_error(how.statuses.pop(0))
            return
        if how.redirect and handler.path == "/moved":
            handler.send_response(302)
            handler.send_header("Location", how.redirect)
            handler.end_headers()
            return
        requested_range = re.fullmatch("bytes=([0-9]+)-", handler.headers.get("Range", ""))
        same = handler.headers.get("If-Range") in (None, how.etag)
        start = int(requested_range.group(1)) if requested_range and how.ranges and same else 0
        total = len(how.content)
        if start and start >= total:
            handler.send_response(416)
            handler.send_header("Content-Range", f"bytes */{total}")
            handler.end_headers()
            return
        handler.send_response(206 if start else 200)
        if start:
            handler.send_header("Content-Range", how.content_range or f"bytes {start}-{total - 1}/{total}")
        if how.length:
            handler.send_header("Content-Length", str(total - start))
        if how.etag:
            handler.send_header("ETag", how.etag)
        handler.end_headers()
        cut = how.cuts.pop(0) if how.cuts else None
        handler.wfile.write(how.content[start:] if cut is None else how.content[start : start + cut])
