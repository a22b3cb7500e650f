# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's ImagePropertiesFilter: what the image says it needs to run on; and the size it needs at least."""

from __future__ import annotations

import typing as t

from ..._json import JsonMapping
from .. import versions
from ..options import Options
from ..rows import HostState, Request

NAME = "image_properties"
NOVA = "ImagePropertiesFilter"
RUN_ONCE_PER_REQUEST = True


# What images said before, and say now; the present name wins (nova/objects/image_meta.py).
FORMER = {
    "hw_architecture": "architecture",
    "img_hv_type": "hypervisor_type",
    "hw_vm_mode": "vm_mode",
    "img_hv_requested_version": "hypervisor_version_requires",
}
# What images say, and what `uname -m` and libvirt say for the same machine (nova/objects/fields.py).
SAME_ARCHITECTURE = {"amd64": "x86_64", "arm64": "aarch64"}
SAME_ARCHITECTURE.update(dict.fromkeys(("i386", "i486", "i586", "x86_32", "x86_32p"), "i686"))
SAME_HYPERVISOR = {"xapi": "xen"}
SAME_MODE = {"pv": "xen", "hv": "hvm", "baremetal": "hvm"}
# An x86_64 host runs i686 guests; the other way around it does not.
ALSO_RUNS = {"x86_64": ("i686",), "aarch64": ("armv7l",)}


def concerns(request: Request, options: Options) -> bool:
    """Images that ask for nothing run anywhere."""
    return bool(any(_combination(request)) or request.image_min_ram_mb or request.image_min_disk_gb)


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host that does not run guests of the image's architecture, hypervisor type and mode together.

    As in Nova, the version that the image asks of the hypervisor counts only beside one of those three. A flavor
    below the image's memory or disk fits nowhere (Nova's API refuses it; a root disk of 0 is as large as the image).
    """
    if request.image_min_ram_mb > request.memory_mb:
        return f"would give {request.memory_mb} MiB, the image needs {request.image_min_ram_mb}"
    if 0 < request.root_gb < request.image_min_disk_gb:
        return f"would give {request.root_gb} GiB of root disk, the image needs {request.image_min_disk_gb}"
    combination = _combination(request)
    requirements = [value for value in combination if value]
    if not requirements:
        return None
    supported = supported_instances(host.facts)
    if not any(all(value in guest_type for value in requirements) for guest_type in supported):
        return _mismatch(host, supported, *combination)
    required, version = _named(request, "img_hv_requested_version"), host.facts.get("hypervisor_version")
    if required and version and not versions.satisfies(version, required):
        return f"has hypervisor version {versions.text_of(version)}, the image asks for {required}"
    return None


def supported_instances(facts: JsonMapping) -> t.Sequence[t.Sequence[str]]:
    """Return the guests that a host runs: [architecture, hypervisor type, mode]; by its kind when it lists none."""
    listed: t.Sequence[t.Sequence[str]] = facts.get("supported_instances") or ()
    if listed:
        return listed
    arch, kind = str(facts.get("arch") or ""), str(facts.get("hypervisor_type") or "").lower()
    kinds = ("kvm", "qemu") if kind == "kvm" else (kind,)  # KVM is how QEMU runs: such a host does both
    return [(guest_arch, as_, "hvm") for guest_arch in (arch, *ALSO_RUNS.get(arch, ())) for as_ in kinds]


def _combination(request: Request) -> tuple[str | None, str | None, str | None]:
    """The architecture, hypervisor type and mode that the image asks for."""
    if not request.image_properties:
        return None, None, None
    return (
        _named(request, "hw_architecture", SAME_ARCHITECTURE),
        _named(request, "img_hv_type", SAME_HYPERVISOR),
        _named(request, "hw_vm_mode", SAME_MODE),
    )


def _named(request: Request, name: str, same: t.Mapping[str, str] | None = None) -> str | None:
    properties = request.image_properties
    value = properties.get(name) or properties.get(FORMER[name])
    if not value or same is None:
        return value or None
    return same.get(str(value).lower(), str(value).lower())


def _mismatch(
    host: HostState,
    supported: t.Sequence[t.Sequence[str]],
    architecture: str | None,
    hypervisor: str | None,
    mode: str | None,
) -> str:
    if architecture and not any(architecture in combination for combination in supported):
        return f"is {host.facts.get('arch') or 'of an unknown architecture'}, the image is {architecture}"
    if hypervisor and not any(hypervisor in combination for combination in supported):
        return f"runs {host.facts.get('hypervisor_type') or 'an unknown hypervisor'}, the image asks for {hypervisor}"
    guest_type = ", ".join(value for value in (architecture, hypervisor, mode) if value)
    return f"does not run guests that are {guest_type}"
