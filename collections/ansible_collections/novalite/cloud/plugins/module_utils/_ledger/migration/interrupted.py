# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Live migrations that were cut off: libvirtd brought each guest to one of two hosts, and both are asked to which."""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..._model.instance import Instance
from ..._model.rows import MoveRow
from ..._plan import targets
from ..compute import migrations
from ..compute.named_servers import error_of
from ..queries.instance_rows import instance_row, swap
from ..queries.views import instances_by

_ALIVE = ("running", "paused", "suspended", "shutting down")
_GONE = "missing"


def resolve(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """With the state `interrupted`: which hosts are to be asked about which domains. With `resolve`: record what they
    said. One of which a host says nothing, or that runs on both, is left as it is, and named in `errors`."""
    found = {
        uuid: move for uuid, move in migrations.open_moves(connection).items() if move.status == migrations.RUNNING
    }
    instances = [server for server in instances_by(connection, uuids=found) if server["task_state"] is None]
    result: JsonObject = {"changed": False, "moves": [], "hosts": {}, "done": [], "lost": [], "errors": []}
    if params["state"] == "interrupted":
        for server in instances:
            for host in (found[server["uuid"]].source_host, found[server["uuid"]].dest_host):
                domain = {"uuid": server["uuid"], "name": server["domain_name"]}
                result["hosts"].setdefault(host, {"domains": []})["domains"].append(domain)
        return {**result, "targets": targets.of_hosts(result["hosts"])}
    said = {
        (outcome["host"], row["uuid"]): row["state"]
        for outcome in params.get("outcomes") or []
        for row in outcome.get("domains") or []
    }
    before, after = {}, {}
    for server in instances:
        move = found[server["uuid"]]
        source, dest = said.get((move.source_host, server["uuid"])), said.get((move.dest_host, server["uuid"]))
        if source is None or dest is None:
            host = move.source_host if source is None else move.dest_host
            result["errors"].append(error_of(server, f"host {host} did not say whether it runs there"))
            continue
        if source in _ALIVE and dest in _ALIVE:
            both = f"{move.source_host} and on {move.dest_host}"
            result["errors"].append(error_of(server, f"it runs on {both}: destroy the one that is paused"))
            continue
        arrived = dest in _ALIVE or (source == _GONE and dest != _GONE)
        _settle(connection, server, move, arrived)
        result["done"].append(server["uuid"])
        before[server["name"]] = {"host": server["host"], "migration": move.status}
        after[server["name"]] = {"host": move.dest_host if arrived else move.source_host, "migration": "ended"}
    result["changed"] = bool(result["done"])
    if result["changed"]:
        result["diff"] = {"before": before, "after": after}
    return result


def _settle(connection: sa.Connection, one: Instance, move: MoveRow, arrived: bool) -> None:
    row = instance_row(connection, one["uuid"])
    if not arrived:
        migrations.undo(connection, move, row, "it was cut off, and the guest stayed where it was")
        return
    swap(connection, one["uuid"], {"host": move.dest_host, "updated_at": migrations.now_()})
    migrations.finish(connection, move, row)
