# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Instance dicts out of rows. Reads only.

However many instances are asked for, the number of queries is the same: instances, interfaces (with their networks
and addresses), floating IPs, groups, rules, hints, volumes.
"""

from __future__ import annotations

import functools
import typing as t

import sqlalchemy as sa

from ...._guest import image_properties
from ...._json import JsonMapping, JsonObject
from ...._model import whole_servers
from ...._model.instance import AddressPair, AttachedVolume, Flavor, Image, Instance, Network
from ...db.tables import (
    NAMED,
    dns_name,
    fixed_ip,
    floating_ip,
    floating_pool,
    instance,
    instance_action,
    instance_security_group,
    network,
    project,
    security_group,
    security_group_rule,
    vif,
)
from ...db.tables_addresses import HELD, HOLDER, OF_HOST
from ...db.tables_networking import port
from ...db.tables_volumes import volume, volume_attachment, volume_type
from ..network import host_networks
from ..network.address_pairs import without_others
from ..network.further_ips import WITH_INSTANCES

# the columns are named as the keys
_NETWORK_FIELDS = tuple(field for field in Network.__annotations__ if field in network.c)
_ATTACHMENT_FIELDS = tuple(field for field in AttachedVolume.__annotations__ if field in volume_attachment.c)
_OF_INSTANCE = (*whole_servers.INSTANCE_FIELDS, "project_id", "disk_image", "key_name", "public_key")

# Queries that each look at instances has, put together once: that takes as long as to ask them of a few instances
_OWN, _DHCP = fixed_ip.alias("own"), fixed_ip.alias("dhcp_server")
_INSTANCES = (
    sa.select(*(instance.c[name] for name in _OF_INSTANCE), project.c.name.label("project_name"))
    .join(project, project.c.id == instance.c.project_id)
    .order_by(instance.c.id)
)
_NICS = (
    sa.select(
        vif.c.id.label("vif_id"),
        vif.c.instance_uuid,
        vif.c.mac,
        vif.c.ipv6,
        vif.c.allowed_address_pairs,
        vif.c.port_security_enabled,
        port.c.extra_dhcp_opts,
        dns_name.c.name.label("dns_name"),
        instance.c.project_id,
        instance.c.host,
        _OWN.c.ip.label("own_ip"),
        _DHCP.c.ip.label("dhcp_ip"),
        *(network.c[field] for field in _NETWORK_FIELDS),
    )
    .select_from(
        vif.join(instance, instance.c.uuid == vif.c.instance_uuid)
        .join(network, network.c.id == vif.c.network_id)
        .outerjoin(port, port.c.vif_id == vif.c.id)
        .outerjoin(dns_name, NAMED)
        .outerjoin(_OWN, sa.and_(_OWN.c.network_id == vif.c.network_id, _OWN.c.owner == "vif:" + vif.c.id))
        .outerjoin(_DHCP, sa.and_(_DHCP.c.network_id == vif.c.network_id, _DHCP.c.owner == OF_HOST + instance.c.host))
    )
    .order_by(vif.c.instance_uuid, vif.c.position)
)
_FLOATING_IPS = (
    sa.select(floating_ip.c.vif_id, floating_ip.c.address, floating_pool.c.interface, floating_ip.c.further_ip)
    .join(floating_pool, floating_pool.c.name == floating_ip.c.pool)
    .join(vif, vif.c.id == floating_ip.c.vif_id)
    .join(instance, instance.c.uuid == vif.c.instance_uuid)
    .order_by(floating_ip.c.address)
)
_GROUPS = (
    sa.select(instance_security_group.c.instance_id, security_group.c.id, security_group.c.uuid, security_group.c.name)
    .join(instance, instance.c.id == instance_security_group.c.instance_id)
    .join(security_group, security_group.c.id == instance_security_group.c.group_id)
    .order_by(instance_security_group.c.instance_id, security_group.c.id)
)
_RULES = (
    sa.select(security_group_rule)
    .where(security_group_rule.c.group_id.in_(sa.bindparam("groups", expanding=True)))
    .order_by(security_group_rule.c.group_id, security_group_rule.c.id)
)
_HINTS = (
    # taken out in the database: the scheduler's reasons beside them are long
    sa.select(instance_action.c.instance_uuid, instance_action.c.details["hints"].label("hints"))
    .join(instance, instance.c.uuid == instance_action.c.instance_uuid)
    .where(instance_action.c.action == "create")
    .order_by(instance_action.c.id)
)
_VOLUMES = (
    sa.select(
        volume_attachment.c.instance_uuid,
        *(volume_attachment.c[field] for field in _ATTACHMENT_FIELDS),
        *(volume.c[field] for field in ("status", "size_gb", "format", "host", "made_at", "image")),
        sa.or_(volume.c.snapshot_id.is_not(None), volume.c.source_volume_id.is_not(None)).label("copied"),
        volume_type.c.backend,
        volume_type.c.options,
    )
    .join(instance, instance.c.uuid == volume_attachment.c.instance_uuid)
    .join(volume, volume.c.id == volume_attachment.c.volume_id)
    .join(volume_type, volume_type.c.id == volume.c.type_id)
    .order_by(volume_attachment.c.device)
)

# What whole_servers reads, without the conditions on instances. The command `novalite` has them as texts, too
LOAD: dict[str, sa.Select[t.Any]] = {
    "instances": _INSTANCES,
    "interfaces": _NICS,
    "floating_addresses": _FLOATING_IPS,
    "more_ips": WITH_INSTANCES,
    "groups_of_instances": _GROUPS,
    "rules": _RULES,
    "hints": _HINTS,
    "attached_volumes": _VOLUMES,
}
SERVERS_NAMED = (
    sa.select(instance.c.uuid, instance.c.project_id)
    .where(sa.or_(instance.c.uuid == sa.bindparam("uuid"), instance.c.name == sa.bindparam("name")))
    .where(instance.c.deleted == 0)
)
OF_GROUPS = {"rules"}  # which have no conditions on instances
CONDITIONS: dict[str, sa.ColumnElement[bool]] = {
    "uuids": instance.c.uuid.in_(sa.bindparam("uuids", expanding=True)),
    "names": instance.c.name.in_(sa.bindparam("names", expanding=True)),
    "hosts": instance.c.host.in_(sa.bindparam("hosts", expanding=True)),
    "of_project": instance.c.project_id == sa.bindparam("of_project"),
    "present": instance.c.deleted == 0,
}


@functools.cache
def _load(name: str, conditions: tuple[str, ...]) -> sa.Select[t.Any]:
    """The query of LOAD with these of CONDITIONS: to build one anew takes as long as to run it."""
    return LOAD[name].where(*(CONDITIONS[condition] for condition in conditions))


def instances_by(
    connection: sa.Connection,
    *,
    uuids: t.Iterable[str] | None = None,
    names: t.Iterable[str] | None = None,
    project_id: str | None = None,
    hosts: t.Iterable[str] | None = None,
    deleted: bool = False,
) -> list[Instance]:
    """The instances that meet every condition given (None: no condition), oldest first.

    `deleted` adds those that were deleted; a name may then come up more than once. Groups that instances share are
    one object in the result: read them, do not change them.
    """
    sought: dict[str, str | list[str]] = {}
    for condition, values in (("uuids", uuids), ("names", names), ("hosts", hosts)):
        if values is not None:
            sought[condition] = sorted(set(values))
            if not sought[condition]:
                return []
    if project_id is not None:
        sought["of_project"] = project_id
    conditions = (*sought,) if deleted else (*sought, "present")

    def read(name: str, values: JsonMapping) -> t.Iterable[t.Any]:
        query = LOAD[name] if name in OF_GROUPS else _load(name, conditions)
        return connection.execute(query, {**values, **({} if name in OF_GROUPS else sought)}).mappings()

    return whole_servers.records(read, _Beyond(connection))


class _Beyond:
    """Networks with further ranges, and address pairs: what takes further queries, if there are any."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection

    def networks(self, rows: t.Sequence[JsonMapping]) -> list[tuple[Network, str | None]]:
        """Return what whole_servers.Beyond says."""
        further = host_networks.further_ranges(self.connection, {row["id"] for row in rows})
        hosts = {row["host"] for row in rows if row["host"] and row["id"] in further}
        own_addresses = host_networks.addresses(self.connection, list(further), hosts, further)
        networks = []
        for row in rows:
            of_network, of_host = whole_servers.network_of(row), whole_servers.ipv4(row["dhcp_ip"])
            if row["id"] in further:
                there = own_addresses.get((row["id"], row["host"]), {})
                own = whole_servers.ipv4(row["own_ip"])
                of_network, of_host = host_networks.on_host(of_network, further[row["id"]], there, own)
            networks.append((of_network, of_host))
        return networks

    def pairs(self, row: JsonMapping) -> list[AddressPair]:
        """Return what whole_servers.Beyond says."""
        return without_others(self.connection, row["project_id"], row["id"], row["allowed_address_pairs"])

    def properties(self, properties: JsonObject) -> JsonObject:
        """Return what whole_servers.Beyond says: no host mounts what a guest has written."""
        return image_properties.without_host_mount(properties)


