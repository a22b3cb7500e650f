# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes that hosts have to see: each is a job in the transaction of the change."""

from __future__ import annotations

import typing as t

from ..._json import JsonObject
from ..compute.port_changes import PortChange
from ..jobs.job_rows import is_waiting
from ..queries.identity import projects
from ..security import group_rules
from .call import Call


def update_hosts(call: Call, kind: str, variables: JsonObject, project_id: str | None = None) -> None:
    """Have a job of `kind` bring hosts what the ledger says when it runs, unless one like it is yet to begin. It acts
    for the project `project_id`, or for the caller's."""
    owner = project_id or call.project
    job_variables = {"project": projects.project_name(call.connection, owner), **variables}
    if not is_waiting(call.connection, kind, job_variables, owner):
        call.enqueue(kind, [], owner, job_variables)


def update_networks_of_hosts(call: Call, hosts: t.Sequence[str], project_id: str) -> None:
    """Have these hosts, if there are any, learn what became of networks of the project ("": of all)."""
    if hosts:
        update_hosts(call, "floating_ips", {"network_hosts": list(hosts)}, project_id or None)


def update_hosts_of_group(call: Call, group_id: int) -> None:
    """Have the hosts that carry a member of the security group learn its new rules."""
    if group_rules.instances_concerned(call.connection, group_id):
        update_hosts(call, "security_groups", {"changed_groups": [group_rules.uuid_of(call.connection, group_id)]})


def update_hosts_of_port(call: Call, changed: PortChange) -> None:
    """Have the host of a port's server, and those whose rules name its groups, learn what changed; without a server
    there is nothing to do."""
    host, owner = changed.port.host, changed.port.project_id
    if host is None:
        return
    if changed.for_host:
        update_hosts(call, "security_groups", {"ports": [changed.port.id]}, owner)
    if changed.floating:
        update_hosts(call, "floating_ips", {"network_hosts": [host], "holders": [host]}, owner)
