# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts as old clients ask for them (until 2.42), and what Neutron's agents would tell Nova of ports: nothing, here."""

from __future__ import annotations

import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import compute_hosts
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import hypervisor_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement.hypervisor_records import Host

from ....web.bodies import Answer, Body, Record, the_one
from ....web.errors import BadRequestError, ForbiddenError, as_bad_request
from ....web.schemas import Schema, an_object
from ....web.services import reads, takes, writes
from ....work.calls import calling
from ..blueprint import compute_legacy, since

OLD = since("2.1", "2.42")
SWITCH: Schema = {"enum": ["enable", "disable", "Enable", "Disable", "ENABLE", "DISABLE"]}
HOST = an_object({"status": SWITCH, "maintenance_mode": SWITCH}, minProperties=1)
NUMBERS = {"cpu": "vcpus", "memory_mb": "memory_mb", "disk_gb": "root_gb"}


@compute_legacy.get("/os-hosts", "compute:old-hosts:read", OLD, reads)
def list_hosts(connection: Connection) -> Answer:
    zone = request.args.get("zone")
    rows = hypervisor_records.hosts(connection)
    hosts = [{"host_name": row.name, "service": "compute", "zone": row.state.zone} for row in rows]
    return {"hosts": [host for host in hosts if not zone or host["zone"] == zone]}, 200


@compute_legacy.get("/os-hosts/<name>", "compute:old-hosts:read", OLD, reads)
def show_host(connection: Connection, name: str) -> Answer:
    state = _host(connection, name).state
    servers = instances_by(connection, hosts=[name])
    resources = [
        _resource(name, "(total)", state.vcpus, state.memory_mb, state.disk_gb),
        _resource(
            name,
            "(used_now)",
            state.vcpus_used,
            state.memory_mb_used + state.reserved_memory_mb,
            state.disk_gb_used + state.reserved_disk_gb,
        ),
    ]
    of_projects: dict[str, list[int]] = {}
    for server in servers:
        of_project = of_projects.setdefault(server["project"]["id"], [0, 0, 0])
        for place, key in enumerate(NUMBERS.values()):
            of_project[place] += t.cast("dict[str, int]", server["flavor"])[key]
    most = [sum(numbers[place] for numbers in of_projects.values()) for place in range(3)]
    resources.append(_resource(name, "(used_max)", *most))
    resources += [_resource(name, project, *numbers) for project, numbers in sorted(of_projects.items())]
    return {"host": resources}, 200


@compute_legacy.put("/os-hosts/<name>", "compute:old-hosts:write", OLD, takes(HOST), writes)
def update_host(connection: Connection, body: Record, name: str) -> Answer:
    _host(connection, name)
    if "maintenance_mode" in body:
        raise BadRequestError("a host is emptied with playbooks/host_evacuate.yml: it has no maintenance mode here")
    enabled = body["status"].lower() == "enable"
    with as_bad_request():
        compute_hosts.switch(calling(connection), [name], enabled)
    return {"host": name, "status": "enabled" if enabled else "disabled"}, 200


@compute_legacy.get("/os-hosts/<name>/<any(startup, shutdown, reboot):action>", "compute:old-hosts:write", OLD, reads)
def act_on_host(connection: Connection, name: str, action: str) -> Answer:
    _host(connection, name)
    raise BadRequestError(f"'{action}' of a host is its administrator's, and not done here")


@compute_legacy.post("/os-server-external-events", "compute:old-hosts:write")
def create_events() -> Answer:
    raise ForbiddenError("nothing outside is waited for here: no events of servers are taken")


def _host(connection: Connection, name: str) -> Host:
    rows = hypervisor_records.hosts(connection, [name])
    return the_one(rows, "name", name, NotFoundError(f"Compute host {name[:255]} could not be found."))


def _resource(host: str, project: str, cpu: int, memory_mb: int, disk_gb: int) -> Body:
    return {"resource": {"host": host, "project": project, "cpu": cpu, "memory_mb": memory_mb, "disk_gb": disk_gb}}
