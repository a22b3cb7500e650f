# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Consoles of instances: an address that opens one once."""

from __future__ import annotations

from flask.typing import ResponseReturnValue

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.consoles import POLICY
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.server_listing import instance_row

from ..web.context import current
from ..web.services import writes
from ..work import consoles
from ..work.refusals import refusals_as_bad_requests
from . import schemas
from .operations import Operation


@Operation(
    "POST",
    "/instances/{uuid}/console",
    POLICY,
    "Open the console of an instance",
    {200: "Console"},
    description="The address of a page, for one use within ten minutes. It ends with the token that asked.",
    body=schemas.NEW_CONSOLE,
    ledger=writes,
)
def open_instance_console(connection: Connection, uuid: str, body: dict[str, str]) -> ResponseReturnValue:
    row = instance_row(connection, uuid, current().reach)
    with refusals_as_bad_requests():
        return {"console": {"type": body["type"], "url": consoles.url_of(connection, row, body["type"])}}
