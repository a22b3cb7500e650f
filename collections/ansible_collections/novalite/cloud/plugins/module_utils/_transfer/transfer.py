# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of an instance that moves: sent whole, looked at when they arrive, and made larger for a larger flavor.

The disks of a guest that gets another size on its own host are kept beside the new ones until it is confirmed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import struct
import typing as t

from .._disk import layout, records, removed
from .._disk.blank import SWAP, blank_name, blank_size, ensure_blank, is_blank
from .._disk.inspect import qcow2_size
from .._disk.overlay import CDROM_FORMAT, KINDS, LOCK, LOCK_TIMEOUT, NOTE, Disk, refuse_missing
from .._disk.records import Record, read_records, write_records
from .._disk.sparse import copy_file, resize
from .._errors import NotFoundError, NovaliteError
from .._host import events
from .._host.command import CommandError, pipe, run
from .._host.confined import ANY_SIZE, Limits, run_confined
from .._host.files import instance_dir, remove_file
from .._host.locks import locked
from .._host.waiting import in_threads
from . import channel

GIB = 1 << 30
TRANSFER_TIMEOUT = 4 * 3600.0  # seconds
KNOCK_TIMEOUT = 60.0  # seconds
_NOTHING = "\0" * 1024  # the end of an archive: one without files
CONSOLE = "console.log"
DISKS = (layout.DISK, layout.EPHEMERAL, layout.SWAP)
RESIZED = (*DISKS, layout.DISK_INFO, NOTE)  # what another size may change, or says that there was one
_LAST = (*DISKS, NOTE, layout.DISK_INFO)  # the order in which restore() puts back what was kept
# in the order in which they are sent: the record of the disks first, which says what of the cache these stand on
FILES = (layout.DISK_INFO, *DISKS, NOTE, layout.KERNEL, layout.RAMDISK, layout.CONFIG_DRIVE, layout.NVRAM, CONSOLE)
# of a guest that runs, QEMU itself carries the rest over
BESIDE = (layout.CONFIG_DRIVE, CONSOLE)
_QCOW2 = struct.Struct(">4sIQIIQ")
_EXTERNAL_DATA = 1 << 2  # incompatible feature: the content is in another file


def send(
    moves: t.Sequence[channel.Move], doors: t.Mapping[str, channel.Door], state_dir: str, running: bool = False
) -> None:
    """Send each instance's files to its destination, by the `doors` of these; of one that is `running`, those that QEMU
    does not carry over. Raises NovaliteError."""

    def send(move: channel.Move) -> None:
        directory = instance_dir(state_dir, move["uuid"])
        names = [name for name in (BESIDE if running else FILES) if os.path.lexists(os.path.join(directory, name))]
        if not running and os.path.isdir(directory):
            names += sorted(name for name in os.listdir(directory) if layout.CDROM.match(name))
        if not names and running:
            return
        if not names:
            raise NovaliteError(f"instance {move['uuid']} has no files in {directory}")
        tar = ["tar", "--create", "--sparse", "--file=-", "--owner=0", "--group=0", "--numeric-owner"]
        # the console log of a guest that runs grows meanwhile, which is no harm
        tar += ["--warning=no-file-changed", f"--directory={directory}", "--", *names]
        ssh = channel.ssh(move["id"], doors[move["to_host"]])
        size = sum(events.size_on_disk(os.path.join(directory, name)) for name in names)
        pipe(tar, ssh, first_ok=(0, 1) if running else (0,), timeout=TRANSFER_TIMEOUT, size=size)

    in_threads(send, moves, workers=4)


def knock(moves: t.Sequence[channel.Move], doors: t.Mapping[str, channel.Door]) -> None:
    """See that each move's destination lets it in and unpacks what is sent, by sending it nothing. Raises
    NovaliteError."""

    def knock(move: channel.Move) -> None:
        door = doors[move["to_host"]]
        try:
            run(channel.ssh(move["id"], door), stdin=_NOTHING, timeout=KNOCK_TIMEOUT)
        except CommandError as error:
            raise NovaliteError(
                f"host {move['to_host']} cannot be reached over ssh from this host, as {door.login} at {door.address} "
                f"port {door.port}: {error.stderr.strip()[-300:]}"
            ) from None

    in_threads(knock, moves, workers=4)


def receive(
    moves: t.Sequence[channel.Move], disks: t.Mapping[str, Disk], state_dir: str, running: bool = False
) -> list[str]:
    """Put what has arrived in its place, once it is seen to be what it should be. Returns the UUIDs. Raises
    NovaliteError."""
    for move in moves:
        staging = channel.staging_of(state_dir, move["uuid"])
        _check_files(staging, move["uuid"])
        if not running:
            _check_disks(staging, disks[move["uuid"]], state_dir)
    with locked(LOCK, timeout=LOCK_TIMEOUT):
        for move in moves:
            staging = channel.staging_of(state_dir, move["uuid"])
            directory = instance_dir(state_dir, move["uuid"])
            if running:
                layout.make_searchable(directory)
                for name in os.listdir(staging):
                    os.replace(os.path.join(staging, name), os.path.join(directory, name))
                continue
            os.chmod(staging, layout.SEARCHABLE)
            # of an attempt that was cut off: the ledger says that the instance is not here yet
            shutil.rmtree(directory, ignore_errors=True)
            os.rename(staging, directory)
    return [move["uuid"] for move in moves]


