# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A backup as it stands in the store: its disks, what it changes in which other, and how it was taken."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import typing as t

from .._errors import NovaliteError
from .._host.files import is_uuid
from .._json import JsonMapping, JsonObject
from .objects import FORMAT, Header, Written, size_of

FULL, INCREMENTAL = "full", "incremental"
CRASH, FILESYSTEM = "crash", "filesystem"  # consistency
INLINE = "inline"  # source of blocks that are in the manifest's own object


@dataclasses.dataclass(frozen=True)
class SavedDisk:
    """A disk in a backup: `name` is its target in the guest, `identity` what it is known by in the next backup.

    `reason` says why it is a full one. `source` names the store's object of its blocks, None without any; `whole` is
    the hash of the hashes of all blocks that the disk had, those of other backups among them.
    """

    name: str
    identity: str
    size: int  # bytes of the virtual disk
    kind: str
    reason: str
    has_bitmap: bool
    source: str | None
    written: Written
    whole: str


@dataclasses.dataclass(frozen=True)
class Manifest:
    """A backup of `server`. Its incremental disks change what they were in `parent`; the next one may follow it as long
    as the disks have the bitmaps of the libvirt checkpoint `checkpoint`."""

    backup: str
    server: str
    parent: str | None
    checkpoint: str | None
    created: int  # milliseconds since 1970
    consistency: str
    definition: str  # the domain's XML
    disks: tuple[SavedDisk, ...]
    firmware: str | None = None  # the variables of a UEFI guest's, compressed by zlib, in base64
    tpm: str | None = None  # the state of an emulated TPM, likewise

    @property
    def kind(self) -> str:
        """Full where no disk needs another backup."""
        return FULL if all(disk.kind == FULL for disk in self.disks) else INCREMENTAL

    def disk(self, name: str) -> SavedDisk:
        """The disk with this target. Raises NovaliteError."""
        for disk in self.disks:
            if disk.name == name:
                return disk
        has = ", ".join(disk.name for disk in self.disks)
        raise NovaliteError(f"backup {self.backup} has no disk {name}: name one of {has}")

    def header(self, disk: SavedDisk) -> Header:
        """The header with which the object of `disk` has to begin."""
        parent = self.parent if disk.kind == INCREMENTAL else None
        return Header(self.backup, parent, disk.name, disk.size)

    def line(self) -> bytes:
        """The first line of the backup's object, which the disks' maps follow, and then the blocks of those that have
        them there."""
        return json.dumps({"format": FORMAT, **dataclasses.asdict(self)}, sort_keys=True).encode() + b"\n"

    def seal(self) -> str:
        """The hash of the line."""
        return hashlib.sha256(self.line()).hexdigest()

    def before(self, disk: SavedDisk) -> tuple[SavedDisk, ...]:
        """The disks before this one."""
        return self.disks[: self.disks.index(disk)]

    def after(self, disk: SavedDisk) -> tuple[SavedDisk, ...]:
        """The disks after this one."""
        return self.disks[self.disks.index(disk) + 1 :]

    def inline_size(self, disk: SavedDisk) -> int:
        """The bytes that the blocks of a disk have in the backup's own object."""
        return size_of(self.header(disk), disk.written) if disk.source == INLINE else 0


LONGEST = 4 << 20  # bytes of a manifest's line


def parse(line: bytes, name: str) -> Manifest:
    """Read the manifest of the object `name`. Raises NovaliteError when it is none."""
    try:
        fields = json.loads(line)
        if fields.pop("format") != FORMAT:
            raise NovaliteError(f"{name}: it is not in the format {FORMAT}: use a newer novalite")
        return Manifest(**{**fields, "disks": tuple(_disk(disk) for disk in fields["disks"])})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise NovaliteError(f"{name}: its manifest cannot be read ({error}): it is damaged") from None


def _disk(fields: JsonMapping) -> SavedDisk:
    return SavedDisk(**{**fields, "written": Written(**fields["written"])})


def record_of(saved: Manifest) -> JsonObject:
    """Return the fields that the ledger keeps of a backup."""
    reasons = sorted({disk.reason for disk in saved.disks if disk.reason})
    return {
        "id": saved.backup,
        "kind": saved.kind,
        "parent_id": saved.parent,
        "reason": "; ".join(reasons) if saved.kind == FULL else None,
        "consistency": saved.consistency,
        "size": sum(disk.written.data for disk in saved.disks),
        "disks": [
            {
                **{"name": disk.name, "size": disk.size, "kind": disk.kind, "reason": disk.reason},
                "volume": disk.identity if is_uuid(disk.identity) else None,
            }
            for disk in saved.disks
        ],
    }


def chain(manifests: t.Mapping[str, Manifest], backup: str) -> list[Manifest]:
    """List the backups that `backup` needs, the oldest first, which is full, and itself last. Raises NovaliteError when
    one is missing."""
    needed: list[Manifest] = []
    name: str | None = backup
    while True:
        manifest = manifests.get(name or "")
        if manifest is None or manifest in needed:
            subject = f"backup {backup}" + (f" needs backup {name}, which" if needed else "")
            raise NovaliteError(f"{subject} is not in the store: restore another one (listed by their server)")
        needed.insert(0, manifest)
        if manifest.kind == FULL:
            return needed
        name = manifest.parent


def disk_chain(needed: t.Sequence[Manifest], name: str) -> list[tuple[Manifest, SavedDisk]]:
    """List what the disk `name` of the last of `needed` is made of, the oldest first. Raises NovaliteError."""
    layers: list[tuple[Manifest, SavedDisk]] = []
    for manifest in reversed(needed):
        disk = manifest.disk(name)
        layers.insert(0, (manifest, disk))
        if disk.kind == FULL:
            return layers
    raise NovaliteError(f"disk {name} of backup {needed[-1].backup} has no full copy in the store: restore another one")
