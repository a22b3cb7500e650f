# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""backup.moved, backup.stored, backup.time: what an incremental backup of a running guest reads, stores and takes.

Incompressible bytes are written in blocks of 64 KiB, scattered and in clusters. What is read is set beside the blocks
that changed, the growth of restic's store beside their bytes, and the time beside QEMU's own push job, since the same
checkpoint, into a qcow2: that one neither compresses nor encrypts, nor knows whether its copy can be read. What no
backup by restic can be quicker than is in the lines of backup.time, too: `restic` are the seconds in which it stores as
many random bytes of a file, in a repository of its own, and `restic_start` those in which it stores a single byte.
"""

from __future__ import annotations

import os
import pathlib
import random
import subprocess
import tempfile
import time
import typing as t

from tests.unit._backup.hypervisor import Guest, Hypervisor

BLOCK, CLUSTER = 65536, 16  # bytes, blocks
SIZES = {"": (512 << 20, 320), "_8g": (8 << 30, 3200)}  # after the name of a figure: bytes of the disk, changed blocks
NAMES = ("backup.moved", "backup.stored", "backup.time")


def run(prefix: str) -> t.Iterator[dict[str, t.Any]]:
    if not any(name.startswith(prefix) for name in NAMES):
        return
    with tempfile.TemporaryDirectory(prefix="novalite-bench-", dir="/var/tmp") as directory:
        os.chmod(directory, 0o711)
        host = Hypervisor(pathlib.Path(directory))
        try:
            for size, (disk, changed) in SIZES.items():
                path = pathlib.Path(directory, f"disk{size}")
                path.mkdir(0o711)
                yield from _measure(host, path, prefix, size, disk, changed)
        finally:
            host.close()


def _measure(
    host: Hypervisor, path: pathlib.Path, prefix: str, suffix: str, size: int, count: int
) -> t.Iterator[dict[str, t.Any]]:
    disk = path / "disk"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(disk), str(size)], check=True)
    guest = Guest(host, {"vda": (disk, "qcow2")})
    guest.start()
    asks = {"server": guest.uuid, "store": str(path / "store"), "key": "bench", "scratch": str(path / "scratch")}
    _write(guest, path, range(0, size // BLOCK, 64))
    host.engine({**asks, "action": "take", "backup": "full"})
    since = "novalite-full"
    scattered = random.Random(1).sample(range(size // BLOCK), count)
    clusters = random.Random(2).sample(range(0, size // BLOCK, CLUSTER), count // CLUSTER)
    changes = {"scattered": scattered, "clustered": [first + each for first in clusters for each in range(CLUSTER)]}
    for kind, numbers in changes.items():
        _write(guest, path, numbers)
        push = _push(host, guest, path, since)
        before, began = _size(path / "store"), time.perf_counter()
        taken = host.engine({**asks, "action": "take", "backup": kind})
        seconds, changed = time.perf_counter() - began, count * BLOCK
        assert taken["disks"]["vda"][0] == "incremental", taken
        since = f"novalite-{kind}"
        figures = {
            "backup.moved": (taken["read"], changed),
            "backup.stored": (_size(path / "store") - before, changed),
            "backup.time": (round(seconds, 2), round(push, 2)),
        }
        for name, (ours, reference) in figures.items():
            if name.startswith(prefix):
                is_time = name == "backup.time"
                words = {"ours": ours, "reference": reference, "ratio": round(ours / reference, 4)}
                words["unit"] = "s" if is_time else "bytes"
                floor = {"restic": _restic(path, changed), "restic_start": _restic(path, 1)} if is_time else {}
                yield {"bench": f"{name}_{kind}{suffix}", **words, **floor}
    assert host.engine({**asks, "action": "verify", "backup": "clustered", "scratch": str(path)}) == []


def _write(guest: Guest, path: pathlib.Path, numbers: t.Iterable[int]) -> None:
    commands = []
    for number in numbers:
        pattern = path / f"pattern-{number}"
        pattern.write_bytes(os.urandom(BLOCK))
        commands.append(f"write -s {pattern} {number * BLOCK} {BLOCK}")
    guest.io("vda", *commands, "flush")
    for pattern in path.glob("pattern-*"):
        pattern.unlink()


def _push(host: Hypervisor, guest: Guest, path: pathlib.Path, since: str) -> float:
    """Seconds of QEMU's own incremental copy into a qcow2, which is thrown away."""
    target, xml = path / "pushed", path / "push.xml"
    xml.write_text(
        f"<domainbackup><incremental>{since}</incremental><disks><disk name='vda' backup='yes' type='file'>"
        f"<target file='{target}'/><driver type='qcow2'/></disk></disks></domainbackup>"
    )
    began = time.perf_counter()
    host.virsh("backup-begin", guest.name, str(xml))
    while host.virsh("backup-dumpxml", guest.name, check=False):
        pass
    seconds = time.perf_counter() - began
    target.unlink()
    return seconds


def _restic(path: pathlib.Path, size: int) -> float:
    """Seconds in which restic stores a file of so many random bytes, from its start to its end."""
    file, words = path / "random", ["restic", "--repo", str(path / "other"), "--cache-dir", str(path / "other.cache")]
    env = {**os.environ, "RESTIC_PASSWORD": "bench"}
    if not (path / "other").exists():
        subprocess.run([*words, "init", "--quiet"], env=env, check=True)
    file.write_bytes(os.urandom(size))
    with open(file, "rb") as stream:
        began = time.perf_counter()
        subprocess.run([*words, "backup", "--quiet", "--stdin"], stdin=stream, env=env, check=True)
        seconds = time.perf_counter() - began
    file.unlink()
    return round(seconds, 2)


def _size(store: pathlib.Path) -> int:
    return sum(path.stat().st_size for path in store.rglob("*") if path.is_file())
