# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Devices that are left attached are found in the order in which it can be taken away, and nothing of others is."""

from __future__ import annotations

import fcntl
import os
import pathlib

from ansible_collections.novalite.cloud.plugins.module_utils._drift import stale_devices

UUID = "11111111-2222-4333-8444-555555555555"


def tree(tmp_path: pathlib.Path, mounts: str, command: list[str], nbd: str = "") -> tuple[str, str, str]:
    """A state directory, /proc and /sys/block."""
    state, proc, block = (tmp_path / name for name in ("state", "proc", "block"))
    (state / "instances" / UUID).mkdir(parents=True)
    for directory in (proc / "self", proc / "77", block / "nbd3"):
        directory.mkdir(parents=True)
    (proc / "self/mountinfo").write_text(mounts)
    words = [word.format(disk=state / "instances" / UUID / "disk") for word in command]
    (proc / "77/cmdline").write_bytes(b"\0".join(map(os.fsencode, words)) + b"\0")
    if nbd:
        (block / "nbd3/pid").write_text(f"{nbd}\n")
    return str(state), str(proc), str(block)


def mount(point: str, source: str, kind: str = "ext4") -> str:
    return f"36 35 98:0 / {point} rw,noatime master:1 - {kind} {source} rw\n"


def test_an_nbd_device_with_its_mount(tmp_path: pathlib.Path) -> None:
    mounts = mount("/", "/dev/sda1") + mount("/mnt/a\\040b", "/dev/nbd3p1") + mount("/srv", "/dev/nbd4")
    command = ["/usr/bin/qemu-nbd", "--connect=/dev/nbd3", "{disk}"]
    remnants = stale_devices.find(*tree(tmp_path, mounts, command, nbd="77"))
    assert [(remnant.what, remnant.name) for remnant in remnants] == [
        ("mount", "/mnt/a b"),
        ("disk server", f"{UUID}/disk"),
    ]


def test_a_device_of_others_stays(tmp_path: pathlib.Path) -> None:
    command = ["/usr/bin/qemu-nbd", "--connect=/dev/nbd3", "/srv/images/disk"]
    assert stale_devices.find(*tree(tmp_path, mount("/mnt", "/dev/nbd3"), command, nbd="77")) == []


def test_what_somebody_is_at_is_left_to_them(tmp_path: pathlib.Path) -> None:
    paths = tree(tmp_path, "", ["qemu-nbd", "{disk}"])
    directory = os.open(tmp_path / "state/instances" / UUID, os.O_RDONLY)
    fcntl.flock(directory, fcntl.LOCK_EX)
    assert stale_devices.find(*paths) == []
    os.close(directory)
    assert [remnant.what for remnant in stale_devices.find(*paths)] == ["disk server"]


def test_mounts_come_before_what_they_stand_on(tmp_path: pathlib.Path) -> None:
    mounts = mount("/run/novalite/x.raw", "/dev/fuse", "fuse") + mount("/run/novalite/root", "/dev/loop0")
    mounts += mount("/run/novalitex", "/dev/loop1")
    remnants = stale_devices.find(*tree(tmp_path, mounts, ["qemu-nbd", "{disk}"]))
    assert [remnant.name for remnant in remnants] == ["/run/novalite/root", f"{UUID}/disk", "/run/novalite/x.raw"]
