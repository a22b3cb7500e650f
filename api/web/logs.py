# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Logs as lines of JSON: one for each request, without query, body, token or password."""

from __future__ import annotations

import datetime
import json
import logging
import sys
import time

from flask import Flask, Response, g, request

from .context import Caller, request_id

log = logging.getLogger("novalite.api")

FIELDS = ("method", "path", "status", "ms", "request_id", "user", "project", "address")
MAX_TRACEBACK = 8192  # characters: whoever finds an error of ours must not fill the disk with it


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON, with those of FIELDS that it carries."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.datetime.fromtimestamp(record.created, datetime.timezone.utc)
        line = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update({name: record.__dict__[name] for name in FIELDS if name in record.__dict__})
        if record.exc_info:
            line["traceback"] = _bounded(self.formatException(record.exc_info))
        return json.dumps(line, default=str)


def _bounded(text: str) -> str:
    """The beginning and the end of a long text: what went in, and what went wrong."""
    half = MAX_TRACEBACK // 2
    return text if len(text) <= MAX_TRACEBACK else f"{text[:half]}\n[...]\n{text[-half:]}"


def configure() -> None:
    """Write the log of this process, and of libraries from warnings on, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("novalite").setLevel(logging.INFO)


def register(app: Flask) -> None:
    app.before_request(_begin)
    app.after_request(_end)
    app.logger = log


def _begin() -> None:
    g.began = time.perf_counter()


def _end(response: Response) -> Response:
    caller = g.get("caller")
    known = isinstance(caller, Caller)
    log.info(
        "request",
        extra={
            "method": request.method,
            "path": request.path,
            "status": response.status_code,
            "ms": round((time.perf_counter() - g.get("began", time.perf_counter())) * 1000, 1),
            "request_id": request_id(),
            "user": caller.user_id if known else None,
            "project": caller.project_id if known else None,
            "address": request.remote_addr,
        },
    )
    return response
