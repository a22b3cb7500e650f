# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Host aggregates, for administrators."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import Call
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import aggregates
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import hypervisor_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement.hypervisor_records import (
    Aggregate,
)

from ...web import schemas, validation
from ...web.bodies import Answer, Body, Record, same, the_one
from ...web.errors import BadRequestError, in_words
from ...web.schemas import ACTION, OPTIONAL, Schema, wrapped
from ...web.services import reads, takes, writes, writes_checked
from ...web.times import precise
from ...work.calls import calling
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
NEW = wrapped("aggregate", AGGREGATE, ["name"])


@compute.get("/os-aggregates", "compute:aggregates:read", reads)
def list_aggregates(connection: Connection) -> Answer:
    return {"aggregates": [_shown(row) for row in hypervisor_records.aggregates(connection)]}, 200


@compute.get("/os-aggregates/<aggregate_id>", "compute:aggregates:read", reads)
def show_aggregate(connection: Connection, aggregate_id: str) -> Answer:
    return {"aggregate": _shown(_row(connection, aggregate_id))}, 200


@compute.post(
    "/os-aggregates", "compute:aggregates:write", takes(wrapped("aggregate", AGGREGATE, ["name"])), writes_checked
)
def create_aggregate(connection: Connection, aggregate_body: Record) -> Answer:
    zone = aggregate_body.get("availability_zone")
    body = _shown(aggregates.create(calling(connection), aggregate_body["name"], zone))
    return {"aggregate": {key: value for key, value in body.items() if key not in ("hosts", "metadata")}}, 200


@compute.put(
    "/os-aggregates/<aggregate_id>",
    "compute:aggregates:write",
    takes(wrapped("aggregate", AGGREGATE, minProperties=1)),
    writes_checked,
)
def update_aggregate(connection: Connection, aggregate_body: Record, aggregate_id: str) -> Answer:
    zone = aggregate_body["availability_zone"] or "" if "availability_zone" in aggregate_body else None
    row = _row(connection, aggregate_id)
    row = aggregates.update(calling(connection), row, name=aggregate_body.get("name"), zone=zone)
    return {"aggregate": _shown(row)}, 200


@compute.delete("/os-aggregates/<aggregate_id>", "compute:aggregates:write", writes)
def delete_aggregate(connection: Connection, aggregate_id: str) -> Answer:
    with in_words({aggregates.NotEmptyError: BadRequestError}):
        aggregates.delete(calling(connection), _row(connection, aggregate_id))
    return "", 200


def _checked(body: Record) -> Record:
    """The body of an action. Raises BadRequestError for an unknown action, or a wrong value of it."""
    (action,) = body
    if action not in ACTIONS:
        raise BadRequestError(f"There is no such action: {action[:60]}")
    validation.check(body, ACTIONS[action])
    return body


@compute.post(
    "/os-aggregates/<aggregate_id>/action", "compute:aggregates:write", takes(ACTION, _checked), writes_checked
)
def act_on_aggregate(connection: Connection, body: Record, aggregate_id: str) -> Answer:
    ((action, value),) = body.items()
    row = _row(connection, aggregate_id)
    if action == "set_metadata":
        row = _set_metadata(calling(connection), row, value["metadata"])
    else:
        act = aggregates.add_host if action == "add_host" else aggregates.remove_host
        row = act(calling(connection), row, value["host"])
    return {"aggregate": _shown(row)}, 200


def _set_metadata(call: Call, row: Aggregate, changes: Record) -> Aggregate:
    """Change metadata, of which the zone is one of the keys in Nova."""
    zone = None
    if "availability_zone" in changes:
        zone = changes["availability_zone"] or ""
        validation.check(zone or None, ZONE)
    return aggregates.set_metadata(call, row, {**changes, "availability_zone": None}, zone)


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