def instances_with_ways_in(connection: sa.Connection, uuids: t.Collection[str] | None = None) -> list[Instance]:
    """List each instance that was launched and is on a host (of `uuids`, if there are any), with what an ssh_config
    says and no more."""
    image = instance.c.image
    of_these = [] if uuids is None else [instance.c.uuid.in_(uuids)]
    rows = connection.execute(
        sa.select(
            *(instance.c[name] for name in ("id", "uuid", "name", "host")),
            *(image[name].label(f"image_{name}") for name in ("id", "name", "properties")),
            project.c.name.label("project_name"),
            *(network.c[name] for name in ("bridge", "isolated")),
            fixed_ip.c.ip,
        )
        .select_from(
            instance.join(project, project.c.id == instance.c.project_id)
            .join(vif, vif.c.instance_uuid == instance.c.uuid)
            .join(network, network.c.id == vif.c.network_id)
            .outerjoin(fixed_ip, HELD)
        )
        .where(*of_these, instance.c.deleted == 0, instance.c.launched_at.is_not(None), instance.c.host.is_not(None))
        .order_by(instance.c.id, vif.c.position)
    )
    first: dict[str, JsonObject] = {}
    for row in rows:
        if row.uuid not in first:
            of_network = {"bridge": row.bridge, "isolated": row.isolated}
            first[row.uuid] = {
                **{"id": row.id, "uuid": row.uuid, "name": row.name, "host": row.host},
                "project": {"name": row.project_name},
                "image": {"id": row.image_id, "name": row.image_name, "properties": row.image_properties or {}},
                "nics": [{"ip": whole_servers.ipv4(row.ip), "network": of_network}],
            }
    return [t.cast(Instance, record) for record in first.values()]


