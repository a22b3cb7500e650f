# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks that are made anew in the place of others, and images that are made of disks; needs qemu-img, no root."""

from __future__ import annotations

import os
import pathlib
import subprocess
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk import controller_files, layout, overlay, volumes
from ansible_collections.novalite.cloud.plugins.module_utils._disk.overlay import (
    Disk,
    create_disks,
    recorded_format,
    replace_disks,
)
from ansible_collections.novalite.cloud.plugins.module_utils._disk.removal import remove_disks
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._snapshots import image_snapshots as snapshot
from tests.unit._disk.state import MIB, needs_qemu_img, qcow2
from tests.unit._disk.test_volume_data import Guests

UUID = "5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41"
IMAGE = "1f0f6a9e-8f2b-4a53-8d9f-2a9d3f8f1c22"
pytestmark = needs_qemu_img


def write(path: str, text: bytes) -> None:
    """Into the disk, as its guest would."""
    raw = f"{path}.text"
    pathlib.Path(raw).write_bytes(text.ljust(512, b"\0"))
    subprocess.run(["qemu-io", "-f", "qcow2", "-c", f"write -s {raw} 2M 512", path], check=True, capture_output=True)
    os.unlink(raw)


def read(path: str, tmp_path: pathlib.Path) -> bytes:
    raw = tmp_path / "read.raw"
    subprocess.run(["qemu-img", "convert", "-f", "qcow2", "-O", "raw", path, str(raw)], check=True)
    return raw.read_bytes()[2 * MIB :][:512].rstrip(b"\0")


def content(directory: str) -> dict[str, int]:
    return {name: os.stat(os.path.join(directory, name)).st_ino for name in sorted(os.listdir(directory))}


def test_a_disk_made_anew_holds_nothing_old(state: str, base: str, tmp_path: pathlib.Path) -> None:
    disk = Disk(UUID, base, kernel=base)
    path = create_disks([disk], state)["disks"][0]["path"]
    directory = os.path.dirname(path)
    write(path, b"secret")
    pathlib.Path(directory, "console.log").write_text("kept")
    pathlib.Path(directory, "disk.config").write_text("old")
    before = content(directory)
    assert replace_disks([disk], state, check_mode=True)["changed"] and content(directory) == before
    done = replace_disks([disk], state)
    assert done["changed"] and done["disks"][0]["created"] == ["disk", "kernel"]
    assert sorted(os.listdir(directory)) == ["console.log", "disk", "disk.fresh", "disk.info", "kernel"]
    assert read(path, tmp_path) == b"" and recorded_format(directory) == "qcow2"


def test_another_image_and_another_set_of_files(state: str, base: str) -> None:
    directory = os.path.dirname(create_disks([Disk(UUID, base, kernel=base, ramdisk=base)], state)["disks"][0]["path"])
    replace_disks([Disk(UUID, base, backend="raw")], state)
    assert sorted(os.listdir(directory)) == ["disk", "disk.fresh", "disk.info"] and recorded_format(directory) == "raw"


