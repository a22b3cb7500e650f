# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts of a host's libvirt and CPU, out of capabilities XML and /proc/cpuinfo. Pure."""

from __future__ import annotations

import dataclasses
import re
from xml.etree import ElementTree

from .._errors import NovaliteError
from .._json import JsonObject
from .._model import cpu_sets
from .._model.hardware import EFI, MACHINES, SECURE

_DEFAULT_MACHINES = {
    "x86_64": "pc",
    "i686": "pc",
    "aarch64": "virt",
    "armv7l": "virt",
    "ppc64le": "pseries",
    "riscv64": "virt",
    "s390x": "s390-ccw-virtio",
}

# os-traits' names (the ones that the scheduler's ImagePropertiesFilter and required traits go by) of /proc/cpuinfo's
# flags, for what workloads ask for.
_TRAITS = {
    "aes": "HW_CPU_X86_AESNI",
    "avx": "HW_CPU_X86_AVX",
    "avx2": "HW_CPU_X86_AVX2",
    "avx512f": "HW_CPU_X86_AVX512F",
    "bmi1": "HW_CPU_X86_BMI",
    "bmi2": "HW_CPU_X86_BMI2",
    "f16c": "HW_CPU_X86_F16C",
    "fma": "HW_CPU_X86_FMA3",
    "pclmulqdq": "HW_CPU_X86_CLMUL",
    "sha_ni": "HW_CPU_X86_SHA",
    "sse": "HW_CPU_X86_SSE",
    "sse2": "HW_CPU_X86_SSE2",
    "pni": "HW_CPU_X86_SSE3",
    "ssse3": "HW_CPU_X86_SSSE3",
    "sse4_1": "HW_CPU_X86_SSE41",
    "sse4_2": "HW_CPU_X86_SSE42",
    "svm": "HW_CPU_X86_AMD_SVM",
    "vmx": "HW_CPU_X86_INTEL_VMX",
}


@dataclasses.dataclass(frozen=True)
class Capabilities:
    """Capabilities of libvirt for the host's own architecture."""

    arch: str
    cpu_model: str | None
    emulator: str
    machine: str
    domain_types: tuple[str, ...]
    machine_types: tuple[str, ...] = ()  # those of _model.hardware that it has
    qemu_user: tuple[int, int] | None = None  # uid and gid that QEMU runs as
    security_driver: str = "none"  # what libvirt confines guests with: "apparmor", "selinux" or "none"


def parse_capabilities(xml: str) -> Capabilities:
    """libvirt's answer to getCapabilities(). Raises NovaliteError when it cannot run guests of the host's arch."""
    root = ElementTree.fromstring(xml)
    arch = root.findtext("host/cpu/arch") or ""
    for guest in root.iterfind("guest"):
        element = guest.find("arch")
        if guest.findtext("os_type") != "hvm" or element is None or element.get("name") != arch:
            continue
        machines = [machine.text or "" for machine in element.iterfind("machine")]
        default = _DEFAULT_MACHINES.get(arch, "")
        return Capabilities(
            arch=arch,
            cpu_model=root.findtext("host/cpu/model"),
            emulator=element.findtext("emulator") or "",
            machine=default if default in machines or not machines else machines[0],
            machine_types=tuple(name for name in MACHINES if name in machines),
            domain_types=tuple(domain.get("type", "") for domain in element.iterfind("domain")),
            qemu_user=_qemu_user(root),
            security_driver=_security_driver(root),
        )
    raise NovaliteError(
        f"libvirt on this host cannot run {arch or 'any'} guests: it found no QEMU for them; install "
        "qemu-system-x86 (or the one of this architecture; on EL, qemu-kvm) and restart libvirt's daemon"
    )


