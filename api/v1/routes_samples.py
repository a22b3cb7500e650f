# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Samples: what hosts and guests used of processors, memory, disks and networks up to now."""

from __future__ import annotations

import time

from flask.typing import ResponseReturnValue

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.server_listing import instance_row
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import status
from ansible_collections.novalite.cloud.plugins.module_utils._samples.rings import GUEST, HOST, WINDOWS

from ..web.context import current
from ..web.host_names import host_name_mask
from ..web.ledger import samples
from ..web.services import reads
from . import schemas, views
from .operations import Operation


@Operation(
    "GET",
    "/hosts/{name}/samples",
    "compute:hypervisors:samples",
    "What a compute host used",
    {200: "Samples"},
    query=schemas.SAMPLES_QUERY,
    ledger=reads,
)
def list_host_samples(connection: Connection, name: str, query: JsonObject) -> ResponseReturnValue:
    host = status.host(connection, host_name_mask(connection, current().reach).lift(name))
    return _samples(HOST, host["name"], query)


@Operation(
    "GET",
    "/instances/{uuid}/samples",
    "compute:servers:samples",
    "What an instance used",
    {200: "Samples"},
    query=schemas.SAMPLES_QUERY,
    ledger=reads,
)
def list_instance_samples(connection: Connection, uuid: str, query: JsonObject) -> ResponseReturnValue:
    instance = instance_row(connection, uuid, current().reach)
    return _samples(GUEST, instance.uuid, query)


def _samples(kind: str, name: str, query: JsonObject) -> JsonObject:
    window = WINDOWS[query.get("window", "day")]
    return {"samples": views.samples(samples().history(kind, name, window, time.time()), window.step)}
