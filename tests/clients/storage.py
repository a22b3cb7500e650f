# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images that a user brings, and volumes: the `openstack` command, and a guest that starts from such an image."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import secrets
import subprocess
import tempfile
import time
import typing as t

from .cloud import ROOT, Cloud
from .command import TIMEOUT, Shell, login
from .report import Report, Skipped

FILES = pathlib.Path(os.environ.get("NOVALITE_IMAGES") or ROOT / ".cache/images")


def images(report: Report, cloud: Cloud) -> None:
    """Bring an image, look at it, start a server from it, share it, take it away."""
    part, shell = "images", Shell(cloud)
    other, admin = (Shell(cloud, login=f"openrc-{who}") for who in ("alt", "admin"))
    name = f"own-{secrets.token_hex(2)}"
    disk, server = FILES / "disk-tiny.qcow2", f"web-{name}"
    ids: dict[str, t.Any] = {}

    def check(words: str, expected: str = "", by: Shell = shell) -> None:
        with report.step(part, words):
            text = by(*words.split())
            assert expected in text, f"no {expected!r} in:\n{text}"

    with report.step(part, f"image create --file {disk.name} {name}"):
        made = shell.json(
            "image",
            "create",
            "--file",
            str(disk),
            "--disk-format",
            "qcow2",
            "--property",
            "os_distro=tiny",
            "--property",
            "hw_cdrom_bus=virtio",  # its key is on a config drive; its kernel knows no other disks
            "--tag",
            "t1",
            name,
        )
        ids["image"] = made["id"]
    with report.step(part, f"image show {name}"):
        shown = shell.json("image", "show", name)
        assert (shown["status"], shown["size"]) == ("active", disk.stat().st_size), shown
        assert shown["properties"]["os_hash_value"] == hashlib.sha256(disk.read_bytes()).hexdigest()
    with report.step(part, f"image save {name}"), tempfile.TemporaryDirectory() as directory:
        copy = pathlib.Path(directory, "copy")
        shell("image", "save", "--file", str(copy), name)
        assert copy.read_bytes() == disk.read_bytes()
    check("image list --long", name)
    check(f"image set --min-ram 64 --property a=b --tag t2 {name}")
    check(f"image unset --property a --tag t1 {name}")
    check("image list --tag t2 -f value -c Name", name)
    with report.step(part, "a disk that names a file of the host is refused"), _hostile() as bad:
        refused = shell.attempt("image", "create", "--file", bad, "--disk-format", "qcow2", f"bad-{name}")
        assert refused.returncode != 0 and "backing file" in refused.stderr, refused
    with contextlib.suppress(AssertionError):
        shell("image", "delete", f"bad-{name}")
    with _vmdk(disk) as vmdk:
        for way in ([], ["--import"]):
            foreign = f"vmdk{''.join(way)}-{name}"
            with report.step(part, f"image create --disk-format vmdk {' '.join(way)} {foreign}"):
                shell("image", "create", "--file", vmdk, "--disk-format", "vmdk", *way, foreign)
                shown = _at_rest(shell, foreign, of="image")
                assert (shown["status"], shown["disk_format"]) == ("active", "qcow2"), shown
            check(f"image delete {foreign}")
        with report.step(part, "an OVA is refused with what to do"):
            words = ("--file", vmdk, "--disk-format", "vmdk", "--container-format", "ova", f"ova-{name}")
            refused = shell.attempt("image", "create", *words)
            assert refused.returncode != 0 and "upload its disk" in refused.stderr, refused
        with contextlib.suppress(AssertionError):
            shell("image", "delete", f"ova-{name}")
    with report.step(part, "image add project, set --accept, list, remove project"):
        project = other.json("token", "issue")["project_id"]
        # the command looks the project up first, and another one's is not there for a member
        admin("image", "add", "project", name, project)
        assert name not in other("image", "list", "-f", "value")
        other("image", "set", "--accept", ids["image"])
        assert name in other("image", "list", "-f", "value")
        assert "accepted" in shell("image", "member", "list", name)
        admin("image", "remove", "project", name, project)
        assert name not in other("image", "list", "-f", "value")
    check(f"image set --deactivate {name}")
    with report.step(part, "no server starts from an image that is not active"):
        refused = shell.attempt("server", "create", "--flavor", "m1.tiny", "--image", name, f"no-{server}")
        assert refused.returncode != 0 and "not active" in refused.stderr, refused
    check(f"image set --activate {name}")
    with report.step(part, f"server create --image {name} --wait {server}"):
        made = shell.json(
            "server", "create", "--flavor", "m1.tiny", "--image", name, "--key-name", "test", "--wait", server
        )
        ids["id"] = made["id"]
        assert made["status"] == "ACTIVE", made
    login(report, cloud, part, ids, server)
    with report.step(part, f"server backup create --rotate 1, twice, of {server}"):
        for number in "12":
            named = ("--name", f"{name}-b{number}", "--type", "daily")
            shell("server", "backup", "create", *named, "--rotate", "1", "--wait", server)
            assert _at_rest(shell, f"{name}-b{number}", of="image")["status"] == "active"
        listed = shell("image", "list", "-f", "value", "-c", "Name").splitlines()
        assert f"{name}-b2" in listed and f"{name}-b1" not in listed, listed
        shell("image", "delete", f"{name}-b2")
    check(f"image delete {name}")
    with report.step(part, "its file stays for the server"):
        if "id" not in ids:
            raise Skipped("there is no server")
        assert (cloud.home / "images" / ids["image"]).exists()
    check(f"server delete --wait {server}")


