"""Differences to Nova on purpose: one predicate for each, named in README.md with the reason."""

from __future__ import annotations

import typing as t

from tests.parity.cases import Case

Answer = t.Mapping[str, t.Any]


def nova_raises(case: Case, answer: Answer) -> bool:
    return "raises" in answer


def zone_nova_by_name(case: Case, answer: Answer) -> bool:
    return case["request"]["availability_zone"] == "nova"


def swap_is_not_taken(case: Case, answer: Answer) -> bool:
    return case["request"]["count"] > 1 and case["request"]["flavor"]["swap_mb"] > 0


def host_filled_up(case: Case, answer: Answer) -> bool:
    return bool(answer["full"])


OF_A_CASE = (nova_raises, zone_nova_by_name, swap_is_not_taken)
OF_THE_LITERAL_LOOP = (host_filled_up,)

# Of the domain XML: a reason, and where the two differ for it, by the names of guest_cases.py
GUESTS: t.Mapping[str, t.Sequence[tuple[str, str]]] = {
    "timers of KVM: libvirt's defaults here, and the HPET is there unless an image takes it away": (
        ("plain, timers", "clock"),
        ("windows", "clock"),
    ),
    "libvirt numbers the PCI root by itself": (("machine type", "devices/controller[@type='pci']"),),
    "the host's SMBIOS is not written over, and a loader is libvirt's to choose": (("uefi", "os"),),
    "Secure Boot means enrolled keys, and SMM, which libvirt would add": (
        ("secure boot", "os"),
        ("secure boot", "features/smm"),
        ("secure boot of the flavor", "os"),
        ("secure boot of the flavor", "features/smm"),
    ),
    "there is no key manager: a TPM's state is not encrypted": (
        ("tpm", "devices/tpm"),
        ("tpm of the image", "devices/tpm"),
    ),
    "the topology is QEMU's, unless it is asked for": (("no topology", "cpu/topology"), ("cpu of the host", "cpu")),
    "without a display there is no VNC to show it, so the video device is left out": (("no video", "devices/video"),),
    "Nova forgets the rate without a period; here it counts by libvirt's period": (
        ("rng without a period", "devices/rng"),
    ),
    "the guest's kernel leaves no notes for a dump of its memory (vmcoreinfo)": (("windows, hidden", "features"),),
    "the name of a disk is vda on every bus, as the ledger has it; a guest chooses its own names anyway": (
        ("virtio-scsi", "devices/disk"),
        ("virtio-scsi", "devices/disk/target"),
        ("sata", "devices/disk/target"),
    ),
    "the config drive has the last place of its bus, so that it takes no other disk's": (
        ("config drive", "devices/disk[@device='cdrom']/target"),
        ("cdrom bus", "devices/disk[@device='cdrom']/target"),
    ),
    "our guests have no I/O thread to pin": (("pinned", "cputune"), ("numa", "cputune"), ("huge pages", "cputune")),
    "serial ports are terminals that ssh reaches, and no TCP ports": (
        ("serial ports", "devices/serial"),
        ("serial ports", "devices/serial/target"),
    ),
}
# What Nova builds and we refuse, with the reason beside each in docs/images.md
REFUSED = ("locked memory", "sound", "packed virtqueues", "usb controller", "address width")
