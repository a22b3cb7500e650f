# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""An Instance dict and a host's facts into a guest, and the parts of its XML that the comparison does not model."""

from __future__ import annotations

import copy
import typing as t
import xml.etree.ElementTree as ElementTree

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._domain import compare
from ansible_collections.novalite.cloud.plugins.module_utils._domain.guest import (
    Volume,
    guest_of,
    render,
    render_volume,
)
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._model.devices import devices_of

UUID = "6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11"
FACTS = {
    "domain_type": "qemu",
    "arch": "x86_64",
    "machine": "pc",
    "emulator": "/usr/bin/qemu-system-x86_64",
    "disk_cache": "writethrough",
}
INSTANCE: t.Any = {
    "uuid": UUID,
    "name": 'web <1> & "co"',
    "domain_name": "instance-00000007",
    "project": {"id": "a" * 32, "name": "demo"},
    "flavor": {"name": "m1.nano", "vcpus": 2, "memory_mb": 96},
    "image": {
        "id": "8b",
        "name": "ami-tiny",
        "kernel": {"source": "/k"},
        "ramdisk": {"source": "/r"},
        "cmdline": "root=/dev/vda console=ttyS0",
    },
    "nics": [
        {
            "id": "2b7a",
            "mac": "FA:16:3E:00:00:01",
            "ip": "10.20.0.5",
            "ipv6": None,
            "dhcp_server": "10.20.0.2",
            "network": {"cidr": "10.20.0.0/24", "cidr_v6": None, "gateway_v6": None, "bridge": "br100", "mtu": None},
        }
    ],
}


def instance(**changes: t.Any) -> t.Any:
    return {**copy.deepcopy(INSTANCE), **changes}


def nic(**changes: t.Any) -> t.Any:
    network = {**INSTANCE["nics"][0]["network"], **changes.pop("network", {})}
    return {**INSTANCE["nics"][0], "network": network, **changes}


def xml_of(of: t.Any, **facts: t.Any) -> ElementTree.Element:
    return ElementTree.fromstring(render(guest_of(of, {**FACTS, **facts})))


def test_paths_lie_in_the_instance_directory() -> None:
    guest = guest_of(INSTANCE, FACTS, "/srv/nova")
    assert (guest.disk, guest.kernel, guest.ramdisk, guest.console_log) == tuple(
        f"/srv/nova/instances/{UUID}/{name}" for name in ("disk", "kernel", "ramdisk", "console.log")
    )


def test_without_a_kernel_it_boots_from_its_disk() -> None:
    root = xml_of(instance(image={**INSTANCE["image"], "kernel": None}))
    assert [root.find(f"os/{tag}") for tag in ("kernel", "initrd", "cmdline")] == [None, None, None]
    boot = root.find("os/boot")
    assert boot is not None and boot.get("dev") == "hd"


def test_cds_are_in_the_first_places_of_their_bus_and_started_from_where_the_image_is_one() -> None:
    cd = {**INSTANCE["image"], "kernel": None, "disk_format": "iso", "checksum": "sha256:" + "3" * 64}
    for image, machine, bus, first, boot in (
        (cd, "pc", "ide", "hd", ["cdrom", "hd"]),
        (cd, "pc-q35-7.2", "sata", "sd", ["cdrom", "hd"]),
        (cd, "virt", "scsi", "sd", ["cdrom", "hd"]),
        ({**cd, "disk_format": "qcow2"}, "pc", "ide", "hd", ["hd"]),
    ):
        root = xml_of(instance(image=image, cdroms=[cd, None], config_drive=True), machine=machine)
        drives = root.findall("devices/disk[@device='cdrom']")[:2]
        assert [drive.find("target").attrib for drive in drives] == [  # type: ignore[union-attr]  # each has one
            {"dev": first + letter, "bus": bus} for letter in "ab"
        ]
        assert all(drive.find("readonly") is not None for drive in drives)
        source, nothing = (compare.attribute(drive, "source", "file") for drive in drives)
        assert source == f"/var/lib/novalite/instances/{UUID}/disk.cd0-{'3' * 16}" and nothing is None
        assert [each.get("dev") for each in root.iterfind("os/boot")] == boot
        assert (root.find("devices/controller[@type='scsi']") is not None) == (bus == "scsi")
    assert xml_of(instance(cdroms=[cd], rescue=True)).find("devices/disk[@device='cdrom']") is None


