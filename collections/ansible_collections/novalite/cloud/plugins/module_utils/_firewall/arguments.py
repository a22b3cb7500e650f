# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Larger options of the module `firewall`, and the dataclasses that they become."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
import typing as t

from .._errors import NovaliteError
from .._json import Json, JsonMapping
from . import devices
from .policy import Group, Instance
from .ports import parse_port
from .rules import expanded, host, parse_rule

_BRIDGE = re.compile(r"[0-9a-zA-Z_.-]{1,15}")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_TEXT, _TEXTS = {"type": "str", "required": True}, {"type": "list", "elements": "str", "default": []}


def _dicts(**options: JsonMapping) -> JsonMapping:
    return {"type": "list", "elements": "dict", "default": [], "options": options}


SCOPED_SPEC = _dicts(bridge=_TEXT, addresses=_TEXTS)
CHANGED_SPEC = _dicts(bridge={"type": "str", "default": ""}, addresses=_TEXTS)
ZONES_SPEC = _dicts(bridge=_TEXT, zone={"type": "int", "required": True})
RULE_SPEC = {
    "id": {"type": "str"},
    "direction": {"type": "str", "choices": ["ingress", "egress"], "default": "ingress"},
    "ethertype": {"type": "str", "choices": ["IPv4", "IPv6"], "default": "IPv4"},
    "protocol": {"type": "str"},
    "port_min": {"type": "int"},
    "port_max": {"type": "int"},
    "cidr": {"type": "str"},
    "remote_group_id": {"type": "int"},
}
GROUP_SPEC = {
    "id": {"type": "int", "required": True},
    "name": {"type": "str"},
    "uuid": {"type": "str"},
    "members": {"type": "list", "elements": "str"},
    "scoped_members": SCOPED_SPEC,
    "joining": CHANGED_SPEC,
    "leaving": CHANGED_SPEC,
    "rules": {"type": "list", "elements": "dict", "options": RULE_SPEC},
}
INSTANCE_SPEC = {
    "id": {"type": "int", "required": True},
    "uuid": {"type": "str"},
    "addresses": _TEXTS,
    "scoped": SCOPED_SPEC,
    "allowed_pairs": _dicts(bridge={"type": "str"}, cidr=_TEXT),
    "ports": _dicts(
        device=_TEXT,
        mac=_TEXT,
        addresses=_TEXTS,
        allowed_pairs=_dicts(mac=_TEXT, cidr=_TEXT),
        port_security={"type": "bool", "default": True},
    ),
    "devices": _TEXTS,
    "open_devices": _TEXTS,
    "open_networks": _dicts(bridge=_TEXT, cidr=_TEXT),
    "dhcp_servers": _TEXTS,
    "ra_servers": _TEXTS,
    "security_groups": {"type": "list", "elements": "int", "default": []},
}


@dataclasses.dataclass(frozen=True)
class Request:
    """`present` ensures the instances and groups and leaves the others alone, `exclusive` leaves no others;
    `absent` takes the instances away, with the groups that no instance uses any more.

    `zones`: the conntrack zone of each isolated bridge. `sets`: whether the kernel has ip_set. `bridges` are those of
    the instances' networks (`absent`: that go with them), `serving` those on which this host serves DHCP and DNS.
    `opened`: what guests may ask of the host besides (passage.py); None leaves that as it is.
    `targets`: whether the kernel has xt_bpf, without which the target of neighbour discovery is not compared.
    """

    instances: tuple[Instance, ...] = ()
    groups: tuple[Group, ...] = ()
    state: str = "present"
    exclusive: bool = False
    zones: t.Mapping[str, int] = dataclasses.field(default_factory=dict)
    sets: bool = True
    bridges: tuple[str, ...] = ()
    serving: tuple[str, ...] = ()
    opened: tuple[str, ...] | None = None
    targets: bool = True

    @property
    def is_everything(self) -> bool:
        """Tell whether the host shall have what is given and nothing else."""
        return self.exclusive and self.state == "present"


