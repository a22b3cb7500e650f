# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The address that clients reach this application under, from which every link and header takes it; and other paths by
which they reach a route: with a project's id or without one, and EC2's service at the root.

Only the search for a route sees the route's own path. All else sees the client's: signatures, access rules, links.
"""

from __future__ import annotations

import re
import typing as t

from flask import Flask, Request, current_app, request
from werkzeug.routing import MapAdapter

UNNAMED = "-"  # stands in Block Storage's paths for the project of who asks
_PROJECT = "[0-9a-f-]+"  # as Nova and Cinder recognise one
_COMPUTE = re.compile(rf"/compute/v2\.1/({_PROJECT})(?=/[^/])")
_VOLUME = re.compile(rf"/volume/v3/(?!{_PROJECT}(?:/|$))(?=[^/])")
_SIGNED = ("AWSAccessKeyId", "X-Amz-Algorithm")  # parameters of a query that is signed

REGION = "RegionOne"


def base_url() -> str:
    """The address without a slash at its end: NOVALITE_API_PUBLIC_URL, or else as the request had it."""
    settings = current_app.extensions["settings"]
    return str(settings.api_public_url or request.url_root).rstrip("/")


def this_url() -> str:
    """The address of what was asked for, without its query."""
    return base_url() + request.path


def project_in_path() -> str | None:
    """The project's id that a request to Compute has before the route's own path; None: it has none."""
    match = _COMPUTE.match(request.path)
    return None if match is None else match[1]


class Application(Flask):
    """Flask, which finds the route of any of these paths."""

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        adapter = super().create_url_adapter(request)
        if adapter is not None and request is not None:
            adapter.path_info = _route_path(request, adapter.path_info, self.extensions["settings"].ec2_host_names)
        return adapter


def _route_path(asked: Request, path: str, ec2_host_names: t.Collection[str]) -> str:
    if path == "/":
        return "/ec2" if _is_for_ec2(asked, ec2_host_names) else path
    return _VOLUME.sub(f"/volume/v3/{UNNAMED}/", _COMPUTE.sub("/compute/v2.1", path, count=1), count=1)


def _is_for_ec2(asked: Request, host_names: t.Collection[str]) -> bool:
    """Tell whether a request to the root is one for EC2: by the host's name, or because the status page takes no POST
    there, and no signature."""
    if asked.host.partition(":")[0].lower() in host_names:
        return True
    signed = asked.headers.get("Authorization", "").startswith("AWS4-") or any(name in asked.args for name in _SIGNED)
    return asked.method == "POST" or signed
