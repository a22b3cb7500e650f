# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Config drives as ISO9660 images, read back with another program."""

from __future__ import annotations

import os
import pathlib
import shutil
import stat
import subprocess
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._disk import config_drive, layout
from ansible_collections.novalite.cloud.plugins.module_utils._disk.config_drive import ConfigDrive, write_config_drives
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host.files import instance_dir

UUIDS = [f"5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f{n:02x}" for n in range(16)]
FILES = {
    "openstack/latest/meta_data.json": b'{"uuid": "x"}',
    "openstack/latest/user_data": b"#!/bin/sh\nsecret\n",
    "openstack/content/0000": bytes(range(256)),
    "ec2/latest/meta-data.json": b"{}",
}
WRITERS = ("genisoimage", "xorrisofs")  # of cdrkit and of libisoburn; mkisofs is a name of one of them
needs_tools = pytest.mark.skipif(
    os.getuid() != 0 or not all(map(shutil.which, (*WRITERS, "isoinfo"))),
    reason="needs root for the lock's directory, genisoimage and xorriso",
)


@pytest.fixture
def state(tmp_path: pathlib.Path) -> str:
    layout.prepare_state_dir(str(tmp_path))
    for uuid in UUIDS:
        os.mkdir(instance_dir(str(tmp_path), uuid))
    return str(tmp_path)


def isoinfo(path: str, *options: str) -> bytes:
    return subprocess.run(["isoinfo", "-i", path, *options], check=True, capture_output=True).stdout


def on_drive(path: str) -> dict[str, bytes]:
    names = isoinfo(path, "-R", "-f").decode().splitlines()
    contents = {name[1:]: isoinfo(path, "-R", "-x", name) for name in names}
    return {name: content for name, content in contents.items() if content or name in ("user-data",)}


def write(state: str, *drives: ConfigDrive, **options: t.Any) -> dict[str, t.Any]:
    return write_config_drives(drives, state, **options)


@needs_tools
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize(("kind", "label"), [("config-2", b"config-2"), ("nocloud", b"cidata")])
def test_the_drive_holds_the_files_under_its_label(
    state: str, kind: str, label: bytes, writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_drive, "PROGRAMS", (writer,))
    drive = ConfigDrive(UUIDS[0], kind, FILES)
    planned = write(state, drive, check_mode=True)
    assert planned["changed"] and os.listdir(instance_dir(state, UUIDS[0])) == []
    done = write(state, drive)
    assert done == planned and b"secret" not in str(done).encode()
    (entry,) = done["config_drives"]
    assert on_drive(entry["path"]) == FILES
    assert b"Volume id: " + label + b"\n" in isoinfo(entry["path"], "-d")
    joliet = {f"/{path}" for path in FILES}  # which Windows reads
    assert joliet <= set(isoinfo(entry["path"], "-J", "-f").decode().splitlines())
    assert stat.S_IMODE(os.stat(entry["path"]).st_mode) == 0o600
    assert sorted(os.listdir(os.path.dirname(entry["path"]))) == ["disk.config", "disk.config.sha256"]


@needs_tools
def test_a_drive_is_written_once_and_again_when_anything_changes(state: str) -> None:
    drive = ConfigDrive(UUIDS[0], "config-2", FILES)
    path = write(state, drive)["config_drives"][0]["path"]
    inode = os.stat(path).st_ino
    again = write(state, drive)
    assert not again["changed"] and again["diff"] == {"before": {}, "after": {}} and os.stat(path).st_ino == inode
    for other in (ConfigDrive(UUIDS[0], "nocloud", FILES), ConfigDrive(UUIDS[0], "nocloud", {**FILES, "a": b""})):
        assert write(state, other)["changed"] and not write(state, other)["changed"]
    os.unlink(f"{path}.sha256")  # killed between the drive and its record
    os.mkdir(os.path.join(os.path.dirname(path), config_drive.TREE))
    assert write(state, drive)["changed"] and on_drive(path) == FILES
    assert config_drive.TREE not in os.listdir(os.path.dirname(path))


@needs_tools
def test_sixteen_at_once(state: str) -> None:
    drives = [ConfigDrive(uuid, "nocloud", {"meta-data": uuid.encode()}) for uuid in UUIDS]
    for entry in write(state, *drives)["config_drives"]:
        assert on_drive(entry["path"]) == {"meta-data": entry["uuid"].encode()}


@needs_tools
def test_a_failure_leaves_the_old_drive(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    drive = ConfigDrive(UUIDS[0], "config-2", FILES)
    path = write(state, drive)["config_drives"][0]["path"]
    monkeypatch.setattr(config_drive, "PROGRAMS", ("no-such-program",))
    with pytest.raises(NovaliteError, match="install one of no-such-program"):
        write(state, ConfigDrive(UUIDS[0], "config-2", {"a": b"b"}))
    assert on_drive(path) == FILES and not write(state, drive)["changed"]
    with pytest.raises(NovaliteError, match="create the instance's disk first"):
        write(state, ConfigDrive("6d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41", "config-2", FILES))


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "", "a//b", "a/", "a\nb", "."])
def test_no_path_leaves_the_drive(path: str) -> None:
    with pytest.raises(NovaliteError, match="is not a path on a config drive"):
        ConfigDrive(UUIDS[0], "config-2", {path: b""})


def test_other_bounds() -> None:
    with pytest.raises(NovaliteError, match="'vfat' is not a config drive format"):
        ConfigDrive(UUIDS[0], "vfat", {})
    with pytest.raises(NovaliteError, match="do not go on a config drive"):
        ConfigDrive(UUIDS[0], "config-2", {"a": bytes(config_drive.MAX_SIZE + 1)})
    assert "secret" not in repr(ConfigDrive(UUIDS[0], "config-2", FILES))


PARTS = st.dictionaries(st.text("ab", min_size=1, max_size=3), st.binary(max_size=3), max_size=3)


@given(PARTS, PARTS)
def test_different_drives_have_different_hashes(parts: dict[str, bytes], other: dict[str, bytes]) -> None:
    first, second = (ConfigDrive(UUIDS[0], "config-2", files).digest for files in (parts, other))
    assert (first == second) == (parts == other)
