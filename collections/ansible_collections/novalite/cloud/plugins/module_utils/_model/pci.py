# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""PCI devices of hosts that guests get as they are: what flavor and image ask for, which a host hands out, by which
aliases, and what a guest holds. Pure.

Names and rules are Nova's (nova/pci): `pci_device_spec` and `pci_alias` of a host are its options `[pci] device_spec`
and `alias`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import typing as t

from .._errors import NovaliteError
from .._json import JsonMapping, JsonObject

ALIAS = "pci_passthrough:alias"  # extra spec of a flavor: name:count, with commas between
POLICY = "pci_numa_affinity_policy"  # after hw: or hw_
REQUIRED, LEGACY, PREFERRED = "required", "legacy", "preferred"
POLICIES = (REQUIRED, LEGACY, PREFERRED)
PCI, PF, VF = "type-PCI", "type-PF", "type-VF"
TYPES = (PCI, PF, VF)
SPEC, ALIASES = "pci_device_spec", "pci_alias"
OPTIONS = (SPEC, ALIASES)  # what the inventory says
DEVICES, TAKEN = "pci_devices", "pci_taken"  # facts: devices to hand out, and addresses that guests of others have
SPEC_KEYS = ("vendor_id", "product_id", "address", "managed", "traits")
ALIAS_KEYS = ("name", "vendor_id", "product_id", "device_type", "numa_policy", "traits")
ANY = "*"

_ID = re.compile(r"[0-9a-fA-F]{4}")
_ADDRESS = re.compile(r"(?:(?:([^:.]*):)?([^:.]*):)?([^:.]*)(?:\.([^:.]*))?")
PARTS, _DIGITS = ("domain", "bus", "slot", "function"), (4, 2, 2, 1)  # of an address
_MOST = (0xFFFF, 0xFF, 0x1F, 0x7)
_ASK = re.compile(r"\s*([^:,]{1,256}):(\d{1,4})\s*")
_WORDS = {"true": True, "yes": True, "1": True, "on": True, "false": False, "no": False, "0": False, "off": False}


@dataclasses.dataclass(frozen=True)
class Ask:
    """Devices of one alias that a guest is to have."""

    alias: str
    count: int


@dataclasses.dataclass(frozen=True)
class Asked:
    """Devices that a guest is to have. `policy`, how near its NUMA nodes: None, as their aliases say."""

    devices: tuple[Ask, ...]
    policy: str | None = None


@dataclasses.dataclass(frozen=True)
class Device:
    """A PCI device of a host. `parent` is the address of a virtual function's physical one."""

    address: str
    vendor_id: str
    product_id: str
    type: str = PCI
    numa_node: int | None = None
    parent: str | None = None
    managed: bool = True  # whether libvirt takes it from the host's driver, and gives it back
    traits: tuple[str, ...] = ()

    @property
    def row(self) -> JsonObject:
        """The device as a fact of its host."""
        return {**dataclasses.asdict(self), "traits": list(self.traits)}


@dataclasses.dataclass(frozen=True)
class Alias:
    """Devices by one name: those that any of `specs` describes."""

    specs: tuple[JsonMapping, ...]
    policy: str

    @property
    def physical(self) -> bool:
        """Tell whether it hands out physical functions, which it never does unasked."""
        return any(spec.get("device_type") == PF for spec in self.specs)

    def covers(self, device: Device) -> bool:
        """Tell whether the device is one of those that it names."""
        return any(
            [str(spec[key]).lower() for key in ("vendor_id", "product_id")] == [device.vendor_id, device.product_id]
            and spec.get("device_type") in (None, device.type)
            and set(_traits(spec)) <= set(device.traits)
            for spec in self.specs
        )


@dataclasses.dataclass(frozen=True)
class Held:
    """A device that a guest holds on its host."""

    alias: str
    address: str
    managed: bool = True

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """The address in its parts, as libvirt names them."""
        return tuple(zip(PARTS, re.split("[:.]", self.address)))


