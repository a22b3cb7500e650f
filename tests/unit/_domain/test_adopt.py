# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A domain of somebody else is described, marked and unmarked: by libvirt itself, with its driver for tests.

libvirt's binding is the distribution's, so what hosts run is run here as there, by the system's Python.
"""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
import typing as t
from pathlib import Path

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._host import records as records

SYSTEM_PYTHON = "/usr/bin/python3"
TEST_DOMAIN = "6695eb01-f6a4-8304-79aa-97f2502e193f"  # which libvirt's test driver has
HERE = Path(__file__).resolve().parents[3]

PREAMBLE = """
import dataclasses, json, libvirt
from ansible_collections.novalite.cloud.plugins.module_utils._domain import adopt
libvirt.registerErrorHandler(lambda _context, _error: None, None)
connection = libvirt.open("test:///default")
XML = '''<domain type="test"><name>db</name><memory unit="MiB">300</memory><currentMemory unit="MiB">200</currentMemory>
<vcpu current="1">3</vcpu>%s<os><type>hvm</type></os><devices>
<disk type="file" device="disk"><driver name="qemu" type="qcow2"/><source file="DISK"/><target dev="vda" bus="virtio"/>
</disk><disk type="file" device="cdrom"><source file="/iso"/><target dev="hda" bus="ide"/></disk>
<interface type="bridge"><mac address="52:54:00:AA:BB:CC"/><source bridge="br7"/></interface>
<interface type="network"><mac address="52:54:00:00:00:02"/><source network="default"/></interface>
</devices></domain>'''
OTHERS = '<metadata><o:os xmlns:o="urn:others:1"><o:name>debian</o:name></o:os></metadata>'
MARK = '<instance><ledger>l</ledger><uuid>u</uuid><project id="p">demo</project><adopted>true</adopted></instance>'

def define(metadata="", running=True):
    domain = connection.defineXML(XML % metadata)
    if running:
        domain.create()
    return domain

def both(domain):
    return [domain.XMLDesc(2), domain.XMLDesc(0)]
"""


def run(script: str, *replaced: str) -> t.Any:
    """Return what `script` prints as JSON."""
    done = subprocess.run(
        [SYSTEM_PYTHON, "-c", PREAMBLE.replace("DISK", replaced[0] if replaced else "/nowhere") + script],
        env={**os.environ, "PYTHONPATH": str(HERE / "collections")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_domain_is_described_as_its_xml_declares_it(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(disk), "5G"], check=True)
    script = f"""
domain = define()
found = dataclasses.asdict(adopt.describe(connection, adopt.find(connection, "db"), {str(tmp_path)!r}))
print(json.dumps([found, domain.UUIDString()]))
"""
    guest, uuid = run(script, str(disk))
    assert (guest["uuid"], guest["name"], guest["state"]) == (uuid, "db", "running")
    # what it may have, not what its balloon or its unplugged processors leave it just now
    assert (guest["vcpus"], guest["memory_mb"], guest["disk_gb"], guest["marked"]) == (3, 300, 5, False)
    assert guest["disks"] == [{"dev": "vda", "bus": "virtio", "source": str(disk), "format": "qcow2", "size": 5 << 30}]
    assert [(nic["mac"], nic["bridge"], nic["network"]) for nic in guest["nics"]] == [
        ("52:54:00:aa:bb:cc", "br7", None),
        ("52:54:00:00:00:02", "virbr0", "default"),
    ]


@pytest.mark.parametrize("running", [True, False])
@pytest.mark.parametrize("metadata", ["''", "OTHERS"])
def test_nothing_but_the_mark_is_written_and_it_goes_without_a_trace(metadata: str, running: bool) -> None:
    script = f"""
domain = define({metadata}, {running})
before = both(domain)
checked = adopt.mark(domain, MARK, check_mode=True)[0], both(domain) == before
first = adopt.mark(domain, MARK)[0]
marked = both(domain)
again = adopt.mark(domain, MARK)[0], both(domain) == marked
described = adopt.describe(connection, domain, "/")
known = described.marked, described.adopted_by
taken = adopt.unmark(connection, domain, check_mode=True), both(domain) == marked
adopt.unmark(connection, domain)
print(json.dumps(dict(before=before, checked=checked, first=first, marked=marked, again=again, known=known,
    taken=taken, after=both(domain), none=adopt.unmark(connection, domain))))
"""
    seen = run(script)
    assert seen["checked"] == [True, True] and seen["first"] and seen["again"] == [False, True]
    assert seen["known"] == [True, "l"]
    for xml, marked in zip(seen["before"], seen["marked"]):
        mark = "".join(line for line in marked.splitlines(True) if "novalite" in line)
        assert '<novalite:project id="p">demo</novalite:project>' in mark
        rest = marked.replace(mark, "")
        assert rest.replace("  <metadata>\n  </metadata>\n", "") == xml  # what others had there is there
    assert "<uuid>u</uuid>" in seen["taken"][0] and seen["taken"][1]
    persistent, live = seen["after"]
    assert persistent == seen["before"][0]
    assert live.replace("  <metadata/>\n", "") == seen["before"][1]
    assert metadata == "''" or live == seen["before"][1]
    assert seen["none"] is None


def test_what_is_no_domain_to_adopt_is_named() -> None:
    script = """
said = []
for name in ("nobody", "00000000-0000-4000-8000-000000000000"):
    try:
        adopt.find(connection, name)
    except Exception as error:
        said.append([type(error).__name__, str(error)])
transient = connection.createXML(XML % "")
try:
    adopt.find(connection, transient.UUIDString())
except Exception as error:
    said.append([type(error).__name__, str(error)])
print(json.dumps(said))
"""
    nobody, number, transient = run(script)
    assert nobody == ["NotFoundError", "there is no domain 'nobody' on this host; there are: test"]
    assert number[0] == "NotFoundError"
    assert transient[0] == "ConflictError" and "is transient: it is gone when it ends" in transient[1]


@pytest.mark.parametrize("domain", [TEST_DOMAIN, "00000000-0000-4000-8000-000000000000"])
def test_what_the_host_keeps_of_it_goes_with_the_mark(domain: str, tmp_path: Path) -> None:
    """Also of a domain that does not exist any more."""
    records.write_records(str(tmp_path), {}, None, {domain: "{}"})
    asked = {"domain": domain, "state": "unmarked", "state_dir": str(tmp_path), "uri": "test:///default"}

    def ask(**more: t.Any) -> bool:
        (tmp_path / "asked").write_text(
            json.dumps({"ANSIBLE_MODULE_ARGS": {"step": "domain_adopt", "args": asked, **more}})
        )
        module = "ansible_collections.novalite.cloud.plugins.modules.host_step"
        paths = [HERE / "collections", HERE / ".cache/collections", sysconfig.get_path("purelib")]
        done = subprocess.run(
            [SYSTEM_PYTHON, "-m", module, str(tmp_path / "asked")],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": ":".join(map(str, paths))},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return bool(json.loads(done.stdout)["changed"])

    assert ask(_ansible_check_mode=True) and records.read_records(str(tmp_path))["records"]
    assert [ask(), ask()] == [True, False]
    assert records.read_records(str(tmp_path))["records"] == {}
