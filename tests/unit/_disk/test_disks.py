# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The disks of instances, in a state directory of their own; needs qemu-img, no root."""

from __future__ import annotations

import errno
import json
import os
import pathlib
import subprocess
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk import inspect, overlay, sparse
from ansible_collections.novalite.cloud.plugins.module_utils._disk.overlay import Disk, create_disks, recorded_format
from ansible_collections.novalite.cloud.plugins.module_utils._disk.qcow2 import write_overlay
from ansible_collections.novalite.cloud.plugins.module_utils._disk.removal import remove_disks
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from tests.unit._disk.state import GIB, MIB, files, info, needs_qemu_img, push, qcow2

UUID = "5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41"
OTHER = "0b3f3b57-0f0e-4a27-8a9d-2f6c9d6f1a11"
pytestmark = needs_qemu_img


def test_a_disk_on_its_base(state: str, base: str) -> None:
    disk = Disk(UUID, base, 1, kernel=base)
    planned = create_disks([disk], state, check_mode=True)
    directory = os.path.join(state, "instances", UUID)
    assert not os.path.exists(directory)
    done = create_disks([disk], state)
    assert done == planned and done["disks"][0]["created"] == ["disk", "kernel"]
    image_info = info(done["disks"][0]["path"])
    assert image_info["virtual-size"] == GIB and image_info["backing-filename-format"] == "raw"
    assert image_info["full-backing-filename"] == os.path.join(state, "_base", f"{base[7:]}.raw")
    assert sorted(os.listdir(directory)) == ["disk", "disk.fresh", "disk.info", "kernel"]
    assert os.stat(directory).st_mode & 0o777 == 0o711
    assert os.stat(f"{directory}/kernel").st_nlink == 1 and recorded_format(directory) == "qcow2"
    for check_mode in (True, False):
        assert not create_disks([disk], state, check_mode)["changed"]


def test_a_run_that_was_cut_off_is_completed(state: str, base: str) -> None:
    disk = Disk(UUID, base)
    directory = pathlib.Path(os.path.dirname(create_disks([disk], state)["disks"][0]["path"]))
    assert info(str(directory / "disk"))["virtual-size"] == 8 * MIB
    (directory / "disk").unlink()
    (directory / "disk.part").write_text("half")
    assert recorded_format(str(directory)) == "qcow2"
    assert create_disks([disk], state)["disks"][0]["created"] == ["disk"]
    assert sorted(os.listdir(directory)) == ["disk", "disk.fresh", "disk.info"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "does not exist: create the instance's disk first"),
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"disk": "qcow2"}', "cannot be read"),
        ('{"disk": {"format": "vmdk"}}', "format 'vmdk'"),
        ('{"disk.eph0": {"format": "raw"}}', "does not say the format of disk"),
    ],
)
def test_a_disk_without_its_record_is_not_touched(state: str, base: str, text: str | None, message: str) -> None:
    disk = Disk(UUID, base)
    record = pathlib.Path(os.path.dirname(create_disks([disk], state)["disks"][0]["path"]), "disk.info")
    record.unlink()
    if text is not None:
        record.write_text(text)
    for action in (lambda: recorded_format(str(record.parent)), lambda: create_disks([disk], state)):
        with pytest.raises(NovaliteError, match=message):
            action()


def test_a_base_larger_than_the_flavor_is_refused(tmp_path: pathlib.Path, state: str) -> None:
    image = qcow2(tmp_path, "1025M")
    push(image, state)
    with pytest.raises(NovaliteError, match="more than the flavor's root disk of 1 GiB"):
        create_disks([Disk(UUID, image.checksum, 1)], state)
    assert os.listdir(os.path.join(state, "instances")) == []