def volumes(report: Report, cloud: Cloud) -> None:
    """Volumes without a server: make, describe, extend, a type, quotas, delete."""
    part, shell, admin = "volumes", Shell(cloud), Shell(cloud, login="openrc-admin")
    name = f"vol-{secrets.token_hex(2)}"

    def check(words: str, expected: str = "", by: Shell = shell) -> None:
        with report.step(part, words):
            text = by(*words.split())
            assert expected in text, f"no {expected!r} in:\n{text}"

    check(f"volume create --size 1 --property a=b {name}", name)
    check("volume list", name)
    check(f"volume show {name}", "available")
    check(f"volume set --name {name}-x --property c=d {name}")
    check(f"volume set --size 2 {name}-x")
    check(f"volume unset --property a {name}-x")
    with report.step(part, f"volume show {name}-x -f json"):
        shown = shell.json("volume", "show", f"{name}-x")
        assert (shown["size"], shown["properties"]) == (2, {"c": "d"}), shown
    check("volume type list", "file")
    check(f"volume type create --private {name}-t", name, admin)
    with report.step(part, "a private type is not there for others"):
        assert f"{name}-t" not in shell("volume", "type", "list", "-f", "value")
    check(f"volume type delete {name}-t", "", admin)
    check("volume service list", "cinder-volume", admin)
    check("quota show", "gigabytes")
    check("limits show --absolute", "total_volumes_used")
    with report.step(part, f"volume create --image ami-tiny --size 1 {name}-i"):
        shell("volume", "create", "--image", "ami-tiny", "--size", "1", f"{name}-i")
        shown = _at_rest(shell, f"{name}-i")
        assert (shown["status"], shown["bootable"]) == ("available", True), shown
    with report.step(part, f"volume snapshot create --volume {name}-i {name}-s"):
        shell("volume", "snapshot", "create", "--volume", f"{name}-i", f"{name}-s")
        assert _at_rest(shell, f"{name}-s", "snapshot")["status"] == "available"
    with report.step(part, f"volume revert {name}-s"):
        shell("--os-volume-api-version", "3.40", "volume", "revert", f"{name}-s")
        assert _at_rest(shell, f"{name}-i")["status"] == "available"
    with report.step(part, f"image create --volume {name}-i {name}-g"):
        shell("image", "create", "--volume", f"{name}-i", f"{name}-g")
        assert _at_rest(shell, f"{name}-i")["status"] == "available"
        shown = shell.json("image", "show", f"{name}-g")
        assert (shown["status"], shown["disk_format"], shown["min_disk"]) == ("active", "raw", 1), shown
    check(f"image delete {name}-g")
    with report.step(part, f"volume backup create {name}-i, and --incremental"):
        shell("volume", "backup", "create", "--name", f"{name}-b", f"{name}-i")
        assert _at_rest(shell, f"{name}-b", "backup")["status"] == "available"
        assert _at_rest(shell, f"{name}-i")["status"] == "available"
        shell("volume", "backup", "create", "--incremental", "--name", f"{name}-c", f"{name}-i")
        shown = _at_rest(shell, f"{name}-c", "backup")
        assert (shown["status"], shown["is_incremental"]) == ("available", True), shown
        assert shell.json("volume", "backup", "show", f"{name}-b")["has_dependent_backups"] is True
    with report.step(part, f"volume backup restore {name}-c, to a new volume and to the old one"):
        _at_rest(shell, f"{name}-i")
        shell("volume", "backup", "restore", f"{name}-c", f"{name}-r")
        assert _at_rest(shell, f"{name}-r")["status"] == "available"
        shell("volume", "backup", "restore", "--force", f"{name}-c", f"{name}-i")
        assert _at_rest(shell, f"{name}-i")["status"] == "available"
    with report.step(part, f"volume backup delete {name}-b: not before {name}-c"):
        refused = shell.attempt("volume", "backup", "delete", f"{name}-b")
        assert refused.returncode != 0 and "Incremental backups exist" in refused.stderr, refused
        for backup in (f"{name}-c", f"{name}-b"):
            shell("volume", "backup", "delete", backup)
            deadline = time.monotonic() + TIMEOUT
            while backup in shell("volume", "backup", "list", "-f", "value"):
                assert time.monotonic() < deadline
                time.sleep(1)
    check(f"volume delete {name}-r")
    check(f"volume snapshot delete {name}-s")
    with report.step(part, f"volume delete {name}-i"):
        deadline = time.monotonic() + TIMEOUT
        while f"{name}-s" in shell("volume", "snapshot", "list", "-f", "value") and time.monotonic() < deadline:
            time.sleep(1)
        shell("volume", "delete", f"{name}-i")
        while f"{name}-i" in shell("volume", "list", "-f", "value"):
            assert time.monotonic() < deadline
            time.sleep(1)
    check(f"volume delete {name}-x")


