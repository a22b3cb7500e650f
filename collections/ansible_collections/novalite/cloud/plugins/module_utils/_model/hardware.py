# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hardware that an image's properties and a flavor's extra specs ask for, and what a host lacks of it. Pure.

Names and rules are Nova's (nova/virt/hardware.py). A property `hw_x` of an image is the extra spec `hw:x` of a flavor,
where Nova has both.
"""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t

from .._errors import NovaliteError
from .._json import JsonMapping
from . import cpu_topology, devices, maxima, numa
from .cpu_topology import Topology

MACHINE, FIRMWARE, SECURE_BOOT = "hw_machine_type", "hw_firmware_type", "os_secure_boot"
TPM_VERSION, TPM_MODEL, CDROM_BUS = "hw_tpm_version", "hw_tpm_model", "hw_cdrom_bus"
WATCHDOG, BOOT_MENU, OS_TYPE = "hw_watchdog_action", "hw_boot_menu", "os_type"
UEFI, REQUIRED, OPTIONAL = "uefi", "required", "optional"
Q35 = "q35"
MACHINES = ("pc", Q35, "virt")
EFI, SECURE = "efi", "secure"  # what a host's facts say of a machine type's firmware

_YES = ("yes", "true", "1", "on")
# Properties of images, with their values
PROPERTIES: t.Mapping[str, tuple[str, ...]] = {
    MACHINE: MACHINES,
    FIRMWARE: ("bios", UEFI),
    SECURE_BOOT: (REQUIRED, OPTIONAL, "disabled"),
    TPM_VERSION: ("1.2", "2.0"),
    TPM_MODEL: ("tpm-tis", "tpm-crb"),
    WATCHDOG: ("disabled", "none", "pause", "poweroff", "reset"),
    BOOT_MENU: (*_YES, "no", "false", "0", "off"),
}
# Extra specs of flavors, with the property that each stands for
EXTRA_SPECS: t.Mapping[str, str] = {
    "os:secure_boot": SECURE_BOOT,
    "hw:tpm_version": TPM_VERSION,
    "hw:tpm_model": TPM_MODEL,
    "hw:watchdog_action": WATCHDOG,
    "hw:boot_menu": BOOT_MENU,
}
# Extra specs that Nova acts on and novalite does not, with the values that ask for nothing
_NOT_BUILT: t.Mapping[str, tuple[str, ...]] = {
    "hw:cpu_realtime": ("false", "no", "0", "off"),
    "hw:cpu_dedicated_mask": (),
    "pci_passthrough:alias": (),
}


@dataclasses.dataclass(frozen=True)
class Tpm:
    """A trusted platform module, emulated by swtpm."""

    version: str
    model: str

    def __str__(self) -> str:
        return f"{self.model} {self.version}"


@dataclasses.dataclass(frozen=True)
class Hardware:
    """Hardware of a guest; None and False leave it to the host."""

    machine: str | None = None
    uefi: bool = False
    secure_boot: str | None = None  # of a UEFI guest: required, optional, disabled
    tpm: Tpm | None = None
    watchdog: str | None = None  # what it does
    boot_menu: bool = False
    windows: bool = False
    topology: Topology | None = None

    def machine_on(self, facts: JsonMapping) -> str:
        """The machine type on the compute host that `facts` describe."""
        return self.machine or str(facts.get("machine"))

    def secure_on(self, facts: JsonMapping) -> bool:
        """Tell whether Secure Boot is on: where it is optional, that depends on the host's firmware."""
        if self.secure_boot != OPTIONAL:
            return self.secure_boot == REQUIRED
        return SECURE in (_machine_types(facts).get(self.machine_on(facts)) or ())


def check_property(what: str, name: str, value: object) -> None:
    """Raise NovaliteError for a value that the property `name` of `what` cannot have."""
    cpu_topology.check_number(what, name, value)
    devices.check_property(what, name, value)
    numa.check_value(what, name, value)
    if name in PROPERTIES:
        _one_of(f"{what}: its property {name}", value, PROPERTIES[name])


