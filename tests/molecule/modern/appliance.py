# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make files of other hypervisors for the scenario: `appliance.py DISK DIRECTORY`, of the qcow2 disk DISK web.ova, an
appliance with one CPU and 96 MiB, and packed.qcow2.xz, which is compressed twice."""

from __future__ import annotations

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))  # a scenario's directory is not a package

from tests.unit._image_import import appliances

if __name__ == "__main__":
    disk, directory = sys.argv[1], pathlib.Path(sys.argv[2])
    vmdk, packed = directory / "web-disk1.vmdk", directory / "packed.qcow2"
    to_vmdk = ["-O", "vmdk", "-o", "subformat=streamOptimized", disk, str(vmdk)]
    subprocess.run(["qemu-img", "convert", "-f", "qcow2", *to_vmdk], check=True)
    subprocess.run(["qemu-img", "convert", "-f", "qcow2", "-O", "qcow2", "-c", disk, str(packed)], check=True)
    subprocess.run(["xz", "--force", str(packed)], check=True)
    files = {"web.ovf": appliances.descriptor([vmdk.name], vcpus=1, memory=96), vmdk.name: vmdk.read_bytes()}
    members = [appliances.member("web.mf", appliances.manifest(files))]
    members[:0] = [appliances.member(name, data) for name, data in files.items()]
    appliances.archive(directory / "web.ova", *members)
