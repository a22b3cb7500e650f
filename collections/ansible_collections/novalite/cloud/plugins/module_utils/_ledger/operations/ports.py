# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on ports, those of servers too, whose hosts are told."""

from __future__ import annotations

import typing as t

from ..._json import JsonMapping, JsonObject
from ..._model.rows import InstanceRow
from ..compute import port_changes, server_changes
from ..network import ports
from ..queries import server_listing
from ..queries.network_records import Network, Port
from .call import OVERRIDE_LOCK, Call
from .hosts import update_hosts, update_hosts_of_port


def create(call: Call, project_id: str, network: Network, values: JsonMapping) -> str:
    """Make a port for the project; return its id. Raises as network.ports.create_port()."""
    return ports.create_port(call.connection, project_id, network, values)


def update(call: Call, network: Network, seen: Port, changes: JsonMapping) -> None:
    """Change the port `seen` on its network. Raises as port_changes.update_port(), and ports.change_mac()."""
    if "mac_address" in changes:
        ports.change_mac(call.connection, network, seen, changes["mac_address"])
    update_hosts_of_port(call, port_changes.update_port(call.connection, network, seen, changes))


def delete(call: Call, seen: Port) -> None:
    """Remove the port `seen`; a server's is pulled out of the guest first. Raises as port_changes.delete_port(), and
    ForbiddenError."""
    if seen.instance_uuid is not None:
        call.check("compute:interfaces:write")
    server = port_changes.delete_port(call.connection, seen, **call.asker)
    if server is not None:
        call.enqueue("interface_detach", [server.uuid], server.project_id)


def add_fixed_ip(call: Call, server: InstanceRow, network_uuid: str) -> None:
    """Give the server one more address in this network. Raises as port_changes.add_fixed_ip()."""
    by_admin = call.permits(OVERRIDE_LOCK)
    update_hosts_of_port(call, port_changes.add_fixed_ip(call.connection, server, network_uuid, by_admin))


def remove_fixed_ip(call: Call, server: InstanceRow, address: str) -> None:
    """Take this address from the server. Raises as port_changes.remove_fixed_ip()."""
    by_admin = call.permits(OVERRIDE_LOCK)
    update_hosts_of_port(call, port_changes.remove_fixed_ip(call.connection, server, address, by_admin))


def change_fixed_ips(call: Call, port: Port, new: t.Sequence[JsonObject] = (), going: t.Collection[str] = ()) -> None:
    """Give the port addresses, and take addresses from it. Raises as port_changes.change_fixed_ips()."""
    update_hosts_of_port(call, port_changes.change_fixed_ips(call.connection, port, new, going))


def change_groups(call: Call, seen: Port, server_uuid: str, group_uuids: t.Sequence[str]) -> None:
    """Put the port's server into these groups and out of all others: all of its interfaces have the same."""
    project = seen.project_id
    server = server_listing.instance_row(call.connection, server_uuid, project)
    before = set(seen.security_groups)
    joined = [uuid for uuid in group_uuids if uuid not in before]
    left = sorted(before - set(group_uuids))
    changed: JsonObject = {}
    for key, uuids, change in (
        ("join", joined, server_changes.join_group),
        ("leave", left, server_changes.leave_group),
    ):
        groups = [server_changes.security_group_of(call.connection, project, uuid) for uuid in uuids]
        for group in groups:
            change(call.connection, server, group.id)
        if groups:
            changed[key] = [{"name": server.name, "security_groups": [group.name for group in groups]}]
    if changed and (server.host is not None or server.vm_state == "building"):
        update_hosts(call, "security_groups", changed, project)
