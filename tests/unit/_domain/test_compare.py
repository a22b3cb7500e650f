# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""render -> parse keeps every field; each field that is changed is named; what libvirt adds is not."""

from __future__ import annotations

import dataclasses
import re
import typing as t
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._domain import compare
from ansible_collections.novalite.cloud.plugins.module_utils._domain.guest import Guest, Interface, render
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._model.cpu_mode import CpuMode
from ansible_collections.novalite.cloud.plugins.module_utils._model.cpu_topology import Topology
from ansible_collections.novalite.cloud.plugins.module_utils._model.devices import Devices
from ansible_collections.novalite.cloud.plugins.module_utils._model.hardware import Tpm
from tests.unit._domain.shown_by_libvirt import LIVE

# All that XML can hold: everything but control characters and surrogates.
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"]), min_size=1, max_size=20)
HEX = st.text("0123456789abcdef", min_size=2, max_size=2)
MAC = st.tuples(HEX, HEX, HEX).map(lambda octets: "fa:16:3e:" + ":".join(octets))
INTERFACES = st.builds(
    Interface,
    mac=MAC,
    bridge=st.from_regex(r"\Abr[0-9]{1,4}\Z"),
    filter=TEXT,
    parameters=st.dictionaries(st.sampled_from(["IP", "DHCPSERVER", "PROJNET", "PROJMASK"]), TEXT).map(
        lambda parameters: tuple(parameters.items())
    ),
    mtu=st.none() | st.integers(68, 9000),
)
GUESTS = st.builds(
    Guest,
    uuid=st.uuids().map(str),
    name=st.integers(0, 2**32 - 1).map(lambda number: f"instance-{number:08x}"),
    domain_type=st.sampled_from(["kvm", "qemu"]),
    arch=st.sampled_from(["x86_64", "aarch64"]),
    machine=st.sampled_from(["pc", "q35", "virt", "pc-q35-7.2"]),
    emulator=st.just("/usr/bin/qemu"),
    memory_mb=st.integers(1, 2**22),
    vcpus=st.integers(1, 512),
    max_vcpus=st.none() | st.integers(512, 514),
    max_memory_mb=st.none() | st.integers(2**22, 2**23),
    disk=TEXT,
    disk_format=st.sampled_from(["qcow2", "raw"]),
    disk_cache=st.sampled_from(["none", "writethrough"]),
    console_log=TEXT,
    kernel=st.just("/k"),
    ramdisk=st.none() | TEXT,
    cmdline=st.none() | TEXT,
    interfaces=st.lists(INTERFACES, max_size=3, unique_by=lambda interface: interface.mac).map(tuple),
    display_name=TEXT,
    project_id=TEXT,
    project_name=TEXT,
    flavor=TEXT,
    image_id=TEXT,
    image_name=TEXT,
    ledger=st.just("") | st.uuids().map(str),
    uefi=st.just(True),
    secure_boot=st.booleans(),
    nvram=st.just("/i/nvram.fd"),
    tpm=st.none() | st.just(Tpm("2.0", "tpm-crb")),
    watchdog=st.none() | st.sampled_from(["reset", "poweroff"]),
    boot_menu=st.booleans(),
    windows=st.booleans(),
    topology=st.none() | st.just(Topology(2, 4, 1)),
    cpu=st.none() | st.just(CpuMode("custom", "Westmere", (("pcid", "require"),))) | st.just(CpuMode("maximum")),
    devices=st.just(Devices())
    | st.just(
        Devices(
            rng_rate=(64, 9),
            input_bus="usb",
            pointer_bus="usb",
            video_ram_mb=16,
            disk_bus="scsi",
            scsi_model="virtio-scsi",
            serial_ports=2,
            pmu=False,
            hpet=False,
            hidden=True,
            cputune=(("shares", 512),),
            iotune=(("read_bytes_sec", 1024), ("total_iops_sec", 9)),
            bandwidth=(("inbound", (("average", 9), ("peak", 10))),),
        )
    ),
    queues=st.none() | st.just(4),
    viommu=st.none() | st.just("intel"),
    discard=st.booleans(),
    video=st.just("vga"),
)


