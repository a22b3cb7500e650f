# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Consoles: the button's form, the page, which whoever has its address may see, and the WebSocket behind it."""

from __future__ import annotations

from flask import Response, make_response, redirect, render_template
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.consoles import SERIAL, TYPES
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.server_listing import instance_row

from ..web.context import MAX_TOKEN, current, find_caller
from ..web.services import writes
from ..work import consoles
from ..work.refusals import refusals_as_bad_requests
from ..work.websocket import Upgrade
from . import rendering, session
from .session import pages

# What a guest shows is pixels and characters; pictures that noVNC unpacks are data of its own
_POLICY = session.CONTENT_SECURITY_POLICY.replace("img-src 'self'", "img-src 'self' data: blob:")
# xterm.js puts its colours and the size of its letters into <style>
_SERIAL_POLICY = _POLICY.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'")


@pages.post("/instances/<uuid>/consoles/<console_type>", "compute:server-consoles", writes)
def open_console(connection: Connection, uuid: str, console_type: str) -> ResponseReturnValue:
    row = instance_row(connection, uuid, current().reach)
    with refusals_as_bad_requests():
        return redirect(consoles.url_of(connection, row, console_type), 303)


@pages.get("/console/<console_type>", "pages:console")
def show_remote_console(console_type: str) -> Response:
    if console_type not in TYPES:
        raise NotFound
    page = render_template("pages/remote_console.html", type=console_type, there=rendering.HAS_CONSOLES)
    response = make_response(page)
    response.headers["Content-Security-Policy"] = _SERIAL_POLICY if console_type == SERIAL else _POLICY
    return response


@pages.get("/console/connect", "pages:console", writes, websocket=True)
def connect_console(connection: Connection) -> Response:
    upgrade = Upgrade.of_request()
    known = 1 <= len(session.token()) <= MAX_TOKEN
    return consoles.opened(connection, upgrade, find_caller(connection, session.token()) if known else None)
