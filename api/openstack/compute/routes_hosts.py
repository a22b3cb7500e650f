# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Zones and hypervisors: the hosts, as users and administrators see them."""

from __future__ import annotations

import json
import time
import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import hypervisor_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement.hypervisor_records import (
    Availability,
    Host,
    NamedHost,
    hosts,
    named_hosts,
)

from ...web import policy
from ...web.bodies import Answer, Body, field, same, the_one
from ...web.errors import BadRequestError
from ...web.listing import body
from ...web.services import reads
from ...web.times import precise
from .blueprint import compute, known, microversion, rows_of_page, since

BINARY = "nova-compute"


# --- Zones ----------------------------------------------------------------------------------------------------------


@compute.get("/os-availability-zone", "compute:zones:read", reads)
def list_zones(connection: Connection) -> Answer:
    zones = hypervisor_records.zones(connection)
    return {"availabilityZoneInfo": [_zone(name, members, None) for name, members in zones.items()]}, 200


@compute.get("/os-availability-zone/detail", "compute:hosts:read", reads)
def list_zones_in_detail(connection: Connection) -> Answer:
    shown = []
    for name, members in hypervisor_records.zones(connection).items():
        services: Body = {
            host: {BINARY: {**same(state, "available", "active"), "updated_at": precise(state["last_seen_at"])}}
            for host, state in members.items()
        }
        shown.append(_zone(name, members, services))
    return {"availabilityZoneInfo": shown}, 200


def _zone(name: str, hosts: dict[str, Availability], shown: Body | None) -> Body:
    available = any(host["active"] for host in hosts.values())
    return {"zoneName": name, "zoneState": {"available": available}, "hosts": shown}


# --- Hypervisors ----------------------------------------------------------------------------------------------------


HYPERVISOR_QUERY = known((2, 53), "hypervisor_hostname_pattern with_servers limit marker")


@compute.get("/os-hypervisors", "compute:hypervisors:read", defaults={"detailed": False})
@compute.get("/os-hypervisors/detail", "compute:hypervisors:read", HYPERVISOR_QUERY, reads, defaults={"detailed": True})
def list_hypervisors(connection: Connection, detailed: bool) -> Answer:
    version, args = microversion(), request.args
    view = _detail if detailed else _brief
    named: t.Sequence[NamedHost] = named_hosts(connection)
    marker = None
    if version >= (2, 53) and "hypervisor_hostname_pattern" in args:
        if "limit" in args or "marker" in args:
            raise BadRequestError(
                "Paging over results with the hypervisor_hostname_pattern query parameter is not supported."
            )
        named = _matching(named, args["hypervisor_hostname_pattern"])
    if version >= (2, 33):
        named, marker = rows_of_page(named, _id_key(), "hypervisor")
    rows = _hosts(connection, named, counted=detailed)
    servers = _servers(connection, rows) if _with_servers() else {}
    return body("hypervisors", [{**view(row), **servers.get(row.name, {})} for row in rows], marker), 200


def _with_servers() -> bool:
    """Tell whether servers are asked for too (since 2.53); they are of all projects. May raise ForbiddenError."""
    text = request.args.get("with_servers", "").lower()
    with_servers = microversion() >= (2, 53) and text in ("true", "1", "t", "yes", "on")
    if with_servers:
        policy.check("compute:hosts:read")
    return with_servers


@compute.get("/os-hypervisors/statistics", "compute:hypervisors:read", since("2.1", "2.87"), reads)
def show_statistics(connection: Connection) -> Answer:
    rows = hosts(connection, counted=True)
    # as in Nova, of hosts that may be chosen
    numbers = [_numbers(row) for row in rows if row.state.enabled]
    sums = {name: sum(figures[name] for figures in numbers) for name in _NUMBERS}
    return {"hypervisor_statistics": {"count": len(numbers), **sums}}, 200


@compute.get("/os-hypervisors/<hypervisor_id>", "compute:hypervisors:read", known((2, 53), "with_servers"), reads)
def show_hypervisor(connection: Connection, hypervisor_id: str) -> Answer:
    row = _host(connection, hypervisor_id)
    servers = _servers(connection, [row]) if _with_servers() else {}
    return {"hypervisor": {**_detail(row), **servers.get(row.name, {})}}, 200


@compute.get("/os-hypervisors/<hypervisor_id>/uptime", "compute:hosts:read", since("2.1", "2.87"), reads)
def show_uptime(connection: Connection, hypervisor_id: str) -> Answer:
    row = _host(connection, hypervisor_id)
    uptime = _uptime(row)
    if uptime is None:
        raise BadRequestError(f"The hypervisor {row.name} is down, or has not reported since when it runs.")
    return {"hypervisor": {**_brief(row), "uptime": uptime}}, 200


