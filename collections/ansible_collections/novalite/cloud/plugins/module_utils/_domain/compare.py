# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Domain XML into the fields that novalite models, and what differs between two of them. Never compares text.

Pure and standard library only: it runs on the hypervisor. What libvirt adds by itself (PCI addresses, aliases,
`vnetN` names, security labels, an expanded CPU model, controllers) is no field, so it is never a difference.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t
from xml.etree import ElementTree

from .._errors import NovaliteError
from .._json import JsonObject
from . import compare_devices, compare_numa

METADATA_NAMESPACE = "urn:novalite:instance:1"
OPEN_FILTER = "nova-open"  # network filter of an interface whose port security is off
LEDGER = "ledger"  # the element with the identity of the ledger that made the domain

PERSISTENT = "persistent"
LIVE = "live"
LIVE_NOW = "live now"  # the running guest differs already
AT_NEXT_BOOT = "at next boot"  # the running guest is right; its next start would not be
NEEDS_REBUILD = "needs a rebuild"  # redefining the domain does not bring it back: the guest's disk belongs to it

# A guest that was installed for one of these does not run, or does not hold its data, with another.
_REBUILD_FIELDS = re.compile(r"uuid|arch|disks\[[^]]*\](\.(source|format))?")

# libvirt's units of memory, in bytes
_UNITS = {"b": 1, "bytes": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "TB": 1000**4}
_UNITS |= {"k": 1024, "KiB": 1024, "M": 1024**2, "MiB": 1024**2}
_UNITS |= {"G": 1024**3, "GiB": 1024**3, "T": 1024**4, "TiB": 1024**4}
_MACHINE_VERSION = re.compile(r"-(?:[a-z]+)?\d+(?:\.\d+)+$")
_MACHINE_ALIASES = {"pc": "pc-i440fx", "q35": "pc-q35"}


# What a field, a device or an attribute of one is: `parameters` are a filter's variables, and None says "not there"
Value = t.Union[str, int, None]
Device = dict[str, t.Union[Value, dict[str, str]]]
Modelled = t.Union[Value, dict[str, str], Device]
_Unlike = tuple[str, Modelled, Modelled]


class Difference(t.TypedDict):
    """`field` should be `desired` and is `actual` in the `where` ("persistent" or "live") XML."""

    field: str
    desired: Modelled
    actual: Modelled
    where: str
    effect: str


@dataclasses.dataclass(frozen=True)
class Disk:
    dev: str
    source: str | None
    format: str | None
    bus: str | None
    cache: str | None = None
    serial: str | None = None
    discard: str | None = None
    iotune: str | None = None


@dataclasses.dataclass(frozen=True)
class Nic:
    mac: str
    bridge: str | None
    model: str | None
    filter: str | None = None
    parameters: tuple[tuple[str, str], ...] = ()  # sorted
    mtu: int | None = None
    queues: str | None = None
    bandwidth: str | None = None


@dataclasses.dataclass(frozen=True)
class DomainModel:
    """A domain, as far as novalite says what it should be. Memory in KiB."""

    uuid: str | None
    name: str
    type: str
    memory_kib: int
    current_memory_kib: int
    vcpus: int
    current_vcpus: int
    arch: str | None
    machine: str | None
    kernel: str | None = None
    initrd: str | None = None
    cmdline: str | None = None
    on_crash: str | None = None
    firmware: str | None = None  # efi, or None for a BIOS
    secure_boot: str = "no"
    nvram: str | None = None
    tpm: str | None = None  # model and version
    watchdog: str | None = None
    boot_menu: str = "no"
    local_time: bool = False
    hyperv: bool = False
    topology: str | None = None  # sockets, cores, threads
    disks: tuple[Disk, ...] = ()
    interfaces: tuple[Nic, ...] = ()
    serials: tuple[tuple[int, str, str | None], ...] = ()  # (port, type, file that it is logged to)
    rng: str | None = None
    devices: tuple[tuple[str, str], ...] = ()  # of compare_devices
    placement: tuple[tuple[str, str], ...] = ()  # on the host's CPUs and NUMA nodes
    metadata: tuple[tuple[str, str], ...] = ()


