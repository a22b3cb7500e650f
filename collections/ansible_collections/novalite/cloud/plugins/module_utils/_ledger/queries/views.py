# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Instance dicts out of rows. Reads only.

However many instances are asked for, the number of queries is the same: instances, interfaces (with their networks
and addresses), floating IPs, groups, rules, hints, volumes.
"""

from __future__ import annotations

import collections
import typing as t

import sqlalchemy as sa

from ..._addressing.pools import to_text
from ..._guest import image_properties
from ..._json import JsonMapping, JsonObject
from ..._model.instance import (
    AttachedVolume,
    Flavor,
    FloatingAddress,
    Image,
    Instance,
    Network,
    Nic,
    Rule,
    SecurityGroup,
)
from ..db.tables import (
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
from ..db.tables_addresses import HELD, HOLDER, OF_HOST
from ..db.tables_networking import port
from ..db.tables_volumes import volume, volume_attachment, volume_type
from . import host_networks
from .address_pairs import without_others
from .further_ips import further_ips_where

# the columns are named as the keys
_FLAVOR_FIELDS, _IMAGE_FIELDS = tuple(Flavor.__annotations__), tuple(Image.__annotations__)
_RULE_FIELDS = tuple(Rule.__annotations__)
_NETWORK_FIELDS = tuple(field for field in Network.__annotations__ if field in network.c)
_FILE_FIELDS = ("source", "checksum", "size", "virtual_size", "disk_format")
_INSTANCE_FIELDS = tuple(field for field in Instance.__annotations__ if field in instance.c)
_ATTACHMENT_FIELDS = tuple(field for field in AttachedVolume.__annotations__ if field in volume_attachment.c)

# Queries that each look at instances has, put together once: that takes as long as to ask them of a few instances
_OWN, _DHCP = fixed_ip.alias("own"), fixed_ip.alias("dhcp_server")
_INSTANCES = (
    sa.select(instance, project.c.name.label("project_name"))
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
_RULES = sa.select(security_group_rule).order_by(security_group_rule.c.group_id, security_group_rule.c.id)
_HINTS = (
    # taken out in the database: the scheduler's reasons beside them are long
    sa.select(instance_action.c.instance_uuid, instance_action.c.details["hints"])
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
    conditions: list[sa.ColumnElement[bool]] = []
    for column, values in ((instance.c.uuid, uuids), (instance.c.name, names), (instance.c.host, hosts)):
        if values is not None:
            column_values = sorted(set(values))
            if not column_values:
                return []
            conditions.append(column.in_(column_values))
    if project_id is not None:
        conditions.append(instance.c.project_id == project_id)
    if not deleted:
        conditions.append(instance.c.deleted == 0)

    rows = connection.execute(_INSTANCES.where(*conditions)).all()
    if not rows:
        return []
    nics = _nics(connection, conditions)
    groups = _groups(connection, conditions)
    hints = _hints(connection, conditions)
    volumes = _volumes(connection, conditions)
    return [_instance(row, nics[row.uuid], groups[row.id], hints.get(row.uuid, {}), volumes[row.uuid]) for row in rows]


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
                "nics": [{"ip": _ipv4(row.ip), "network": of_network}],
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


def domain_name(number: int, adopted: JsonMapping | None) -> str:
    """Return libvirt's name of the instance of this number; one that was `adopted` has kept its name."""
    return f"instance-{number:08x}" if adopted is None else str(adopted["domain"])


def image_of(record: JsonMapping) -> Image:
    """Return an instance's copy of its image record: all that its launch needs, whatever becomes of the record."""
    return t.cast(Image, {field: record[field] for field in _IMAGE_FIELDS})


def flavor_of(record: JsonMapping) -> Flavor:
    """Return an instance's copy of its flavor record; `flavorid` is what clients know it by."""
    kept = {field: record[field] for field in _FLAVOR_FIELDS}
    return t.cast(Flavor, {**kept, "flavorid": record["flavorid"] or str(record["id"])})


def _instance(
    row: sa.Row[t.Any], nics: list[Nic], groups: list[SecurityGroup], hints: JsonObject, volumes: list[AttachedVolume]
) -> Instance:
    image = row.image
    if row.disk_image is not None:
        # no host mounts what a guest has written
        own = {"properties": image_properties.without_host_mount(image["properties"])}
        image = {**image, **{field: row.disk_image[field] for field in _FILE_FIELDS}, **own}
    made = {
        **{field: getattr(row, field) for field in _INSTANCE_FIELDS},
        "image": image,
        "domain_name": domain_name(row.id, row.adopted),
        "project": {"id": row.project_id, "name": row.project_name},
        "alternates": [],
        "key": None if row.public_key is None else {"name": row.key_name, "public_key": row.public_key},
        "request": hints,
        "security_groups": groups,
        "nics": nics,
        "volumes": volumes,
    }
    return t.cast(Instance, made)


