# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._domain.declared_disks import (
    DeclaredDisk,
    declared_disks,
    promised_gb,
    virtual_size,
)

GIB = 1 << 30


def domain(*disks: str) -> str:
    return f"<domain><name>db</name><devices>{''.join(disks)}</devices></domain>"


def file_disk(path: Path, kind: str = "raw", dev: str = "vda") -> str:
    return (
        f"<disk type='file' device='disk'><driver name='qemu' type='{kind}'/><source file='{path}'/>"
        f"<target dev='{dev}' bus='virtio'/></disk>"
    )


def image(path: Path, kind: str, size: str) -> Path:
    subprocess.run(["qemu-img", "create", "-q", "-f", kind, str(path), size], check=True)
    return path


def test_a_disk_counts_with_what_its_guest_sees(tmp_path: Path) -> None:
    raw, qcow2 = image(tmp_path / "raw", "raw", "3G"), image(tmp_path / "qcow2", "qcow2", "5G")
    assert os.stat(qcow2).st_size < GIB  # it is sparse: what it takes now says nothing
    assert promised_gb(domain(file_disk(raw), file_disk(qcow2, "qcow2", "vdb")), str(tmp_path)) == 8


def test_the_sum_is_rounded_up_and_not_each_disk(tmp_path: Path) -> None:
    disks = [file_disk(image(tmp_path / name, "raw", "300M"), dev=f"vd{name}") for name in "abcd"]
    assert promised_gb(domain(*disks), str(tmp_path)) == 2


def test_the_format_is_what_the_xml_declares(tmp_path: Path) -> None:
    """A guest of a raw disk writes what it likes into its first sector, a qcow2 header of a petabyte for example."""
    qcow2 = image(tmp_path / "disk", "qcow2", "900T")
    size = virtual_size(DeclaredDisk("vda", "virtio", str(qcow2), "raw"))
    assert 0 < size < GIB
    assert virtual_size(DeclaredDisk("vda", "virtio", str(qcow2), "qcow2")) == 900 << 40


@pytest.mark.parametrize(
    "disk",
    [
        "<disk type='network' device='disk'><source protocol='rbd' name='pool/db'/><target dev='vda'/></disk>",
        "<disk type='block' device='disk'><source dev='/dev/null'/><target dev='vda'/></disk>",
        "<disk type='file' device='disk'><source file='/nowhere/at/all'/><target dev='vda'/></disk>",
        "<disk type='file' device='disk'><target dev='vda'/></disk>",
    ],
)
def test_what_takes_nothing_of_the_file_system_counts_for_nothing(disk: str, tmp_path: Path) -> None:
    assert promised_gb(domain(disk), str(tmp_path)) == 0


def test_a_file_on_another_file_system_counts_for_nothing(tmp_path: Path) -> None:
    elsewhere = Path("/dev/shm") / f"novalite-test-{os.getpid()}"
    assert os.stat("/dev/shm").st_dev != os.stat(tmp_path).st_dev
    try:
        image(elsewhere, "raw", "2G")
        assert promised_gb(domain(file_disk(elsewhere)), str(tmp_path)) == 0
        assert promised_gb(domain(file_disk(elsewhere)), "/dev/shm") == 2
    finally:
        elsewhere.unlink()


def test_what_is_only_read_is_no_disk_of_its_own(tmp_path: Path) -> None:
    xml = domain(
        "<disk type='file' device='cdrom'><source file='/iso'/><target dev='sda'/></disk>",
        "<disk type='file' device='disk'><source file='/base'/><target dev='vdb'/><readonly/></disk>",
        file_disk(tmp_path / "disk", "qcow2"),
    )
    disks = declared_disks(ElementTree.fromstring(xml))
    assert disks == [DeclaredDisk("vda", "virtio", str(tmp_path / "disk"), "qcow2")]
