# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups that are booted: in a guest of their own that reaches nothing, until it asks for a login or time is up."""

from __future__ import annotations

import base64
import pathlib
import shutil
import struct
import zlib
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._backup import sandbox, sandbox_xml
from ansible_collections.novalite.cloud.plugins.module_utils._backup.picture import png_of
from ansible_collections.novalite.cloud.plugins.module_utils._backup.sandbox_xml import Sandbox
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from tests.unit._backup.hypervisor import wait
from tests.unit._backup.test_backups_of_servers import FIRST, SECOND, Server, server, state_dir

__all__ = ["server", "state_dir"]  # fixtures

# A PC's program at 7C00h: each byte at 7C16h goes to the first serial port, up to a zero; then it halts
_PROGRAM = bytes.fromhex("31c0 8ed8 be167c ac 84c0 7406 baf803 ee ebf5 fa f4 ebfc")
needs_hosts = pytest.mark.skipif(
    shutil.which("libvirtd") is None or shutil.which("restic") is None, reason="needs libvirtd, restic"
)


def saying(server: Server, text: bytes) -> None:
    """Have a server's disk boot a program that says `text` on the console."""
    sector = server.directory / "sector"
    sector.write_bytes((_PROGRAM + text + b"\0").ljust(510, b"\0") + b"\x55\xaa")
    server.guest.io("vda", f"write -s {sector} 0 512", "flush")
    sector.unlink()


def left(server: Server) -> list[str]:
    """The sandboxes that are there: domains and directories."""
    scratch = pathlib.Path(server.state_dir, "backup-scratch")
    listed = [*server.host.virsh("list", "--all", "--name").split(), *(path.name for path in scratch.glob("*"))]
    return [name for name in listed if name.startswith(sandbox_xml.PREFIX)]


@pytest.mark.root
@needs_hosts
def test_a_backup_boots(server: Server) -> None:
    saying(server, b"Debian\r\nweb login: ")
    server.get_cheap_store()
    server.do("taken", FIRST)
    verified = server.do("verified", FIRST, boot_timeout=60)
    booted = verified["boot"]
    assert (verified["error"], verified["changed"], booted["error"], booted["by"]) == (None, False, None, "login")
    assert booted["seconds"] < 60 and booted["console"].endswith("web login: ")
    assert base64.b64decode(booted["picture"]).startswith(b"\x89PNG")
    assert left(server) == [] and server.guest.is_active()
    saying(server, b"Kernel panic\r\n")
    server.do("taken", SECOND)
    verified = server.do("verified", SECOND, boot_timeout=3)
    assert "is whole, and the guest in its sandbox was not up within 3 s" in verified["error"]
    assert verified["boot"]["console"].endswith("panic\r\n") and verified["complaints"] == [] and left(server) == []


@pytest.mark.root
@needs_hosts
def test_what_a_killed_run_left_goes(server: Server) -> None:
    saying(server, b"nothing")
    server.get_cheap_store()
    server.do("taken", FIRST)
    process = server.begin("verified", FIRST, boot_timeout=600)
    wait(lambda: len(left(server)) == 2 or None, "no sandbox runs")
    process.kill()
    process.communicate()
    wait(lambda: len(left(server)) == 1 or None, "libvirt does not end it")
    assert "was not up" in server.do("verified", FIRST, boot_timeout=1)["error"] and left(server) == []


@pytest.mark.parametrize(
    ("console", "is_up"),
    [
        ("\r\nDebian GNU/Linux 12 web ttyS0\r\n\r\nweb login: ", True),
        ("login: ", True),
        ("\x1b[0;32mweb login:\x1b[0m ", True),
        ("\r\nPlease press Enter to activate this console. ", True),
        ("Please press Enter to activate this console. [135] Not backgrounding\r\n", True),  # of a daemon
        ("web login: \r\nreboot: Restarting system\r\n", False),
        ("Last login: yesterday\r\n", False),
        ("weblogin: ", False),
        ("", False),
    ],
)
def test_a_login_line(console: str, is_up: bool) -> None:
    assert sandbox.asks_for_login(console) == is_up


