# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers with all that a launch needs of them, put together from rows of the ledger, whoever reads those: SQLAlchemy,
or the driver alone for a look that is to be quick."""

from __future__ import annotations

import collections
import typing as t

from .._json import JsonMapping, JsonObject
from .instance import (
    AddressPair,
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
from .listed_servers import Read, dotted

# the columns are named as the keys
FLAVOR_FIELDS, IMAGE_FIELDS = tuple(Flavor.__annotations__), tuple(Image.__annotations__)
_RULE_FIELDS = tuple(Rule.__annotations__)
_FILE_FIELDS = ("source", "checksum", "size", "virtual_size", "disk_format")
_MADE_HERE = {"domain_name", "project", "alternates", "key", "request", "security_groups", "nics", "volumes"}
_MADE_LATER = {"guest", "rescue", "actions"}
INSTANCE_FIELDS = tuple(field for field in Instance.__annotations__ if field not in _MADE_HERE | _MADE_LATER)
_OF_NIC = {"vif_id", "instance_uuid", "mac", "ipv6", "project_id", "host", "own_ip", "dhcp_ip"}
_OF_NIC |= {"allowed_address_pairs", "port_security_enabled", "extra_dhcp_opts", "dns_name"}
_ACTION_FIELDS = ("action", "request_id", "started_at", "finished_at", "message", "details")
_EVENT_FIELDS = ("event", "host", "started_at", "finished_at", "result")


class Beyond(t.Protocol):
    """Rules about what is in more than a server's own rows."""

    def networks(self, rows: t.Sequence[JsonMapping]) -> t.Sequence[tuple[Network, str | None]]:
        """The network of each interface as its server sees it, with its host's address there."""

    def pairs(self, row: JsonMapping) -> list[AddressPair]:
        """The address pairs of an interface that has some."""

    def properties(self, properties: JsonObject) -> JsonObject:
        """The properties of an image whose disk has been replaced."""


def records(read: Read, beyond: Beyond) -> list[Instance]:
    """The servers that `read` finds, in its order. Groups that servers share are one object: do not change them."""
    rows = list(read("instances", {}))
    if not rows:
        return []
    nics, groups, volumes = _nics(read, beyond), _groups(read), _volumes(read)
    # what each was asked for with is part of the record of that action
    hints = {row["instance_uuid"]: row["hints"] for row in read("hints", {}) if row["hints"] is not None}
    return [
        _instance(row, beyond, nics[row["uuid"]], groups[row["id"]], hints.get(row["uuid"], {}), volumes[row["uuid"]])
        for row in rows
    ]


def history(read: Read) -> dict[str, list[JsonObject]]:
    """Server -> its actions, the newest first, each with its events."""
    events: collections.defaultdict[int, list[JsonObject]] = collections.defaultdict(list)
    for row in read("action_events", {}):
        events[row["action_id"]].append({field: row[field] for field in _EVENT_FIELDS})
    actions: dict[str, list[JsonObject]] = {}
    for row in read("actions", {}):
        action = {field: row[field] for field in _ACTION_FIELDS}
        actions.setdefault(row["instance_uuid"], []).append({**action, "events": events[row["id"]]})
    return actions


def domain_name(number: int, adopted: JsonMapping | None) -> str:
    """Return libvirt's name of the instance of this number; one that was `adopted` has kept its name."""
    return f"instance-{number:08x}" if adopted is None else str(adopted["domain"])


def _instance(
    row: JsonMapping,
    beyond: Beyond,
    nics: list[Nic],
    groups: list[SecurityGroup],
    hints: JsonObject,
    volumes: list[AttachedVolume],
) -> Instance:
    image, replaced = row["image"], row["disk_image"]
    if replaced is not None:
        own = {"properties": beyond.properties(image["properties"])}
        image = {**image, **{field: replaced[field] for field in _FILE_FIELDS}, **own}
    made = {
        **{field: row[field] for field in INSTANCE_FIELDS},
        "image": image,
        "domain_name": domain_name(row["id"], row["adopted"]),
        "project": {"id": row["project_id"], "name": row["project_name"]},
        "alternates": [],
        "key": None if row["public_key"] is None else {"name": row["key_name"], "public_key": row["public_key"]},
        "request": hints,
        "security_groups": groups,
        "nics": nics,
        "volumes": volumes,
    }
    return t.cast(Instance, made)


def _nics(read: Read, beyond: Beyond) -> collections.defaultdict[str, list[Nic]]:
    nics: collections.defaultdict[str, list[Nic]] = collections.defaultdict(list)
    floating: dict[str, list[FloatingAddress]] = {}
    for row in read("floating_addresses", {}):
        address: FloatingAddress = {"address": dotted(row["address"]), "interface": row["interface"]}
        if row["further_ip"] is not None:
            address["fixed"] = dotted(row["further_ip"])
        floating.setdefault(row["vif_id"], []).append(address)
    more: dict[str, list[str]] = {}
    for row in read("more_ips", {}):
        more.setdefault(row["further_of"], []).append(dotted(row["ip"]))
    rows = list(read("interfaces", {}))
    for row, (of_network, of_host) in zip(rows, beyond.networks(rows)):
        nic: Nic = {
            "id": row["vif_id"],
            "mac": row["mac"],
            "ip": ipv4(row["own_ip"]),
            "ipv6": row["ipv6"],
            "dhcp_server": of_host,
            "floating_ips": floating.get(row["vif_id"], []),
            "allowed_address_pairs": beyond.pairs(row) if row["allowed_address_pairs"] else [],
            "port_security_enabled": row["port_security_enabled"],
            "extra_dhcp_opts": row["extra_dhcp_opts"] or [],
            "dns_name": row["dns_name"],
            "network": of_network,
        }
        if row["vif_id"] in more:
            nic["more_ips"] = more[row["vif_id"]]
        nics[row["instance_uuid"]].append(nic)
    return nics


def network_of(row: JsonMapping) -> Network:
    """Return the network of an interface as its own row says it."""
    return t.cast(Network, {field: value for field, value in row.items() if field not in _OF_NIC})


def _groups(read: Read) -> collections.defaultdict[int, list[SecurityGroup]]:
    groups: dict[int, SecurityGroup] = {}
    of_instance: collections.defaultdict[int, list[SecurityGroup]] = collections.defaultdict(list)
    for row in read("groups_of_instances", {}):
        group: SecurityGroup = {"id": row["id"], "uuid": row["uuid"], "name": row["name"], "rules": []}
        of_instance[row["instance_id"]].append(groups.setdefault(row["id"], group))
    for row in read("rules", {"groups": sorted(groups)}):
        groups[row["group_id"]]["rules"].append(t.cast(Rule, {field: row[field] for field in _RULE_FIELDS}))
    return of_instance


def _volumes(read: Read) -> collections.defaultdict[str, list[AttachedVolume]]:
    """Return each instance's volumes, by device name: the attachment (`id`), and the volume's data for its host."""
    volumes: collections.defaultdict[str, list[AttachedVolume]] = collections.defaultdict(list)
    for row in read("attached_volumes", {}):
        attached = {**row, "image": row["image"] and row["image"]["id"]}
        volumes[attached.pop("instance_uuid")].append(t.cast(AttachedVolume, attached))
    return volumes


def ipv4(number: int | None) -> str | None:
    """Return an IPv4 address as people write it; None for none."""
    return None if number is None else dotted(number)