@pytest.mark.parametrize("machine", ["pc", "pc-q35-7.2", "virt"])
@pytest.mark.parametrize("cdrom_bus", [None, "ide", "sata", "virtio"])
@pytest.mark.parametrize("disk_bus", ["virtio", "ide", "sata", "scsi"])
def test_no_two_disks_have_one_place_of_a_bus(machine: str, cdrom_bus: str | None, disk_bus: str) -> None:
    properties = {"hw_disk_bus": disk_bus, **({"hw_cdrom_bus": cdrom_bus} if cdrom_bus else {})}
    cd = {
        **INSTANCE["image"],
        "kernel": None,
        "disk_format": "iso",
        "checksum": "sha256:" + "3" * 64,
        "properties": properties,
    }
    root = xml_of(instance(image=cd, cdroms=[cd, None], config_drive=True), machine=machine)
    # libvirt counts the places of IDE, SATA and SCSI by the last letter, whatever comes before
    targets = [disk.find("target") for disk in root.iterfind("devices/disk")]
    places = [(target.get("bus"), str(target.get("dev"))[-1]) for target in targets if target is not None]
    assert len(places) >= 4 and len(set(places)) == len(places), places
    assert len(root.findall("devices/controller[@type='scsi']")) <= 1


def test_filter_parameters_are_those_that_have_a_value() -> None:
    (interface,) = guest_of(INSTANCE, FACTS).interfaces
    assert interface.filter == "nova-instance-instance-00000007"
    assert interface.mac == "fa:16:3e:00:00:01"
    assert dict(interface.parameters) == {
        "IP": "10.20.0.5",
        "DHCPSERVER": "10.20.0.2",
        "PROJNET": "10.20.0.0",
        "PROJMASK": "255.255.255.0",
    }
    six = nic(ip=None, dhcp_server=None, network={"cidr": None, "cidr_v6": "fd00:1::/64", "gateway_v6": "fe80::1"})
    (interface,) = guest_of(instance(nics=[six]), FACTS).interfaces
    assert dict(interface.parameters) == {
        "IP": "0.0.0.0",
        "RASERVER": "fe80::1",
        "PROJNETV6": "fd00:1::",
        "PROJMASKV6": "64",
    }


def test_the_filter_knows_every_address() -> None:
    guest = guest_of(instance(nics=[nic(more_ips=["10.20.0.6", "10.20.0.7"])]), FACTS)
    (interface,) = compare.as_dict(compare.parse(render(guest)))["interfaces"]
    assert interface["parameters"]["IP"] == "10.20.0.5 10.20.0.6 10.20.0.7"


def test_the_router_of_a_network_is_the_host_unless_another_one_is_named() -> None:
    """The host advertises itself from this link-local address; Nova fills RASERVER on each network with IPv6."""
    routed = {"cidr_v6": "fd00:1::/64", "dhcp": True}
    for network, router in (
        (routed, "fe80::a14:2"),
        ({**routed, "gateway_v6": "fd00:1::1"}, "fd00:1::1"),
        ({**routed, "dhcp": False}, None),
        ({"dhcp": True}, None),
    ):
        (interface,) = guest_of(instance(nics=[nic(network=network)]), FACTS).interfaces
        assert dict(interface.parameters).get("RASERVER") == router


def test_an_interface_without_port_security_has_a_filter_of_its_own() -> None:
    """Its IPv6 address is none that the filter of the others asks for."""
    nics = [nic(), nic(mac="fa:16:3e:00:00:02", ipv6="fd00:1::2", port_security_enabled=False)]
    first, second = guest_of(instance(nics=nics), FACTS).interfaces
    assert (first.filter, "IPV6" in dict(first.parameters)) == ("nova-instance-instance-00000007", False)
    assert (second.filter, second.parameters) == ("nova-open", ())
    assert guest_of(instance(nics=nics), {**FACTS, "antispoof": "chains"}).interfaces[1].filter is None


