# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers that are told: a webhook's and a mail server, on ports of this machine, which keep what they get."""

from __future__ import annotations

import contextlib
import email
import email.message
import http.server
import json
import socketserver
import threading
import typing as t


class Hook(http.server.ThreadingHTTPServer):
    """Webhook's server: answers each request with `status`, and keeps headers and body."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.status, self.got = 200, list[tuple[dict[str, str], bytes]]()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hooks/s3cr3t-path"

    @property
    def bodies(self) -> list[t.Any]:
        return [json.loads(body) for _headers, body in self.got]


class _Answer(http.server.BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((dict(self.headers), body))
        self.send_response(self.server.status)
        if self.server.status in (301, 302, 307):
            self.send_header("Location", "/elsewhere")
        self.end_headers()

    def do_GET(self) -> None:  # whoever follows a redirection after a POST comes so
        self.server.got.append((dict(self.headers), b"null"))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_words: object) -> None:
        pass


class Post(socketserver.ThreadingTCPServer):
    """Mail server (RFC 5321, as much as a sender needs): keeps envelopes and letters; `refuses` all recipients."""

    daemon_threads, allow_reuse_address = True, True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.refuses, self.got = False, list[tuple[str, list[str], email.message.Message]]()
        self.lines: list[str] = []

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.server_address[1]}?from=cloud@example.org&to=a@example.org&to=b@example.org"


class _Session(socketserver.StreamRequestHandler):
    server: Post

    def handle(self) -> None:
        self._say("220 post.example.org")
        sender, recipients = "", list[str]()
        for line in iter(self._line, ""):
            verb = line[:4].upper()
            if verb == "EHLO":
                self._say("250-post.example.org", "250 8BITMIME")
            elif verb == "MAIL":
                sender, recipients = line, []
                self._say("250 ok")
            elif verb == "RCPT":
                if not self.server.refuses:
                    recipients.append(line)
                self._say("550 no such user" if self.server.refuses else "250 ok")
            elif verb == "DATA":
                self._say("354 go on")
                text = b"".join(iter(self.rfile.readline, b".\r\n"))
                self.server.got.append((sender, recipients, email.message_from_bytes(text)))
                self._say("250 kept")
            else:
                self._say("221 bye" if verb == "QUIT" else "250 ok")

    def _line(self) -> str:
        line = self.rfile.readline().decode().rstrip("\r\n")
        self.server.lines.append(line)
        return line

    def _say(self, *lines: str) -> None:
        self.wfile.write("".join(f"{line}\r\n" for line in lines).encode())


Server = t.TypeVar("Server", bound=socketserver.BaseServer)


@contextlib.contextmanager
def serving(server: Server) -> t.Iterator[Server]:
    """Serve in a thread for the time of the block."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
