# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The address that clients reach this application under; every link and header that names one takes it from here."""

from __future__ import annotations

from flask import current_app, request


def base_url() -> str:
    """The address without a slash at its end: NOVALITE_API_PUBLIC_URL, or else as the request had it."""
    settings = current_app.extensions["settings"]
    return str(settings.api_public_url or request.url_root).rstrip("/")


def this_url() -> str:
    """The address of what was asked for, without its query."""
    return base_url() + request.path
