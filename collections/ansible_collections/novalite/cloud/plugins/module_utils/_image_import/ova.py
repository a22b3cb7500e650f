# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Members of an OVA, a tar archive of an appliance (DSP0243, OVF 1.1, section 7), read by a reader of our own.

It knows regular files with plain names, and nothing else: no directory, link or device node, no path, no header that
says something about another one. So nothing in an archive can lead anywhere, and nothing is unpacked but by offset.
"""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import os
import re
import stat
import typing as t

from .._errors import ImageRefusedError, NovaliteError
from .._host.files import opened
from .ovf import MAX_OVF, Appliance, appliance_of

BLOCK = 512
MAX_MEMBERS = 64
MAX_MANIFEST = 1 << 20  # bytes
CHUNK = 1 << 20
_NAME = re.compile(r"[A-Za-z0-9_()+,@#][A-Za-z0-9 ._()+,@#-]{0,98}")
_LINE = re.compile(r"(SHA1|SHA256|SHA512)\s*\(([^)\r\n]{1,100})\)\s*=\s*([0-9a-fA-F]{40,128})\s*")
_REGULAR = (b"0", b"\0")


@dataclasses.dataclass(frozen=True)
class Member:
    """A file in the archive: `size` bytes at `offset`."""

    name: str
    offset: int
    size: int


@dataclasses.dataclass(frozen=True)
class Archive:
    """An OVA that was read: what its descriptor says, and its members by name."""

    appliance: Appliance
    members: t.Mapping[str, Member]


def read_archive(path: str, name: str) -> Archive:
    """Read the OVA at `path`, which messages call `name`, and verify its manifest where it has one.

    Raises ImageRefusedError for what is no OVA, and for an archive that has more than plain files.
    """
    try:
        with opened(path, os.O_RDONLY | os.O_NONBLOCK) as fd:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise ImageRefusedError(f"{name} is not a regular file")
            members = _members(fd, name)
            descriptors = [member for member in members.values() if member.name.lower().endswith(".ovf")]
            if len(descriptors) != 1:
                raise ImageRefusedError(f"{name} has {len(descriptors)} descriptors (*.ovf): an OVA has one")
            text = _text(fd, descriptors[0], MAX_OVF, name)
            _check_manifest(fd, members, descriptors[0], name)
    except OSError as error:
        raise NovaliteError(f"{name} cannot be read: {error.strerror}") from error
    appliance = appliance_of(text, f"{name}: {descriptors[0].name}")
    for disk in appliance.disks:
        if disk.file not in members:
            raise ImageRefusedError(f"{name}: its disk {disk.file[:80]!r} is not in the archive")
    return Archive(appliance, members)


def copy_member(path: str, member: Member, target: t.BinaryIO) -> None:
    """Write the bytes of `member` of the archive at `path` into the file `target`. Raises OSError."""
    with opened(path) as fd:
        for chunk in _chunks(fd, member):
            target.write(chunk)


def _members(fd: int, name: str) -> dict[str, Member]:
    members: dict[str, Member] = {}
    size, position = os.fstat(fd).st_size, 0
    while position + BLOCK <= size:
        header = os.pread(fd, BLOCK, position)
        if not header.strip(b"\0"):
            break  # the end: two blocks of zeros
        member = _member(header, position + BLOCK, name)
        if member.offset + member.size > size:
            raise ImageRefusedError(f"{name} is cut off: its member {member.name!r} leaves its {size} bytes")
        if member.name in members:
            raise ImageRefusedError(f"{name} has two members {member.name!r}")
        if len(members) == MAX_MEMBERS:
            raise ImageRefusedError(f"{name} has more than {MAX_MEMBERS} members")
        members[member.name] = member
        position = member.offset + -(-member.size // BLOCK) * BLOCK
    return members


def _member(header: bytes, offset: int, name: str) -> Member:
    if header[257:262] != b"ustar":
        raise ImageRefusedError(f"{name} is not an OVA: it is no tar archive, or a damaged one")
    if _number(header[148:156], name) != sum(header[:148]) + 8 * ord(" ") + sum(header[156:]):
        raise ImageRefusedError(f"{name} has a member whose header has a wrong checksum: it is damaged")
    text = header[:100].split(b"\0")[0].decode("utf-8", "replace")
    if header[156:157] not in _REGULAR or header[157:257].strip(b"\0"):
        raise ImageRefusedError(
            f"{name} has the member {text[:80]!r}, which is not a plain file: pack it anew (tar --format=ustar -cf)"
        )
    if not _NAME.fullmatch(text) or header[345:500].strip(b"\0"):
        raise ImageRefusedError(f"{name} has a member named {text[:80]!r}: names are plain ones, without directories")
    return Member(text, offset, _number(header[124:136], name))


def _number(field: bytes, name: str) -> int:
    """A number as ustar has it, in octal digits, or as GNU tar writes a larger one, in base 256."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b" \0")
    if not re.fullmatch(rb"[0-7]{1,12}", digits):
        raise ImageRefusedError(f"{name} has a member whose header holds no number: it is damaged")
    return int(digits, 8)


def _text(fd: int, member: Member, limit: int, name: str) -> bytes:
    if member.size > limit:
        raise ImageRefusedError(f"{name}: {member.name} has {member.size} bytes: at most {limit} are accepted")
    return os.pread(fd, member.size, member.offset)


def _chunks(fd: int, member: Member) -> t.Iterator[bytes]:
    position, end = member.offset, member.offset + member.size
    while position < end:
        chunk = os.pread(fd, min(CHUNK, end - position), position)
        if not chunk:
            raise OSError(errno.EIO, "the archive became shorter while it was read")
        yield chunk
        position += len(chunk)


def _check_manifest(fd: int, members: t.Mapping[str, Member], descriptor: Member, name: str) -> None:
    manifest = members.get(f"{descriptor.name[: -len('.ovf')]}.mf")
    if manifest is None:
        return
    text = _text(fd, manifest, MAX_MANIFEST, name).decode("utf-8", "replace")
    for line in filter(str.strip, text.splitlines()):
        matched = _LINE.fullmatch(line)
        if matched is None:
            raise ImageRefusedError(f"{name}: {manifest.name} has a line that is no digest: {line[:80]!r}")
        algorithm, file, expected = matched.groups()
        if file not in members:
            raise ImageRefusedError(f"{name}: {manifest.name} names {file!r}, which is not in the archive")
        digest = hashlib.new(algorithm.lower(), usedforsecurity=False)
        for chunk in _chunks(fd, members[file]):
            digest.update(chunk)
        if digest.hexdigest() != expected.lower():
            raise ImageRefusedError(
                f"{name}: {file} has the {algorithm} digest {digest.hexdigest()}, not {expected} as its manifest says"
            )
