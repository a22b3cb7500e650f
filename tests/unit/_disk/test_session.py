# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Injection into real disks through the FUSE back end, ordinary and hostile ones, checked with debugfs."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import pathlib
import subprocess
import time
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._guest.guest_network import nics_of
from ansible_collections.novalite.cloud.plugins.module_utils._guest.inject import File, Request
from ansible_collections.novalite.cloud.plugins.module_utils._guest.session import inject_all

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("nothing_left")]

MIB = 1 << 20
Host = t.Any  # conftest.Host: test directories are no packages
KEY = "ssh-ed25519 AAAA me@example.org"
INJECTED = f"\n# The following ssh key was injected by Nova\n{KEY}\n"


def digest(path: str) -> str:
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def partitioned(host: Host, kind: str = "83", label: str = "dos", number: int = 1) -> pathlib.Path:
    image = host.path / "parted.raw"
    part = host.file_system()
    with open(image, "wb") as handle:
        handle.truncate(part.stat().st_size + 3 * MIB)
    host.run("sfdisk", "-q", str(image), stdin=f"label: {label}\n{number}: start=4096, size={16 * 2048}, type={kind}\n")
    host.run("dd", f"if={part}", f"of={image}", "bs=1M", "seek=2", "conv=notrunc", "status=none")
    return image


def test_writes_once_and_says_so(host: Host) -> None:
    (uuid,) = host.instances(host.file_system())
    files = (File("/srv/a/b", b"data", 0o640),)
    request = Request(uuid, (KEY,), hostname="web-1", files=files)
    before = digest(host.disk(uuid))
    planned = inject_all([request], host.state_dir, "fuse", check_mode=True)
    assert digest(host.disk(uuid)) == before

    done = inject_all([request], host.state_dir, "fuse")
    assert done["changed"] and done == planned
    assert done["instances"][0]["written"] == ["/root/.ssh", "/root/.ssh/authorized_keys", "/etc/hostname", "/srv/a/b"]
    raw = host.content(uuid)
    assert host.run("debugfs", "-R", "cat /root/.ssh/authorized_keys", raw) == INJECTED
    assert host.run("debugfs", "-R", "cat /etc/hostname", raw) == "web-1\n"
    listing = host.run("debugfs", "-R", "ls -p /root/.ssh", raw)
    assert "/040700/0/0/./" in listing and "/100600/0/0/authorized_keys/" in listing
    assert "/100640/0/0/b/" in host.run("debugfs", "-R", "ls -p /srv/a", raw)
    host.run("qemu-img", "check", "-f", "qcow2", host.disk(uuid))

    after = digest(host.disk(uuid))
    for check_mode in (True, False):
        again = inject_all([request], host.state_dir, "fuse", check_mode)
        assert not again["changed"] and again["diff"] == {"before": {}, "after": {}}
    assert digest(host.disk(uuid)) == after


def test_other_keys_and_another_user(host: Host) -> None:
    home = host.tree / "home/me/.ssh"
    home.mkdir(parents=True)
    (home / "authorized_keys").write_text("ssh-rsa OLD")
    (uuid,) = host.instances(host.file_system())
    inject_all([Request(uuid, (KEY,), user="me")], host.state_dir, "fuse")
    assert host.cat(uuid, "/home/me/.ssh/authorized_keys") == f"ssh-rsa OLD{INJECTED}"
    assert "/100600/1000/1001/authorized_keys/" in host.run("debugfs", "-R", "ls -p /home/me/.ssh", host.content(uuid))


def test_ten_at_once_each_get_their_own_key(host: Host) -> None:
    uuids = host.instances(host.file_system(), 10)
    requests = [Request(uuid, (f"ssh-ed25519 {uuid}",)) for uuid in uuids]
    assert inject_all(requests, host.state_dir, "fuse")["changed"]
    for uuid in uuids:
        keys = host.cat(uuid, "/root/.ssh/authorized_keys")
        assert [line for line in keys.splitlines() if line.startswith("ssh-")] == [f"ssh-ed25519 {uuid}"]


