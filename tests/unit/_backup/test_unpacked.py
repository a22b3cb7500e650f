# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Archives of files of backups, of a compute host that need not be trusted: what becomes of them on the controller."""

from __future__ import annotations

import io
import os
import pathlib
import stat
import tarfile
import tempfile
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._backup import unpacked
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError

ROOM = 1 << 20


def archive(path: pathlib.Path, *members: tuple[str, t.Mapping[str, t.Any]]) -> str:
    """Write a tar archive; each member has these fields, and as many bytes as it says."""
    with tarfile.open(path, "w") as tar:
        for name, fields in members:
            member = tarfile.TarInfo(name)
            for field, value in fields.items():
                setattr(member, field, value)
            tar.addfile(member, io.BytesIO(b"x" * member.size) if member.isreg() else None)
    return str(path)


def test_files_and_directories_are_made_and_belong_to_who_asks(tmp_path: pathlib.Path) -> None:
    fields = {"size": 3, "mode": 0o6777, "uid": 7, "mtime": 5}
    path = archive(tmp_path / "tar", ("etc", {"type": tarfile.DIRTYPE}), ("etc/a", fields), ("b/c", {}))
    into = tmp_path / "new" / "files"
    unpacked.unpack(path, str(into), ROOM)
    assert {str(path.relative_to(into)) for path in into.rglob("*")} == {"etc", "etc/a", "b", "b/c"}
    status = (into / "etc" / "a").stat()
    assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_mtime) == (0o600, os.getuid(), 5)
    assert stat.S_IMODE(into.stat().st_mode) == 0o700 and os.listdir(into.parent) == ["files"]
    with pytest.raises(NovaliteError, match="is there already"):
        unpacked.unpack(path, str(into), ROOM)


@pytest.mark.parametrize(
    ("name", "fields", "words"),
    [
        ("../a", {}, "is not the name of a file below"),
        ("/etc/a", {}, "is not the name of a file below"),
        ("a/../../b", {}, "is not the name of a file below"),
        (".", {"type": tarfile.DIRTYPE}, "is not the name of a file below"),
        ("/".join("d" * 200), {}, "is not the name of a file below"),
        ("link", {"type": tarfile.SYMTYPE, "linkname": "/etc"}, "neither a file nor a directory"),
        ("hard", {"type": tarfile.LNKTYPE, "linkname": "good"}, "neither a file nor a directory"),
        ("device", {"type": tarfile.CHRTYPE}, "neither a file nor a directory"),
        ("pipe", {"type": tarfile.FIFOTYPE}, "neither a file nor a directory"),
        ("large", {"size": ROOM + 1}, "more files, or larger ones"),
        ("good", {}, "File exists"),
    ],
)
def test_of_an_archive_with_anything_else_nothing_is_made(
    tmp_path: pathlib.Path, name: str, fields: dict[str, t.Any], words: str
) -> None:
    path = archive(tmp_path / "tar", ("good", {"size": 1}), (name, fields))
    with pytest.raises((NovaliteError, OSError), match=words):
        unpacked.unpack(path, str(tmp_path / "files"), ROOM)
    assert os.listdir(tmp_path) == ["tar"]


@given(st.binary(max_size=2048), st.integers(0, 4096))
def test_bytes_that_are_no_archive_are_an_error(noise: bytes, at: int) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("good"))
    data = bytearray(made.getvalue())
    data[at : at + len(noise)] = noise
    with tempfile.TemporaryDirectory() as directory:
        path, into = pathlib.Path(directory, "tar"), pathlib.Path(directory, "files")
        path.write_bytes(data)
        try:
            unpacked.unpack(str(path), str(into), ROOM)
        except (NovaliteError, OSError):
            assert os.listdir(directory) == ["tar"]
        else:
            assert sorted(os.listdir(directory)) == ["files", "tar"]


def test_lines_say_what_is_there_and_what_was_left_out() -> None:
    systems = [{"partition": 1, "type": "ext4", "size": 2 << 30}, {"partition": 15, "type": "fat16", "size": 1 << 27}]
    about = {"disks": ["vda", "vdb"], "disk": "vda", "file_systems": systems, "partition": 1}
    entry = {"shown": "localtime", "kind": "link", "size": 5, "mode": 0o777, "modified": 0, "link": "UTC"}
    head, line = unpacked.lines_of({**about, "entries": [entry]}, None)
    assert head == "disk vda of vda, vdb; partition 1: ext4 of 2048 MiB (read), partition 15: fat16 of 128 MiB"
    assert line == "l0777            5 1970-01-01 00:00 localtime -> UTC"
    lines = unpacked.lines_of({**about, "count": 2, "skipped": ["/a: it is a link"] * 22}, "/root/found")
    assert lines[1:3] == ["2 files and directories are in /root/found", "left out: /a: it is a link"]
    assert lines[-1] == "left out: 2 more" and len(lines) == 23
