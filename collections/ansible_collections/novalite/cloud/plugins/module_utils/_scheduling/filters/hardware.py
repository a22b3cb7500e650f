# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machine type, firmware, TPM and devices that image and flavor ask for: what Nova turns into required traits."""

from __future__ import annotations

import typing as t

from ..._json import JsonMapping
from ..._model import devices, hardware
from ..._model.devices import Devices
from ..._model.hardware import Hardware
from ..options import Options
from ..rows import HostState, Request

NAME = "hardware"
RUN_ONCE_PER_REQUEST = True


def _asked(request: Request) -> tuple[Hardware, Devices]:
    flavor = {
        "name": request.flavor_name,
        "vcpus": request.numa.vcpus if request.numa else request.vcpus,
        "extra_specs": request.extra_specs,
    }
    image = {"name": request.image_id, "properties": request.image_properties}
    return hardware.hardware_of(flavor, image), devices.devices_of(flavor, image)


def _lacking(asked: tuple[Hardware, Devices], facts: JsonMapping) -> str | None:
    machine = asked[0].machine_on(facts)
    return hardware.lacking(asked[0], facts) or devices.lacking(asked[1], machine, facts)


def concerns(request: Request, options: Options) -> bool:
    """Tell whether it depends on the host whether the guest can be had."""
    asked, of_devices = _asked(request)
    firmware = asked.machine is not None or asked.uefi or asked.tpm is not None
    return firmware or devices.depend_on_host(of_devices)


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host that does not offer the machine type, the firmware, the TPM or a device."""
    return _lacking(_asked(request), host.facts)


def refused(hosts: t.Sequence[HostState], request: Request, options: Options) -> list[int]:
    """Return the positions of those that passes() refuses."""
    asked = _asked(request)
    return [position for position, host in enumerate(hosts) if _lacking(asked, host.facts) is not None]
