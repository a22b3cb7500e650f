# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Resizes and migrations of servers: the actions, and the records of such moves."""

from __future__ import annotations

import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import servers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import Call
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import (
    migration_records,
    server_listing,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import flavor_of
from ansible_collections.novalite.cloud.plugins.module_utils._model.instance import Flavor
from ansible_collections.novalite.cloud.plugins.module_utils._model.rows import InstanceRow

from ....web.bodies import Answer, Body, Record, same
from ....web.context import current
from ....web.errors import BadRequestError, in_words
from ....web.listing import MAX_LIMIT, body
from ....web.schemas import NAME, TEXT, Schema, an_object, of, or_null
from ....web.services import reads, takes, writes
from ....web.times import precise
from ....work.refusals import refusals_as_bad_requests
from ..blueprint import NOVA, Version, check_query, compute, from_version, microversion, since
from . import queries as query_servers
from .routes_actions import ACTIONS, NOTHING, Action, Do
from .schemas import BOOLEAN, DISK_CONFIG, FALSE, TRUE
from .views import render_context

FLAVOR: Schema = {"type": ["string", "integer"], "minLength": 1, "maxLength": 255}
HOST: Schema = {"type": ["string", "null"], "minLength": 1, "maxLength": 255}
RESIZE = an_object({"flavorRef": FLAVOR, "OS-DCF:diskConfig": DISK_CONFIG}, ["flavorRef"])
MIGRATE = or_null(an_object({"host": HOST}))
LIVE = an_object(
    {"host": HOST, "block_migration": {"enum": [*TRUE, *FALSE, "auto"]}, "disk_over_commit": BOOLEAN, "force": BOOLEAN},
    ["block_migration", "host"],
)
EVACUATE = an_object({"host": NAME, "onSharedStorage": BOOLEAN, "force": BOOLEAN, "adminPass": TEXT})
FORCE_COMPLETE: Schema = {}


# --- actions --------------------------------------------------------------------------------------------------------


def _move(call: Call, name: str, row: InstanceRow, *, flavor: Flavor | None = None, host: str | None = None) -> None:
    with refusals_as_bad_requests():
        servers.move(call, name, [row.uuid], flavor=flavor, host=host)


def _resize(call: Call, row: InstanceRow, value: Record) -> None:
    with refusals_as_bad_requests():
        flavor = lookups.flavor_by_id(
            call.connection, str(value["flavorRef"]), call.permits("compute:flavors:private"), row.project_id
        )
    if "OS-DCF:diskConfig" in value:
        servers.update(call, row, {"disk_config": value["OS-DCF:diskConfig"]})
    _move(call, "resize", row, flavor=flavor_of(flavor))


def _end(action: str) -> Do:
    def begin(call: Call, row: InstanceRow, value: Record) -> None:
        _move(call, action, row)

    return begin


def _migrate(call: Call, row: InstanceRow, value: Record) -> None:
    if value and microversion() < (2, 56):
        raise BadRequestError("Invalid input for field/attribute migrate. host came with microversion 2.56.")
    _move(call, "migrate", row, host=value.get("host"))


def _live_migrate(call: Call, row: InstanceRow, value: Record) -> None:
    _check_fields("os-migrateLive", value, {"disk_over_commit": (None, (2, 24)), "force": ((2, 30), (2, 67))})
    if microversion() < (2, 25):
        if value["block_migration"] == "auto":
            raise BadRequestError("Invalid input for field/attribute block_migration. auto came with 2.25.")
        if "disk_over_commit" not in value:
            raise BadRequestError("Invalid input for field/attribute os-migrateLive. disk_over_commit is required.")
    _move(call, "live-migration", row, host=value["host"])


def _evacuate(call: Call, row: InstanceRow, value: Record) -> Body | None:
    _check_fields("evacuate", value, {"onSharedStorage": (None, (2, 13)), "force": ((2, 29), (2, 67))})
    _move(call, "evacuate", row, host=value.get("host"))
    return {"adminPass": value.get("adminPass", "")} if microversion() < (2, 14) else None


def _check_fields(name: str, value: Record, fields: t.Mapping[str, tuple[Version | None, Version | None]]) -> None:
    """Refuse what the request's microversion does not have (any more)."""
    for field, (first, last) in fields.items():
        if field in value and not (first or (2, 1)) <= microversion() <= (last or (9, 0)):
            raise BadRequestError(
                f"Invalid input for field/attribute {name}. Additional properties are not allowed ('{field}' was "
                "unexpected)"
            )


ACTIONS.update(
    {
        "resize": Action("compute:servers:resize", RESIZE, _resize),
        "confirmResize": Action("compute:servers:confirm_resize", NOTHING, _end("confirmResize"), status=204),
        "revertResize": Action("compute:servers:revert_resize", NOTHING, _end("revertResize")),
        "migrate": Action("compute:servers:migrate", MIGRATE, _migrate),
        "os-migrateLive": Action("compute:servers:live_migrate", LIVE, _live_migrate),
        "evacuate": Action("compute:servers:evacuate", EVACUATE, _evacuate, status=200),
    }
)


# --- records --------------------------------------------------------------------------------------------------------


@compute.get("/os-migrations", "compute:migrations:read", reads)
def list_migrations(connection: Connection) -> Answer:
    names = {"host", "status", "source_compute", "migration_type", "hidden", "instance_uuid"}
    paged = microversion() >= (2, 59)
    if paged:
        names |= {"limit", "marker", "changes-since"}
    if microversion() >= (2, 66):
        names.add("changes-before")
    if microversion() >= (2, 80):
        names |= {"user_id", "project_id"}
    conditions = {name: request.args[name] for name in names if name in request.args}
    check_query((2, 59), names)
    row_conditions = {name: text for name, text in conditions.items() if name not in ("limit", "hidden", "marker")}
    for name in ("changes-since", "changes-before"):
        if name in row_conditions:
            row_conditions[name] = str(query_servers.moment(name))
    limit = (NOVA.limit() or MAX_LIMIT) if paged else None
    marker = request.args.get("marker") or None if paged else None
    with in_words({NotFoundError: BadRequestError}):  # the marker
        rows = migration_records.find(connection, row_conditions, limit and limit + 1, marker)
    flavors = migration_records.flavor_ids(connection)
    shown = rows[:limit]
    more = len(shown) < len(rows)
    return body("migrations", [_shown(row, flavors) for row in shown], shown[-1]["uuid"] if more else None), 200


def _shown(row: Record, flavors: Record) -> Body:
    links: Body = {}
    if row["type"] == "live-migration" and row["status"] in migration_records.UNDER_WAY:
        of_server = f"{row['instance_uuid']}/migrations/{row['id']}"
        links = {"links": render_context().links("servers", of_server)}
    return {
        **_ends(row),
        "instance_uuid": row["instance_uuid"],
        "old_instance_type_id": flavors.get(row["old_flavor"]["name"], 0),
        "new_instance_type_id": flavors.get(row["new_flavor"]["name"], 0),
        **from_version((2, 23), {"migration_type": row["type"], **links}),
    }


def _ends(row: Record) -> Body:
    return {
        "id": row["id"],
        "source_compute": row["source_host"],
        "source_node": row["source_host"],
        "dest_compute": row["dest_host"],
        "dest_node": row["dest_host"],
        "dest_host": None,
        "status": row["status"],
        "created_at": precise(row["created_at"]),
        "updated_at": precise(row["updated_at"]),
        **from_version((2, 59), same(row, "uuid")),
        **from_version((2, 80), same(row, "user_id", "project_id")),
    }


_NUMBERS = [f"{what}_{how}_bytes" for what in ("memory", "disk") for how in ("total", "processed", "remaining")]


def _live(row: Record) -> Body:
    return {**_ends(row), "server_uuid": row["instance_uuid"], **dict.fromkeys(_NUMBERS)}


def _under_way(connection: Connection, server_id: str) -> list[Record]:
    row = server_listing.instance_row(connection, server_id, current().reach)
    return migration_records.under_way(connection, row.uuid)


@compute.get("/servers/<server_id>/migrations", "compute:migrations:read", since("2.23"), reads)
def list_server_migrations(connection: Connection, server_id: str) -> Answer:
    return {"migrations": [_live(row) for row in _under_way(connection, server_id)]}, 200


@compute.get("/servers/<server_id>/migrations/<migration_id>", "compute:migrations:read", since("2.23"), reads)
def show_server_migration(connection: Connection, server_id: str, migration_id: str) -> Answer:
    return {"migration": _live(_migration(_under_way(connection, server_id), server_id, migration_id))}, 200


@compute.delete("/servers/<server_id>/migrations/<migration_id>", "compute:migrations:change", since("2.24"), writes)
def abort_server_migration(connection: Connection, server_id: str, migration_id: str) -> Answer:
    _migration(_under_way(connection, server_id), server_id, migration_id)
    raise BadRequestError("A live migration that is under way cannot be aborted here.")


@compute.post(
    "/servers/<server_id>/migrations/<migration_id>/action",
    "compute:migrations:change",
    since("2.22"),
    takes(of("force_complete", FORCE_COMPLETE)),
    writes,
)
def force_server_migration(connection: Connection, how: object, server_id: str, migration_id: str) -> Answer:
    _migration(_under_way(connection, server_id), server_id, migration_id)
    raise BadRequestError("A live migration that is under way cannot be hurried here.")


def _migration(rows: list[Record], server_id: str, migration_id: str) -> Record:
    migration = next((row for row in rows if migration_id in (str(row["id"]), row["uuid"])), None)
    if migration is None:
        raise NotFoundError(f"In-progress live migration {migration_id[:40]} is not found for server {server_id[:40]}.")
    return migration
