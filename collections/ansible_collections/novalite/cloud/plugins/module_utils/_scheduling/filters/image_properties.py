# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Nova's ImagePropertiesFilter: what the image says it needs to run on; and the memory it needs at least."""

from __future__ import annotations

from ..rows import HostState, Request

NAME = "image_properties"
RUN_ONCE_PER_REQUEST = True
LOOKS_AT_OTHER_HOSTS = False

# What images say, and what `uname -m` and libvirt say for the same machine (nova/objects/fields.py).
SAME_ARCHITECTURE = {"amd64": "x86_64", "arm64": "aarch64", "i386": "i686", "x86_32": "i686"}
# An x86_64 host runs i686 guests; the other way around it does not.
ALSO_RUNS = {("x86_64", "i686"), ("aarch64", "armv7l")}


def passes(host: HostState, request: Request) -> str | None:
    """Refuse another architecture or hypervisor than the image names, and a flavor below the image's memory."""
    if request.image_min_ram_mb > request.memory_mb:
        return f"would give {request.memory_mb} MiB, the image needs {request.image_min_ram_mb}"
    properties = request.image_properties
    if not properties:
        return None
    wanted = properties.get("hw_architecture") or properties.get("architecture")
    if wanted:
        wanted = SAME_ARCHITECTURE.get(str(wanted).lower(), str(wanted).lower())
        has = host.facts.get("arch")
        if has != wanted and (has, wanted) not in ALSO_RUNS:
            return f"is {has or 'of an unknown architecture'}, the image is {wanted}"
    hypervisor = properties.get("img_hv_type") or properties.get("hypervisor_type")
    # "qemu" in an image means both, as in Nova: KVM is how QEMU runs, not what the guest sees
    if hypervisor and str(hypervisor).lower() not in {"qemu", str(host.facts.get("hypervisor_type")).lower()}:
        return f"runs {host.facts.get('hypervisor_type') or 'an unknown hypervisor'}, the image asks for {hypervisor}"
    return None
