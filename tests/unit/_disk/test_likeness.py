# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What people register as a disk and is none is named with its remedy; a disk is one, whatever made its file system."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import typing as t
import zipfile
import zlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils import _likeness as likeness
from ansible_collections.novalite.cloud.plugins.module_utils._disk import sparse
from ansible_collections.novalite.cloud.plugins.module_utils._disk.inspect import inspect_image
from ansible_collections.novalite.cloud.plugins.module_utils._errors import ImageRefusedError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import image_files
from ansible_collections.novalite.cloud.plugins.module_utils._likeness import Content
from tests.support.examples import part_of

DECLARED = ("raw", "qcow2")


def _tar(content: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        member = tarfile.TarInfo("disk.vmdk")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def _former_tar(content: bytes) -> bytes:
    """Of tar before POSIX: its header has a checksum, and no magic."""
    header = bytearray(_tar(content)[:512])
    header[257:265] = bytes(8)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + content


def _zip(content: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("disk.img", content)
    return made.getvalue()


def _by(*command: str) -> t.Callable[[bytes], bytes]:
    return lambda content: subprocess.run(command, input=content, capture_output=True, check=True).stdout


# What it is called -> how it is made, of any content
PACKED: dict[str, t.Callable[[bytes], bytes]] = {
    "an xz file": lzma.compress,
    "an lzma file": lambda content: lzma.compress(content, lzma.FORMAT_ALONE),
    "a gzip file": gzip.compress,
    "a bzip2 file": bz2.compress,
    r"a tar \(such as an OVA\) archive": _tar,
    "a ZIP archive": _zip,
    # what a tool of several threads, parts or decades writes
    "a zstd or lz4 file": lambda content: b"\x5a\x2a\x4d\x18\4\0\0\0" + content[:4] + b"\x28\xb5\x2f\xfd" + content,
    "a ZIP": lambda content: b"PK\x07\x08" + _zip(content),
    "a tar": lambda content: _former_tar(content),
    "a cabinet archive": lambda content: b"MSCF\0\0\0\0" + content,
    "a web": lambda content: b"<!DOCTYPE html><p>f\xfcr Sie nicht: " + content.hex().encode(),
    "a web page or": lambda content: f"\n<!DOCTYPE html><p>{content.hex()}".encode("utf-16"),
    "a web page": lambda content: b"\n <!DOCTYPE html><title>404</title>" + content.hex().encode(),
    "a web page or XML": lambda content: b"\xef\xbb\xbf<?xml version='1.0'?><metalink/>" + content.hex().encode(),
}
PACKED |= {
    name: _by(*command)
    for name, command in {
        "a zstd file": ("zstd", "-qc"),
        "an lz4 file": ("lz4", "-qc"),
        "a compress": ("compress", "-c"),
    }.items()
    if shutil.which(command[0])
}


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("content", ["unpacked", "disk"])
@pytest.mark.parametrize("declared", DECLARED)
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(inside=st.binary(max_size=4096))
def test_what_is_to_be_unpacked_is_named(
    tmp_path: pathlib.Path, name: str, content: Content, declared: str, inside: bytes
) -> None:
    path = tmp_path / "image"
    path.write_bytes(PACKED[name](zlib.compress(inside)))  # no other format lies in it
    with pytest.raises(ImageRefusedError, match=f"declared {declared}, is {name}.*: ") as caught:
        inspect_image(str(path), declared, content=content)
    assert "declare the right" not in str(caught.value)


# What people register by mistake, by its first bytes (offset, bytes) -> what it is called
MISTAKEN: dict[str, tuple[int, bytes, str]] = {
    "xz": (0, b"\xfd7zXZ\0\0\4", "an xz file"),
    "gzip": (0, b"\x1f\x8b\x08\0", "a gzip file"),
    "bzip2": (0, b"BZh91AY&SY", "a bzip2 file"),
    "zstd": (0, b"\x28\xb5\x2f\xfd\x24", "a zstd file"),
    "lz4": (0, b"\x04\x22\x4d\x18\x64", "an lz4 file"),
    "lzip": (0, b"LZIP\x01\x0c", "an lzip file"),
    "xar": (0, b"xar!\0\x1c\0\1", "a xar"),
    "deb": (0, b"!<arch>\ndebian-binary   ", "a Debian package"),
    "ar": (0, b"!<arch>\nfile.o/ ", "an ar archive"),
    "rpm": (0, b"\xed\xab\xee\xdb\3\0", "an RPM"),
    "cpio": (0, b"070701000", "a cpio"),
    "rar": (0, b"Rar!\x1a\x07\1\0", "a RAR"),
    "7z": (0, b"7z\xbc\xaf\x27\x1c\0\4", "a 7z"),
    "zip": (0, b"PK\x03\x04\x14\0", "a ZIP"),
    "wim": (0, b"MSWIM\0\0\0\xd0", "a WIM"),
    "lha": (0, b"\x1c\x10-lh5-\x80", "an LHA"),
    "vma": (0, b"VMA\0\0\0\0\1", "a VMA"),
    "partclone": (0, b"partclone-image\0\x30", "a Partclone"),
    "android sparse": (0, b"\x3a\xff\x26\xed\1\0", "an Android sparse"),
    "apple sparse": (0, b"sprs\0\0\0\3", "an Apple sparse"),
    "aff": (0, b"AFF10\r\n\0AFF\0", "an AFF"),
    "ewf": (0, b"EVF\t\r\n\xff\0\1", "an EWF"),
    "ovf": (0, b'<?xml version="1.0"?><Envelope/>', "XML"),
    "json": (0, b'{"error": {"code": 404, "title": "Not Found"}}'.ljust(600), "a text"),
    "elf": (0, b"\x7fELF\2\1\1\0", "a program"),
    "pdf": (0, b"%PDF-1.7\n%\xe2\xe3", "a PDF"),
    "msi": (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0", "an MSI"),
    "sqlite": (0, b"SQLite format 3\0\x10", "an SQLite database"),
    "png": (0, b"\x89PNG\r\n\x1a\n\0", "a picture"),
    "jpeg": (0, b"\xff\xd8\xff\xe0\0\x10JFIF", "a picture"),
    "vmdk": (0, b"KDMV\1\0\0\0", "content is vmdk"),
    "vmdk descriptor": (0, b"# Disk DescriptorFile\nversion=1\n", "content is vmdk"),
    "vhd": (0, b"conectix\0\0\0\2", "content is vpc"),
    "vhdx": (0, b"vhdxfileM\0i\0", "content is vhdx"),
    "vdi": (0x40, b"\x7f\x10\xda\xbe\1\0", "content is vdi"),
    "parallels": (0, b"WithoutFreeSpace\2", "content is parallels"),
    "qed": (0, b"QED\0\0\0\1", "content is qed"),
    "luks": (0, b"LUKS\xba\xbe\0\2", "content is luks"),
    "qcow": (0, b"QFI\xfb\0\0\0\1", "content is qcow"),
}


@pytest.mark.parametrize("declared", DECLARED)
@pytest.mark.parametrize("kind", MISTAKEN)
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rest=st.binary(max_size=2048))
def test_a_file_of_another_kind_is_called_by_its_name(
    tmp_path: pathlib.Path, kind: str, declared: str, rest: bytes
) -> None:
    """Whatever follows its first bytes."""
    offset, first, name = MISTAKEN[kind]
    path = tmp_path / "image"
    path.write_bytes(bytes(offset) + first + (b"" if name == "a text" else bytes(64) + zlib.compress(rest)))
    with pytest.raises(ImageRefusedError, match=name):
        inspect_image(str(path), declared, content="disk")


MADE = {
    "ext4": ("mkfs.ext4", "-qF"),
    "xfs": ("mkfs.xfs", "-qf"),
    "btrfs": ("mkfs.btrfs", "-qf"),
    "vfat": ("mkfs.vfat",),
    "swap": ("mkswap", "-q"),
    "a partition table": ("sfdisk", "-q", "--label=dos"),
    "GPT": ("sfdisk", "-q", "--label=gpt"),
}


@pytest.mark.parametrize("name", MADE)
def test_a_disk_shows_what_it_is(tmp_path: pathlib.Path, name: str) -> None:
    command = MADE[name]
    if shutil.which(command[0], path="/usr/sbin:/sbin") is None:
        pytest.skip(f"{command[0]} is not installed")
    path = tmp_path / "disk"
    with path.open("wb") as file:
        file.truncate(400 << 20)
    subprocess.run(
        [shutil.which(command[0], path="/usr/sbin:/sbin") or "", *command[1:], path],
        input=b",,L\n",
        check=True,
        capture_output=True,
    )
    assert inspect_image(str(path), "raw", content="disk").disk_format == "raw"
    with pytest.raises(ImageRefusedError, match="declared qcow2 but its content is raw; declare the right disk_format"):
        inspect_image(str(path), "qcow2", content="disk")


@settings(max_examples=part_of(30), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    text=st.text(st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"]), min_size=1).filter(str.strip),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_a_text_in_any_language_is_called_one(tmp_path: pathlib.Path, text: str, encoding: str) -> None:
    path = tmp_path / "image"
    path.write_bytes(f"Error: {text}".encode(encoding))
    for declared in DECLARED:
        with pytest.raises(ImageRefusedError, match="is a text: what was downloaded is not the image"):
            inspect_image(str(path), declared, content="disk")


@settings(max_examples=part_of(50), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(content=st.binary(min_size=1, max_size=2048))
def test_anything_else_is_a_raw_disk_when_it_is_meant(tmp_path: pathlib.Path, content: bytes) -> None:
    """A guest's own disk, of which `any` is asked, is never judged by what the guest wrote."""
    path = tmp_path / "image"
    path.write_bytes(content)
    if likeness.shows_disk(content) or likeness.is_packed(content):
        return
    try:
        inspect_image(str(path), "raw")
    except ImageRefusedError:
        return  # in another format of QEMU's
    meant: tuple[Content, ...] = ("any", "unpacked")
    for each in meant:
        assert inspect_image(str(path), "raw", content=each).size == len(content)
    with pytest.raises(ImageRefusedError, match="any_content: true"):
        inspect_image(str(path), "raw", content="disk")
    what = likeness.is_no_disk(content) or "raw, and no disk either"
    with pytest.raises(ImageRefusedError, match=re.escape(f"declared qcow2 but its content is {what}")) as caught:
        inspect_image(str(path), "qcow2")
    assert "any_content" not in str(caught.value)


def test_a_guests_own_disk_is_not_judged(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "image"
    for written in (gzip.compress(b"x"), lzma.compress(b"x"), b"<html>", b"text"):
        path.write_bytes(written)
        assert inspect_image(str(path), "raw").disk_format == "raw"


@settings(max_examples=part_of(40), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5 << 20), st.binary(max_size=9000)), max_size=4), st.integers(0, 6 << 20))
def test_a_checksum_is_the_same_with_holes(tmp_path: pathlib.Path, parts: list[tuple[int, bytes]], size: int) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        for at, data in parts:
            os.pwrite(file.fileno(), data, at)
        file.truncate(max(size, os.fstat(file.fileno()).st_size))
    reports: list[int] = []
    with path.open("rb") as file:
        assert sparse.sha256_of(file.fileno(), reports.append) == hashlib.sha256(path.read_bytes()).hexdigest()
    assert reports == sorted(set(reports)) and (reports[-1:] or [0]) == [path.stat().st_size]


def test_holes_are_not_read(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(1 << 28)
        os.pwrite(file.fileno(), b"x" * 4096, 1 << 27)
    read: list[int] = []
    real = os.read

    def counted(fd: int, length: int) -> bytes:
        read.append(length)
        return real(fd, length)

    monkeypatch.setattr(os, "read", counted)
    with path.open("rb", buffering=0) as handle:
        sparse.sha256_of(handle.fileno())
    assert sum(read) <= 1 << 20


def test_a_large_file_says_how_far_it_is(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(image_files, "REPORT_AFTER", 0.0)
    path = tmp_path / "large"
    path.write_bytes(bytes(510) + b"\x55\xaa" + zlib.compress(b"") * (1 << 18))
    with caplog.at_level("INFO", "novalite.images"):
        image_files.measure("image 'large'", str(path), None, "raw", None)
    assert "image 'large': source" in caplog.text and "s left" in caplog.text