def _at_rest(shell: Shell, name: str, *kind: str, of: str = "volume") -> t.Any:
    """The volume (or what else), once nothing is under way."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        shown = shell.json(of, *kind, "show", name)
        making = ("creating", "downloading", "uploading", "importing", "reverting")
        under_way = (*making, "backing-up", "restoring", "restoring-backup")
        if shown["status"] not in under_way or time.monotonic() > deadline:
            return shown
        time.sleep(1)


@contextlib.contextmanager
def _vmdk(disk: pathlib.Path) -> t.Iterator[str]:
    with tempfile.TemporaryDirectory() as directory:
        path = str(pathlib.Path(directory, "disk.vmdk"))
        argv = ["qemu-img", "convert", "-f", "qcow2", "-O", "vmdk", "-o", "subformat=streamOptimized", str(disk), path]
        subprocess.run(argv, check=True, timeout=TIMEOUT)
        yield path


@contextlib.contextmanager
def _hostile() -> t.Iterator[str]:
    with tempfile.TemporaryDirectory() as directory:
        path = str(pathlib.Path(directory, "hostile.qcow2"))
        argv = ["qemu-img", "create", "-q", "-f", "qcow2", "-b", "/etc/shadow", "-F", "raw", "-u", path, "1M"]
        subprocess.run(argv, check=True, timeout=TIMEOUT)
        yield path