# what is compared as it is
_PARTS = ("machine", "disks", "interfaces", "serials", "devices", "placement", "metadata")
_WHOLE = tuple(field.name for field in dataclasses.fields(DomainModel) if field.name not in _PARTS)


def parse(xml: str) -> DomainModel:
    """The model of a domain's XML (desired, persistent or live). Raises NovaliteError when it is no domain."""
    try:
        root = ElementTree.fromstring(xml)
    except ElementTree.ParseError as error:
        raise NovaliteError(f"this is not XML of a libvirt domain ({error}): {xml[:60]!r}") from None
    name = _text(root, "name")
    if root.tag != "domain" or name is None:
        raise NovaliteError(f"this is not XML of a libvirt domain: its root is <{root.tag}>, or it has no <name>")
    memory, current_memory = root.find("memory"), root.find("currentMemory")
    vcpus = int(root.findtext("vcpu") or 1)
    return DomainModel(
        uuid=_text(root, "uuid"),
        name=name,
        type=root.get("type", ""),
        memory_kib=_kib(memory, name),
        current_memory_kib=_kib(memory if current_memory is None else current_memory, name),
        vcpus=vcpus,
        current_vcpus=int(attribute(root, "vcpu", "current") or vcpus),
        arch=attribute(root, "os/type", "arch"),
        machine=attribute(root, "os/type", "machine"),
        kernel=_text(root, "os/kernel"),
        initrd=_text(root, "os/initrd"),
        cmdline=_text(root, "os/cmdline"),
        on_crash=_text(root, "on_crash"),
        firmware=_firmware(root),
        secure_boot=attribute(root, "os/loader", "secure") or "no",
        nvram=_text(root, "os/nvram"),
        tpm=_tpm(root),
        # libvirt from 9.1 names the one that every q35 machine has
        watchdog=attribute(root, "devices/watchdog[@model='i6300esb']", "action"),
        boot_menu=attribute(root, "os/bootmenu", "enable") or "no",
        local_time=attribute(root, "clock", "offset") == "localtime",
        hyperv=root.find("features/hyperv") is not None,
        topology=_topology(root),
        disks=tuple(disk_of(disk) for disk in root.iterfind("devices/disk") if disk.get("device", "disk") == "disk"),
        interfaces=tuple(_nic(interface) for interface in root.iterfind("devices/interface")),
        serials=tuple(sorted((_serial(serial) for serial in root.iterfind("devices/serial")), key=lambda s: s[0])),
        rng=_text(root, "devices/rng/backend"),
        devices=compare_devices.parse(root),
        placement=compare_numa.placement_of(root),
        metadata=_metadata(root),
    )


def differences(desired: DomainModel, persistent: DomainModel | None, live: DomainModel | None) -> list[Difference]:
    """Differences of a domain from the desired one, one entry per field and place. `live` is None for one that is shut
    off, `persistent` for a transient one."""
    return [
        Difference(field=field, desired=expected, actual=got, where=where, effect=_effect(field, where))
        for where, actual in ((PERSISTENT, persistent), (LIVE, live))
        if actual is not None
        for field, expected, got in _compare(desired, actual)
        # a running guest gives back memory when it comes to it, and takes it back as it likes
        if (field, where) != ("current_memory_kib", LIVE) or desired.current_memory_kib == desired.memory_kib
    ]


def displays(xml: str) -> tuple[str, ...]:
    """The displays of a guest of this XML: the kinds of its graphics, the models of its video devices. No field:
    a display that a guest lacks is nothing to restart it for, and comes with its next start."""
    root = ElementTree.fromstring(xml)
    kinds = (element.get("type", "") for element in root.iterfind("devices/graphics"))
    return (*kinds, *(element.get("type", "") for element in root.iterfind("devices/video/model")))