def check_value(what: str, name: str, value: object) -> None:
    """Raise NovaliteError for a value that the property or extra spec `name` of `what` cannot have."""
    if name == ALIAS:
        _asks(f"{what}: extra spec {name}", str(value))
    elif name in (f"hw:{POLICY}", f"hw_{POLICY}") and value not in POLICIES:
        kind = "extra spec" if name.startswith("hw:") else "its property"
        socket = ". Which NUMA nodes share a socket is not known here" if value == "socket" else ""
        raise NovaliteError(f"{what}: {kind} {name} is {str(value)[:40]!r}; use {', '.join(POLICIES)}{socket}")


def asked_of(flavor: JsonMapping, image: JsonMapping) -> Asked | None:
    """The devices that flavor and image ask for; None where they ask for none. Raises NovaliteError where they
    contradict each other."""
    specs, properties = flavor.get("extra_specs") or {}, image.get("properties") or {}
    names = f"flavor '{flavor.get('name')}'", f"image '{image.get('name')}'"
    policies = {}
    for what, values, name in zip(names, (specs, properties), (f"hw:{POLICY}", f"hw_{POLICY}")):
        if name in values:
            check_value(what, name, values[name])
            policies[name] = str(values[name])
    if len(set(policies.values())) > 1:
        raise NovaliteError(
            f"{names[0]} has hw:{POLICY}={policies[f'hw:{POLICY}']}, and {names[1]} hw_{POLICY}="
            f"{policies[f'hw_{POLICY}']}: take the one from the flavor or the other from the image"
        )
    if ALIAS not in specs:
        return None
    asks = _asks(f"{names[0]}: extra spec {ALIAS}", str(specs[ALIAS]))
    return Asked(asks, next(iter(policies.values()), None))


def recorded_asked_of(flavor: JsonMapping, image: JsonMapping) -> Asked | None:
    """asked_of(), where what was recorded before anybody judged it counts as nothing."""
    with contextlib.suppress(NovaliteError):
        return asked_of(flavor, image)
    return None


def devices_of(facts: JsonMapping) -> tuple[Device, ...]:
    """The devices that the host with these facts hands out, those first that no virtual function depends on, as Nova
    takes them."""
    devices = (Device(**{**row, "traits": tuple(row["traits"])}) for row in facts.get(DEVICES) or ())
    return tuple(sorted(devices, key=lambda device: (device.type != PCI, device.parent or "", device.address)))


def aliases_of(facts: JsonMapping) -> dict[str, Alias]:
    """The aliases that the host with these facts knows, by name."""
    aliases: dict[str, Alias] = {}
    for spec in facts.get(ALIASES) or ():
        known = aliases.get(spec["name"])
        specs = (*known.specs, spec) if known else (spec,)
        aliases[spec["name"]] = Alias(specs, spec.get("numa_policy") or LEGACY)
    return aliases


def handed_out(there: t.Sequence[Device], specs: t.Sequence[JsonMapping]) -> list[Device]:
    """Pick those of a host's devices that its `specs` name, each as the first that names it has it."""
    devices = []
    physical = {device.address for device in there if device.type == PF}
    for device in there:
        spec = next((spec for spec in specs if _names(spec, device, physical)), None)
        if spec is not None:
            managed = _WORDS[str(spec.get("managed", "true")).lower()]
            devices.append(dataclasses.replace(device, managed=managed, traits=_traits(spec)))
    return sorted(devices, key=lambda device: device.address)