@compute.get("/os-hypervisors/<pattern>/search", "compute:hosts:read", since("2.1", "2.52"), reads)
def search_hypervisors(connection: Connection, pattern: str) -> Answer:
    rows = _hosts(connection, _matching(named_hosts(connection), pattern))
    return {"hypervisors": [_brief(row) for row in rows]}, 200


@compute.get("/os-hypervisors/<pattern>/servers", "compute:hosts:read", since("2.1", "2.52"), reads)
def list_hypervisor_servers(connection: Connection, pattern: str) -> Answer:
    rows = _hosts(connection, _matching(named_hosts(connection), pattern))
    servers = _servers(connection, rows)
    return {"hypervisors": [{**_brief(row), **servers[row.name]} for row in rows]}, 200


def host_by(connection: Connection, key: str, value: str, missing: Exception) -> Host:
    """The host whose `key` is `value`. Raises `missing`."""
    return _hosts(connection, [the_one(named_hosts(connection), key, value, missing)], counted=True)[0]


def _hosts(connection: Connection, named: t.Iterable[NamedHost], counted: bool = False) -> list[Host]:
    return hosts(connection, [row.name for row in named], counted)


def _matching(named: t.Iterable[NamedHost], pattern: str) -> list[NamedHost]:
    matching = [row for row in named if pattern in row.name]
    if not matching:
        raise NotFoundError(f"No hypervisor matching '{pattern[:255]}' could be found.")
    return matching


def _servers(connection: Connection, rows: list[Host]) -> dict[str, Body]:
    """Return by each host's name what is added to it: its servers; before 2.75 only where there are some."""
    of_hosts = hypervisor_records.servers_on(connection, [row.name for row in rows])
    always = microversion() >= (2, 75)
    return {host: {"servers": servers} if servers or always else {} for host, servers in of_hosts.items()}


def _id_key() -> str:
    return "uuid" if microversion() >= (2, 53) else "id"


def _host(connection: Connection, number: str) -> Host:
    missing = NotFoundError(f"Hypervisor with ID '{number[:60]}' could not be found.")
    return host_by(connection, _id_key(), number, missing)


def _brief(row: Host) -> Body:
    state = row.state
    return {
        "id": field(row, _id_key()),
        "hypervisor_hostname": row.name,
        "state": "up" if state.up else "down",
        "status": "enabled" if state.enabled else "disabled",
    }


def _detail(row: Host) -> Body:
    version, state = microversion(), row.state
    facts = state.facts
    number = row.service_uuid if version >= (2, 53) else row.id
    body: Body = {
        **_brief(row),
        "hypervisor_type": facts.get("hypervisor_type") or "QEMU",
        "hypervisor_version": facts.get("hypervisor_version") or 0,
        "host_ip": facts.get("address") or "",
        "service": {"id": number, "host": row.name, "disabled_reason": state.disabled_reason},
    }
    if version >= (2, 88):
        return {**body, "uptime": _uptime(row)}
    cpu: Body = {
        "arch": facts.get("arch") or "x86_64",
        "model": facts.get("cpu_model") or "",
        "vendor": facts.get("cpu_vendor") or "",
        "features": [],
        "topology": {"sockets": 1, "cores": state.vcpus, "threads": 1},
    }
    return {**body, **_numbers(row), "cpu_info": cpu if version >= (2, 28) else json.dumps(cpu)}


def _uptime(row: Host) -> str | None:
    """Return the uptime as uptime(1) begins, which Nova's drivers show; None if the host is down, or never told."""
    booted_at, now = row.state.facts.get("booted_at"), time.time()
    if not booted_at or not row.state.up:
        return None
    minutes = max(0, int(now - booted_at) // 60)
    days, (hours, rest) = minutes // 1440, divmod(minutes % 1440, 60)
    counted = "" if not days else f"{days} day{'s' * (days > 1)}, "
    return f" {time.strftime('%H:%M:%S', time.gmtime(now))} up {counted}{hours:2}:{rest:02}"


_NUMBERS = (
    *("vcpus", "memory_mb", "local_gb", "vcpus_used", "memory_mb_used", "local_gb_used", "free_ram_mb", "free_disk_gb"),
    *("current_workload", "running_vms", "disk_available_least"),
)


def _numbers(row: Host) -> dict[str, int]:
    state = row.state
    # what the host keeps for itself is used, as in Nova's resource tracker
    memory, disk = state.memory_mb_used + state.reserved_memory_mb, state.disk_gb_used + state.reserved_disk_gb
    values = (
        state.vcpus,
        state.memory_mb,
        state.disk_gb,
        state.vcpus_used,
        memory,
        disk,
        state.memory_mb - memory,
        state.disk_gb - disk,
        state.num_io_ops,
        row.running,
        state.disk_gb - disk,
    )
    return dict(zip(_NUMBERS, values))
