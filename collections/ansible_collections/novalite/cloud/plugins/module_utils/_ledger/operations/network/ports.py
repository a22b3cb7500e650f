# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on ports, those of servers too, whose hosts are told."""

from __future__ import annotations

import typing as t

from ...._errors import ForbiddenError
from ...._json import JsonObject
from ...._model.instance import AddressPair
from ...._model.rows import InstanceRow
from ...compute import port_changes, server_changes
from ...network import network_choices, port_details, ports
from ...network.tenant_networks import TenantError
from ...queries.compute import server_listing
from ...queries.network.network_records import Network, Port, network_of
from ..call import OVERRIDE_LOCK, Call
from ..hosts import update_hosts_of_port
from .networks import OPERATE
from .owners import Named, check_for_all, owner_of

RESERVED = "network:"  # owners of what the cloud itself makes


class PortValues(t.TypedDict, total=False):
    """Values of a port: those of network.ports.create_port(). `binding` holds keys of port_details.BINDING."""

    name: str
    description: str
    admin_state_up: bool
    device_id: str
    device_owner: str
    mac_address: str | None
    fixed_ips: list[dict[str, str]] | None
    security_groups: list[str] | None
    allowed_address_pairs: list[AddressPair] | None
    port_security_enabled: bool | None
    extra_dhcp_opts: list[JsonObject] | None
    binding: JsonObject


_NEW: PortValues = {
    **{"name": "", "description": "", "device_id": "", "device_owner": "", "admin_state_up": True},
    **{"security_groups": None, "allowed_address_pairs": None, "fixed_ips": None},
    **{"port_security_enabled": None, "extra_dhcp_opts": None},
}


def create(call: Call, named: Named, network: Network, values: PortValues) -> str:
    """Make a port for the project that is `named`; return its id. Raises ForbiddenError, and as owners.owner_of(),
    network.ports.create_port() and port_details.merged_binding()."""
    owner, binding = owner_of(call, named), _checked(call, network, None, values)
    attributes = {**_NEW, **values, "mac": values.get("mac_address"), "binding": binding}
    return ports.create_port(call.connection, owner, network, attributes)


def update(call: Call, network: Network, seen: Port, values: PortValues) -> None:
    """Change the port `seen` on its network, and with its groups those of its server. Raises ForbiddenError,
    TenantError for what a router or a server has, StateError for groups of an adopted server, and as
    port_changes.update_port(), ports.change_mac() and port_details.merged_binding()."""
    check_for_all(call, "port", {"mac_address": values.get("mac_address")})
    if seen.router_id is not None and {"device_id", "device_owner", "fixed_ips"} & set(values):
        raise TenantError("PortInUse", f"Port {seen.id} is a router's: take it from the router first.")
    if seen.instance_uuid is not None and not values.get("admin_state_up", True):
        raise TenantError("PortInUse", f"Port {seen.id} is a server's: detach it instead of taking it down.")
    changes = {**values, "binding": _checked(call, network, seen, values)}
    mac, groups = values.get("mac_address"), values.get("security_groups") or []
    if "security_groups" in values:
        changes["security_groups"] = groups  # null: none, as with Neutron; of a new port alone it is the default group
    if mac is not None:
        ports.change_mac(call.connection, network, seen, mac)
    update_hosts_of_port(call, port_changes.update_port(call.connection, network, seen, changes))
    secured = values.get("port_security_enabled", seen.port_security_enabled)
    if "security_groups" in values and seen.instance_uuid is not None and secured:
        _change_groups(call, seen, seen.instance_uuid, [group.lower() for group in groups])


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
    """Give the port addresses, and take addresses from it. Raises ForbiddenError for those that the caller may not
    choose, and as port_changes.change_fixed_ips()."""
    may_choose = call.permits("network:ports:choose")
    network_choices.check_port(network_of(call.connection, port), call.project, {"fixed_ips": new}, may_choose)
    update_hosts_of_port(call, port_changes.change_fixed_ips(call.connection, port, new, going))


def _change_groups(call: Call, seen: Port, server_uuid: str, group_uuids: t.Sequence[str]) -> None:
    """Put the port's server into these groups and out of all others: all of its interfaces have the same. Raises
    StateError for one that was adopted; Neutron knows no lock of servers."""
    project = seen.project_id
    server = server_listing.instance_row(call.connection, server_uuid, project)
    before = server_changes.groups_of(call.connection, server_uuid)
    joined = [uuid for uuid in group_uuids if uuid not in before]
    left = sorted(before - set(group_uuids))
    for uuid in (*joined, *left):
        server_changes.change_group(call.connection, server, uuid, joins=uuid in joined, by_admin=True)
    if (joined or left) and (server.host is not None or server.vm_state == "building"):
        change = {"changed_groups": [*joined, *left], "changed_members": [server.uuid]}
        call.enqueue("security_groups", [server.uuid], project, change)


def _checked(call: Call, network: Network, seen: Port | None, values: PortValues) -> JsonObject | None:
    """Return the port's binding with what the values say of it. Raises ForbiddenError for what the caller may not say
    of a port on this network."""
    owner = values.get("device_owner", "")
    if owner.startswith(RESERVED) and not call.permits(OPERATE):
        raise ForbiddenError(f"device_owner {owner[:60]} is the cloud's own")
    network_choices.check_port(network, call.project, values, call.permits("network:ports:choose"))
    there = None if seen is None else seen.binding
    return port_details.merged_binding(there, values.get("binding", {}), call.permits("network:ports:binding"))
