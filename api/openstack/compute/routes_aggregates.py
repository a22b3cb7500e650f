# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Host aggregates, for administrators."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement import hypervisor_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement.aggregates import (
    remove_aggregates,
    write_aggregates,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement.hypervisor_records import Aggregate

from ...web import schemas, validation
from ...web.bodies import Answer, Body, Json, Record, same, the_one
from ...web.errors import BadRequestError, as_bad_request
from ...web.schemas import ACTION, OPTIONAL, Schema, wrapped
from ...web.services import reads, takes, writes
from ...web.times import precise
from .blueprint import compute, from_version

NAME: Schema = {**schemas.NAME, "pattern": r"^\S(.*\S)?$"}
ZONE: Schema = {"type": ["string", "null"], "minLength": 1, "maxLength": 255, "pattern": r"^[^:\s]([^:]*[^:\s])?$"}
METADATA: Schema = {
    "type": "object",
    "propertyNames": {"pattern": "^[a-zA-Z0-9-_:. ]{1,255}$"},
    "additionalProperties": OPTIONAL,
    "maxProperties": 128,
}
ACTIONS = {
    "add_host": wrapped("add_host", {"host": schemas.NAME}, ["host"]),
    "remove_host": wrapped("remove_host", {"host": schemas.NAME}, ["host"]),
    "set_metadata": wrapped("set_metadata", {"metadata": METADATA}, ["metadata"]),
}
AGGREGATE = {"name": NAME, "availability_zone": ZONE}


@compute.get("/os-aggregates", "compute:aggregates:read", reads)
def list_aggregates(connection: Connection) -> Answer:
    return {"aggregates": [_shown(row) for row in hypervisor_records.aggregates(connection)]}, 200


@compute.get("/os-aggregates/<aggregate_id>", "compute:aggregates:read", reads)
def show_aggregate(connection: Connection, aggregate_id: str) -> Answer:
    return {"aggregate": _shown(_row(connection, aggregate_id))}, 200


@compute.post("/os-aggregates", "compute:aggregates:write", takes(wrapped("aggregate", AGGREGATE, ["name"])), writes)
def create_aggregate(connection: Connection, aggregate_body: Record) -> Answer:
    _check_free(connection, aggregate_body["name"])
    _write(connection, aggregate_body["name"], zone=aggregate_body.get("availability_zone"))
    rows = hypervisor_records.aggregates(connection)
    body = _shown(next(row for row in rows if row.name == aggregate_body["name"]))
    return {"aggregate": {key: value for key, value in body.items() if key not in ("hosts", "metadata")}}, 200


@compute.put(
    "/os-aggregates/<aggregate_id>",
    "compute:aggregates:write",
    takes(wrapped("aggregate", AGGREGATE, minProperties=1)),
    writes,
)
def update_aggregate(connection: Connection, aggregate_body: Record, aggregate_id: str) -> Answer:
    row = _row(connection, aggregate_id)
    if aggregate_body.get("name", row.name) != row.name:
        _check_free(connection, aggregate_body["name"])
        hypervisor_records.rename_aggregate(connection, row.id, aggregate_body["name"])
    if "availability_zone" in aggregate_body:
        _write(connection, aggregate_body.get("name", row.name), zone=aggregate_body["availability_zone"] or "")
    return {"aggregate": _shown(_row(connection, aggregate_id))}, 200


@compute.delete("/os-aggregates/<aggregate_id>", "compute:aggregates:write", writes)
def delete_aggregate(connection: Connection, aggregate_id: str) -> Answer:
    row = _row(connection, aggregate_id)
    if row.hosts:
        raise BadRequestError(
            f"Cannot perform action 'delete' on aggregate {row.id}. Reason: Host aggregate is not empty."
        )
    remove_aggregates(connection, [{"name": row.name}])
    return "", 200


def _checked(body: Record) -> Record:
    """The body of an action. Raises BadRequestError for an unknown action, or a wrong value of it."""
    (action,) = body
    if action not in ACTIONS:
        raise BadRequestError(f"There is no such action: {action[:60]}")
    validation.check(body, ACTIONS[action])
    return body


@compute.post("/os-aggregates/<aggregate_id>/action", "compute:aggregates:write", takes(ACTION, _checked), writes)
def act_on_aggregate(connection: Connection, body: Record, aggregate_id: str) -> Answer:
    ((action, value),) = body.items()
    row = _row(connection, aggregate_id)
    if action == "set_metadata":
        _set_metadata(connection, row, value["metadata"])
    else:
        _move_host(connection, row, value["host"], joins=action == "add_host")
    return {"aggregate": _shown(_row(connection, aggregate_id))}, 200


def _set_metadata(connection: Connection, row: Aggregate, changes: Record) -> None:
    """A null takes a key away. The zone is one of the keys in Nova."""
    merged = {key: value for key, value in {**row.metadata, **changes}.items() if value is not None}
    merged.pop("availability_zone", None)
    zone = None
    if "availability_zone" in changes:
        zone = changes["availability_zone"] or ""
        validation.check(zone or None, ZONE)
    _write(connection, row.name, zone=zone, metadata=merged)


def _move_host(connection: Connection, row: Aggregate, host: str, joins: bool) -> None:
    if joins and host in row.hosts:
        raise ConflictError(f"Aggregate {row.id} already has host {host}.")
    if not joins and host not in row.hosts:
        raise NotFoundError(f"Aggregate {row.id} has no host {host[:60]}.")
    hosts = [*row.hosts, host] if joins else [hypervisor for hypervisor in row.hosts if hypervisor != host]
    _write(connection, row.name, hosts=hosts)


def _write(connection: Connection, name: str, **values: Json) -> None:
    item = {"name": name, "zone": None, "metadata": None, "hosts": None, **values}
    with as_bad_request():
        write_aggregates(connection, [item])


def _check_free(connection: Connection, name: str) -> None:
    if any(row.name == name for row in hypervisor_records.aggregates(connection)):
        raise ConflictError(f"Aggregate {name} already exists.")


def _row(connection: Connection, aggregate_id: str) -> Aggregate:
    missing = NotFoundError(f"Aggregate {aggregate_id[:60]} could not be found.")
    return the_one(hypervisor_records.aggregates(connection), "id", aggregate_id, missing)


def _shown(row: Aggregate) -> Body:
    zone = {"availability_zone": row.zone} if row.zone else {}
    return {
        **same(row, "id", "name"),
        "availability_zone": row.zone,
        "hosts": row.hosts,
        "metadata": {**row.metadata, **zone},
        "created_at": precise(row.created_at),
        "updated_at": precise(row.updated_at),
        "deleted": False,
        "deleted_at": None,
        **from_version((2, 41), {"uuid": row.uuid}),
    }
