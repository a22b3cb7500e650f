"""Extra specs and image properties that Nova and novalite make guests of. Plain data, standard library only.

`about` are the places of the domain's XML that a case is about, as ElementTree's paths.
"""

from __future__ import annotations

import hashlib
import typing as t
from xml.etree import ElementTree

Texts = t.Mapping[str, str]


class Case(t.NamedTuple):
    specs: Texts = {}
    properties: Texts = {}
    about: tuple[str, ...] = ()
    vcpus: int = 4
    host: t.Mapping[str, t.Any] = {}  # options of Nova's group libvirt
    config_drive: bool = False


_PINNING = ("vcpu", "cputune", "numatune", "memoryBacking", "cpu/numa")
_Q35 = {"hw_machine_type": "q35"}
_UEFI = {**_Q35, "hw_firmware_type": "uefi"}
CASES: t.Mapping[str, Case] = {
    "plain": Case({}, {}, ("devices/rng", "devices/input", "devices/video", "devices/disk", "devices/interface/model")),
    "plain, timers": Case({}, {}, ("clock",)),
    "machine type": Case({}, _Q35, ("os/type", "devices/controller[@type='pci']")),
    "uefi": Case({}, _UEFI, ("os",)),
    "secure boot": Case({}, {**_UEFI, "os_secure_boot": "required"}, ("os", "features/smm")),
    "secure boot of the flavor": Case({"os:secure_boot": "required"}, _UEFI, ("os", "features/smm")),
    "secure boot, which differs": Case({"os:secure_boot": "disabled"}, {**_UEFI, "os_secure_boot": "required"}),
    "tpm": Case({"hw:tpm_version": "2.0", "hw:tpm_model": "tpm-crb"}, {}, ("devices/tpm",)),
    "tpm of the image": Case({}, {"hw_tpm_version": "1.2"}, ("devices/tpm",)),
    "tpm, which differs": Case({"hw:tpm_version": "1.2"}, {"hw_tpm_version": "2.0"}),
    "tpm-crb of version 1.2": Case({"hw:tpm_version": "1.2", "hw:tpm_model": "tpm-crb"}, {}),
    "cores": Case({"hw:cpu_cores": "2"}, {}, ("cpu/topology",)),
    "threads of the image": Case({"hw:cpu_sockets": "4"}, {"hw_cpu_threads": "2"}, ("cpu/topology",)),
    "sockets at most": Case({"hw:cpu_max_sockets": "1"}, {}, ("cpu/topology",)),
    "sockets above the flavor's": Case({"hw:cpu_max_sockets": "1"}, {"hw_cpu_max_sockets": "2"}),
    "no topology": Case({}, {}, ("cpu/topology",)),
    "watchdog": Case({"hw:watchdog_action": "reset"}, {}, ("devices/watchdog",)),
    "watchdog of the image": Case(
        {"hw:watchdog_action": "reset"}, {"hw_watchdog_action": "pause"}, ("devices/watchdog",)
    ),
    "video": Case({"hw_video:ram_max_mb": "64"}, {"hw_video_model": "vga", "hw_video_ram": "32"}, ("devices/video",)),
    "video memory above the flavor's": Case({}, {"hw_video_ram": "32"}),
    "no video": Case({}, {"hw_video_model": "none"}, ("devices/video",)),
    "rng not allowed": Case({"hw_rng:allowed": "false"}, {"hw_rng_model": "virtio"}, ("devices/rng",)),
    "rng with a rate": Case({"hw_rng:rate_bytes": "64", "hw_rng:rate_period": "500"}, {}, ("devices/rng",)),
    "rng without a period": Case({"hw_rng:rate_bytes": "64"}, {}, ("devices/rng",)),
    "input": Case({}, {"hw_input_bus": "virtio"}, ("devices/input",)),
    "pointer": Case({}, {"hw_pointer_model": "usbtablet"}, ("devices/input",)),
    "multiqueue": Case(
        {"hw:vif_multiqueue_enabled": "true"}, {}, ("devices/interface/model", "devices/interface/driver")
    ),
    "multiqueue of the image": Case({}, {"hw_vif_multiqueue_enabled": "true"}, ("devices/interface/driver",)),
    "multiqueue with one CPU": Case({"hw:vif_multiqueue_enabled": "true"}, {}, ("devices/interface/driver",), vcpus=1),
    "multiqueue, which differs": Case({"hw:vif_multiqueue_enabled": "true"}, {"hw_vif_multiqueue_enabled": "false"}),
    "e1000": Case(
        {"hw:vif_multiqueue_enabled": "true"},
        {"hw_vif_model": "e1000"},
        ("devices/interface/model", "devices/interface/driver"),
    ),
    "agent": Case({}, {"hw_qemu_guest_agent": "yes"}, ("devices/channel/target",)),
    "windows": Case({}, {"os_type": "windows"}, ("features/hyperv", "clock")),
    "windows, hidden": Case({}, {"os_type": "windows", "img_hide_hypervisor_id": "true"}, ("features",)),
    "hidden": Case({"hide_hypervisor_id": "true"}, {}, ("features/kvm",)),
    "hidden by the newer name": Case({"hw:hide_hypervisor_id": "true"}, {}, ("features/kvm",)),
    "quota of the CPU": Case(
        {"quota:cpu_shares": "512", "quota:cpu_period": "10000", "quota:cpu_quota": "5000"}, {}, ("cputune",)
    ),
    "quota of disks": Case(
        {"quota:disk_read_bytes_sec": "1000", "quota:disk_write_bytes_sec": "2000", "quota:disk_total_iops_sec": "30"},
        {},
        ("devices/disk",),
    ),
    "quota of interfaces": Case(
        {"quota:vif_inbound_average": "100", "quota:vif_inbound_peak": "200", "quota:vif_outbound_average": "50"},
        {},
        ("devices/interface/bandwidth",),
    ),
    "virtio-scsi": Case(
        {},
        {"hw_disk_bus": "scsi", "hw_scsi_model": "virtio-scsi"},
        ("devices/controller[@type='scsi']", "devices/disk", "devices/disk/target"),
    ),
    "lsilogicsas": Case({}, {"hw_scsi_model": "lsilogicsas"}, ("devices/controller[@type='scsi']",)),
    "sata": Case({}, {"hw_disk_bus": "sata"}, ("devices/disk/target",)),
    "unknown disk bus": Case({}, {"hw_disk_bus": "nvme"}),
    "config drive": Case({}, {}, ("devices/disk[@device='cdrom']/target",), config_drive=True),
    "cdrom bus": Case({}, {"hw_cdrom_bus": "sata"}, ("devices/disk[@device='cdrom']/target",), config_drive=True),
    "serial ports": Case(
        {"hw:serial_port_count": "3"}, {"hw_serial_port_count": "2"}, ("devices/serial", "devices/serial/target")
    ),
    "serial ports above the flavor's": Case({"hw:serial_port_count": "1"}, {"hw_serial_port_count": "2"}),
    "boot menu": Case({"hw:boot_menu": "true"}, {}, ("os/bootmenu",)),
    "boot menu of the image": Case({}, {"hw_boot_menu": "true"}, ("os/bootmenu",)),
    "pmu": Case({"hw:pmu": "false"}, {}, ("features/pmu",)),
    "pmu of the image": Case({}, {"hw_pmu": "true"}, ("features/pmu",)),
    "pmu, which differs": Case({"hw:pmu": "false"}, {"hw_pmu": "true"}),
    "hpet": Case({}, {"hw_time_hpet": "true"}, ("clock/timer[@name='hpet']",)),
    "iommu": Case({"hw:viommu_model": "intel"}, _Q35, ("devices/iommu", "features/ioapic")),
    "iommu that the host chooses": Case({}, {**_Q35, "hw_viommu_model": "auto"}, ("devices/iommu", "features/ioapic")),
    "iommu on pc": Case({"hw:viommu_model": "intel"}, {"hw_machine_type": "pc"}),
    "cpu of the host": Case({}, {}, ("cpu",), host={"cpu_mode": "host-passthrough"}),
    "cpu model": Case(
        {},
        {},
        ("cpu/model", "cpu/feature"),
        host={"cpu_mode": "custom", "cpu_models": ["Westmere"], "cpu_model_extra_flags": ["pcid", "-vmx"]},
    ),
    "discard": Case({}, {}, ("devices/disk/driver",), host={"hw_disk_discard": "unmap"}),
    "pinned": Case({"hw:cpu_policy": "dedicated"}, {}, _PINNING, vcpus=2),
    "numa": Case({"hw:numa_nodes": "2"}, {}, _PINNING),
    "huge pages": Case({"hw:mem_page_size": "2048"}, {}, _PINNING),
    "locked memory": Case({"hw:locked_memory": "true", "hw:mem_page_size": "2048"}, {}, ("memoryBacking",)),
    "sound": Case({"hw:sound_model": "ich9"}, {}, ("devices/sound",)),
    "packed virtqueues": Case({"hw:virtio_packed_ring": "true"}, {}, ("devices/interface/driver",)),
    "usb controller": Case({}, {"hw_usb_model": "qemu-xhci"}, ("devices/controller[@type='usb']",)),
    "address width": Case({"hw:maxphysaddr_mode": "passthrough"}, {}, ("cpu/maxphysaddr",)),
}


def digest() -> str:
    """Tell the cases of this file from those of another."""
    return hashlib.sha256(repr(sorted(CASES.items())).encode()).hexdigest()


def parts(xml: str, about: t.Iterable[str]) -> dict[str, list[t.Any]]:
    """Return what the XML has at these places, as plain data, without the order of children and names of files."""
    root = ElementTree.fromstring(xml)
    return {path: [_plain(node) for node in root.findall(path)] for path in about}


def _plain(node: ElementTree.Element) -> list[t.Any]:
    children = [_plain(child) for child in node if child.tag not in ("source", "log", "nvram")]
    return [node.tag, dict(node.attrib), (node.text or "").strip(), sorted(children, key=repr)]
