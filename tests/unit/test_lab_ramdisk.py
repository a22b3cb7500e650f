# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ramdisk of the lab's guests has modules in the order in which they load, unpacked where they are compressed."""

from __future__ import annotations

import lzma
import pathlib
import subprocess

LIBRARY = pathlib.Path(__file__).parents[1] / "molecule/shared/lib/kernel.sh"
KERNEL = "6.12.0-cloud-amd64"


def test_compressed_modules_are_unpacked(tmp_path: pathlib.Path) -> None:
    (kernel,) = sorted(pathlib.Path("/lib/modules").glob("*-cloud-amd64"))[-1:]
    modules = tmp_path / "lib/modules" / KERNEL
    modules.mkdir(parents=True)
    originals = {
        path.name.removesuffix(".xz"): lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        for path in (kernel / "kernel/drivers/virtio").glob("virtio*.ko*")
    }
    for name, content in originals.items():
        (modules / f"{name}.xz").write_bytes(lzma.compress(content, check=lzma.CHECK_CRC32))
    subprocess.run(["depmod", "--basedir", tmp_path, KERNEL], check=True, capture_output=True)
    (tmp_path / "init").write_text("#!/bin/busybox sh\n")

    script = (
        f". {LIBRARY}; make_ramdisk ramdisk {KERNEL} init virtio_pci; zcat ramdisk | cpio --extract --quiet -D made"
    )
    (tmp_path / "made").mkdir()
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "MODPROBE_OPTIONS": f"--dirname {tmp_path}"}
    subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=tmp_path, env=environment, check=True)

    made = sorted((tmp_path / "made/modules").iterdir())
    assert made[-1].name.endswith("-virtio_pci.ko") and len(made) >= 3
    for path in made:
        assert path.read_bytes() == originals[path.name.partition("-")[2]]
