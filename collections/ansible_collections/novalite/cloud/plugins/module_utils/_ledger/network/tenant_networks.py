# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks that projects make for themselves: in the ledger first without an address, then with the subnets they get.

How they are carried (by a VXLAN of their own, a VLAN, bridges within the hosts) is the operator's to say. Within these
bounds a project may use any addresses, where its networks are isolated: on each host they have their own namespace.
"""

from __future__ import annotations

import uuid

import sqlalchemy as sa

from ..._errors import ConflictError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._rules import pools
from ..db import clock
from ..db.tables import instance, network, vif
from ..db.tables_networking import port, resource_tag
from ..queries.counts import is_any
from ..queries.lookups import lock_project
from ..queries.network.carriers import Carrier
from ..queries.network.network_records import Network
from . import networks
from .pool_claims import pool_lock

HANDLE_LENGTH = 255


class TenantError(ConflictError):
    """A conflict with another record, with the class by which Neutron's clients know it."""

    def __init__(self, neutron_type: str, message: str) -> None:
        super().__init__(message)
        self.neutron_type = neutron_type


def create_network(
    connection: sa.Connection, project_id: str, attributes: JsonMapping, how: Carrier, number: str | None = None
) -> str:
    """Record a network without addresses for the project ("": for all of them); returns its UUID: `number`, or a new
    one.

    `attributes` may have "name" (any text), "description", "mtu", "port_security_enabled", "admin_state_up",
    "is_default" and "made_by" (the id of the project that makes it; not there: the same). Raises QuotaError,
    TenantError for a VLAN, VNI or interface that another network has, DefaultTakenError, and NovaliteError when there
    is no number left, and for a network that cannot be down.
    """
    lock_project(connection, project_id)
    pool_lock(connection)
    number, name = number or str(uuid.uuid4()), attributes.get("name", "")
    chosen = {
        key: attributes[key] for key in ("port_security_enabled", "admin_state_up", "is_default") if key in attributes
    }
    chosen |= {"gateway": None, "mtu": attributes.get("mtu") or None}
    record: JsonObject = {
        **networks.NEW,
        **chosen,
        **pools.manager_defaults(how.manager, chosen, None),
        "bridge_interface": how.interface,
        "isolated": how.interface is None,
        "snat": False,
    }
    _check_state(attributes, record["isolated"])
    if how.number is not None:
        record[pools.NUMBERED[how.manager][0]] = how.number
    networks.numbered(connection, "network", record)
    if how.manager == "flat_dhcp" and how.interface is not None:
        same = sa.and_(network.c.manager.like("flat%"), network.c.bridge_interface == how.interface)
        if is_any(connection, same):
            raise _in_use(how, record)
    shown = {"display_name": name, "description": attributes.get("description", ""), "tenant": True}
    shown["made_by"] = attributes.get("made_by", project_id)
    handle = _handle(connection, project_id, name, number)
    try:
        return networks.create(connection, project_id, handle, record, number=number, **shown)
    except networks.TakenError:
        raise _in_use(how, record) from None


def _in_use(how: Carrier, record: JsonMapping) -> TenantError:
    """The refusal of a carrier that is another network's."""
    if how.manager == "vlan":
        kind, what = "VlanIdInUse", f"network. The VLAN {record['vlan']} on physical network {how.interface} is in use."
    elif how.manager == "vxlan":
        kind, what = "TunnelIdInUse", f"network. The tunnel ID {record['vni']} is in use."
    else:
        kind, what = "FlatNetworkInUse", f"flat network. Physical network {how.interface} is in use."
    return TenantError(kind, f"Unable to create the {what}")


def _check_state(attributes: JsonMapping, isolated: bool) -> None:
    if not attributes.get("admin_state_up", True) and not isolated:
        raise NovaliteError(
            "Invalid input for admin_state_up. Reason: the network lies on an interface of the hosts, which carries "
            "others, too: only a network that is isolated can be down."
        )


