# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Taking a backup of a server: all its disks at one moment, running or not, into the store."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
import typing as t

from .._domain import lifecycle
from .._errors import NovaliteError
from .._host.locks import locked
from . import domain_xml, export, live, stopped, tpm
from .catalog import Catalog
from .domain_xml import PREFIX, VOLUME_PREFIX, Disk, DiskPlan
from .export import Export
from .live import Scratch
from .manifest import CRASH, FULL, INCREMENTAL, Manifest, SavedDisk
from .store import Store
from .whole import Whole
from .writing import UNCHANGED, Writing

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

LOCK_TIMEOUT = 5.0  # seconds; a backup lasts longer, and the next one comes
FIRST = "it is the first backup"
LOST = "its disks have lost the record of what changed since backup {}"
DAMAGED = "the store cannot say what the disk was at backup {}"


@dataclasses.dataclass(frozen=True)
class Request:
    """A backup to be taken: `server` is the UUID of its domain ("": of none), `bases` names the raw file below a qcow2
    by that one's path. With `freeze`, the guest's agent freezes its file systems for the moment."""

    backup: str
    server: str
    scratch: Scratch
    bases: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    freeze: bool = True
    full: bool = False
    firmware: str | None = None  # as the manifest has it
    volume: Disk | None = (
        None  # the one disk of a backup that is a volume's own; `server` may have it, and need not run
    )

    @property
    def owner(self) -> str:
        """The server or the volume among whose backups it is."""
        return self.server if self.volume is None else self.volume.identity

    @property
    def prefix(self) -> str:
        """The beginning of the names of its checkpoints."""
        return PREFIX if self.volume is None else VOLUME_PREFIX


@dataclasses.dataclass(frozen=True)
class Taken:
    """A backup that was taken, and the bytes that were read of its disks for that."""

    manifest: Manifest
    read: int


def take(connection: libvirt.virConnect, request: Request, store: Store) -> Taken:
    """Take a backup. It goes on from the newest one, as far as the disks can tell what changed since; else their whole
    content is taken, and the manifest says why. Raises NovaliteError: nothing of it is in the store then, and the next
    one goes on from where this one would have."""
    with contextlib.ExitStack() as locks:
        for name in sorted({request.server, request.owner} - {""}):
            locks.enter_context(locked(f"backup-{name}", timeout=LOCK_TIMEOUT))
        domain = _domain(connection, request)
        catalog = Catalog(store, request.owner)
        store.forget(catalog.left_over())
        with _clear(f"backup of {request.owner} cannot be taken"):
            if request.backup in catalog.names():
                raise NovaliteError(f"backup {request.backup} is there already: give the new one another name")
            parent = catalog.load(catalog.names()[-1]) if catalog.names() else None
            if domain is None:
                return _stopped([request.volume] if request.volume else [], "", request, catalog, parent)
            if domain.isActive():
                request.scratch.prepare()
                return _running(domain, request, catalog, parent)
            definition = domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)
            return _stopped(domain_xml.disks_of(definition), definition, request, catalog, parent)


def _domain(connection: libvirt.virConnect, request: Request) -> libvirt.virDomain | None:
    """The domain that has the disks, running or not; None for a volume that no guest has open."""
    if request.volume is None:
        return connection.lookupByUUIDString(request.server)
    domain = lifecycle.lookup(connection, request.server) if request.server else None
    return domain if domain is not None and domain.isActive() and _disks(request, domain.XMLDesc(0)) else None


def _disks(request: Request, definition: str) -> list[Disk]:
    """The disks in a domain's XML that the backup takes."""
    disks = domain_xml.disks_of(definition)
    return [disk for disk in disks if request.volume is None or disk.identity == request.volume.identity]


@contextlib.contextmanager
def _clear(problem: str) -> t.Iterator[None]:
    try:
        yield
    except (libvirt.libvirtError, OSError) as error:
        raise NovaliteError(f"{problem}: {error}") from None


def _running(domain: libvirt.virDomain, request: Request, catalog: Catalog, parent: Manifest | None) -> Taken:
    live.end_left_over(domain)
    definition = domain.XMLDesc(0)
    disks = _disks(request, definition)
    reason = "asked for" if request.full else FIRST
    since: Manifest | None = None if request.full else parent
    if since is not None and not live.known_again(domain, since):
        reason = LOST.format(since.backup)
        since = None
    try:
        return _read_running(domain, request, catalog, domain_xml.plan(disks, since, reason), since, definition)
    except _Refused:
        if since is None:
            raise
        plans = domain_xml.plan(disks, None, LOST.format(since.backup))
        return _read_running(domain, request, catalog, plans, None, definition)


class _Refused(NovaliteError):
    """libvirt, or a disk that shrank, refuses what changed since the checkpoint."""