def grow(disks: t.Iterable[Disk], state_dir: str) -> list[str]:
    """Make the disks as large as they shall be; smaller they never get. A swap disk of another size is made anew, by
    the module `disk`. Returns what was changed, as "uuid/file"."""
    changed = []
    for disk in disks:
        directory = instance_dir(state_dir, disk.uuid)
        records = read_records(directory)
        sizes = {layout.DISK: disk.virtual_size_gb * GIB, layout.EPHEMERAL: disk.ephemeral_gb * GIB}
        for name, size in sizes.items():
            path = os.path.join(directory, name)
            if name not in records or not size or not os.path.exists(path):
                continue
            if _virtual_size(path, records[name].format) < size:
                resize(path, records[name].format, size)
                changed.append(f"{disk.uuid}/{name}")
        swap = os.path.join(directory, layout.SWAP)
        if layout.SWAP in records and os.path.exists(swap):
            size = blank_size(blank_name(SWAP, disk.swap_mb)) if disk.swap_mb else 0
            if _virtual_size(swap, records[layout.SWAP].format) != size:
                os.unlink(swap)
                write_records(directory, {name: record for name, record in records.items() if name != layout.SWAP})
                changed.append(f"{disk.uuid}/{layout.SWAP}")
    return changed


def look_for_former(disks: t.Iterable[Disk], kept: t.Collection[str], state_dir: str) -> None:
    """See that the disks with their guests' data of before a move are here; of the instances `kept` (UUIDs), which were
    resized on this host, the copies that keep() made. Raises NovaliteError."""
    for disk in disks:
        directory = instance_dir(state_dir, disk.uuid)
        refuse_missing(disk, directory, KINDS, layout.KEPT if disk.uuid in kept else "")
        if disk.uuid in kept and not _kept(directory):
            raise NovaliteError(
                f"instance {disk.uuid}: what {directory} has kept of it is not whole: confirm its resize"
            )


def keep(uuids: t.Iterable[str], state_dir: str) -> list[str]:
    """Copy the disks of these instances, which do not run, for a revert. Returns the UUIDs."""

    def copy(uuid: str) -> str:
        directory = instance_dir(state_dir, uuid)
        for name in RESIZED:
            path = os.path.join(directory, name)
            if os.path.exists(path):
                part = f"{path}{layout.KEPT}.part"
                remove_file(part)
                copy_file(path, part, 0o600)
                os.rename(part, f"{path}{layout.KEPT}")
        return uuid

    return in_threads(copy, list(uuids), workers=4)


def restore(uuids: t.Iterable[str], state_dir: str, to_bin: bool = False) -> list[str]:
    """Bring back what keep() kept. One that has nothing kept is as it was. Returns the UUIDs that this changed. What is
    replaced goes to the bin with `to_bin`."""
    changed = []
    for uuid in uuids:
        directory = instance_dir(state_dir, uuid)
        if kept := _kept(directory):
            if to_bin:
                removed.put(state_dir, uuid, RESIZED)
            recorded = read_records(directory, layout.DISK_INFO + layout.KEPT)  # some may be back: a run was killed
            for name in RESIZED:  # a disk that the other size had, and this one has not
                if name not in kept and name not in recorded and name != NOTE:
                    remove_file(os.path.join(directory, name))
            for name in sorted(kept, key=_LAST.index):
                os.replace(os.path.join(directory, name + layout.KEPT), os.path.join(directory, name))
            changed.append(uuid)
    return changed


def _kept(directory: str) -> list[str]:
    """Return the names of the files that keep() has copied there, if it came to its end and forget() did not begin: of
    both, and of restore(), the record of the disks tells, which is copied last, removed first, and put back last."""
    kept = [name for name in RESIZED if os.path.exists(os.path.join(directory, name + layout.KEPT))]
    return kept if layout.DISK_INFO in kept or kept == [NOTE] else []


def _forgotten_after(name: str) -> tuple[bool, bool]:
    """Sort the record of the disks first, so that what is left of a removal that was cut off is never put back."""
    return (not name.startswith(layout.DISK_INFO), not name.startswith(NOTE))