@pytest.mark.parametrize(
    ("label", "kind", "number", "partition"),
    [
        ("dos", "83", 1, None),
        ("dos", "83", 1, 1),
        ("dos", "83", 3, None),
        ("dos", "7", 2, 2),
        ("gpt", "0FC63DAF-8483-4772-8E79-3D69D8477DE4", 14, None),
        ("gpt", "4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709", 1, 1),
    ],
)
def test_partitions(host: Host, label: str, kind: str, number: int, partition: int | None) -> None:
    (uuid,) = host.instances(partitioned(host, kind, label, number))
    inject_all([Request(uuid, (KEY,), partition=partition)], host.state_dir, "fuse")
    assert host.cat(uuid, "/root/.ssh/authorized_keys", offset=2 * MIB) == INJECTED


@pytest.mark.parametrize(
    ("kind", "partition", "message"),
    [("7", None, "Linux partitions: none"), ("83", 2, "has no partition 2"), ("83", 0, "no ext2, ext3, ext4 or XFS")],
)
def test_wrong_partition(host: Host, kind: str, partition: int | None, message: str) -> None:
    (uuid,) = host.instances(partitioned(host, kind))
    with pytest.raises(NovaliteError, match=f"instance {uuid}: .*{message}"):
        inject_all([Request(uuid, (KEY,), partition=partition)], host.state_dir, "fuse")


@pytest.mark.parametrize("link", ["absolute", "relative"])
def test_links_to_the_host_lead_nowhere(host: Host, link: str) -> None:
    victim = host.path / "victim"
    victim.mkdir()
    (host.tree / "root").rmdir()
    (host.tree / "root").symlink_to(victim if link == "absolute" else f"../../../../../../../..{victim}")
    (uuid,) = host.instances(host.file_system())
    with pytest.raises(NovaliteError, match="leads nowhere inside the guest"):
        inject_all([Request(uuid, (KEY,))], host.state_dir, "fuse")
    assert list(victim.iterdir()) == []


def test_a_link_inside_the_guest_is_followed_inside_the_guest(host: Host) -> None:
    (host.tree / "root").rmdir()
    (host.tree / "home/root").mkdir(parents=True)
    (host.tree / "root").symlink_to("/home/root")
    (uuid,) = host.instances(host.file_system())
    inject_all([Request(uuid, (KEY,))], host.state_dir, "fuse")
    assert host.cat(uuid, "/home/root/.ssh/authorized_keys") == INJECTED


@pytest.mark.parametrize("kind", ["fifo", "device", "symlink", "hard link", "directory"])
def test_only_a_regular_file_of_one_name_is_a_key_file(host: Host, kind: str) -> None:
    directory = host.tree / "root/.ssh"
    directory.mkdir(mode=0o700)
    path = directory / "authorized_keys"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        os.mknod(path, 0o020600, os.makedev(1, 3))
    elif kind == "symlink":
        path.symlink_to("/etc/passwd")
    elif kind == "hard link":
        os.link(host.tree / "etc/passwd", path)
    elif kind == "directory":
        path.mkdir()
    image = host.file_system()
    (uuid,) = host.instances(image)
    before = host.cat(uuid, "/etc/passwd")
    with pytest.raises(NovaliteError, match=r"/root/\.ssh/authorized_keys in the guest is not touched"):
        inject_all([Request(uuid, (KEY,))], host.state_dir, "fuse")
    assert host.cat(uuid, "/etc/passwd") == before


def test_full_file_system_keeps_what_was_there(host: Host) -> None:
    (host.tree / "root/.ssh").mkdir(mode=0o700)
    (host.tree / "root/.ssh/authorized_keys").write_text("ssh-rsa OLD\n")
    image = host.file_system("-m", "0", size=2)
    host.run("debugfs", "-w", "-f", "-", str(image), stdin="".join(f"write /bin/bash /fill{i}\n" for i in range(3)))
    host.run("debugfs", "-w", "-f", "-", str(image), stdin="".join(f"write /etc/hostname /s{i}\n" for i in range(2000)))
    (uuid,) = host.instances(image)
    with pytest.raises(NovaliteError, match="the guest's file system is full"):
        inject_all([Request(uuid, (KEY,), files=(File("/big", b"x" * (200 << 10)),))], host.state_dir, "fuse")
    keys = host.cat(uuid, "/root/.ssh/authorized_keys")
    assert keys.startswith("ssh-rsa OLD\n")
    assert ".novalite-" not in host.run("debugfs", "-R", "ls -p /", host.content(uuid))


