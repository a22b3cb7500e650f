# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A compute host's state directory with real disks in it, for tests that attach and mount them (root only)."""

from __future__ import annotations

import functools
import hashlib
import os
import pathlib
import shutil
import subprocess
import time
import typing as t
import uuid as uuids

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk import blank, cache, evict, layout, overlay
from ansible_collections.novalite.cloud.plugins.module_utils._disk.overlay import Disk, create_disks
from ansible_collections.novalite.cloud.plugins.module_utils._host import locks
from ansible_collections.novalite.cloud.plugins.module_utils._host.files import instance_dir
from ansible_collections.novalite.cloud.plugins.module_utils._snapshots import image_snapshots as snapshot
from tests.support.patience import GENEROUS
from tests.unit._disk.state import push, qcow2

MIB = 1 << 20


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    usable = (
        os.geteuid() == 0
        and os.path.exists("/dev/fuse")
        and os.path.exists("/dev/loop-control")
        and shutil.which("qemu-storage-daemon")
        and shutil.which("mke2fs")
    )
    for item in items:
        if item.get_closest_marker("root") and not usable:
            item.add_marker(pytest.mark.skip(reason="needs root, loop devices, FUSE and QEMU's tools"))


class Host:
    """One state directory; `tree` is what the next image's file system is made from."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.state_dir = str(path / "state")
        self.tree = path / "tree"
        for directory in ("etc", "root"):
            (self.tree / directory).mkdir(parents=True)
        (self.tree / "etc/passwd").write_text("root:*:0:0:root:/root:/bin/sh\nme:x:1000:1001::/home/me:/bin/sh\n")
        (self.tree / "etc/hostname").write_text("image\n")
        layout.prepare_state_dir(self.state_dir)

    def run(self, *argv: str, stdin: str | None = None) -> str:
        return subprocess.run(argv, input=stdin, check=True, capture_output=True, text=True).stdout

    def file_system(self, *options: str, size: int = 16) -> pathlib.Path:
        """An ext4 image of `size` MiB from the tree."""
        path = self.path / f"{uuids.uuid4()}.raw"
        with open(path, "wb") as handle:
            handle.truncate(size * MIB)
        self.run("mke2fs", "-q", "-t", "ext4", *options, "-d", str(self.tree), str(path))
        return path

    def base(self, image: pathlib.Path) -> str:
        """Put `image` into the cache as it is; returns its checksum."""
        checksum = f"sha256:{hashlib.sha256(image.read_bytes()).hexdigest()}"
        shutil.copyfile(image, layout.cache_path(self.state_dir, checksum))
        return checksum

    def instances(self, image: pathlib.Path, count: int = 1) -> list[str]:
        base = self.base(image)
        uuids_made = [str(uuids.uuid4()) for _ in range(count)]
        create_disks([Disk(uuid, base) for uuid in uuids_made], self.state_dir)
        return uuids_made

    def disk(self, uuid: str) -> str:
        return os.path.join(instance_dir(self.state_dir, uuid), layout.DISK)

    def content(self, uuid: str, offset: int = 0) -> str:
        """The disk of `uuid` as a raw file, by another way than the code under test; for debugfs."""
        raw = str(self.path / f"{uuid}.check.raw")
        self.run("qemu-img", "convert", "-f", "qcow2", "-O", "raw", self.disk(uuid), raw)
        if not offset:
            subprocess.run(["e2fsck", "-fn", raw], check=True, capture_output=True)
        return f"{raw}?offset={offset}" if offset else raw

    def cat(self, uuid: str, path: str, offset: int = 0) -> str:
        return self.run("debugfs", "-R", f"cat {path}", self.content(uuid, offset))


@pytest.fixture
def host(tmp_path: pathlib.Path) -> Host:
    return Host(tmp_path)


def _backing_files() -> str:
    listing = ["losetup", "--list", "--output", "BACK-FILE"]
    return subprocess.run(listing, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def nothing_left(tmp_path: pathlib.Path) -> t.Iterator[None]:
    """After the test no loop device, mount or process of this host's disks is there."""
    yield
    assert str(tmp_path) not in pathlib.Path("/proc/mounts").read_text()
    # loop devices are the machine's, so another worker's test may be at one just now; a leaked one stays
    deadline = time.monotonic() + GENEROUS
    while "/run/novalite" in (loops := _backing_files()):
        assert time.monotonic() < deadline, loops
        time.sleep(0.05)
    for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = process.read_bytes().split(b"\0")
        except OSError:
            continue
        assert not (b"qemu-storage-daemon" in command and str(tmp_path).encode() in b" ".join(command))


@pytest.fixture
def state(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A state directory for tests that are not root: with locks of its own, /run is root's."""
    own = functools.partial(locks.locked, directory=str(tmp_path / "locks"))
    for room in (blank, cache, evict, overlay, snapshot):
        monkeypatch.setattr(room, "locked", own)
    return str(tmp_path / "state")


@pytest.fixture
def base(tmp_path: pathlib.Path, state: str) -> str:
    """The checksum of a cached image of 8 MiB, of which the first is full of ones."""
    image = qcow2(tmp_path)
    push(image, state)
    return image.checksum
