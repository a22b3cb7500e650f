# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Devices, CPU features and limits of _model.devices in domain XML, by name. Pure."""

from __future__ import annotations

import typing as t
from xml.etree import ElementTree

# Where nothing was asked for, these are as libvirt and the host like
_FREE = ("cpu_model", "input", "scsi_controller", "video_ram")
_FEATURE = "cpu_feature "  # and its name
_OWN_MODES = ("host-passthrough", "maximum")  # a running guest's host-model is a custom one
_LIMITS = ("read_bytes_sec", "read_iops_sec", "total_bytes_sec", "total_iops_sec", "write_bytes_sec", "write_iops_sec")


def parse(root: ElementTree.Element) -> tuple[tuple[str, str], ...]:
    """Read those of a `<domain>`: (name, value), sorted."""
    mode, inputs = _attribute(root, "cpu", "mode"), root.iterfind("devices/input")
    fields = {
        "cpu_mode": mode if mode in _OWN_MODES else None,
        "cpu_model": root.findtext("cpu/model") if mode in (None, "custom") else None,
        **{_FEATURE + node.get("name", ""): node.get("policy") for node in root.iterfind("cpu/feature")},
        **{f"cpu_{name}": root.findtext(f"cputune/{name}") for name in ("shares", "period", "quota")},
        "hidden": _attribute(root, "features/kvm/hidden", "state"),
        "hpet": _attribute(root, "clock/timer[@name='hpet']", "present"),
        "input": ", ".join(
            sorted(f"{node.get('type')} {node.get('bus')}" for node in inputs if node.get("bus") != "ps2")
        ),
        "iommu": _attribute(root, "devices/iommu", "model"),
        "pmu": _attribute(root, "features/pmu", "state"),
        "rng_rate": _pairs(root.find("devices/rng/rate"), ("bytes", "period")),
        "scsi_controller": _attribute(root, "devices/controller[@type='scsi'][@index='0']", "model"),
        "video_ram": _attribute(root, "devices/video/model", "vram"),
    }
    return tuple(sorted((name, value) for name, value in fields.items() if value))


def comparable(desired: t.Mapping[str, str], actual: t.Mapping[str, str]) -> dict[str, str]:
    """`actual` without what is as libvirt likes, for `desired` does not say."""
    return {
        name: value
        for name, value in actual.items()
        if name in desired or not (name in _FREE or name.startswith(_FEATURE))
    }


def iotune(disk: ElementTree.Element) -> str | None:
    """The limits of a `<disk>`."""
    limits = ((name, disk.findtext(f"iotune/{name}")) for name in _LIMITS)
    return " ".join(f"{name}={value}" for name, value in limits if value not in (None, "0")) or None


def bandwidth(interface: ElementTree.Element) -> str | None:
    """The limits of an `<interface>`."""
    ways = ((way, interface.find(f"bandwidth/{way}")) for way in ("inbound", "outbound"))
    return (
        " ".join(f"{way} {_pairs(node, ('average', 'peak', 'burst'))}" for way, node in ways if node is not None)
        or None
    )


def _attribute(root: ElementTree.Element, path: str, name: str) -> str | None:
    node = root.find(path)
    return None if node is None else node.get(name)


def _pairs(node: ElementTree.Element | None, names: t.Iterable[str]) -> str | None:
    return None if node is None else " ".join(f"{name}={node.get(name)}" for name in names if node.get(name))