def _read_running(
    domain: libvirt.virDomain,
    request: Request,
    catalog: Catalog,
    plans: t.Sequence[DiskPlan],
    since: Manifest | None,
    definition: str,
) -> Taken:
    plans, wholes = _with_wholes(catalog, plans, since)
    checkpoint = request.prefix + request.backup if any(plan.disk.can_have_bitmap for plan in plans) else None
    with contextlib.ExitStack() as stack:
        writing = stack.enter_context(Writing(catalog.store, request.owner, request.backup))
        stack.push(lambda kind, *_error: _drop(domain, checkpoint) if kind is not None else None)
        with contextlib.ExitStack() as reading:
            try:
                name = since.checkpoint if since is not None else None
                job = reading.enter_context(live.job(domain, plans, name, checkpoint, request.scratch, request.freeze))
            except libvirt.libvirtError as error:
                raise _Refused(str(error)) if live.can_go_on(error) else error from None
            manifest = _manifest(request, since, checkpoint, job.consistency, definition)
            read = 0
            for plan in plans:
                bitmap = f"backup-{plan.disk.name}" if plan.kind == INCREMENTAL else None
                with export.opened(job.socket, plan.disk.name, bitmap) as opened:
                    _add(writing, manifest, plan, opened, since, wholes)
                    read += opened.read
        manifest = writing.finish(manifest)
    catalog.keep(manifest, wholes)
    live.forget_checkpoints(domain, checkpoint, request.prefix)
    return Taken(manifest, read)


def _with_wholes(
    catalog: Catalog, plans: t.Sequence[DiskPlan], since: Manifest | None
) -> tuple[list[DiskPlan], dict[str, Whole]]:
    """The hashes that all blocks of incremental disks had; a disk of which the store cannot say them is a full one."""
    sound, wholes = [], {}
    for plan in plans:
        if plan.kind == INCREMENTAL and since is not None:
            try:
                wholes[plan.disk.name] = catalog.whole_of(since.backup, plan.disk.name)
            except NovaliteError:
                plan = dataclasses.replace(plan, kind=FULL, reason=DAMAGED.format(since.backup))
        sound.append(plan)
    return sound, wholes


def _drop(domain: libvirt.virDomain, checkpoint: str | None) -> None:
    """Remove the checkpoint of a backup that failed. One that stays is removed after the next one."""
    with contextlib.suppress(libvirt.libvirtError):
        mine = live.checkpoints(domain, "").get(checkpoint or "")
        if mine is not None:
            mine.delete(0)


def _stopped(
    disks: t.Sequence[Disk], definition: str, request: Request, catalog: Catalog, parent: Manifest | None
) -> Taken:
    """Take a backup of disks that nobody writes to. The bitmaps of the last checkpoint go on: they tell more than what
    changed since this backup, and no less. A disk that has none gets one."""
    bases = {disk.name: request.bases.get(disk.source) for disk in disks}
    bitmaps = {disk.name: {each.name: each for each in stopped.look(disk, bases[disk.name])} for disk in disks}
    since = None if request.full else parent
    plans = []
    for plan in domain_xml.plan(disks, since, "asked for" if request.full else FIRST):
        bitmap = bitmaps[plan.disk.name].get(since.checkpoint or "") if since is not None else None
        if plan.kind == INCREMENTAL and since is not None and (bitmap is None or not bitmap.is_sound):
            plan = dataclasses.replace(plan, kind=FULL, reason=LOST.format(since.backup))
        plans.append(plan)
    plans, wholes = _with_wholes(catalog, plans, since)
    goes_on = any(plan.kind == INCREMENTAL for plan in plans)
    since = since if goes_on else None
    checkpoint = since.checkpoint if since is not None else request.prefix + request.backup
    manifest = _manifest(request, since, checkpoint, CRASH, definition)
    read = 0
    with Writing(catalog.store, request.owner, request.backup) as writing:
        for plan in plans:
            disk, base = plan.disk, bases[plan.disk.name]
            if plan.kind == FULL and disk.can_have_bitmap:
                for name in bitmaps[disk.name]:
                    if name.startswith(request.prefix):
                        stopped.remove_bitmap(disk, name)
                stopped.add_bitmap(disk, str(checkpoint))
            with stopped.opened(disk, base, checkpoint if plan.kind == INCREMENTAL else None) as opened:
                _add(writing, manifest, plan, opened, since, wholes)
                read += opened.read
        manifest = writing.finish(manifest)
    catalog.keep(manifest, wholes)
    return Taken(manifest, read)


def _manifest(request: Request, since: Manifest | None, checkpoint: str | None, consistency: str, xml: str) -> Manifest:
    parent = since.backup if since is not None else None
    created = int(time.time() * 1000)
    names = request.backup, request.owner, parent, checkpoint
    version = tpm.version_of(xml) if request.volume is None else None
    state = tpm.read(request.server, version) if version is not None else None
    return Manifest(*names, created, consistency, xml, (), request.firmware, state)


def _add(
    writing: Writing,
    manifest: Manifest,
    plan: DiskPlan,
    opened: Export,
    since: Manifest | None,
    wholes: dict[str, Whole],
) -> None:
    """Store what an export has to say of a disk, and what its blocks are now. Raises _Refused for one that is smaller
    than it was."""
    disk = plan.disk
    if plan.kind == INCREMENTAL and since is not None and domain_xml.shrunk(opened.size, since.disk(disk.name)):
        raise _Refused(f"disk {disk.name} is smaller than in backup {since.backup}: take a full backup")
    has_bitmap = disk.can_have_bitmap
    saved = SavedDisk(disk.name, disk.identity, opened.size, plan.kind, plan.reason, has_bitmap, None, UNCHANGED, "")
    wholes[disk.name] = Whole(opened.size, wholes.get(disk.name))
    writing.add(saved, manifest.header(saved), opened.blocks(), wholes[disk.name])


def scratch_directory(state_dir: str) -> str:
    """The directory for what guests overwrite during backups."""
    return os.path.join(state_dir, "backup-scratch")