def test_damaged_superblock(host: Host) -> None:
    image = host.file_system()
    with open(image, "r+b") as handle:
        handle.seek(1024 + 0x18)
        handle.write(b"\xff" * 16)  # block size and blocks per group
    (uuid,) = host.instances(image)
    with pytest.raises(NovaliteError, match="its ext4 file system cannot be mounted"):
        inject_all([Request(uuid, (KEY,))], host.state_dir, "fuse")


def test_dirty_journal_is_replayed_before_the_key_is_written(host: Host) -> None:
    image = host.file_system("-J", "size=4", size=32)
    host.run("debugfs", "-w", "-R", "journal_open", str(image))
    # A transaction in the journal that is not on its blocks yet, as after a power cut.
    host.run("debugfs", "-w", "-f", "-", str(image), stdin="jo\njw -b 1 /dev/null\njc\n")
    assert "needs_recovery" in host.run("dumpe2fs", "-h", str(image))
    (uuid,) = host.instances(image)
    request = Request(uuid, (KEY,))
    before = digest(host.disk(uuid))
    assert inject_all([request], host.state_dir, "fuse", check_mode=True)["changed"]
    assert digest(host.disk(uuid)) == before
    inject_all([request], host.state_dir, "fuse")
    raw = host.content(uuid)
    assert "needs_recovery" not in host.run("dumpe2fs", "-h", raw)
    assert host.run("debugfs", "-R", "cat /root/.ssh/authorized_keys", raw) == INJECTED


def test_a_superblock_that_asks_for_a_panic_or_checks(host: Host) -> None:
    image = host.file_system()
    host.run("tune2fs", "-e", "panic", "-c", "5", "-i", "30d", str(image))
    (uuid,) = host.instances(image)
    request = Request(uuid, (KEY,))
    done = inject_all([request], host.state_dir, "fuse")
    assert done["instances"][0]["written"][0] == "periodic file system checks"
    header = host.run("dumpe2fs", "-h", host.content(uuid))
    assert "Maximum mount count:      -1" in header and "Check interval:           0 " in header
    assert not inject_all([request], host.state_dir, "fuse")["changed"]


@pytest.mark.parametrize("end", ["exit 0", "  exit 0;  # done", "exit"])
def test_selinux_guest_relabels_the_key_before_rc_local_ends(host: Host, end: str) -> None:
    (host.tree / "etc/selinux").mkdir()
    (host.tree / "etc/rc.local").write_text(f"#!/bin/sh\ntrue\n{end}\n\n")
    (uuid,) = host.instances(host.file_system())
    inject_all([Request(uuid, (KEY,))], host.state_dir, "fuse")
    script = host.cat(uuid, "/etc/rc.local").splitlines()
    assert script[0] == "#!/bin/sh" and script[-1] == end
    assert script[-2] == "restorecon -RF root/.ssh 2>/dev/null || :"
    assert not inject_all([Request(uuid, (KEY,))], host.state_dir, "fuse")["changed"]


def test_no_root_file_system(host: Host) -> None:
    for name in ("etc/passwd", "etc/hostname"):
        (host.tree / name).unlink()
    (host.tree / "etc").rmdir()
    (uuid,) = host.instances(host.file_system())
    with pytest.raises(NovaliteError, match="the guest has no /etc"):
        inject_all([Request(uuid, (KEY,))], host.state_dir, "fuse")


def test_one_failure_names_its_instance_and_spares_the_others(host: Host) -> None:
    good, bad = host.instances(host.file_system(), 2)
    with pytest.raises(NovaliteError) as caught:
        inject_all([Request(good, (KEY,)), Request(bad, (KEY,), user="nobody-here")], host.state_dir, "fuse")
    assert bad in str(caught.value) and good not in str(caught.value)
    assert host.cat(good, "/root/.ssh/authorized_keys") == INJECTED