def test_with_ipv6_every_interface_names_its_addresses_the_link_local_one_too() -> None:
    guest = guest_of(instance(nics=[nic(), nic(mac="fa:16:3e:00:00:02", ipv6="fd00:1::2")]), FACTS)
    addresses = [[value for name, value in interface.parameters if name == "IPV6"] for interface in guest.interfaces]
    assert addresses == [["fe80::f816:3eff:fe00:1"], ["fd00:1::2", "fe80::f816:3eff:fe00:2"]]
    (_first, second) = compare.as_dict(compare.parse(render(guest)))["interfaces"]
    assert second["parameters"]["IPV6"] == "fd00:1::2 fe80::f816:3eff:fe00:2"


def test_the_tap_device_has_a_name_that_chains_can_name() -> None:
    with_id = instance(nics=[nic(id="0c0f9e5e-7d0e-4bb5-8f0c-0d6f1e1b2c3d")])
    element = xml_of(with_id, antispoof="chains").find("devices/interface")
    assert element is not None and element.find("filterref") is None
    target = element.find("target")
    assert target is not None and target.get("dev") == "tap0c0f9e5e-7d"
    beside = xml_of(with_id).find("devices/interface/target")
    assert beside is not None and beside.attrib == target.attrib


@pytest.mark.parametrize("mtu", [None, 1450])
def test_an_mtu_is_written_when_there_is_one(mtu: int | None) -> None:
    element = xml_of(instance(nics=[nic(network={"mtu": mtu})])).find("devices/interface/mtu")
    assert (None if element is None else element.get("size")) == (None if mtu is None else str(mtu))


@pytest.mark.parametrize(("domain_type", "mode"), [("kvm", "host-model"), ("qemu", None)])
def test_the_host_cpu_is_for_kvm_only(domain_type: str, mode: str | None) -> None:
    root = xml_of(INSTANCE, domain_type=domain_type)
    cpu = root.find("cpu")
    assert root.get("type") == domain_type
    assert (None if cpu is None else cpu.get("mode")) == mode


def test_what_every_guest_has() -> None:
    root = xml_of(INSTANCE)
    assert root.find("features/acpi") is not None
    assert root.find("features/apic") is not None
    assert [serial.get("type") for serial in root.iterfind("devices/serial")] == ["pty"]
    balloon, clock = root.find("devices/memballoon"), root.find("clock")
    assert balloon is not None and balloon.get("model") == "virtio"
    assert clock is not None and clock.get("offset") == "utc"
    driver = root.find("devices/disk/driver")
    assert driver is not None and driver.attrib == {"name": "qemu", "type": "qcow2", "cache": "writethrough"}
    assert xml_of(INSTANCE, arch="aarch64", machine="virt").find("features/apic") is None


@pytest.mark.parametrize("name", ["a\x00b", "a\nb", "a\x1bb", "a\ufffeb", "a\ud800b"])
def test_what_xml_cannot_hold_is_refused_by_name(name: str) -> None:
    with pytest.raises(NovaliteError, match=f"instance {UUID}: display_name .* control character"):
        guest_of(instance(name=name), FACTS)


@pytest.mark.parametrize(
    ("facts", "properties", "expected_disk"),
    [
        ({}, {}, ("cdrom", "hdd", "ide")),
        ({"machine": "q35"}, {}, ("cdrom", "sdf", "sata")),
        ({"machine": "q35"}, {"hw_cdrom_bus": "virtio"}, ("disk", "vdz", "virtio")),
        ({"machine": "virt", "arch": "aarch64"}, {}, ("disk", "vdz", "virtio")),
    ],
)
def test_a_config_drive_is_the_last_device_of_its_bus(
    facts: dict[str, str], properties: dict[str, str], expected_disk: tuple[str, str, str]
) -> None:
    image = {**INSTANCE["image"], "properties": properties}
    assert len(xml_of(instance(image=image), **facts).findall("devices/disk")) == 1
    root = xml_of(instance(config_drive=True, image=image), **facts)
    disk = root.findall("devices/disk")[1]
    target, source, driver = disk.find("target"), disk.find("source"), disk.find("driver")
    assert target is not None and source is not None and driver is not None and disk.find("readonly") is not None
    assert (disk.get("device"), target.get("dev"), target.get("bus")) == expected_disk
    assert source.get("file") == f"/var/lib/novalite/instances/{UUID}/disk.config" and driver.get("type") == "raw"


