# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host whose disk is full, which a guest can bring about: room is made there by removing guests."""

from __future__ import annotations

import json
import pathlib
import shutil
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk import layout, overlay, removal
from ansible_collections.novalite.cloud.plugins.module_utils._disk.records import Record, read_records, write_records
from ansible_collections.novalite.cloud.plugins.module_utils._disk.syscalls import mount, unmount
from ansible_collections.novalite.cloud.plugins.module_utils._host.files import instance_dir
from tests.unit._network.test_routing_on_a_host import done

pytestmark = pytest.mark.root
UUID = "5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41"


def fill(directory: pathlib.Path) -> None:
    with open(directory / "fill", "wb", buffering=0) as handle:
        try:
            while handle.write(b"x" * 4096):
                pass
        except OSError:
            return


def test_guests_leave_a_network_of_a_full_host(bed: t.Any) -> None:
    if not shutil.which("dnsmasq"):
        pytest.skip("needs dnsmasq")
    bed.hv1.run("mount", "-t", "tmpfs", "-o", "size=512k,mode=0755", "none", "/mnt")
    state = "/mnt/state"
    bed.hv1.call(["bridge", [{"name": "br100", "addresses": ["10.20.0.1/24"]}], "present"])
    network: dict[str, t.Any] = {"name": "full", "bridge": "br100", "listen": "10.20.0.1", "cidr": "10.20.0.0/24"}
    hosts = [
        {"mac": f"fa:16:3e:00:00:0{number}", "ip": f"10.20.0.{number}", "hostname": f"web-{number}"}
        for number in (5, 6, 7)
    ]
    assert done(bed.hv1.call(["dhcp", [{**network, "hosts": hosts}], "present", False, state])) == [True]
    bed.hv1.run("sh", "-c", "dd if=/dev/zero of=/mnt/fill bs=4k 2>/dev/null; ! echo more > /mnt/more")
    (refused,) = bed.hv1.call(
        [
            "dhcp",
            [{**network, "hosts": [{**hosts[0], "mac": "fa:16:3e:00:00:09", "ip": "10.20.0.9"}]}],
            "present",
            False,
            state,
        ]
    )
    assert "No space left" in json.dumps(refused)
    for left in (hosts[1:], hosts[2:], []):
        gone = hosts[2 - len(left)]
        calls = [["dhcp", [{**network, "hosts": [gone]}], "absent", check, state] for check in (True, False, False)]
        assert done(bed.hv1.call(*calls)) == [True, True, False]
        entries = bed.hv1.run("sh", "-c", f"cat {state}/networks/br100/hosts || true", check=False).stdout
        assert [line.split(",")[0] for line in entries.splitlines()] == [host["mac"] for host in left]


def test_a_rescue_ends_on_a_full_disk(tmp_path: pathlib.Path) -> None:
    mount("none", str(tmp_path), "tmpfs", 0, "size=64k,mode=0755")
    try:
        own = pathlib.Path(instance_dir(str(tmp_path), UUID))
        own.mkdir(parents=True)
        kept = {"disk": Record("qcow2", "a" * 64)}
        write_records(str(own), {**kept, "disk.rescue": Record("qcow2", "b" * 64)})
        (own / layout.DISK).touch()
        fill(tmp_path)
        removal.remove_disks([overlay.Disk(UUID, rescue=True)], str(tmp_path))
        (own / "disk.rescue").touch()
        removal.remove_disks([overlay.Disk(UUID, rescue=True)], str(tmp_path))
        assert read_records(str(own)) == kept
        with pytest.raises(OSError, match="No space left"):
            write_records(str(own), {**kept, **{f"disk.{number}": Record("raw") for number in range(9)}})
        assert read_records(str(own)) == kept
    finally:
        unmount(str(tmp_path))