def numa_of(xml: str) -> list[JsonObject]:
    """NUMA nodes that the same answer tells of, as facts: CPUs, those that share a core, MiB of memory, pages by KiB.
    A node without CPUs is left out: no guest runs there."""
    nodes = []
    for cell in ElementTree.fromstring(xml).iterfind("host/topology/cells/cell"):
        cpus = cell.findall("cpus/cpu")
        siblings = {cpu.get("siblings") or cpu.get("id") or "" for cpu in cpus}
        if cpus:
            nodes.append(
                {
                    "id": int(cell.get("id", "0")),
                    "cpus": cpu_sets.text_of(int(cpu.get("id", "0")) for cpu in cpus),
                    "siblings": sorted(siblings, key=lambda text: min(cpu_sets.parse("siblings", text))),
                    "memory_mb": int(cell.findtext("memory") or 0) // 1024,
                    "pages": {pages.get("size", ""): int(pages.text or 0) for pages in cell.iterfind("pages")},
                }
            )
    return nodes


def firmware_of(xml: str) -> list[str]:
    """Firmware that a machine type has beside a BIOS, by libvirt's answer to getDomainCapabilities()."""
    root = ElementTree.fromstring(xml)
    if EFI not in _values(root, "os/enum[@name='firmware']"):
        return []
    return [EFI, SECURE] if "yes" in _values(root, "os/loader/enum[@name='secure']") else [EFI]


def tpm_of(xml: str) -> list[str]:
    """Versions and models of the TPMs that the same answer says can be emulated. libvirt before 8.6 names no versions:
    swtpm has both."""
    root = ElementTree.fromstring(xml)
    if "emulator" not in _values(root, "devices/tpm/enum[@name='backendModel']"):
        return []
    versions = _values(root, "devices/tpm/enum[@name='backendVersion']") or ["1.2", "2.0"]
    return [*versions, *_values(root, "devices/tpm/enum[@name='model']")]


def devices_of(xml: str) -> dict[str, list[str]]:
    """Buses of disks and models of video that the same answer names, as facts."""
    root = ElementTree.fromstring(xml)
    return {
        "disk_buses": _values(root, "devices/disk/enum[@name='bus']"),
        "video_models": _values(root, "devices/video/enum[@name='modelType']"),
    }


def _values(root: ElementTree.Element, path: str) -> list[str]:
    return [value.text or "" for value in root.iterfind(f"{path}/value")]


def _qemu_user(root: ElementTree.Element) -> tuple[int, int] | None:
    for model in root.iterfind("host/secmodel"):
        match = re.fullmatch(r"\+(\d+):\+(\d+)", model.findtext("baselabel") or "")
        if model.findtext("model") == "dac" and match:
            return int(match[1]), int(match[2])
    return None


def _security_driver(root: ElementTree.Element) -> str:
    """libvirt uses AppArmor only where its own daemon is confined by it, so what it names holds its guests."""
    models = [model.findtext("model") or "" for model in root.iterfind("host/secmodel")]
    return next((model for model in models if model in ("apparmor", "selinux")), "none")


def traits_of(cpuinfo: str) -> list[str]:
    """The traits of the first CPU in /proc/cpuinfo's text, sorted."""
    return sorted(_TRAITS[flag] for flag in (_value_of(cpuinfo, "flags") or "").split() if flag in _TRAITS)


def cpu_model_of(cpuinfo: str) -> str | None:
    """The CPU's own name for itself in /proc/cpuinfo's text."""
    return _value_of(cpuinfo, "model name")


def booted_at_of(stat: str) -> int | None:
    """Return when the host was started, in seconds since the epoch: `btime` of /proc/stat (proc_stat(5)), or None."""
    for line in stat.splitlines():
        word, _blank, value = line.partition(" ")
        if word == "btime" and value.isdigit():
            return int(value)
    return None


def memory_mb_of(meminfo: str) -> int:
    """MemTotal of /proc/meminfo's text, in whole MiB."""
    total = _value_of(meminfo, "MemTotal")
    if total is None:
        raise NovaliteError("this host's /proc/meminfo has no MemTotal")
    return int(total.split()[0]) // 1024


def _value_of(text: str, key: str) -> str | None:
    """Value of the first line `key: value`; None without one."""
    fields = (line.partition(":") for line in text.splitlines())
    return next((value.strip() for name, _colon, value in fields if name.strip() == key), None)