@pytest.mark.parametrize(
    ("sizes", "targets"),
    [
        ({}, {"vda": "disk"}),
        ({"ephemeral_gb": 1}, {"vda": "disk", "vdb": "disk.eph0"}),
        ({"swap_mb": 1}, {"vda": "disk", "vdb": "disk.swap"}),
        ({"ephemeral_gb": 1, "swap_mb": 1}, {"vda": "disk", "vdb": "disk.eph0", "vdc": "disk.swap"}),
    ],
)
@pytest.mark.parametrize("backend", ["qcow2", "raw"])
def test_further_disks_stand_in_the_order_of_nova(sizes: dict[str, int], targets: dict[str, str], backend: str) -> None:
    flavor = {**INSTANCE["flavor"], **sizes, "extra_specs": {"novalite:disk_backend": backend}}
    disks = compare.parse(render(guest_of(instance(flavor=flavor), FACTS))).disks
    assert {disk.dev: disk.source for disk in disks} == {
        dev: f"/var/lib/novalite/instances/{UUID}/{name}" for dev, name in targets.items()
    }
    assert {(disk.format, disk.cache, disk.bus) for disk in disks} == {(backend, "writethrough", "virtio")}


def test_a_backend_that_is_none_is_refused() -> None:
    flavor = {**INSTANCE["flavor"], "extra_specs": {"novalite:disk_backend": "lvm"}}
    with pytest.raises(NovaliteError, match=r"flavor m1\.nano: novalite:disk_backend is 'lvm'"):
        guest_of(instance(flavor=flavor), FACTS)


@pytest.mark.parametrize(("said", "has_channel"), [("yes", True), ("True", True), ("no", False), (None, False)])
def test_a_guest_has_a_channel_for_an_agent_where_its_image_says_so(said: str | None, has_channel: bool) -> None:
    image = {**INSTANCE["image"], "properties": {"hw_qemu_guest_agent": said} if said else {}}
    targets = xml_of(instance(image=image)).findall("devices/channel/target")
    assert [target.get("name") for target in targets] == ["org.qemu.guest_agent.0"] * has_channel


@pytest.mark.parametrize(
    ("properties", "facts", "expected"),
    [
        ({}, {}, ("vnc", "virtio")),
        ({"hw_video_model": "VGA"}, {"vnc": True}, ("vnc", "vga")),
        ({"hw_video_model": "none"}, {}, ()),
        ({}, {"vnc": False}, ()),
    ],
)
def test_a_display_is_on_a_socket_of_libvirt_unless_image_or_host_want_none(
    properties: dict[str, str], facts: dict[str, bool], expected: tuple[str, ...]
) -> None:
    guest = guest_of(instance(image={**INSTANCE["image"], "properties": properties}), {**FACTS, **facts})
    assert compare.displays(render(guest)) == expected
    listens = [dict(listen.attrib) for listen in ElementTree.fromstring(render(guest)).iterfind("devices/graphics/*")]
    assert listens == [{"type": "socket"}] * bool(expected)


def test_a_display_that_is_none_of_the_known_ones_is_refused() -> None:
    image = {**INSTANCE["image"], "properties": {"hw_video_model": "hercules"}}
    with pytest.raises(NovaliteError, match="hw_video_model is 'hercules'; use bochs, cirrus, none, qxl"):
        guest_of(instance(image=image), FACTS)


def test_a_word_that_is_no_boolean_is_refused() -> None:
    image = {**INSTANCE["image"], "properties": {"hw_qemu_guest_agent": "perhaps"}}
    with pytest.raises(NovaliteError, match="hw_qemu_guest_agent is 'perhaps'; use yes, true, 1, on, no"):
        guest_of(instance(image=image), FACTS)