def check(name: str, facts: JsonMapping) -> None:
    """Raise NovaliteError for devices and aliases of host `name` that make no sense."""
    for spec in facts.get(SPEC) or ():
        where = f"compute host '{name}': {SPEC} has {spec}"
        _known_keys(where, spec, SPEC_KEYS)
        for key in ("vendor_id", "product_id"):
            if spec.get(key) not in (None, ANY):
                _check_id(where, key, spec[key])
        _fields(where, str(spec.get("address") or ""))
        if str(spec.get("managed", "true")).lower() not in _WORDS:
            raise NovaliteError(f"{where}: managed is {spec['managed']!r}; use true or false")
    aliases: dict[str, JsonMapping] = {}
    for alias in facts.get(ALIASES) or ():
        where = f"compute host '{name}': {ALIASES} has {alias}"
        _known_keys(where, alias, ALIAS_KEYS)
        if not re.fullmatch(r"[^:,\s](?:[^:,]{0,254}[^:,\s])?", str(alias.get("name") or "")):
            raise NovaliteError(f"{where}: give it a name without colon and comma")
        for key in ("vendor_id", "product_id"):
            _check_id(where, key, alias.get(key))
        for key, values in (("device_type", TYPES), ("numa_policy", POLICIES)):
            if alias.get(key) not in (None, *values):
                raise NovaliteError(f"{where}: {key} is {alias[key]!r}; use {', '.join(values)}")
        first = aliases.setdefault(alias["name"], alias)
        for key, default in (("device_type", None), ("numa_policy", LEGACY)):
            if (alias.get(key) or default) != (first.get(key) or default):
                raise NovaliteError(f"{where}, and another {key} for the same name: give both the same")


def _asks(where: str, text: str) -> tuple[Ask, ...]:
    matches = [_ASK.fullmatch(part) for part in text.split(",")]
    if not all(match and match[1].strip() and int(match[2]) for match in matches):
        raise NovaliteError(f"{where} is {text[:40]!r}; use name:count, with commas between, such as gpu:1")
    return tuple(Ask(match[1].strip(), int(match[2])) for match in matches if match)


def _names(spec: JsonMapping, device: Device, physical: t.Container[str]) -> bool:
    for key, value in (("vendor_id", device.vendor_id), ("product_id", device.product_id)):
        if str(spec.get(key) or ANY).lower() not in (ANY, value):
            return False
    fields = _fields(SPEC, str(spec.get("address") or ""))
    addresses = [device.address]
    single = None if ANY in fields else "{}:{}:{}.{}".format(*fields)
    if device.parent is not None and single in physical:
        addresses.append(device.parent)  # the address of a physical function stands for its virtual ones, too
    return any(
        all(field in (ANY, part) for field, part in zip(fields, re.split("[:.]", address))) for address in addresses
    )


def _fields(where: str, text: str) -> tuple[str, ...]:
    """Domain, bus, slot and function of an address, in which each may be a star or be left out."""
    match = _ADDRESS.fullmatch(text)
    fields = []
    for part, digits, most in zip(match.groups() if match else (), _DIGITS, _MOST):
        value = (part or "").strip() or ANY
        if value != ANY and (not re.fullmatch("[0-9a-fA-F]{1,4}", value) or int(value, 16) > most):
            match = None
            break
        fields.append(value if value == ANY else f"{int(value, 16):0{digits}x}")
    if match is None:
        raise NovaliteError(f"{where}: its address is {text[:40]!r}; use one such as 0000:0a:00.1 or *:0a:00.*")
    return tuple(fields)


def _traits(spec: JsonMapping) -> tuple[str, ...]:
    return tuple(sorted(filter(None, (trait.strip() for trait in str(spec.get("traits") or "").split(",")))))


def _known_keys(where: str, row: JsonMapping, keys: t.Sequence[str]) -> None:
    if unknown := sorted(set(row) - set(keys)):
        raise NovaliteError(f"{where}: {unknown[0]} is not known here; use {', '.join(keys)}")


def _check_id(where: str, key: str, value: object) -> None:
    if not _ID.fullmatch(str(value)):
        raise NovaliteError(f"{where}: {key} is {str(value)[:40]!r}; give four hexadecimal digits, such as '10de'")
