# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""CDs in and out of the drives of a guest that runs: by libvirt itself, embedded in a process of its own, and QEMU."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import tempfile
import textwrap
import typing as t

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PYTHON = "/usr/bin/python3"  # which has Debian's binding
UUID = "5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41"
# stdin: [[power, [file or null, of each drive]], ...]; stdout: a row for each
GUEST = f"""
import functools, json, os, subprocess, sys, threading
import libvirt
from ansible_collections.novalite.cloud.plugins.module_utils._domain import lifecycle_cdroms
from ansible_collections.novalite.cloud.plugins.module_utils._host import locks

state, steps = sys.argv[1], json.load(sys.stdin)
lifecycle_cdroms.locked = functools.partial(locks.locked, directory=state + "/locks")

def serve():
    while True:
        libvirt.virEventRunDefaultImpl()

def xml(files):
    disks = "".join(
        "<disk type='file' device='cdrom'><driver name='qemu' type='qcow2'/>"
        + (f"<source file='{{file}}'/>" if file else "")
        + f"<target dev='{{dev}}' bus='ide'/><readonly/></disk>"
        for file, dev in zip(files, ("hda", "hdb"))
    )
    return (
        "<domain type='qemu'><name>cd</name><uuid>{UUID}</uuid><memory unit='MiB'>64</memory>"
        "<os><type machine='pc'>hvm</type></os><devices><emulator>/usr/bin/qemu-system-x86_64</emulator>"
        f"{{disks}}</devices></domain>"
    )

libvirt.virEventRegisterDefaultImpl()
threading.Thread(target=serve, daemon=True).start()
connection = libvirt.open(f"qemu:///embed?root={{state}}/libvirt")
domain = connection.defineXML(xml(steps[0][1]))
rows = []
try:
    for power, files in steps:
        for file in filter(None, files):
            if not os.path.exists(file):  # by the module disk
                subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", file, "1M"], check=True)
        if power == "on" and not domain.isActive():
            # its firmware would close the tray when it resets the drive, of which QEMU says nothing to libvirt
            domain.createWithFlags(libvirt.VIR_DOMAIN_START_PAUSED)
        if power == "off" and domain.isActive():
            domain.destroy()
        spec = {{"uuid": "{UUID}", "name": "cd", "xml": xml(files)}}
        (planned,) = lifecycle_cdroms.ensure(connection, [spec], state, check_mode=True)
        (done,) = lifecycle_cdroms.ensure(connection, [spec], state)
        (again,) = lifecycle_cdroms.ensure(connection, [spec], state)
        flags = (libvirt.VIR_DOMAIN_XML_INACTIVE, *([0] if domain.isActive() else []))
        drives = [lifecycle_cdroms._drives(domain.XMLDesc(flag)) for flag in flags]
        rows.append({{
            "changed": [outcome.before != outcome.after for outcome in (planned, done, again)],
            "error": done.error,
            "drives": [[lifecycle_cdroms._file_in(each) for each in of_place.values()] for of_place in drives],
        }})
finally:
    if domain.isActive():
        domain.destroy()
    domain.undefine()
print(json.dumps(rows))
"""
CONFIGURATION = f"""stdio_handler = "file"
security_driver = "none"
namespaces = []
user = "+{os.getuid()}"
group = "+{os.getgid()}"
dynamic_ownership = 0
"""

usable = subprocess.run([PYTHON, "-c", "import libvirt"], capture_output=True, check=False).returncode == 0
pytestmark = pytest.mark.skipif(not usable, reason="needs python3-libvirt and QEMU")


@pytest.fixture
def state() -> t.Iterator[pathlib.Path]:
    """A directory with a short name: a socket's path has 107 characters at most."""
    with tempfile.TemporaryDirectory(prefix="cd-") as place:
        path = pathlib.Path(place)
        (path / "libvirt/etc").mkdir(parents=True)
        (path / "libvirt/etc/qemu.conf").write_text(CONFIGURATION)
        (path / "instances" / UUID).mkdir(parents=True)
        yield path


def run(state: pathlib.Path, steps: list[t.Any]) -> list[dict[str, t.Any]]:
    done = subprocess.run(
        [PYTHON, "-c", textwrap.dedent(GUEST), str(state)],
        input=json.dumps(steps),
        env={"PYTHONPATH": str(ROOT / "collections"), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return t.cast("list[dict[str, t.Any]]", json.loads(done.stdout))


def test_cds_go_in_and_out_of_a_guest_and_its_definition(state: pathlib.Path) -> None:
    first, second = (str(state / "instances" / UUID / f"disk.cd0-{digit * 16}") for digit in "12")
    on = [[first], [None], [second], [second, second]]
    steps = [*(["on", files] for files in on), ["off", [second, second]], ["on", [None, second]]]
    gone, out, swapped, refused, added, there = run(state, steps)
    assert gone == {"changed": [False] * 3, "error": None, "drives": [[first]] * 2}
    assert out == {"changed": [True, True, False], "error": None, "drives": [[None]] * 2}
    assert swapped == {"changed": [True, True, False], "error": None, "drives": [[second]] * 2}
    assert "stop it, insert the CD" in refused["error"] and refused["drives"] == [[second]] * 2
    assert added == {"changed": [True, True, False], "error": None, "drives": [[second, second]]}
    assert there == {"changed": [True, True, False], "error": None, "drives": [[None, second]] * 2}
    assert sorted(path.name for path in (state / "instances" / UUID).glob("disk.cd*")) == ["disk.cd0-" + "2" * 16]
