# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `cloud_info`: hosts and how full they are, networks, instances, security groups. Reads only."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._graph import topology
from ..._json import JsonMapping, JsonObject
from ..._model.instance import Instance
from ..._scheduling.rows import HostState
from ..db import behind, clock
from ..db.tables import fixed_ip, network, project
from ..queries import lookups
from ..queries.compute.views import instances_by
from ..queries.placement.host_states import EVER, host_states


def cloud_info(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """The cloud, or what one project sees and has of it; how full the hosts are is said of all. With `picture` also
    as a graph. Raises NotFoundError for an unknown project."""
    owner = None
    if params["project"] is not None:
        owner = lookups.project_by_name(connection, params["project"])["id"]
    instances = instances_by(connection, project_id=owner)
    states, _versions = host_states(connection, clock.seconds(connection), service_down_time=EVER)
    hosts = sorted((_host(state) for state in states), key=lambda host: host["name"])
    records_by_kind: dict[str, list[JsonObject]] = {
        "hosts": hosts,
        "networks": _networks(connection, owner),
        "servers": sorted(
            (_server(instance) for instance in instances), key=lambda server: (server["project"], server["id"])
        ),
        "security_groups": _groups(instances),
    }
    result: JsonObject = {"changed": False, "behind": behind.sentence(connection), **records_by_kind}
    if params["picture"]:
        result["dot"] = topology.dot(
            hosts, records_by_kind["networks"], records_by_kind["servers"], records_by_kind["security_groups"]
        )
    return result


def _host(state: HostState) -> JsonObject:
    def fill(name: str, ratio: float) -> list[float]:
        total = (getattr(state, name) - getattr(state, f"reserved_{name}")) * ratio
        return [getattr(state, f"{name}_used"), round(max(total, 0), 1)]

    plain = ("name", "zone", "up", "down_reason", "enabled", "disabled_reason")
    return {
        **{field: getattr(state, field) for field in plain},
        "vcpus": fill("vcpus", state.cpu_ratio),
        "memory_mb": fill("memory_mb", state.ram_ratio),
        "disk_gb": fill("disk_gb", state.disk_ratio),
        "used_by_others": state.used_by_others,
    }


def _networks(connection: sa.Connection, owner: str | None) -> list[JsonObject]:
    pool = (
        sa.select(fixed_ip.c.network_id, sa.func.count().label("size"), sa.func.count(fixed_ip.c.owner).label("used"))
        .where(fixed_ip.c.reserved.is_(None))
        .group_by(fixed_ip.c.network_id)
        .subquery()
    )
    fields = ("id", "uuid", "name", "cidr", "cidr_v6", "bridge", "vlan", "vni", "manager", "isolated")
    query = (
        sa.select(*(network.c[field] for field in fields), project.c.name.label("project"), pool.c.size, pool.c.used)
        .outerjoin(pool, pool.c.network_id == network.c.id)
        .outerjoin(project, project.c.id == network.c.owner)
        .order_by(network.c.name, network.c.id)
    )
    if owner is not None:
        query = query.where(network.c.owner.in_(["", owner]))
    rows = connection.execute(query).mappings()
    return [{**row, "size": row["size"] or 0, "used": row["used"] or 0} for row in rows]


def _server(instance: Instance) -> JsonObject:
    return {
        "id": instance["id"],
        "uuid": instance["uuid"],
        "name": instance["name"],
        "project": instance["project"]["name"],
        "host": instance["host"],
        "vm_state": instance["vm_state"],
        "task_state": instance["task_state"],
        "flavor": instance["flavor"]["name"],
        "ip": next((nic["ip"] for nic in instance["nics"] if nic["ip"]), None),
        "floating_ips": [floating["address"] for nic in instance["nics"] for floating in nic["floating_ips"]],
        "networks": [nic["network"]["id"] for nic in instance["nics"]],
        "security_groups": [group["id"] for group in instance["security_groups"]],
    }


def _groups(instances: t.Iterable[Instance]) -> list[JsonObject]:
    """List the security groups that instances carry, with their rules."""
    record_by_id: dict[int, JsonObject] = {}
    for instance in instances:
        for group in instance["security_groups"]:
            record = record_by_id.setdefault(
                group["id"], {**group, "project": instance["project"]["name"], "members": 0}
            )
            record["members"] += 1
    return sorted(record_by_id.values(), key=lambda group_record: (group_record["project"], group_record["name"]))