def devices_in(guest: Guest) -> dict[str, str]:
    """Return what parse() must find of the guest's devices, CPU features and limits."""
    fields = {} if guest.viommu is None else {"iommu": guest.viommu}
    if guest.cpu is not None and guest.cpu.model is None:
        fields["cpu_mode"] = "maximum"
    elif guest.cpu is not None:
        fields |= {"cpu_model": "Westmere", "cpu_feature pcid": "require"}
    if guest.devices == Devices():
        return {**fields, "input": "tablet usb" if guest.arch == "x86_64" else "keyboard virtio, tablet virtio"}
    timer = {"hpet": "no"} if guest.arch == "x86_64" else {}
    return {
        **{**fields, **timer, "hidden": "on", "pmu": "off", "input": "keyboard usb, tablet usb", "cpu_shares": "512"},
        **{"rng_rate": "bytes=64 period=9", "scsi_controller": "virtio-scsi", "video_ram": "16384"},
    }


def model_of(guest: Guest) -> compare.DomainModel:
    """Return what parse() must find, said a second time and without XML."""
    return compare.DomainModel(
        uuid=guest.uuid,
        name=guest.name,
        type=guest.domain_type,
        memory_kib=(guest.max_memory_mb or guest.memory_mb) * 1024,
        current_memory_kib=guest.memory_mb * 1024,
        vcpus=guest.max_vcpus or guest.vcpus,
        current_vcpus=guest.vcpus,
        arch=guest.arch,
        machine=guest.machine,
        kernel=guest.kernel,
        initrd=guest.ramdisk,
        cmdline=guest.cmdline,
        on_crash="destroy",
        firmware="efi" if guest.uefi else None,
        secure_boot="yes" if guest.secure_boot else "no",
        nvram=guest.nvram,
        tpm=None if guest.tpm is None else str(guest.tpm),
        watchdog=guest.watchdog,
        boot_menu="yes" if guest.boot_menu else "no",
        local_time=guest.windows,
        topology=None if guest.topology is None else "2:4:1",
        hyperv=guest.windows and guest.domain_type == "kvm",
        disks=(
            compare.Disk(
                "vda",
                guest.disk,
                guest.disk_format,
                guest.devices.disk_bus,
                guest.disk_cache,
                discard="unmap" if guest.discard else None,
                iotune="read_bytes_sec=1024 total_iops_sec=9" if guest.devices.iotune else None,
            ),
        ),
        interfaces=tuple(
            compare.Nic(
                i.mac,
                i.bridge,
                i.model,
                i.filter,
                tuple(sorted(i.parameters)),
                i.mtu,
                queues="4" if guest.queues else None,
                bandwidth="inbound average=9 peak=10" if guest.devices.bandwidth else None,
            )
            for i in guest.interfaces
        ),
        serials=((0, "pty", guest.console_log), (1, "pty", None))[: guest.devices.serial_ports],
        rng="/dev/urandom",
        devices=tuple(sorted(devices_in(guest).items())),
        metadata=tuple(
            sorted(
                {
                    "uuid": guest.uuid,
                    "name": guest.display_name,
                    "project": guest.project_name,
                    "project.id": guest.project_id,
                    "flavor": guest.flavor,
                    "image": guest.image_name,
                    "image.id": guest.image_id,
                    **({"ledger": guest.ledger} if guest.ledger else {}),
                }.items()
            )
        ),
    )


EXAMPLE = Guest(
    uuid="6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11",
    name="instance-00000007",
    domain_type="qemu",
    arch="x86_64",
    machine="pc",
    emulator="/usr/bin/qemu-system-x86_64",
    memory_mb=96,
    vcpus=1,
    disk="/i/disk",
    disk_format="qcow2",
    disk_cache="none",
    console_log="/i/console.log",
    kernel="/i/kernel",
    ramdisk="/i/ramdisk",
    cmdline="root=/dev/vda console=ttyS0",
    interfaces=(
        Interface("fa:16:3e:00:00:01", "br100", "nova-instance-instance-00000007", (("IP", "10.20.0.5"),), 1450),
    ),
    display_name="web",
    project_id="a" * 32,
    project_name="demo",
    flavor="m1.nano",
    image_id="8b",
    image_name="ami-tiny",
)


@given(GUESTS)
def test_parse_finds_what_was_rendered(guest: Guest) -> None:
    assert compare.parse(render(guest)) == model_of(guest)


@given(GUESTS)
def test_a_guest_does_not_differ_from_itself(guest: Guest) -> None:
    model = compare.parse(render(guest))
    assert compare.differences(model, model, model) == []