def parse_instances(values: t.Iterable[JsonMapping], leaving: bool = False) -> list[Instance]:
    """The module's `instances` as dataclasses. Raises NovaliteError for an id or an address that occurs twice, and for
    an allowed address pair that is none or too large, unless the instances are `leaving`."""
    instances, ids, taps = [], set(), {}  # type: list[Instance], set[int], dict[str, int]
    owners: dict[tuple[str, str], int] = {}
    for value in values:
        addresses = _by_scope(value.get("addresses"), value.get("scoped"))
        shared: dict[str, tuple[str, ...]] = {}
        for pair in value.get("allowed_pairs") or ():
            bridge = _bridge(pair["bridge"]) if pair.get("bridge") else ""
            try:
                shared[bridge] = (*shared.get(bridge, ()), *expanded(str(pair["cidr"]).strip()))
            except NovaliteError as error:
                if not leaving:
                    raise NovaliteError(f"instance {value['id']}: {error}") from None
        instance = Instance(
            id=_identifier("instance", value["id"]),
            uuid=_uuid(value),
            addresses=addresses,
            shared=shared,
            dhcp_servers=_texts(value.get("dhcp_servers")),
            ra_servers=_texts(value.get("ra_servers")),
            security_groups=tuple(dict.fromkeys(int(group) for group in value.get("security_groups") or ())),
            ports=tuple(parse_port(value["id"], port) for port in value.get("ports") or ()),
            devices=devices.parse(value["id"], value.get("devices")),
            open_devices=devices.parse(value["id"], value.get("open_devices")),
            open_networks=tuple(_open_network(network) for network in value.get("open_networks") or ()),
        )
        if instance.id in ids:
            raise NovaliteError(f"instance {instance.id} is given twice; give it once, with all its addresses")
        ids.add(instance.id)
        for device in (*instance.devices, *instance.open_devices):
            if taps.setdefault(device, instance.id) != instance.id:
                raise NovaliteError(f"the device {device} is given for the instances {taps[device]} and {instance.id}")
        for scope, of_scope in addresses.items():
            for _family, address in map(host, of_scope):
                if owners.setdefault((scope, address), instance.id) != instance.id:
                    raise NovaliteError(
                        f"the address {address} is given for instance {owners[scope, address]} and for instance "
                        f"{instance.id}; only one of them can own it"
                    )
        instances.append(instance)
    return instances


def parse_groups(values: t.Iterable[JsonMapping]) -> list[Group]:
    """The module's `security_groups` as dataclasses."""
    groups = []
    for value in values:
        identifier = _identifier("security group", value["id"])
        rules, members = value.get("rules"), value.get("members")
        joining, leaving = value.get("joining"), value.get("leaving")
        if members is not None and (joining or leaving):
            raise NovaliteError(
                f"security group {identifier} has members, and joining or leaving ones: give either the former or these"
            )
        groups.append(
            Group(
                identifier,
                None if rules is None else tuple(parse_rule(identifier, rule) for rule in rules),
                None if members is None else _by_scope(members, value.get("scoped_members")),
                _by_scope((), joining),
                _by_scope((), leaving),
            )
        )
    if len({group.id for group in groups}) != len(groups):
        raise NovaliteError("a security group is given twice; give each group once with all its rules")
    return groups


def parse_zones(values: t.Iterable[JsonMapping]) -> dict[str, int]:
    """The module's `zones`: bridge -> conntrack zone. Raises NovaliteError."""
    zones: dict[str, int] = {}
    for value in values:
        zone = int(value["zone"])
        if not 1 <= zone <= 65535:
            raise NovaliteError(f"the conntrack zone {zone} of bridge {value['bridge']} is not between 1 and 65535")
        zones[_bridge(value["bridge"])] = zone
    by_zone: dict[int, str] = {}
    for bridge, zone in zones.items():
        other = by_zone.setdefault(zone, bridge)
        if other != bridge:
            raise NovaliteError(f"the bridges {other} and {bridge} have one conntrack zone, {zone}; give each its own")
    return zones


def parse_bridges(values: t.Iterable[str]) -> tuple[str, ...]:
    """The module's `bridges`. Raises NovaliteError."""
    return tuple(sorted({_bridge(value) for value in values}))


def _identifier(what: str, value: Json) -> int:
    number = int(value)
    if not 0 <= number < 10**11:  # a chain's name has 28 characters, a set's 31
        raise NovaliteError(f"{what} id {value!r} is not a number between 0 and 10^11")
    return number


def _uuid(value: JsonMapping) -> str | None:
    uuid = value.get("uuid")
    if uuid and not _UUID.fullmatch(uuid):
        raise NovaliteError(f"instance {value['id']}: {uuid!r} is not a UUID")
    return uuid or None


def _open_network(value: JsonMapping) -> tuple[str, str]:
    try:
        return _bridge(value["bridge"]), str(ipaddress.ip_network(str(value["cidr"])))
    except ValueError:
        raise NovaliteError(f"open_networks: {value['cidr']!r} is not a range; write 10.20.0.0/24") from None


def _bridge(name: str) -> str:
    if not _BRIDGE.fullmatch(str(name)):
        raise NovaliteError(f"{name!r} is not a name of a bridge; it has 1 to 15 letters, digits, dashes and dots")
    return str(name)


def _by_scope(everywhere: t.Iterable[str] | None, scoped: t.Iterable[JsonMapping] | None) -> dict[str, tuple[str, ...]]:
    addresses = {"": _texts(everywhere)}
    for scope in scoped or ():
        bridge = _bridge(scope["bridge"]) if scope.get("bridge") else ""
        addresses[bridge] = (*addresses.get(bridge, ()), *_texts(scope.get("addresses")))
    return addresses


def _texts(values: t.Iterable[str] | None) -> tuple[str, ...]:
    return tuple(str(value).strip() for value in values or ())
