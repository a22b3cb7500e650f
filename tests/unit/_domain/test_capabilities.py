# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._domain import capabilities
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError

XML = """<capabilities>
  <host><uuid>6c1c53ad-bb7b-4bb1-8d89-c2bf3fb21f0f</uuid><cpu><arch>{arch}</arch><model>kvm64</model></cpu>
  <secmodel><model>none</model></secmodel><secmodel><model>dac</model>
    <baselabel type='kvm'>+64055:+64056</baselabel><baselabel type='qemu'>+64055:+64056</baselabel></secmodel></host>
  <guest><os_type>hvm</os_type><arch name='i686'><emulator>/usr/bin/qemu-system-i386</emulator>
    <machine>pc</machine><domain type='qemu'/></arch></guest>
  <guest><os_type>hvm</os_type><arch name='x86_64'><wordsize>64</wordsize>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <machine maxCpus='255'>pc-i440fx-7.2</machine><machine canonical='pc-i440fx-7.2' maxCpus='255'>pc</machine>
    <domain type='qemu'/><domain type='kvm'/></arch></guest>
  <guest><os_type>hvm</os_type><arch name='aarch64'><emulator>/usr/bin/qemu-system-aarch64</emulator>
    <machine>vexpress</machine><domain type='qemu'/></arch></guest>
</capabilities>"""


def test_the_hosts_own_architecture_is_taken() -> None:
    assert capabilities.parse_capabilities(XML.format(arch="x86_64")) == capabilities.Capabilities(
        arch="x86_64",
        cpu_model="kvm64",
        emulator="/usr/bin/qemu-system-x86_64",
        machine="pc",
        machine_types=("pc",),
        domain_types=("qemu", "kvm"),
        qemu_user=(64055, 64056),
    )


@pytest.mark.parametrize(("model", "driver"), [("none", "none"), ("apparmor", "apparmor"), ("selinux", "selinux")])
def test_what_confines_guests(model: str, driver: str) -> None:
    xml = XML.format(arch="x86_64").replace("<model>none</model>", f"<model>{model}</model>")
    assert capabilities.parse_capabilities(xml).security_driver == driver


def test_without_a_dac_label_qemus_user_is_unknown() -> None:
    assert capabilities.parse_capabilities(XML.format(arch="x86_64").replace("+64055:+64056", "")).qemu_user is None


def test_without_the_usual_machine_the_first_one_is_taken() -> None:
    assert capabilities.parse_capabilities(XML.format(arch="aarch64")).machine == "vexpress"


def test_a_host_without_qemu_is_told_what_to_do() -> None:
    with pytest.raises(NovaliteError, match=r"cannot run ppc64le guests.*install qemu-system"):
        capabilities.parse_capabilities(XML.format(arch="ppc64le"))


CPUINFO = "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu aes sse4_1 unheard_of avx2\n\nprocessor\t: 1\n"


def test_traits_and_model() -> None:
    assert capabilities.traits_of(CPUINFO) == ["HW_CPU_X86_AESNI", "HW_CPU_X86_AVX2", "HW_CPU_X86_SSE41"]
    assert capabilities.cpu_model_of(CPUINFO) == "AMD EPYC"
    assert capabilities.traits_of("processor : 0\n") == []
    assert capabilities.cpu_model_of("processor : 0\n") is None


def test_memory_is_in_whole_mib() -> None:
    assert capabilities.memory_mb_of("MemFree: 1 kB\nMemTotal:       24683999 kB\n") == 24105
    with pytest.raises(NovaliteError, match="no MemTotal"):
        capabilities.memory_mb_of("MemFree: 1 kB\n")


@pytest.mark.parametrize(("stat", "seconds"), [("cpu  1 2\nbtime 1700000000\nprocesses 5\n", 1700000000), ("", None)])
def test_when_the_host_was_started(stat: str, seconds: int | None) -> None:
    assert capabilities.booted_at_of(stat) == seconds


OFFER = """<domainCapabilities>
  <os supported='yes'><enum name='firmware'>{firmware}</enum>
    <loader supported='yes'><enum name='secure'><value>{secure}</value><value>no</value></enum></loader></os>
  <devices><tpm supported='yes'><enum name='model'><value>tpm-tis</value><value>tpm-crb</value></enum>
    <enum name='backendModel'><value>{backend}</value></enum>
    <enum name='backendVersion'>{versions}</enum></tpm>
    <disk supported='yes'><enum name='bus'><value>virtio</value><value>scsi</value></enum></disk>
    <video supported='yes'><enum name='modelType'><value>vga</value></enum></video></devices>
</domainCapabilities>"""


@pytest.mark.parametrize(
    ("firmware", "secure", "expected"),
    [("<value>efi</value>", "yes", ["efi", "secure"]), ("<value>efi</value>", "no", ["efi"]), ("", "yes", [])],
)
def test_firmware_of_a_machine_type(firmware: str, secure: str, expected: list[str]) -> None:
    xml = OFFER.format(firmware=firmware, secure=secure, backend="", versions="")
    assert capabilities.firmware_of(xml) == expected


@pytest.mark.parametrize(
    ("backend", "versions", "expected"),
    [
        ("emulator", "<value>2.0</value>", ["2.0", "tpm-tis", "tpm-crb"]),
        ("emulator", "", ["1.2", "2.0", "tpm-tis", "tpm-crb"]),  # libvirt before 8.6
        ("passthrough", "", []),
    ],
)
def test_tpms_that_can_be_emulated(backend: str, versions: str, expected: list[str]) -> None:
    assert capabilities.tpm_of(OFFER.format(firmware="", secure="no", backend=backend, versions=versions)) == expected


def test_devices_of_a_host() -> None:
    facts = capabilities.devices_of(OFFER.format(firmware="", secure="no", backend="", versions=""))
    assert facts == {"disk_buses": ["virtio", "scsi"], "video_models": ["vga"]}
    assert capabilities.devices_of("<domainCapabilities/>") == {"disk_buses": [], "video_models": []}


def test_numa_nodes_are_those_with_cpus() -> None:
    cpus = "".join(f"<cpu id='{cpu}' siblings='{cpu % 2},{cpu % 2 + 2}'/>" for cpu in range(4))
    pages = "<pages unit='KiB' size='4'>1000</pages><pages unit='KiB' size='2048'>16</pages>"
    cells = (
        f"<cell id='0'><memory unit='KiB'>1048576</memory>{pages}<cpus num='4'>{cpus}</cpus></cell>"
        "<cell id='1'><memory unit='KiB'>1048576</memory><cpus num='0'/></cell>"
    )
    xml = f"<capabilities><host><topology><cells num='2'>{cells}</cells></topology></host></capabilities>"
    node = {"id": 0, "cpus": "0-3", "siblings": ["0,2", "1,3"], "memory_mb": 1024, "pages": {"4": 1000, "2048": 16}}
    assert capabilities.numa_of(xml) == [node]
    assert capabilities.numa_of("<capabilities><host/></capabilities>") == []