def test_after_a_failure_the_old_disks_are_back(state: str, base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(UUID, base, kernel=base)
    directory = os.path.dirname(create_disks([disk], state)["disks"][0]["path"])
    before = content(directory)

    def fail(*_args: t.Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(overlay, "copy_file", fail)
    with pytest.raises(NovaliteError, match="No space left"):
        replace_disks([disk], state)
    assert content(directory) == before


def test_what_a_killed_run_set_aside_goes(state: str, base: str) -> None:
    disk = Disk(UUID, base)
    directory = os.path.dirname(create_disks([disk], state)["disks"][0]["path"])
    os.mkdir(f"{directory}/replaced")
    for name in ("disk", "disk.info"):
        os.rename(f"{directory}/{name}", f"{directory}/replaced/{name}")
    replace_disks([disk], state)
    assert sorted(os.listdir(directory)) == ["disk", "disk.fresh", "disk.info"]


def test_a_rescue_leaves_the_instances_own_files_alone(state: str, base: str) -> None:
    disk, rescue = Disk(UUID, base, kernel=base), Disk(UUID, base, kernel=base, rescue=True)
    directory = os.path.dirname(create_disks([disk], state)["disks"][0]["path"])
    own = {name: number for name, number in content(directory).items() if name != "disk.info"}
    assert replace_disks([rescue], state)["disks"][0]["path"].endswith("/disk.rescue")
    replace_disks([rescue], state)
    inode_by_name = content(directory)
    rescues = {"disk.fresh.rescue", "disk.rescue", "kernel.rescue"}
    assert set(inode_by_name) == {*own, *rescues, "disk.info"} and inode_by_name.items() >= own.items()
    assert recorded_format(directory, "disk.rescue") == recorded_format(directory) == "qcow2"
    assert remove_disks([rescue], state, check_mode=True)["changed"]
    assert remove_disks([rescue], state)["disks"][0]["removed"] == ["disk.rescue", "kernel.rescue", "disk.fresh.rescue"]
    assert content(directory).keys() == {*own, "disk.info"} and not remove_disks([rescue], state)["changed"]
    assert not create_disks([disk], state)["changed"]


def test_an_image_of_a_disk_that_is_off(state: str, base: str, tmp_path: pathlib.Path) -> None:
    disk = create_disks([Disk(UUID, base)], state)["disks"][0]["path"]
    write(disk, b"data")

    def backup(*_args: t.Any) -> None:
        raise AssertionError("nothing runs")

    asked = [snapshot.Snapshot(UUID, IMAGE)]
    (planned,) = snapshot.take(asked, state, lambda _uuid: False, backup, check_mode=True)
    assert planned.how == "cold" and not os.path.exists(planned.path)
    (taken,) = snapshot.take(asked, state, lambda _uuid: False, backup)
    assert taken.error is None and taken.virtual_size == 8 * MIB
    assert read(taken.path, tmp_path) == b"data" and os.stat(taken.path).st_mode & 0o777 == 0o400
    got = controller_files.received(IMAGE, str(tmp_path / "here"), lambda path: _copy(taken.path, path), taken.size)
    assert got["source"] == str(tmp_path / "here" / IMAGE) and got["virtual_size"] == 8 * MIB
    assert snapshot.remove([IMAGE], state) == [IMAGE] and snapshot.remove([IMAGE], state) == []


@pytest.mark.parametrize(("stored", "asked"), [("raw", "qcow2"), ("raw", "raw"), ("qcow2", "raw"), ("qcow2", "qcow2")])
def test_an_image_of_a_volume(state: str, tmp_path: pathlib.Path, stored: str, asked: str) -> None:
    spec = {"id": UUID, "kind": "volume", "backend": "file", "options": {}, "format": stored, "size_gb": 1}
    path = layout.volume_path(spec, state)
    os.makedirs(os.path.dirname(path))
    subprocess.run(["qemu-img", "create", "-q", "-f", stored, path, "8M"], check=True)
    subprocess.run(["qemu-io", "-f", stored, "-c", "write -P 0x61 0 4096", path], check=True, stdout=subprocess.DEVNULL)
    image = snapshot.Snapshot(UUID, IMAGE, asked, {**spec, "instance_uuid": None})
    (taken,) = snapshot.take([image], state, lambda _uuid: pytest.fail("nobody has it"), lambda *_args: None)
    assert taken.error is None and (taken.how, taken.virtual_size) == ("cold", 8 * MIB)
    got = controller_files.received(
        IMAGE, str(tmp_path / "here"), lambda target: _copy(taken.path, target), taken.size, asked
    )
    raw = tmp_path / "raw"
    subprocess.run(["qemu-img", "convert", "-f", asked, "-O", "raw", got["source"], str(raw)], check=True)
    assert raw.read_bytes()[:4096] == b"a" * 4096 and raw.stat().st_size == 8 * MIB


def test_an_image_is_converted_where_it_arrives(tmp_path: pathlib.Path) -> None:
    source = tmp_path / "qcow2"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", source, "8M"], check=True)
    subprocess.run(["qemu-io", "-f", "qcow2", "-c", "write 0 4096", source], check=True, stdout=subprocess.DEVNULL)
    size = source.stat().st_size
    got = controller_files.received(
        IMAGE, str(tmp_path / "here"), lambda path: _copy(str(source), path), size, "qcow2", "raw"
    )
    made = pathlib.Path(got["source"])
    assert (got["size"], made.stat().st_size, got["virtual_size"]) == (8 * MIB, 8 * MIB, 8 * MIB)
    assert made.stat().st_blocks * 512 < MIB and os.listdir(tmp_path / "here") == [IMAGE]


def test_a_volume_that_a_guest_has_is_copied_by_its_qemu(state: str) -> None:
    spec = {"id": UUID, "kind": "volume", "backend": "file", "options": {}, "format": "raw", "size_gb": 1}
    seen = []

    def backup(asked: snapshot.Snapshot, _disk: str, path: str) -> None:
        seen.append((asked.holder, asked.disk_format))
        pathlib.Path(path).write_bytes(b"\0" * MIB)

    image = snapshot.Snapshot(UUID, IMAGE, "raw", {**spec, "instance_uuid": "its-guest"})
    (taken,) = snapshot.take([image], state, lambda uuid: uuid == "its-guest", backup)
    assert (taken.error, taken.how, taken.size, seen) == (None, "live", MIB, [("its-guest", "raw")])


def test_what_a_guest_wrote_into_its_raw_disk_is_never_a_format(state: str, base: str, tmp_path: pathlib.Path) -> None:
    """CVE-2014-0134, CVE-2015-7548: a qcow2 header with a backing file, as the content of a raw disk."""
    disk = create_disks([Disk(UUID, base, backend="raw")], state)["disks"][0]["path"]
    secret, evil = tmp_path / "secret", tmp_path / "evil"
    secret.write_bytes(b"hidden".ljust(8 * MIB, b"!"))
    subprocess.run(
        ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(secret), str(evil), "8M"], check=True
    )
    with open(disk, "r+b") as handle:
        handle.write(evil.read_bytes())
    (taken,) = snapshot.take([snapshot.Snapshot(UUID, IMAGE)], state, lambda _uuid: False, lambda *_args: None)
    assert taken.error is None and b"hidden" not in pathlib.Path(taken.path).read_bytes()
    raw = tmp_path / "raw"
    subprocess.run(["qemu-img", "convert", "-f", "qcow2", "-O", "raw", taken.path, str(raw)], check=True)
    assert raw.read_bytes()[:4] == b"QFI\xfb"  # the header as data


def test_a_copy_that_fails_leaves_nothing(state: str, base: str) -> None:
    create_disks([Disk(UUID, base)], state)

    def backup(_asked: snapshot.Snapshot, _disk: str, path: str) -> None:
        pathlib.Path(path).write_bytes(b"half")
        raise NovaliteError("no room")

    (taken,) = snapshot.take([snapshot.Snapshot(UUID, IMAGE)], state, lambda _uuid: True, backup)
    assert taken.error is not None and "no room" in taken.error and not os.path.exists(taken.path)
    other = "9f0f6a9e-8f2b-4a53-8d9f-2a9d3f8f1c22"
    (missing,) = snapshot.take([snapshot.Snapshot(other, IMAGE)], state, lambda _uuid: False, backup)
    assert missing.error is not None and "does not exist" in missing.error


@pytest.mark.root
@pytest.mark.parametrize("fmt", ["qcow2", "raw"])
def test_images_take_no_snapshot_of_a_volume_for_stale(state: str, base: str, fmt: str) -> None:
    """Nobody writes to a snapshot, nor to a volume that is attached to nothing, for months; and an image may have its
    id, which whoever makes one chooses."""
    create_disks([Disk(UUID, base)], state)
    kinds: tuple[dict[str, t.Any], ...] = ({"kind": "volume"}, {"kind": "snapshot"})
    specs = [{"id": IMAGE, "backend": "file", "options": {}, "format": fmt, "size_gb": 1, **kind} for kind in kinds]
    assert [done.error for done in volumes.ensure(specs, "present", state, Guests())] == [None, None]
    (abandoned,) = snapshot.take([snapshot.Snapshot(UUID, UUID)], state, lambda _uuid: False, lambda *_args: None)
    paths = [layout.volume_path(spec, state) for spec in specs]
    for path in (abandoned.path, *paths):
        os.utime(path, (0, 0))
    (taken,) = snapshot.take([snapshot.Snapshot(UUID, IMAGE)], state, lambda _uuid: False, lambda *_args: None)
    assert taken.error is None and not os.path.exists(abandoned.path)
    assert snapshot.remove([IMAGE], state) == [IMAGE]
    assert [done.action for done in volumes.ensure(specs, "present", state, Guests())] == ["none", "none"]


@pytest.mark.parametrize("image_id", ["", "..", "../../etc/passwd", IMAGE.upper(), f"{IMAGE}\n"])
def test_only_an_id_is_a_file(state: str, image_id: str) -> None:
    with pytest.raises(NovaliteError, match="is not the id of an image"):
        snapshot.remove([image_id], state)


@pytest.mark.parametrize(("data", "size"), [(b"no qcow2", 8), (None, 5)])
def test_what_a_host_sends_is_judged(tmp_path: pathlib.Path, data: bytes | None, size: int) -> None:
    image = qcow2(tmp_path)
    if data is not None:
        pathlib.Path(image.source).write_bytes(data)
    with pytest.raises(NovaliteError):
        controller_files.received(IMAGE, str(tmp_path / "here"), lambda path: _copy(image.source, path), size)
    assert os.listdir(tmp_path / "here") == []


def _copy(source: str, target: str) -> None:
    pathlib.Path(target).write_bytes(pathlib.Path(source).read_bytes())