MAC_1 = "fa:16:3e:00:00:01"
MUTATIONS: list[tuple[str, dict[str, t.Any]]] = [
    ("uuid", {"uuid": "0f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11"}),
    ("name", {"name": "instance-00000008"}),
    ("type", {"domain_type": "kvm"}),
    ("memory_kib", {"memory_mb": 97}),
    ("vcpus", {"vcpus": 2}),
    ("arch", {"arch": "i686"}),
    ("machine", {"machine": "q35"}),
    ("kernel", {"kernel": "/other"}),
    ("initrd", {"ramdisk": None}),
    ("cmdline", {"cmdline": "quiet"}),
    ("disks[vda].source", {"disk": "/other"}),
    ("disks[vda].format", {"disk_format": "raw"}),
    ("disks[vda].cache", {"disk_cache": "writethrough"}),
    (f"interfaces[{MAC_1}]", {"interfaces": ()}),
    ("serials[0].path", {"console_log": "/other"}),
    ("metadata.name", {"display_name": "db"}),
    ("metadata.project", {"project_name": "other"}),
    ("metadata.project.id", {"project_id": "b" * 32}),
    ("metadata.flavor", {"flavor": "m1.tiny"}),
    ("metadata.image", {"image_name": "other"}),
    ("metadata.image.id", {"image_id": "9c"}),
]
INTERFACE_MUTATIONS: list[tuple[str, dict[str, t.Any]]] = [
    ("bridge", {"bridge": "br101"}),
    ("model", {"model": "e1000"}),
    ("filter", {"filter": None}),
    ("parameters.IP", {"parameters": (("IP", "10.20.0.6"),)}),
    ("parameters.PROJNET", {"parameters": (("IP", "10.20.0.5"), ("PROJNET", "10.20.0.0"))}),
    ("mtu", {"mtu": 1500}),
]


@pytest.mark.parametrize(("field", "change"), MUTATIONS, ids=[field for field, change in MUTATIONS])
def test_each_changed_field_is_named(field: str, change: dict[str, t.Any]) -> None:
    desired = compare.parse(render(EXAMPLE))
    actual = compare.parse(render(dataclasses.replace(EXAMPLE, **change)))
    named = [difference["field"] for difference in compare.differences(desired, actual, None)]
    with_it = {  # what cannot change alone
        "uuid": {"metadata.uuid"},
        "memory_kib": {"current_memory_kib"},
        "vcpus": {"current_vcpus"},
    }
    assert field in named
    assert set(named) == {field} | with_it.get(field, set())


@pytest.mark.parametrize(("field", "change"), INTERFACE_MUTATIONS, ids=[field for field, _c in INTERFACE_MUTATIONS])
def test_each_changed_field_of_an_interface_is_named(field: str, change: dict[str, t.Any]) -> None:
    changed = dataclasses.replace(EXAMPLE.interfaces[0], **change)
    desired = compare.parse(render(EXAMPLE))
    actual = compare.parse(render(dataclasses.replace(EXAMPLE, interfaces=(changed,))))
    # without a filter its parameters cannot be written either
    expected = {"filter", "parameters.IP"} if field == "filter" else {field}
    assert {difference["field"] for difference in compare.differences(desired, None, actual)} == {
        f"interfaces[{MAC_1}].{name}" for name in expected
    }


@pytest.mark.parametrize(
    ("path", "field"), [("devices/rng", "rng"), ("on_crash", "on_crash"), ("devices/serial[1]", "serials[0]")]
)
def test_what_was_taken_out_is_named(path: str, field: str) -> None:
    root = ElementTree.fromstring(render(EXAMPLE))
    parent = root.find(path.rpartition("/")[0] or ".")
    element = root.find(path)
    assert parent is not None and element is not None
    parent.remove(element)
    actual = compare.parse(ElementTree.tostring(root, encoding="unicode"))
    assert [d["field"] for d in compare.differences(compare.parse(render(EXAMPLE)), actual, None)] == [field]


def test_a_device_that_was_added_is_named() -> None:
    disk = "<disk device='disk'><target dev='vdb' bus='virtio'/></disk>"
    added = re.sub("</devices>", f"{disk}</devices>", render(EXAMPLE))
    (difference,) = compare.differences(compare.parse(render(EXAMPLE)), None, compare.parse(added))
    assert difference["field"] == "disks[vdb]"
    assert difference["desired"] is None
    assert isinstance(difference["actual"], dict) and difference["actual"]["bus"] == "virtio"


