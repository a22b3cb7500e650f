# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rate limits: a token bucket for each user in each project, and for each address whose caller is unknown.

Each process counts for itself, so a caller has as much again with each (NOVALITE_API_WORKERS): a bound that all share
would be a write to the ledger with every request, which costs more than most requests do.
"""

from __future__ import annotations

import collections
import math
import threading
import time

from flask import Flask, current_app, request

from ansible_collections.novalite.cloud.plugins.module_utils._rules.attempts import subject

from ..settings import Settings
from .errors import TooManyRequestsError

EXTENSION = "rates"
MOST = 10_000  # callers that are remembered; who was not seen for longest is forgotten, and has a full bucket again
FREE = frozenset(["/healthz", "/readyz", "/metrics"])  # what looks after this server looks often


class Buckets:
    """Buckets of `burst` tokens, into which `rate` tokens come each second."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._left: collections.OrderedDict[str, tuple[float, float]] = collections.OrderedDict()  # tokens, and when
        self._lock = threading.Lock()

    def take(self, key: str, now: float) -> float:
        """Take a token; returns 0, or if there is none how many seconds it is until there is."""
        with self._lock:
            tokens, then = self._left.pop(key, (self._burst, now))
            tokens = min(self._burst, tokens + (now - then) * self._rate)
            wait = 0.0 if tokens >= 1 else (1 - tokens) / self._rate
            self._left[key] = (tokens if wait else tokens - 1, now)
            if len(self._left) > MOST:
                self._left.popitem(last=False)
        return wait


def register(app: Flask, settings: Settings) -> None:
    app.extensions[EXTENSION] = (
        Buckets(settings.api_rate, settings.api_burst),
        Buckets(settings.api_anonymous_rate, settings.api_anonymous_burst),
    )
    app.before_request(_count_what_is_public)


def count_caller(user_id: str, project_id: str | None) -> None:
    """Count a request of somebody who is known. Raises TooManyRequestsError."""
    _take(current_app.extensions[EXTENSION][0], f"{user_id} {project_id}")


def count_nobody() -> None:
    """Count a request that turned out to be nobody's. Raises TooManyRequestsError."""
    _take(current_app.extensions[EXTENSION][1], subject("address", request.remote_addr or ""))


def _count_what_is_public() -> None:
    """Count a request to a public path as nobody's; for all others, the service finds out who asks, and counts."""
    from . import policy  # which asks who it is, and that counts here

    view = current_app.view_functions.get(request.endpoint or "")
    operation = policy.operation_of(view)
    if request.path not in FREE and (view is None or policy.POLICY.get(operation or "", "public") == "public"):
        count_nobody()


def _take(buckets: Buckets, key: str) -> None:
    wait = buckets.take(key, time.monotonic())
    if wait:
        raise TooManyRequestsError("Too many requests: wait a moment (Retry-After).", retry_after=math.ceil(wait))