@given(st.integers(1, 9), st.integers(1, 9), st.data())
def test_a_picture_keeps_its_samples(width: int, height: int, data: st.DataObject) -> None:
    """Each line of the PNG is an unfiltered one of the PPM."""
    samples = data.draw(st.binary(min_size=width * height * 3, max_size=width * height * 3))
    png = png_of(b"P6\n%d %d\n255\n" % (width, height) + samples)
    length = struct.unpack(">I", png[33:37])[0]
    lines = zlib.decompress(png[41 : 41 + length])
    assert b"".join(lines[at + 1 : at + 1 + width * 3] for at in range(0, len(lines), width * 3 + 1)) == samples
    assert struct.unpack(">II", png[16:24]) == (width, height)


@pytest.mark.parametrize("data", [b"", b"P6 2 2 255 ", b"P5 1 1 255 abc", b"P6 0 1 255 "])
def test_what_is_no_picture(data: bytes) -> None:
    with pytest.raises(NovaliteError, match="is not a PPM"):
        png_of(data)


SAVED = """
<domain type='kvm' id='7'><name>instance-00000001</name><uuid>11111111-0000-4000-8000-000000000000</uuid>
<metadata><novalite:instance xmlns:novalite='urn:novalite:instance:1'><novalite:ledger>x</novalite:ledger>
</novalite:instance></metadata>
<memory unit='KiB'>4194304</memory><currentMemory unit='KiB'>1048576</currentMemory><vcpu current='4'>8</vcpu>
<memoryBacking><hugepages/></memoryBacking><numatune><memory mode='strict' nodeset='1'/></numatune>
<os><type arch='x86_64' machine='q35'>hvm</type><loader type='pflash'>/ovmf.fd</loader><nvram>/old/nvram.fd</nvram>
<kernel>/old/kernel</kernel><cmdline>quiet</cmdline></os><features><acpi/></features>
<cpu mode='host-model'>
<topology sockets='8' cores='1' threads='1'/><numa><cell id='0' cpus='0-7' memory='1'/></numa></cpu>
<devices><emulator>/usr/bin/qemu</emulator>
<disk type='file' device='disk'><source file='/old/disk'/><target dev='vda' bus='virtio'/><serial>abc</serial></disk>
<disk type='file' device='disk'><source file='/old/config'/><target dev='vdb' bus='virtio'/><readonly/></disk>
<interface type='bridge'><mac address='fa:16:3e:00:00:01'/><source bridge='br100'/></interface>
<hostdev mode='subsystem' type='pci'/><filesystem type='mount'><source dir='/srv'/></filesystem>
<channel type='unix'><source mode='bind' path='/old'/>
<target type='virtio' name='org.qemu.guest_agent.0' state='connected'/>
</channel><graphics type='vnc' passwd='secret'/><tpm model='tpm-crb'><backend type='emulator' version='2.0'/></tpm>
</devices><seclabel type='dynamic'><label>x</label></seclabel></domain>
"""


def test_a_sandbox_has_nothing_of_its_guest_but_its_disks() -> None:
    made = Sandbox("22222222-0000-4000-8000-000000000000", "/scratch/x")
    xml = sandbox_xml.xml_of(SAVED, made, ["vda"])
    root = ElementTree.fromstring(xml)
    assert (root.findtext("name"), root.findtext("uuid")) == ("novalite-sandbox-22222222", made.uuid)
    assert (root.findtext("memory"), root.findtext("vcpu"), root.find("cpu/topology")) == ("1048576", "2", None)
    assert {element.tag for element in root.find("devices") or ()} == {
        *("emulator", "disk", "controller", "serial", "channel", "tpm", "video", "rng", "memballoon")
    }
    for word in ("/old/", "br100", "fa:16:3e", "secret", "hugepages", "numa", "seclabel", "urn:novalite:instance"):
        assert word not in xml
    assert [element.get("file") for element in root.iterfind("devices/disk/source")] == ["/scratch/x/vda"]
    assert root.findtext("os/nvram") == "/scratch/x/nvram.fd" and root.findtext("os/kernel") == "/scratch/x/kernel"
    assert sandbox_xml.is_marked(xml) and not sandbox_xml.is_marked(SAVED)
    assert sandbox_xml.boot_files_of(SAVED) == {"kernel": "/old/kernel"}