def test_a_domain_from_before_ledgers_had_an_identity_is_as_desired() -> None:
    ours = "0f5c8a52-9d2e-4a53-8c53-9a1d3c2b7e11"
    desired = compare.parse(render(dataclasses.replace(EXAMPLE, ledger=ours)))
    before = compare.parse(render(EXAMPLE))
    assert dict(desired.metadata)["ledger"] == ours
    assert compare.differences(desired, before, before) == []
    other = compare.parse(render(dataclasses.replace(EXAMPLE, ledger=ours.replace("0f5c", "1f5c"))))
    assert [difference["field"] for difference in compare.differences(desired, other, None)] == ["metadata.ledger"]


def test_where_and_effect() -> None:
    desired = compare.parse(render(EXAMPLE))
    other = compare.parse(render(dataclasses.replace(EXAMPLE, cmdline="quiet", disk_format="raw")))
    assert [(d["field"], d["where"], d["effect"]) for d in compare.differences(desired, other, other)] == [
        ("cmdline", "persistent", "at next boot"),
        ("disks[vda].format", "persistent", "needs a rebuild"),
        ("cmdline", "live", "live now"),
        ("disks[vda].format", "live", "needs a rebuild"),
    ]
    assert compare.differences(desired, None, None) == []


def test_what_libvirt_adds_is_no_difference() -> None:
    live = compare.parse(LIVE)
    assert compare.differences(compare.parse(render(EXAMPLE)), live, live) == []


@pytest.mark.parametrize(
    ("desired", "actual", "same"),
    [
        ("pc", "pc-i440fx-7.2", True),
        ("pc-i440fx-7.2", "pc", True),
        ("q35", "pc-q35-8.1", True),
        ("pc", "pc-i440fx-rhel7.6.0", True),
        ("virt", "virt-7.2", True),
        ("pc-i440fx-7.2", "pc-i440fx-7.2", True),
        ("pc-i440fx-7.2", "pc-i440fx-8.0", False),
        ("pc", "pc-q35-7.2", False),
        ("q35", "pc", False),
        ("pc", None, False),
        (None, "pc-i440fx-7.2", True),
    ],
)
def test_same_machine(desired: str | None, actual: str | None, same: bool) -> None:
    assert compare.same_machine(desired, actual) is same


@pytest.mark.parametrize(
    ("memory", "kib"),
    [("<memory>1000</memory>", 1000), ("<memory unit='MiB'>2</memory>", 2048), ("<memory unit='b'>1025</memory>", 2)],
)
def test_units_of_memory(memory: str, kib: int) -> None:
    assert compare.parse(f"<domain><name>x</name>{memory}</domain>").memory_kib == kib


def test_a_balloon_or_an_unplugged_vcpu_is_named() -> None:
    changed = LIVE.replace(">98304</currentMemory>", ">65536</currentMemory>").replace(
        "<vcpu placement='static'>1<", "<vcpu current='1'>2<"
    )
    differences = compare.differences(compare.parse(render(EXAMPLE)), None, compare.parse(changed))
    assert [(d["field"], d["desired"], d["actual"]) for d in differences] == [
        ("current_memory_kib", 98304, 65536),
        ("vcpus", 1, 2),
    ]


@pytest.mark.parametrize(
    "xml", ["", "<domain", "<network><name>x</name></network>", "<domain><memory>1</memory></domain>"]
)
def test_what_is_no_domain_is_refused(xml: str) -> None:
    with pytest.raises(NovaliteError, match="not XML of a libvirt domain"):
        compare.parse(xml)


def test_memory_without_an_amount_is_refused() -> None:
    with pytest.raises(NovaliteError, match="domain x: 'much' KiB is not an amount of memory"):
        compare.parse("<domain><name>x</name><memory>much</memory></domain>")


def test_the_firmware_that_libvirt_chose_is_what_was_asked_for() -> None:
    """Of a running guest, libvirt 9 names the files and leaves out that it chose them."""
    desired = dataclasses.replace(EXAMPLE, machine="q35", uefi=True, secure_boot=True, nvram="/i/nvram.fd")
    xml = render(desired)
    chosen = '<loader readonly="yes" secure="yes" type="pflash">/usr/share/OVMF/OVMF_CODE_4M.ms.fd</loader>'
    live = xml.replace('<os firmware="efi">', "<os>").replace('<loader secure="yes"/>', chosen)
    assert live.count("<os>") == live.count(chosen) == 1
    model = compare.parse(xml)
    assert compare.differences(model, model, compare.parse(live)) == []
    bios = compare.parse(render(dataclasses.replace(EXAMPLE, machine="q35")))
    fields = {difference["field"] for difference in compare.differences(model, bios, None)}
    assert fields == {"firmware", "secure_boot", "nvram"}