def as_dict(model: DomainModel) -> JsonObject:
    """`model` as plain data, for Ansible's diff."""
    return {
        **dataclasses.asdict(model),
        "disks": [_plain(disk) for disk in model.disks],
        "interfaces": [_plain(nic) for nic in model.interfaces],
        "serials": [{"port": port, "type": kind, "path": path} for port, kind, path in model.serials],
        "devices": dict(model.devices),
        "placement": dict(model.placement),
        "metadata": dict(model.metadata),
    }


def same_machine(desired: str | None, actual: str | None) -> bool:
    """libvirt stores the version behind a machine's alias: `pc` is kept as `pc-i440fx-7.2`. Two that both name a
    version must name the same one."""
    if desired is None or desired == actual:
        return True
    if actual is None:
        return False
    families = [_MACHINE_ALIASES.get(family, family) for family in map(_machine_family, (desired, actual))]
    versioned = _machine_family(desired) != desired and _machine_family(actual) != actual
    return families[0] == families[1] and not versioned


def _effect(field: str, where: str) -> str:
    if _REBUILD_FIELDS.fullmatch(field):
        return NEEDS_REBUILD
    return LIVE_NOW if where == LIVE else AT_NEXT_BOOT


def _compare(desired: DomainModel, actual: DomainModel) -> t.Iterator[_Unlike]:
    if not same_machine(desired.machine, actual.machine):
        yield "machine", desired.machine, actual.machine
    for field in _WHOLE:
        desired_part, actual_part = getattr(desired, field), getattr(actual, field)
        if desired_part != actual_part:
            yield field, desired_part, actual_part
    for kind, devices in _devices(desired).items():
        yield from _compare_devices(kind, devices, _devices(actual)[kind])
    asked = dict(desired.devices)
    yield from _compare_keys("devices", asked, compare_devices.comparable(asked, dict(actual.devices)))
    yield from _compare_keys("placement", dict(desired.placement), dict(actual.placement))
    metadata, there = dict(desired.metadata), dict(actual.metadata)
    if LEDGER not in there:
        metadata.pop(LEDGER, None)  # defined before ledgers had an identity; it comes with the next definition
    yield from _compare_keys("metadata", metadata, there)


def _devices(model: DomainModel) -> dict[str, dict[str, Device]]:
    """The devices of a domain by their kinds and by what they are known by: device name, MAC, port."""
    return {
        "disks": {disk.dev: _plain(disk) for disk in model.disks},
        "interfaces": {nic.mac: _plain(nic) for nic in model.interfaces},
        "serials": {str(port): {"type": kind, "path": path} for port, kind, path in model.serials},
    }


def _compare_devices(
    field: str, desired: t.Mapping[str, Device], actual: t.Mapping[str, Device]
) -> t.Iterator[_Unlike]:
    for key in [*desired, *(key for key in actual if key not in desired)]:
        if key not in desired or key not in actual:
            yield f"{field}[{key}]", desired.get(key), actual.get(key)
            continue
        for attribute, expected in desired[key].items():
            got = actual[key][attribute]
            if isinstance(expected, dict) and isinstance(got, dict):
                yield from _compare_keys(f"{field}[{key}].parameters", expected, got)
            # None: as the host likes
            elif expected != got and not (expected is None and attribute in ("cache", "mtu", "discard")):
                yield f"{field}[{key}].{attribute}", expected, got


def _compare_keys(field: str, desired: t.Mapping[str, str], actual: t.Mapping[str, str]) -> t.Iterator[_Unlike]:
    for key in sorted({*desired, *actual}):
        if desired.get(key) != actual.get(key):
            yield f"{field}.{key}", desired.get(key), actual.get(key)


def _plain(device: Disk | Nic) -> Device:
    plain = dataclasses.asdict(device)
    if "parameters" in plain:
        plain["parameters"] = _by_name(plain["parameters"])
    return plain