def test_running_guest_is_refused(host: Host) -> None:
    (uuid,) = host.instances(host.file_system())
    holder = subprocess.Popen(
        [
            "qemu-storage-daemon",
            "--blockdev",
            f"qcow2,node-name=d,file.driver=file,file.filename={host.disk(uuid)}",
            "--nbd-server",
            f"addr.type=unix,addr.path={host.path}/nbd.sock",
            "--export",
            "nbd,id=e,node-name=d,writable=on",
            "--pidfile",
            f"{host.path}/pid",
        ]
    )
    try:
        while not (host.path / "pid").exists():
            assert holder.poll() is None
            time.sleep(0.01)
        for check_mode in (True, False):
            with pytest.raises(NovaliteError, match=f"instance {uuid}: .*the guest runs; stop it first"):
                inject_all([Request(uuid, (KEY,))], host.state_dir, "fuse", check_mode)
    finally:
        holder.terminate()
        holder.wait()


def test_disk_that_is_not_there(host: Host) -> None:
    uuid = "5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41"
    planned = inject_all([Request(uuid, (KEY,), hostname="a")], host.state_dir, "fuse", check_mode=True)
    assert planned["instances"][0]["written"] == ["/root/.ssh", "/root/.ssh/authorized_keys", "/etc/hostname"]
    with pytest.raises(NovaliteError, match="create it first"):
        inject_all([Request(uuid, (KEY,))], host.state_dir, "fuse")


def test_a_file_system_that_can_only_be_read(host: Host) -> None:
    image = host.file_system()
    host.run("tune2fs", "-O", "read-only", str(image))
    (uuid,) = host.instances(image)
    before = digest(host.disk(uuid))
    with pytest.raises(NovaliteError, match=f"instance {uuid}: its ext4 file system can only be read"):
        inject_all([Request(uuid, (KEY,))], host.state_dir, "fuse")
    assert digest(host.disk(uuid)) == before


def test_addresses_and_a_password_go_in_together(host: Host) -> None:
    (host.tree / "etc/network").mkdir()
    (host.tree / "etc/shadow").write_text("root:*:19000:0:99999:7:::\nme:!:19000:0:99999:7:::\n")
    (host.tree / "etc/shadow").chmod(0o640)
    (uuid,) = host.instances(host.file_system())
    nics = nics_of(
        {
            "nics": [
                {
                    "mac": "fa:16:3e:00:00:01",
                    "name": "eth0",
                    "ipv4": {"address": "10.0.0.9", "prefix": 24, "gateway": "10.0.0.1"},
                }
            ]
        }
    )
    password = "$6$salt$" + "x" * 86
    request = Request(uuid, (KEY,), user="me", nics=nics, password_hash=password)
    done = inject_all([request], host.state_dir, "fuse")
    assert password not in str(done) and "/etc/network/interfaces" in done["instances"][0]["written"]
    assert host.cat(uuid, "/etc/shadow") == f"root:*:19000:0:99999:7:::\nme:{password}:19000:0:99999:7:::\n"
    assert "    address 10.0.0.9\n    netmask 255.255.255.0\n" in host.cat(uuid, "/etc/network/interfaces")
    assert "/100640/0/0/shadow/" in host.run("debugfs", "-R", "ls -p /etc", host.content(uuid))
    assert not inject_all([request], host.state_dir, "fuse")["changed"]


@pytest.mark.parametrize("shadow", [None, "other:!:19000:0:99999:7:::\n"])
def test_a_guest_without_a_place_for_the_password(host: Host, shadow: str | None) -> None:
    if shadow is not None:
        (host.tree / "etc/shadow").write_text(shadow)
    (uuid,) = host.instances(host.file_system())
    asked_for = Request(uuid, (KEY,), password_hash="$6$salt$" + "x" * 86)
    with pytest.raises(NovaliteError, match="/etc/shadow"):
        inject_all([asked_for], host.state_dir, "fuse")
    drawn = dataclasses.replace(asked_for, password_optional=True)
    assert "/etc/shadow" not in inject_all([drawn], host.state_dir, "fuse")["instances"][0]["written"]
    assert KEY in host.cat(uuid, "/root/.ssh/authorized_keys")
