# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Errors of the native part, as RFC 9457 has them."""

from __future__ import annotations

import typing as t

from flask import Response, request

from ..web.context import request_id
from ..web.dialects import title

CONTENT_TYPE = "application/problem+json"

PROBLEM: dict[str, t.Any] = {
    "type": "object",
    "description": "What went wrong (RFC 9457)",
    "properties": {
        "type": {"type": "string", "const": "about:blank", "description": "the status says it all"},
        "title": {"type": "string"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string", "description": "one line for people; for what was refused, it names the field"},
        "request_id": {"type": "string"},
    },
    "required": ["type", "title", "status", "detail", "request_id"],
    "additionalProperties": False,
}


def problem(status: int, message: str, error: Exception | None = None) -> dict[str, t.Any]:
    return {
        "type": "about:blank",
        "title": title(status),
        "status": status,
        "detail": message,
        "request_id": request_id(),
    }


def mark(response: Response) -> Response:
    """Give errors under /v1 their own content type, also those of paths that no route has."""
    ours = request.path == "/v1" or request.path.startswith("/v1/")
    if ours and response.status_code >= 400 and response.mimetype == "application/json":
        response.mimetype = CONTENT_TYPE
    return response