def _by_name(parameters: t.Iterable[tuple[str, str]]) -> dict[str, str]:
    """A filter's variables; one that is given several times is a list of values, written with blanks between."""
    values = {}  # type: dict[str, list[str]]
    for name, value in parameters:
        values.setdefault(name, []).append(value)
    return {name: " ".join(of_name) for name, of_name in values.items()}


def _text(root: ElementTree.Element, path: str) -> str | None:
    return root.findtext(path) or None


def attribute(element: ElementTree.Element, path: str, name: str) -> str | None:
    """The attribute `name` of the first child at `path`; None where either is missing."""
    child = element.find(path)
    return None if child is None else child.get(name)


def _firmware(root: ElementTree.Element) -> str | None:
    """Whatever libvirt chose for a running guest: it names the files then, and leaves out what it was told."""
    loaded = attribute(root, "os/loader", "type") == "pflash"
    return "efi" if loaded else attribute(root, "os", "firmware")


def _tpm(root: ElementTree.Element) -> str | None:
    tpm = root.find("devices/tpm")
    return None if tpm is None else f"{tpm.get('model')} {attribute(tpm, 'backend', 'version')}"


def _topology(root: ElementTree.Element) -> str | None:
    topology = root.find("cpu/topology")
    return None if topology is None else ":".join(topology.get(part, "1") for part in ("sockets", "cores", "threads"))


def _kib(element: ElementTree.Element | None, name: str) -> int:
    unit = "KiB" if element is None else element.get("unit", "KiB")
    text = None if element is None else element.text
    if unit not in _UNITS or not (text or "").strip().isdigit():
        raise NovaliteError(f"domain {name}: {text!r} {unit} is not an amount of memory")
    return -(-int(str(text)) * _UNITS[unit] // 1024)  # libvirt rounds up to whole KiB


def disk_of(element: ElementTree.Element) -> Disk:
    """Disk that a `<disk>` describes."""
    return Disk(
        dev=attribute(element, "target", "dev") or "",
        source=attribute(element, "source", "file") or attribute(element, "source", "dev"),
        format=attribute(element, "driver", "type"),
        bus=attribute(element, "target", "bus"),
        cache=attribute(element, "driver", "cache"),
        serial=_text(element, "serial"),
        discard=attribute(element, "driver", "discard"),
        iotune=compare_devices.iotune(element),
    )


def _nic(element: ElementTree.Element) -> Nic:
    mtu, variables = attribute(element, "mtu", "size"), element.iterfind("filterref/parameter")
    return Nic(
        mac=(attribute(element, "mac", "address") or "").lower(),
        bridge=attribute(element, "source", "bridge"),
        model=attribute(element, "model", "type"),
        filter=attribute(element, "filterref", "filter"),
        parameters=tuple(sorted((variable.get("name", ""), variable.get("value", "")) for variable in variables)),
        mtu=None if mtu is None else int(mtu),
        queues=attribute(element, "driver", "queues"),
        bandwidth=compare_devices.bandwidth(element),
    )


def _serial(element: ElementTree.Element) -> tuple[int, str, str | None]:
    kind = element.get("type", "")
    # A pty's own path is /dev/pts/N of this very run, and no part of what was asked for.
    path = attribute(element, "source", "path") if kind == "file" else attribute(element, "log", "file")
    return int(attribute(element, "target", "port") or 0), kind, path


def _metadata(root: ElementTree.Element) -> tuple[tuple[str, str], ...]:
    """Flat: `project` is its text (a name), `project.id` its attribute."""
    texts: dict[str, str] = {}
    for element in root.iterfind(f"metadata/{{{METADATA_NAMESPACE}}}instance/*"):
        tag = element.tag.rpartition("}")[2]
        texts[tag] = element.text or ""
        texts.update({f"{tag}.{name}": value for name, value in element.attrib.items()})
    return tuple(sorted(texts.items()))


def _machine_family(machine: str) -> str:
    return _MACHINE_VERSION.sub("", machine)