def update_network(connection: sa.Connection, row: Network, values: JsonMapping) -> list[str]:
    """Write "name", "description", "port_security_enabled" (of ports to come), "admin_state_up", "is_default" or
    "shared" of the network `row`; returns the hosts that are to be told.

    Raises NovaliteError for a network that cannot be down, DefaultTakenError, TenantError for one that other projects
    use and that would no longer be shared, and for one of which nobody knows whose it would be.
    """
    written = ("description", "port_security_enabled", "admin_state_up", "is_default")
    changed = {key: values[key] for key in written if key in values}
    _check_state(changed, row.isolated)
    if changed.get("is_default"):
        pool_lock(connection)
        networks.check_default(connection, row.id)
    if "name" in values:
        changed["display_name"] = values["name"]  # the handle stays: hosts know the network by it
    if "shared" in values and values["shared"] != (row.owner == ""):
        changed |= _shared(connection, row) if values["shared"] else _not_shared(connection, row)
    if changed:
        touched = sa.update(network).where(network.c.id == row.id)
        connection.execute(touched.values(updated_at=clock.seconds(connection), **changed))
    if changed.get("admin_state_up", row.admin_state_up) == row.admin_state_up:
        return []
    here = sa.select(instance.c.host).join(vif, vif.c.instance_uuid == instance.c.uuid).distinct()
    here = here.where(vif.c.network_id == row.id, instance.c.deleted == 0, instance.c.host.is_not(None))
    return sorted(connection.execute(here).scalars())


def _shared(connection: sa.Connection, row: Network) -> JsonObject:
    pool_lock(connection)
    return {"owner": "", "made_by": row.owner, "name": _handle(connection, "", row.name, row.uuid)}


def _not_shared(connection: sa.Connection, row: Network) -> JsonObject:
    """The columns of a network that is its project's own again. Raises TenantError."""
    if not row.made_by:
        raise TenantError(
            "InvalidSharedSetting",
            f"Unable to reconfigure sharing settings for network {row.uuid}: no project made it.",
        )
    lock_project(connection, row.made_by)
    pool_lock(connection)
    project = sa.func.coalesce(instance.c.project_id, port.c.project_id)
    others = (
        sa.select(vif.c.id)
        .outerjoin(instance, instance.c.uuid == vif.c.instance_uuid)
        .outerjoin(port, port.c.vif_id == vif.c.id)
        .where(vif.c.network_id == row.id, project != row.made_by, sa.func.coalesce(instance.c.deleted, 0) == 0)
    )
    if connection.execute(others.limit(1)).first() is not None:
        raise TenantError(
            "InvalidSharedSetting",
            f"Unable to reconfigure sharing settings for network {row.uuid}. Multiple tenants are using it.",
        )
    return {"owner": row.made_by, "name": _handle(connection, row.made_by, row.name, row.uuid)}


def delete_network(connection: sa.Connection, row: Network) -> None:
    """Remove the network `row` with its subnets. Raises TenantError while a port is on it."""
    take_out(connection, row)
    connection.execute(sa.delete(resource_tag).where(resource_tag.c.resource_id == row.uuid))


def take_out(connection: sa.Connection, row: Network) -> None:
    """Remove the network `row` with its subnets, and leave what is known of its UUID. Raises TenantError while a port
    is on it."""
    pool_lock(connection)
    used = connection.execute(
        sa.select(vif.c.id)
        .outerjoin(instance, instance.c.uuid == vif.c.instance_uuid)
        .where(vif.c.network_id == row.id, sa.or_(vif.c.instance_uuid.is_(None), instance.c.deleted == 0))
        .limit(1)
    ).scalar()
    if used is not None:
        raise TenantError(
            "NetworkInUse",
            f"Unable to complete operation on network {row.uuid}. There are one or more ports still in use on the "
            f"network, id for these ports is: {used}.",
        )
    # interfaces of deleted instances; subnets and the pool go with the network
    connection.execute(sa.delete(vif).where(vif.c.network_id == row.id))
    connection.execute(sa.delete(network).where(network.c.id == row.id))


def _handle(connection: sa.Connection, project_id: str, name: str, number: str) -> str:
    """A name that no other network of the project has: what playbooks and hosts call it."""
    taken = sa.select(network.c.id).where(network.c.owner == project_id, network.c.name == name)
    if name and connection.execute(taken).first() is None:
        return name
    return f"{name[: HANDLE_LENGTH - 9]}-{number[:8]}" if name else f"network-{number[:8]}"
