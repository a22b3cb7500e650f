# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sending what changed in a server's disks to its second host, over the way that a move opened (_transfer)."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import itertools
import subprocess
import tarfile
import tempfile
import typing as t

from .._backup import objects, take
from .._backup.blocks import Block
from .._backup.domain_xml import REPLICA_PREFIX, DiskPlan
from .._backup.live import Scratch
from .._backup.manifest import Manifest, SavedDisk
from .._backup.objects import Header
from .._errors import NotFoundError
from .._host.command import CommandError
from .._snapshots import server_snapshots
from .delta import DELTA, PART_BLOCKS, Delta, Part

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

END_TIMEOUT = 3600.0  # seconds that the other host gets to write what is on the way


class Sender:
    """Receiver of a backup (_backup/take.py) that sends it on, into the command `argv`, which unpacks an archive."""

    prefix = REPLICA_PREFIX
    keeps_parent = True

    def __init__(self, argv: t.Sequence[str], first: str, names: t.Callable[[Manifest], t.Mapping[str, str]]) -> None:
        self._argv, self.first, self._names = list(argv), first, names
        self._disks: list[SavedDisk] = []
        self._parts: list[Part] = []
        self._archive: tarfile.TarFile | None = None
        self.moved = 0

    def sound(self, plans: t.Sequence[DiskPlan], since: Manifest | None) -> list[DiskPlan]:
        """Return the plans: what the second host has was compared when it came."""
        return list(plans)

    @contextlib.contextmanager
    def writing(self) -> t.Iterator[None]:
        """Run the command. One that is cut off has sent nothing that counts. Raises CommandError."""
        self._disks, self._parts = [], []
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(self._argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors)
            into = t.cast(t.IO[bytes], process.stdin)
            try:
                try:
                    with tarfile.open(mode="w|", fileobj=into, format=tarfile.GNU_FORMAT) as self._archive:
                        yield
                    into.close()
                    process.wait(END_TIMEOUT)
                except BrokenPipeError:
                    process.wait(END_TIMEOUT)
                    raise CommandError(self._argv, process.returncode, _end_of(errors)) from None
                except subprocess.TimeoutExpired:
                    raise CommandError(self._argv, 124, f"no answer within {END_TIMEOUT:g} s") from None
            finally:
                process.kill()
                process.wait()
                with contextlib.suppress(OSError):
                    into.close()
            if process.returncode:
                raise CommandError(self._argv, process.returncode, _end_of(errors))

    def add(self, disk: SavedDisk, header: Header, rows: t.Iterator[Block]) -> None:
        """Send the blocks of a disk, some at a time."""
        self._disks.append(disk)
        while some := list(itertools.islice(rows, PART_BLOCKS)):
            out = io.BytesIO()
            objects.write(header, some, out, io.BytesIO())
            name = f"{len(self._parts):08d}"
            self._parts.append(Part(name, disk.name, out.tell(), hashlib.sha256(out.getvalue()).hexdigest()))
            self._send(name, out.getvalue())

    def finish(self, manifest: Manifest) -> Manifest:
        """Send what the parts are, which makes them count."""
        manifest = dataclasses.replace(manifest, disks=tuple(self._disks))
        delta = Delta(manifest, self._names(manifest), tuple(self._parts))
        self.moved = delta.moved
        self._send(DELTA, delta.text())
        return manifest

    def _send(self, name: str, content: bytes) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mode = len(content), 0o600
        t.cast(tarfile.TarFile, self._archive).addfile(info, io.BytesIO(content))


def _end_of(errors: t.IO[bytes]) -> str:
    errors.seek(0)
    return errors.read(4096).decode(errors="replace")


@dataclasses.dataclass(frozen=True)
class Source:
    """Server whose disks are copied: its UUID, the id of the new copy, and the directory where its host keeps
    instances. `firmware` is that of a UEFI guest, as a manifest has it."""

    uuid: str
    copy_id: str
    state_dir: str
    firmware: str | None = None


def send(
    connection: libvirt.virConnect,
    source: Source,
    argv: t.Sequence[str],
    parent: Manifest | None,
    scratch: Scratch,
    first: str,
) -> int:
    """Send a server's own disks as they are at one moment into the command `argv`: what changed since `parent`, as far
    as they can tell. Returns the bytes that went. Raises NovaliteError: the second host has what it had then."""
    disks = server_snapshots.disks_of(server_snapshots.Spec(source.uuid, source.copy_id), source.state_dir)
    if not disks:
        raise NotFoundError(f"instance {source.uuid} has no disks of its own on this host")
    names = {disk.path: disk.name for disk in disks}
    request = take.Request(
        source.copy_id,
        source.uuid,
        scratch,
        {disk.path: disk.base for disk in disks if disk.base is not None},
        firmware=source.firmware,
        paths=names,
    )

    def files(manifest: Manifest) -> dict[str, str]:
        sources = {disk.name: disk.source for disk in take.domain_xml.disks_of(manifest.definition, names)}
        return {disk.name: names[sources[disk.name]] for disk in manifest.disks}

    sender = Sender(argv, first, files)
    with take.exclusive(request):
        take.take_to(connection, request, sender, parent)
    return sender.moved