def check_extra_spec(what: str, name: str, value: object) -> None:
    """Raise NovaliteError for a value that the extra spec `name` of `what` cannot have."""
    cpu_topology.check_number(what, name, value)
    devices.check_extra_spec(what, name, value)
    numa.check_value(what, name, value)
    maxima.check_number(what, name, value)
    if name in EXTRA_SPECS:
        _one_of(f"{what}: extra spec {name}", value, PROPERTIES[EXTRA_SPECS[name]])


def checked(flavor: JsonMapping, image: JsonMapping) -> Hardware:
    """hardware_of(), for a request: raises NovaliteError for a value that there is none of, too."""
    for name, value in (image.get("properties") or {}).items():
        check_property(f"image '{image.get('name')}'", name, value)
    specs: JsonMapping = flavor.get("extra_specs") or {}
    for key, idle in _NOT_BUILT.items():
        if key in specs and str(specs[key]).lower() not in idle:
            raise NovaliteError(
                f"flavor '{flavor.get('name')}' has {key}={specs[key]}, which novalite does not do: no CPU is of "
                "real time, no memory locked or encrypted, no PCI device handed out. Use another flavor, or take it "
                "out of this one"
            )
    for key, value in specs.items():
        check_extra_spec(f"flavor '{flavor.get('name')}'", key, value)
    maxima.check(flavor)
    cpu_topology.topology_of(flavor, image)
    devices.check(flavor, image)
    if numa.numa_of(flavor, image) is not None:
        maxima.check_fixed(flavor)
    return hardware_of(flavor, image)


def hardware_of(flavor: JsonMapping, image: JsonMapping) -> Hardware:
    """Return what a guest with this flavor and image asks for. Values that were recorded before anybody judged them
    count as none. Raises NovaliteError where flavor and image contradict each other, or no host could ever do it."""
    request = _Wanted(flavor, image)
    uefi = request.get(FIRMWARE) == UEFI
    secure = request.get(SECURE_BOOT)
    if secure == REQUIRED and not uefi:
        raise NovaliteError(f"{request.where(SECURE_BOOT)} is {REQUIRED}: set {FIRMWARE}={UEFI} on the image, too")
    machine = request.get(MACHINE)
    if secure == REQUIRED and machine == "pc":
        raise NovaliteError(
            f"{request.where(SECURE_BOOT)} is {REQUIRED}, which pc has no firmware for: set {MACHINE}={Q35}"
        )
    if machine == Q35 and str(request.properties.get(CDROM_BUS, "")).lower() == "ide":
        raise NovaliteError(f"{request.where(CDROM_BUS)} is ide, which {Q35} has not: use sata or virtio")
    topology = None
    with contextlib.suppress(NovaliteError):  # recorded before anybody judged it
        topology = cpu_topology.topology_of(flavor, image)
    return Hardware(
        # the only machine type of x86 whose firmware can protect its variables
        machine=Q35 if secure == REQUIRED and machine is None else machine,
        uefi=uefi,
        secure_boot=secure if uefi else None,
        tpm=_tpm(request),
        watchdog=_watchdog(request),
        boot_menu=request.first(BOOT_MENU) in _YES,
        topology=topology,
        windows=str(request.properties.get(OS_TYPE, "")).lower() == "windows",
    )


def lacking(hardware: Hardware, facts: JsonMapping) -> str | None:
    """Return what the compute host that `facts` describe lacks, worded to follow its name; None when it has all."""
    machine = hardware.machine_on(facts)
    if hardware.machine is not None and machine not in _machine_types(facts):
        return f"does not offer machine type {machine}"
    firmware = _machine_types(facts).get(machine) or ()
    if hardware.uefi and EFI not in firmware:
        return f"has no UEFI firmware for machine type {machine}: install ovmf (edk2-ovmf on EL)"
    if hardware.secure_boot == REQUIRED and SECURE not in firmware:
        return f"has no firmware with Secure Boot for machine type {machine}: install ovmf (edk2-ovmf on EL)"
    if hardware.tpm is not None:
        offered = facts.get("tpm") or ()
        missing = [value for value in (hardware.tpm.version, hardware.tpm.model) if value not in offered]
        if missing:
            return f"emulates no TPM {', '.join(missing)}: install swtpm and swtpm-tools"
    return None