def named_alike(connection: sa.Connection, uuids: t.Collection[str]) -> set[str]:
    """Return those of `uuids` that are in the ledger, deleted or not, and those of the instances that share a name or
    an address with one of them. What is deleted has no address: who shared it is found by the next look at all."""
    named = sa.select(instance.c.uuid, instance.c.name, project.c.name.label("project")).join(project)
    these = connection.execute(named.where(instance.c.uuid.in_(uuids))).all()
    names = {text for row in these for text in (row.name, f"{row.name}.{row.project}")}
    # whatever may stand before the dot of a name in full
    stems = {name[:end] for name in names for end in [len(name), *_dots(name)]}
    # by indexes that begin with the project and the network, of which there are few
    rivals = connection.execute(
        named.where(
            instance.c.project_id.in_(sa.select(project.c.id)), instance.c.name.in_(stems), instance.c.deleted == 0
        )
    )
    alike = {row.uuid for row in rivals if not names.isdisjoint((row.name, f"{row.name}.{row.project}"))}
    addresses = sa.select(fixed_ip.c.ip).join(vif, HELD).where(vif.c.instance_uuid.in_(uuids))
    if ips := connection.execute(addresses).scalars().all():
        pools = fixed_ip.c.network_id.in_(sa.select(network.c.id))
        holders = sa.select(HOLDER).where(pools, fixed_ip.c.ip.in_(ips), fixed_ip.c.owner.is_not(None))
        at = sa.select(vif.c.instance_uuid).where(vif.c.id.in_(connection.execute(holders).scalars().all()))
        alike.update(filter(None, connection.execute(at).scalars()))
    return alike.union(row.uuid for row in these)


def _dots(text: str) -> list[int]:
    return [index for index, char in enumerate(text) if char == "."]


def image_of(record: JsonMapping) -> Image:
    """Return an instance's copy of its image record: all that its launch needs, whatever becomes of the record."""
    return t.cast(Image, {field: record[field] for field in whole_servers.IMAGE_FIELDS})


def flavor_of(record: JsonMapping) -> Flavor:
    """Return an instance's copy of its flavor record; `flavorid` is what clients know it by."""
    kept = {field: record[field] for field in whole_servers.FLAVOR_FIELDS}
    return t.cast(Flavor, {**kept, "flavorid": record["flavorid"] or str(record["id"])})