def forget(uuids: t.Iterable[str], state_dir: str, made_before: float | None = None, to_bin: bool = False) -> list[str]:
    """Remove what keep() kept, or had made before `made_before` (seconds since the epoch): a resize may have begun
    since somebody saw that nobody needs it. Returns the UUIDs that this changed. With `to_bin` it goes there."""
    changed = []
    for uuid in uuids:
        directory = instance_dir(state_dir, uuid)
        with contextlib.suppress(FileNotFoundError):
            for name in sorted(os.listdir(directory), key=_forgotten_after):
                path = os.path.join(directory, name)
                if not name.endswith((layout.KEPT, f"{layout.KEPT}.part")):
                    continue
                if made_before is None or os.stat(path).st_mtime < made_before:
                    if to_bin and name.endswith(layout.KEPT):
                        removed.put(state_dir, uuid, [name])
                    os.unlink(path)
                    changed.append(uuid)
    return sorted(set(changed))


def _check_files(staging: str, uuid: str) -> None:
    """Another host is no reason to trust what came: plain files with our names, nothing else."""
    for name in (records.FRESH, records.FRESH_RESCUE):
        remove_file(os.path.join(staging, name))  # what another host says of a disk makes it nobody's but a guest's
    for entry in sorted(os.scandir(staging), key=lambda entry: entry.name):
        mode = entry.stat(follow_symlinks=False).st_mode
        if not (entry.name in FILES or layout.CDROM.match(entry.name)) or not stat.S_ISREG(mode):
            raise NovaliteError(f"instance {uuid}: its source sent {entry.name[:40]!r}, which no instance has")
        os.chmod(entry.path, 0o644 if entry.name in (layout.KERNEL, layout.RAMDISK) else 0o600)


def _check_disks(staging: str, disk: Disk, state_dir: str) -> None:
    records = read_records(staging)
    if disk.root != (layout.DISK in records):
        what = "no disk" if disk.root else "a disk, but it starts from a volume"
        raise NovaliteError(f"instance {disk.uuid}: its source sent {what}")
    names = {layout.DISK: layout.cache_key(disk.base)} if disk.root and disk.base else {}
    names |= {layout.cdrom_name(drive, of): layout.cache_key(of) for drive, of in enumerate(disk.cdroms) if of}
    for name, record in records.items():
        path = os.path.join(staging, name)
        if not os.path.exists(path):
            raise NovaliteError(f"instance {disk.uuid}: its source sent no {name}")
        expected = CDROM_FORMAT if layout.CDROM.match(name) else disk.backend
        if record.format != expected:
            raise NovaliteError(f"instance {disk.uuid}: its {name} is {record.format}, not {expected}")
        if record.format == "qcow2":
            _check_overlay(path, record, names.get(name), disk.uuid, state_dir)


def _check_overlay(path: str, record: Record, base: str | None, uuid: str, state_dir: str) -> None:
    """The disk stands on the file of this host's cache that it stood on, and on nothing else. Empty ones are made."""
    name = record.base or ""
    if base is None and is_blank(name):
        ensure_blank(name, state_dir)
    elif name != base:
        raise NovaliteError(f"instance {uuid}: its {os.path.basename(path)} stands on {name[:70]!r}, not on {base}")
    there = os.path.abspath(state_dir)
    base_path = layout.base_path(there, name)
    if not os.path.exists(base_path):  # its source still has all of it: nothing is lost yet
        raise NotFoundError(
            f"instance {uuid}: its {os.path.basename(path)} stands on {name}, which is not in the cache of this host "
            f"({base_path}): move it again"
        )
    with open(path, "rb") as handle:
        head = handle.read(104)
        if len(head) < 104:
            raise NovaliteError(f"instance {uuid}: {os.path.basename(path)} is not a qcow2 file")
        magic, version, offset, size, _bits, _virtual = _QCOW2.unpack_from(head)
        features = struct.unpack_from(">Q", head, 72)[0] if version >= 3 else 0
        handle.seek(offset)
        backing = os.fsdecode(handle.read(min(size, 1023)))
    if magic != b"QFI\xfb" or features & _EXTERNAL_DATA:
        raise NovaliteError(f"instance {uuid}: {os.path.basename(path)} is not a qcow2 file of ours")
    if backing == layout.former_path(there, name):
        layout.link_former(there, name)  # made on a host that had it under that name; the disk is left as it is
    elif backing != base_path:
        directory, file = os.path.split(backing)
        if os.path.basename(directory) != layout.BASE or file not in (name, os.path.basename(base_path)):
            raise NovaliteError(
                f"instance {uuid}: {os.path.basename(path)} stands on {backing[:200]!r}, which is {base_path} here"
            )
        # of a host with another state directory: the same file has another name here
        rebase = ["qemu-img", "rebase", "-q", "-u", "-f", "qcow2", "-F", "raw", "-b", base_path, path]
        run_confined(rebase, writes=[path], limits=Limits(file_size=ANY_SIZE))


def _virtual_size(path: str, disk_format: str) -> int:
    return os.stat(path).st_size if disk_format == "raw" else qcow2_size(path)
