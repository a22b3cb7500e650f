# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machine type, firmware and TPM that the image and the flavor ask for: what Nova turns into required traits."""

from __future__ import annotations

import typing as t

from ..._model.hardware import Hardware, hardware_of, lacking
from ..options import Options
from ..rows import HostState, Request

NAME = "hardware"
RUN_ONCE_PER_REQUEST = True


def _asked(request: Request) -> Hardware:
    flavor = {
        "name": request.flavor_name,
        "vcpus": request.numa.vcpus if request.numa else request.vcpus,
        "extra_specs": request.extra_specs,
    }
    return hardware_of(flavor, {"name": request.image_id, "properties": request.image_properties})


def concerns(request: Request, options: Options) -> bool:
    """Tell whether it depends on the host whether the guest can be had."""
    asked = _asked(request)
    return asked.machine is not None or asked.uefi or asked.tpm is not None


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host that does not offer the machine type, the firmware or the TPM."""
    return lacking(_asked(request), host.facts)


def refused(hosts: t.Sequence[HostState], request: Request, options: Options) -> list[int]:
    """Return the positions of those that passes() refuses."""
    asked = _asked(request)
    return [position for position, host in enumerate(hosts) if lacking(asked, host.facts) is not None]