def test_one_that_starts_from_a_volume_is_rescued_with_that_as_its_second_disk() -> None:
    shared = {"backend": "file", "options": {}, "format": "qcow2", "readonly": False, "attached_at": 1}
    volumes = [
        {**shared, "volume_id": "11111111-1111-4111-8111-111111111111", "device": "/dev/vda", "boot_index": 0},
        {**shared, "volume_id": "22222222-2222-4222-8222-222222222222", "device": "/dev/vdb", "boot_index": None},
    ]
    own = guest_of(instance(volumes=volumes), FACTS)
    assert own.root_volume is not None and [volume.target for volume in own.volumes] == ["vdb"]
    rescued = guest_of(instance(volumes=volumes, rescue=True), FACTS)
    (second,) = rescued.volumes
    assert rescued.root_volume is None and rescued.disk.endswith("/disk.rescue")
    assert (second.target, second.file, second.serial) == ("vdb", own.root_volume.file, volumes[0]["volume_id"])


@pytest.mark.parametrize(
    ("vm_state", "has_it"), [("building", True), ("shelved_offloaded", True), ("active", False), ("shelved", False)]
)
def test_a_volume_that_nobody_has_yet_comes_with_the_build(vm_state: str, has_it: bool) -> None:
    """Also with that of an unshelve: it was attached while the server was on no host."""
    volume = {"backend": "file", "options": {}, "format": "qcow2", "readonly": False, "attached_at": None}
    volume |= {"volume_id": "11111111-1111-4111-8111-111111111111", "device": "/dev/vdb", "boot_index": None}
    guest = guest_of(instance(volumes=[volume], vm_state=vm_state), FACTS)
    assert [disk.target for disk in guest.volumes] == ["vdb"] * has_it


def test_a_guest_with_uefi_and_a_tpm() -> None:
    properties = {"hw_machine_type": "q35", "hw_firmware_type": "uefi", "hw_tpm_version": "2.0"}
    modern = instance(image={**INSTANCE["image"], "properties": properties}, config_drive=True)
    root = xml_of(modern)
    system, tpm = root.find("os"), root.find("devices/tpm")
    assert system is not None and tpm is not None
    assert (system.get("firmware"), system.findtext("nvram")) == ("efi", f"/var/lib/novalite/instances/{UUID}/nvram.fd")
    assert tpm.get("model") == "tpm-tis"
    assert {target.get("bus") for target in root.iterfind("devices/disk[@device='cdrom']/target")} == {"sata"}
    assert len(root.findall("devices/controller[@model='pcie-root-port']")) == 14
    assert root.find("features/smm") is None
    rescued = guest_of(instance(image=modern["image"], rescue=True), FACTS)
    assert (rescued.nvram or "").endswith("/nvram.fd.rescue")


def test_a_guest_with_secure_boot_gets_enrolled_keys_and_smm() -> None:
    properties = {"hw_firmware_type": "uefi", "os_secure_boot": "required"}
    root = xml_of(instance(image={**INSTANCE["image"], "properties": properties}))
    features = {feature.get("name"): feature.get("enabled") for feature in root.iterfind("os/firmware/feature")}
    assert features == {"secure-boot": "yes", "enrolled-keys": "yes"}
    assert [root.find(path) is not None for path in ("os/loader[@secure='yes']", "features/smm[@state='on']")] == [
        True
    ] * 2
    assert compare.parse(render(guest_of(instance(), FACTS))).firmware is None


def test_volumes_have_the_images_bus_and_own_disks_the_flavors_limits() -> None:
    flavor = {**INSTANCE["flavor"], "ephemeral_gb": 1, "extra_specs": {"quota:disk_read_iops_sec": "9"}}
    image = {**INSTANCE["image"], "properties": {"hw_disk_bus": "scsi"}}
    root = xml_of(instance(flavor=flavor, image=image), disk_discard="unmap")
    disks = root.findall("devices/disk")
    assert [disk.findtext("iotune/read_iops_sec") for disk in disks] == ["9", "9"]
    volume = Volume("/dev/vg/volume", "raw", "vdc", "block", serial="its-id")
    alone = ElementTree.fromstring(render_volume(volume, {**FACTS, "disk_discard": "unmap"}, devices_of(flavor, image)))
    assert alone.find("iotune") is None
    for disk in (*disks, alone):
        target, driver = disk.find("target"), disk.find("driver")
        assert target is not None and target.get("bus") == "scsi"
        assert driver is not None and driver.get("discard") == "unmap"
