# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Services: compute hosts, which administrators switch, and the workers of the control plane."""

from __future__ import annotations

import uuid

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, HostInUseError, NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import compute_hosts
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.jobs import job_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement.hypervisor_records import (
    Host,
    hosts,
)

from ...web import validation
from ...web.bodies import Answer, Body
from ...web.errors import BadRequestError, as_bad_request
from ...web.schemas import NAME, Schema, an_object
from ...web.services import reads, writes
from ...web.times import precise
from ...work.calls import calling
from .blueprint import CLEAN, compute, from_version, known, microversion
from .routes_hosts import BINARY, host_by
from .servers.schemas import TRUE

SERVICE = an_object(
    {"status": {"enum": ["enabled", "disabled"]}, "disabled_reason": NAME, "forced_down": {}}, minProperties=1
)


@compute.get("/os-services", "compute:hosts:read", known(CLEAN, "host binary"), reads)
def list_services(connection: Connection) -> Answer:
    args = request.args
    names = [args["host"]] if args.get("host") else None
    services = [*_control_plane(connection), *(_service(row) for row in hosts(connection, names))]
    for key in ("binary", "host"):
        if args.get(key):
            services = [service for service in services if service[key] == args[key]]
    return {"services": services}, 200


@compute.put("/os-services/<service_id>", "compute:hosts:write", writes)
def update_service(connection: Connection, service_id: str) -> Answer:
    if microversion() < (2, 53):
        return _update_old(connection, service_id)
    body = validation.body(SERVICE)
    if body.get("forced_down", False) in TRUE:
        raise BadRequestError("a host cannot be declared down: it is, when it does not answer")
    if "disabled_reason" in body and body.get("status") != "disabled":
        raise BadRequestError("Specifying disabled_reason when status is not 'disabled' is invalid.")
    row = _of_service(connection, service_id)
    if "status" in body:
        _switch(connection, row.name, body["status"] == "enabled", body.get("disabled_reason"))
    return {"service": _service(_of_service(connection, service_id))}, 200


@compute.delete("/os-services/<service_id>", "compute:hosts:write", writes)
def delete_service(connection: Connection, service_id: str) -> Answer:
    row = _of_service(connection, service_id)
    try:
        compute_hosts.delete(calling(connection), row.name)
    except HostInUseError as error:
        raise ConflictError(_why_not_deleted(error)) from error
    return "", 204


def _why_not_deleted(error: HostInUseError) -> str:
    """Nova's words (nova/api/openstack/compute/services.py), and for volumes, which it has not, our own."""
    why = "has volumes. Delete the volumes first."
    if error.instances:
        why = "is hosting instances. Migrate or delete the instances first."
    elif error.moves:
        why = "has in-progress migrations. Complete the migrations or delete the instances first."
    return f"Unable to delete compute service that {why}"


def _update_old(connection: Connection, action: str) -> Answer:
    """PUT /os-services/enable, disable, disable-log-reason with the host in the body."""
    if action not in ("enable", "disable", "disable-log-reason"):
        raise NotFoundError("Unknown action")
    reason = action == "disable-log-reason"
    fields: Schema = dict.fromkeys(("host", "binary", *(["disabled_reason"] if reason else [])), NAME)
    request_body = validation.body(an_object(fields, list(fields)))
    if request_body["binary"] != BINARY or not hosts(connection, [request_body["host"]]):
        raise NotFoundError(f"Could not find binary {request_body['binary'][:60]} on host {request_body['host'][:60]}.")
    _switch(connection, request_body["host"], action == "enable", request_body.get("disabled_reason"))
    status = "enabled" if action == "enable" else "disabled"
    body = {"host": request_body["host"], "binary": BINARY, "status": status}
    if reason:
        body["disabled_reason"] = request_body["disabled_reason"]
    return {"service": body}, 200


def _switch(connection: Connection, host: str, enabled: bool, reason: str | None) -> None:
    with as_bad_request():
        compute_hosts.switch(calling(connection), [host], enabled, reason)


def _of_service(connection: Connection, service_id: str) -> Host:
    for service in _control_plane(connection):
        if str(service["id"]) == service_id:
            raise BadRequestError(
                f"Updating a {service['binary']} service is not supported. Only nova-compute services can be updated."
            )
    key = "service_uuid" if microversion() >= (2, 53) else "id"
    return host_by(connection, key, service_id, NotFoundError(f"Service {service_id[:60]} could not be found."))


def _service(row: Host) -> Body:
    state = row.state
    return {
        "id": row.service_uuid if microversion() >= (2, 53) else row.id,
        "binary": BINARY,
        "host": row.name,
        "zone": state.zone,
        "status": "enabled" if state.enabled else "disabled",
        "state": "up" if state.up else "down",
        "updated_at": precise(row.last_seen_at),
        "disabled_reason": state.disabled_reason,
        **from_version((2, 11), {"forced_down": False}),
    }


def _control_plane(connection: Connection) -> list[Body]:
    """The workers, which do what Nova's conductor and scheduler do: nobody switches them."""
    return [
        {
            "id": str(service_id) if microversion() >= (2, 53) else service_id.int & 0x3FFFFFFF | 0x40000000,
            "binary": binary,
            "host": machine.name,
            "zone": "internal",
            "status": "enabled",
            "state": "up" if machine.up else "down",
            "updated_at": precise(machine.seen_at),
            "disabled_reason": None,
            **from_version((2, 11), {"forced_down": False}),
        }
        for machine in job_records.machines(connection)
        for binary in ("nova-conductor", "nova-scheduler")
        for service_id in [uuid.uuid5(uuid.NAMESPACE_DNS, f"{binary}.{machine.name}")]
    ]