def _nics(
    connection: sa.Connection, conditions: list[sa.ColumnElement[bool]]
) -> collections.defaultdict[str, list[Nic]]:
    nics: collections.defaultdict[str, list[Nic]] = collections.defaultdict(list)
    more = further_ips_where(connection, *conditions)
    floating = _floating_ips(connection, conditions)
    rows = connection.execute(_NICS.where(*conditions)).all()
    further = host_networks.further_ranges(connection, {row.id for row in rows})
    hosts = {row.host for row in rows if row.host and row.id in further}
    own_addresses = host_networks.addresses(connection, list(further), hosts, further)
    for row in rows:
        pairs, address = row.allowed_address_pairs, _ipv4(row.own_ip)
        of_network = t.cast(Network, {field: getattr(row, field) for field in _NETWORK_FIELDS})
        of_host = _ipv4(row.dhcp_ip)
        if row.id in further:
            there = own_addresses.get((row.id, row.host), {})
            of_network, of_host = host_networks.on_host(of_network, further[row.id], there, address)
        nics[row.instance_uuid].append(
            {
                "id": row.vif_id,
                "mac": row.mac,
                "ip": address,
                "ipv6": row.ipv6,
                "dhcp_server": of_host,
                "floating_ips": floating.get(row.vif_id, []),
                "allowed_address_pairs": without_others(connection, row.project_id, row.id, pairs) if pairs else [],
                "port_security_enabled": row.port_security_enabled,
                "extra_dhcp_opts": row.extra_dhcp_opts or [],
                "dns_name": row.dns_name,
                "network": of_network,
            }
        )
        if row.vif_id in more:
            nics[row.instance_uuid][-1]["more_ips"] = more[row.vif_id]
    return nics


def _floating_ips(
    connection: sa.Connection, conditions: list[sa.ColumnElement[bool]]
) -> dict[str, list[FloatingAddress]]:
    addresses: dict[str, list[FloatingAddress]] = {}
    for vif_id, address, interface, further in connection.execute(_FLOATING_IPS.where(*conditions)):
        addresses.setdefault(vif_id, []).append({"address": to_text(address), "interface": interface})
        if further is not None:
            addresses[vif_id][-1]["fixed"] = to_text(further)
    return addresses


def _groups(
    connection: sa.Connection, conditions: list[sa.ColumnElement[bool]]
) -> collections.defaultdict[int, list[SecurityGroup]]:
    groups: dict[int, SecurityGroup] = {}
    of_instance: collections.defaultdict[int, list[SecurityGroup]] = collections.defaultdict(list)
    for instance_id, group_id, uuid, name in connection.execute(_GROUPS.where(*conditions)):
        group = groups.setdefault(group_id, {"id": group_id, "uuid": uuid, "name": name, "rules": []})
        of_instance[instance_id].append(group)
    for row in connection.execute(_RULES.where(security_group_rule.c.group_id.in_(sorted(groups)))):
        groups[row.group_id]["rules"].append(t.cast(Rule, {field: getattr(row, field) for field in _RULE_FIELDS}))
    return of_instance


def _hints(connection: sa.Connection, conditions: list[sa.ColumnElement[bool]]) -> dict[str, JsonObject]:
    """The scheduler hints that each server was asked for with; they are part of the record of that action."""
    return {uuid: hints for uuid, hints in connection.execute(_HINTS.where(*conditions)) if hints is not None}


def _volumes(
    connection: sa.Connection, conditions: list[sa.ColumnElement[bool]]
) -> collections.defaultdict[str, list[AttachedVolume]]:
    """Return each instance's volumes, by device name: the attachment (`id`), and the volume's data for its host."""
    volumes: collections.defaultdict[str, list[AttachedVolume]] = collections.defaultdict(list)
    for row in connection.execute(_VOLUMES.where(*conditions)).mappings():
        attached = {**row, "image": row["image"] and row["image"]["id"]}
        volumes[attached.pop("instance_uuid")].append(t.cast(AttachedVolume, attached))
    return volumes


def _ipv4(number: int | None) -> str | None:
    return None if number is None else to_text(number)