def test_a_failure_takes_back_what_the_call_made(state: str, base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = pathlib.Path(state, "instances", OTHER)
    kept.mkdir()
    (kept / "console.log").touch()
    write = overlay.write_overlay

    def failing(path: str, source: str, size: int) -> None:
        if OTHER in path:
            raise OSError(errno.ENOSPC, "no space")
        write(path, source, size)

    monkeypatch.setattr(overlay, "write_overlay", failing)
    with pytest.raises(NovaliteError, match="no space"):
        create_disks([Disk(UUID, base, kernel=base), Disk(OTHER, base)], state)
    assert os.listdir(os.path.join(state, "instances")) == [OTHER] and os.listdir(kept) == ["console.log"]


def test_missing_base(state: str, base: str) -> None:
    absent = f"sha256:{'0' * 64}"
    with pytest.raises(NovaliteError, match="not in the cache of this host"):
        create_disks([Disk(UUID, base, ramdisk=absent)], state)
    assert create_disks([Disk(UUID, absent)], state, check_mode=True)["changed"]
    with pytest.raises(NovaliteError, match="needs its base image"):
        create_disks([Disk(UUID)], state)


def test_removal(state: str, base: str) -> None:
    disks = [Disk(UUID, base), Disk(OTHER, base)]
    create_disks(disks, state)
    planned = remove_disks(disks[:1], state, check_mode=True)
    assert planned["diff"]["before"] == {UUID: ["disk", "disk.fresh", "disk.info"]}
    assert remove_disks(disks[:1], state) == planned
    assert os.listdir(os.path.join(state, "instances")) == [OTHER]
    assert not remove_disks(disks[:1], state)["changed"]


@pytest.mark.parametrize(
    "uuid", ["..", "", "../_base", UUID.upper(), f"{UUID}/x", f"{{{UUID}}}", UUID.replace("-", "")]
)
def test_only_instances_are_removed(state: str, base: str, uuid: str) -> None:
    with pytest.raises(NovaliteError, match="is not the UUID of an instance"):
        remove_disks([Disk(uuid)], state)
    assert files(state) == [base[7:]]


def test_a_link_instead_of_a_directory_is_not_followed(tmp_path: pathlib.Path, state: str, base: str) -> None:
    (tmp_path / "victim").mkdir()
    os.symlink(tmp_path / "victim", os.path.join(state, "instances", UUID))
    for action in (create_disks, remove_disks):
        with pytest.raises(NovaliteError, match="is not a directory"):
            action([Disk(UUID, base)], state)
    assert (tmp_path / "victim").is_dir()


@pytest.mark.parametrize("size", [512, MIB, GIB, 20 * GIB, 4096 * GIB, 16384 * GIB, 8 * MIB + 512])
def test_an_overlay_is_what_qemu_img_makes(tmp_path: pathlib.Path, size: int) -> None:
    base, ours, theirs = (str(tmp_path / name) for name in ("base", "ours", "theirs"))
    pathlib.Path(base).write_bytes(b"\7" * 512)
    write_overlay(ours, base, size)
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", base, "-F", "raw", theirs, str(size)], check=True)
    # `children`, from QEMU 8 on, is the file below: its name, and how far it was written
    of_file = ("filename", "actual-size", "children")
    described = [{key: value for key, value in info(path).items() if key not in of_file} for path in (ours, theirs)]
    assert described[0] == described[1]
    assert os.stat(ours).st_mode & 0o777 == 0o600 and os.stat(ours).st_blocks <= os.stat(theirs).st_blocks
    command = ["qemu-img", "check", "-f", "qcow2", "--output=json", ours]
    checked = subprocess.run(command, check=True, capture_output=True)
    assert json.loads(checked.stdout)["check-errors"] == 0 and "leaks" not in json.loads(checked.stdout)
    with open(theirs, "rb") as handle:
        assert inspect.HEADER_V2.unpack_from(handle.read(72))[4:6] == (16, size)


@pytest.mark.parametrize(
    ("base", "size"), [("base", 512), ("/base", 0), ("/base", 513), ("/base", 1 << 62), (f"/{'x' * 1023}", 512)]
)
def test_an_overlay_that_cannot_be(tmp_path: pathlib.Path, base: str, size: int) -> None:
    with pytest.raises(NovaliteError, match=r"cannot be a base|cannot have"):
        write_overlay(str(tmp_path / "overlay"), base, size)
    assert os.listdir(tmp_path) == []


def test_an_overlay_is_written_to_by_qemu(tmp_path: pathlib.Path) -> None:
    base, overlay_file, raw = (str(tmp_path / name) for name in ("base", "overlay", "raw"))
    pathlib.Path(base).write_bytes(b"\7" * MIB)
    write_overlay(overlay_file, base, GIB)
    subprocess.run(
        ["qemu-io", "-f", "qcow2", "-c", "write -P 5 512M 64k", "-c", "write -P 6 4k 4k", overlay_file],
        check=True,
        capture_output=True,
    )
    subprocess.run(["qemu-img", "check", "-q", "-f", "qcow2", overlay_file], check=True)
    subprocess.run(["qemu-img", "convert", "-f", "qcow2", "-O", "raw", overlay_file, raw], check=True)
    with open(raw, "rb") as handle:
        assert handle.read(16384) == b"\7" * 4096 + b"\6" * 4096 + b"\7" * 8192
        handle.seek(512 * MIB)
        assert handle.read(70000) == b"\5" * 65536 + bytes(70000 - 65536)


@pytest.mark.parametrize("backend", ["qcow2", "raw"])
def test_ephemeral_and_swap_disks(state: str, base: str, backend: str) -> None:
    disk = Disk(UUID, base, 1, backend=backend, ephemeral_gb=1, swap_mb=16)
    planned = create_disks([disk], state, check_mode=True)
    assert create_disks([disk], state) == planned and files(state) == [base[7:], "ephemeral_1", "swap_16"]
    directory = os.path.join(state, "instances", UUID)
    assert planned["disks"][0]["created"] == ["disk", "disk.eph0", "disk.swap"]
    assert {recorded_format(directory, name) for name in planned["disks"][0]["created"]} == {backend}
    content = {}
    for name, size in (("disk", GIB), ("disk.eph0", GIB), ("disk.swap", 16 * MIB)):
        path = os.path.join(directory, name)
        raw = f"{directory}/{name}.raw"
        subprocess.run(["qemu-img", "convert", "-f", backend, "-O", "raw", path, raw], check=True)
        assert os.path.getsize(raw) == size
        with open(raw, "rb") as handle:
            content[name] = handle.read(MIB)
        assert os.stat(path).st_blocks * 512 < 4 * MIB
    assert content["disk"] == b"\1" * MIB
    assert content["disk.eph0"][1080:1082] == b"\x53\xef" and b"ephemeral0" in content["disk.eph0"][1024:2048]
    assert content["disk.swap"][4086:4096] == b"SWAPSPACE2"
    assert not create_disks([disk], state)["changed"]


def test_a_backend_does_not_change(state: str, base: str) -> None:
    create_disks([Disk(UUID, base, 1, backend="raw")], state)
    for check_mode in (True, False):
        with pytest.raises(NovaliteError, match="its disk is raw, not qcow2"):
            create_disks([Disk(UUID, base, 1)], state, check_mode)


def test_preallocated_room(state: str, base: str) -> None:
    result = create_disks([Disk(UUID, base, preallocation="space")], state)
    assert os.stat(result["disks"][0]["path"]).st_blocks * 512 >= 8 * MIB
    assert info(result["disks"][0]["path"])["virtual-size"] == 8 * MIB


@pytest.mark.parametrize(
    "change",
    [
        {"virtual_size_gb": -1},
        {"ephemeral_gb": -1},
        {"swap_mb": -1},
        {"ephemeral_gb": 1 << 20},
        {"swap_mb": 1 << 40},
        {"backend": "lvm"},
        {"preallocation": "metadata"},
    ],
)
def test_disks_that_cannot_be(state: str, base: str, change: dict[str, t.Any]) -> None:
    with pytest.raises(NovaliteError):
        create_disks([Disk(UUID, base, **change)], state)
    assert os.listdir(os.path.join(state, "instances")) == [] and files(state) == [base[7:]]


@pytest.mark.parametrize("how", ["discard", "zero"])
def test_a_wiped_disk(tmp_path: pathlib.Path, state: str, base: str, how: str) -> None:
    directory = os.path.dirname(create_disks([Disk(UUID, base, backend="raw", kernel=base)], state)["disks"][0]["path"])
    os.symlink(__file__, os.path.join(directory, "link"))
    os.mkfifo(os.path.join(directory, "fifo"))
    names = ("disk", "kernel", "disk.info")
    for name in names:
        os.link(os.path.join(directory, name), tmp_path / f"kept.{name}")
    source = pathlib.Path(__file__).read_bytes()
    sizes = [os.path.getsize(tmp_path / f"kept.{name}") for name in names]
    assert remove_disks([Disk(UUID)], state, check_mode=True, wipe=how)["changed"]
    assert (tmp_path / "kept.disk").read_bytes().count(b"\1") == MIB
    assert remove_disks([Disk(UUID)], state, wipe=how)["changed"] and not os.path.exists(directory)
    assert pathlib.Path(__file__).read_bytes() == source
    for name, size in zip(names, sizes):
        assert (tmp_path / f"kept.{name}").read_bytes() == bytes(size)
    if how == "discard":
        assert os.stat(tmp_path / "kept.disk").st_blocks == 0


def test_what_cannot_be_wiped_stays(state: str, base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = create_disks([Disk(UUID, base)], state)["disks"][0]["path"]

    def failing(*_arguments: t.Any) -> None:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(sparse, "_fallocate", failing)
    with pytest.raises(NovaliteError, match=r"cannot be wiped \(discard\): not supported; it was not removed"):
        remove_disks([Disk(UUID)], state, wipe="discard")
    assert os.path.exists(path)
    with pytest.raises(NovaliteError, match="wipe 'shred' is none of"):
        remove_disks([Disk(UUID)], state, wipe="shred")
