# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Delta that goes to a second host: the blocks that changed of all disks, in parts, and last what they are.

Each part is an object of some blocks of one disk, as a backup has it (_backup/objects.py). The last file, DELTA, has
the hash of each part: without it, or with another part, nothing of it counts.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import stat
import typing as t

from .._backup import manifest as manifests
from .._backup.domain_xml import REPLICA_PREFIX
from .._backup.manifest import Manifest
from .._disk import layout
from .._errors import NovaliteError
from .._host.files import is_uuid
from .._json import JsonObject

DELTA = "delta.json"
DISKS = (layout.DISK, layout.EPHEMERAL, layout.SWAP)  # a server's own ones, by their files
PART_BLOCKS = 512  # 32 MiB, which are held in memory
LONGEST = 64 << 20  # bytes of DELTA
_PART = re.compile(r"[0-9]{8}\Z")
_PIECE = 1 << 20


class DamagedError(NovaliteError):
    """Damage of what lies on a second host, which is not what was sent: another full copy takes its place."""


@dataclasses.dataclass(frozen=True)
class Part:
    """File with some blocks of `disk`, by its target in the guest."""

    name: str
    disk: str
    size: int
    digest: str  # SHA-256


@dataclasses.dataclass(frozen=True)
class Delta:
    """Blocks that change the copy `manifest.parent` to the copy `manifest.backup`, or make that one. `files` names the
    file of each disk, by its target."""

    manifest: Manifest
    files: t.Mapping[str, str]
    parts: tuple[Part, ...]

    def text(self) -> bytes:
        """The content of DELTA."""
        fields = {"manifest": self.manifest.line().decode(), "files": dict(self.files)}
        return json.dumps({**fields, "parts": [dataclasses.asdict(part) for part in self.parts]}).encode()

    @property
    def moved(self) -> int:
        """Bytes of all parts."""
        return sum(part.size for part in self.parts)


def parse(text: bytes, name: str) -> Delta:
    """Read the content of DELTA. Raises DamagedError, which says `name`, for any other."""
    try:
        fields = json.loads(text)
        manifest = manifests.parse(fields["manifest"].encode(), name)
        parts = tuple(Part(**part) for part in fields["parts"])
        delta = Delta(manifest, {str(disk): str(file) for disk, file in fields["files"].items()}, parts)
        names = [disk.name for disk in manifest.disks]
        sound = is_uuid(manifest.backup) and is_uuid(manifest.server)
        sound = sound and sorted(delta.files) == sorted(names) and len(set(delta.files.values())) == len(names)
        sound = sound and set(delta.files.values()) <= set(DISKS)
        sound = sound and all(_PART.match(part.name) and part.disk in names for part in parts)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DamagedError(f"{name} cannot be read ({error}): copy the disks again") from None
    if not sound:
        raise DamagedError(f"{name} is of no copy of a server's own disks: copy the disks again")
    return delta


def read(directory: str) -> Delta:
    """Read what came to a directory, every part of it compared. Another host is no reason to trust what came. Raises
    DamagedError, which says what is missing, or is not as it was sent."""
    for entry in os.scandir(directory):
        if not stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
            raise DamagedError(f"{entry.path[:200]!r} is not a regular file: its source sent something else")
    path = os.path.join(directory, DELTA)
    try:
        with open(path, "rb") as handle:
            delta = parse(handle.read(LONGEST), path)
    except FileNotFoundError:
        raise DamagedError("the changes did not arrive to their end: copy the disks again") from None
    for part in delta.parts:
        digest = hashlib.sha256()
        try:
            with open(os.path.join(directory, part.name), "rb") as handle:
                while piece := handle.read(_PIECE):
                    digest.update(piece)
        except FileNotFoundError:
            raise DamagedError(f"part {part.name} did not arrive: copy the disks again") from None
        if digest.hexdigest() != part.digest:
            raise DamagedError(f"part {part.name} is not as it was sent: copy the disks again")
    return delta


def parent_of(fields: JsonObject) -> Manifest:
    """Return the copy that a second host says it has, as far as its source goes on from it. Raises NovaliteError."""
    parent = manifests.parse(str(fields["manifest"]).encode(), "the copy on the second host")
    prefix, checkpoint = REPLICA_PREFIX, parent.checkpoint or ""
    if not is_uuid(parent.backup) or not checkpoint.startswith(prefix) or not is_uuid(checkpoint[len(prefix) :]):
        raise NovaliteError(f"the second host has '{parent.backup[:40]}', which is not a copy that was sent to it")
    return parent