def traits_of(facts: JsonMapping) -> list[str]:
    """The traits of a host by os-traits' names, for what its `facts` say of firmware, TPMs and devices."""
    firmware = {value for values in _machine_types(facts).values() for value in values}
    traits = ["COMPUTE_FIRMWARE_BIOS"] if "pc" in _machine_types(facts) or Q35 in _machine_types(facts) else []
    traits += ["COMPUTE_FIRMWARE_UEFI"] if EFI in firmware else []
    traits += ["COMPUTE_SECURITY_UEFI_SECURE_BOOT"] if SECURE in firmware else []
    for value in facts.get("tpm") or ():
        traits.append("COMPUTE_SECURITY_TPM_" + value.replace("tpm-", "").replace(".", "_").upper())
    return [*traits, *devices.traits_of(facts)]


def _tpm(request: _Wanted) -> Tpm | None:
    version = request.get(TPM_VERSION)
    if version is None:
        return None
    model = request.get(TPM_MODEL) or "tpm-tis"
    if model == "tpm-crb" and version != "2.0":
        raise NovaliteError(
            f"{request.where(TPM_MODEL)} is tpm-crb, which is of version 2.0 only: set {TPM_VERSION}=2.0"
        )
    return Tpm(version, model)


def _watchdog(request: _Wanted) -> str | None:
    action = request.first(WATCHDOG)
    return None if action == "disabled" else action


def _machine_types(facts: JsonMapping) -> t.Mapping[str, t.Sequence[str]]:
    offered: t.Mapping[str, t.Sequence[str]] = facts.get("machine_types") or {}
    return offered


class _Wanted:
    """Properties of an image and extra specs of a flavor, looked at together."""

    def __init__(self, flavor: JsonMapping, image: JsonMapping) -> None:
        self._flavor, self._image = f"flavor '{flavor.get('name')}'", f"image '{image.get('name')}'"
        self.properties: JsonMapping = image.get("properties") or {}
        specs: JsonMapping = flavor.get("extra_specs") or {}
        self._specs = {EXTRA_SPECS[key]: (key, value) for key, value in specs.items() if key in EXTRA_SPECS}

    def get(self, name: str) -> str | None:
        """Return the value of the property or of its extra spec. Raises NovaliteError for two that differ."""
        of_image, of_flavor = self.properties.get(name), self._specs.get(name, ("", None))[1]
        values = (str(value).lower() for value in (of_flavor, of_image) if value is not None)
        chosen = [value for value in values if value in PROPERTIES[name]]
        if len(set(chosen)) > 1:
            raise NovaliteError(
                f"{self._flavor} has {self._specs[name][0]}={of_flavor}, and {self._image} has {name}={of_image}: "
                "take the one from the flavor or the other from the image"
            )
        return chosen[0] if chosen else None

    def first(self, name: str) -> str | None:
        """Return the value of the property, or else of its extra spec, where Nova has them in this order."""
        values = (self.properties.get(name), self._specs.get(name, ("", None))[1])
        texts = (str(value).lower() for value in values if value is not None)
        return next((text for text in texts if text in PROPERTIES[name]), None)

    def where(self, name: str) -> str:
        if name in self.properties:
            return f"{self._image}: its property {name}"
        return f"{self._flavor}: extra spec {self._specs.get(name, (name,))[0]}"


def _one_of(what: str, value: object, values: tuple[str, ...]) -> None:
    if str(value).lower() not in values:
        raise NovaliteError(f"{what} is {str(value)[:40]!r}; use {', '.join(values)}")
