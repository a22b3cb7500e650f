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
from .blocks import Block
from .catalog import Catalog
from .domain_xml import PREFIX, VOLUME_PREFIX, Disk, DiskPlan
from .export import Export
from .live import Scratch
from .manifest import CRASH, FULL, INCREMENTAL, Manifest, SavedDisk
from .objects import Header
from .store import Store
from .whole import Whole
from .writing import UNCHANGED, Writing

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

LOCK_TIMEOUT = 5.0  # seconds; a backup lasts longer, and the next one comes
FIRST = "it is the first backup"
ASKED = "asked for"
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
    paths: t.Collection[str] | None = None  # of the disks that are taken (None: all)

    @property
    def owner(self) -> str:
        """The server or the volume among whose backups it is."""
        return self.server if self.volume is None else self.volume.identity

    @property
    def prefix(self) -> str:
        """The beginning of the names of its checkpoints."""
        return PREFIX if self.volume is None else VOLUME_PREFIX


class Receiver(t.Protocol):
    """Place for what is read of the disks of one moment, which goes on from what is there."""

    prefix: str  # of the names of the checkpoints that are its own
    first: str  # why all is taken where nothing is there
    # whether the checkpoint of what is there stays until the next time: whether that counts is not known before
    keeps_parent: bool

    def sound(self, plans: t.Sequence[DiskPlan], since: Manifest | None) -> list[DiskPlan]:
        """Return the plans, those of disks that have to be taken as a whole among them."""

    def writing(self) -> t.ContextManager[object]:
        """Begin to write; what was written is dropped when the context ends with an error."""

    def add(self, disk: SavedDisk, header: Header, rows: t.Iterator[Block]) -> None:
        """Write the blocks of a disk."""

    def finish(self, manifest: Manifest) -> Manifest:
        """Write the manifest, of the disks that were added: now it counts."""


class ToStore:
    """The catalog of a store, as the receiver of a backup."""

    first = FIRST
    keeps_parent = False

    def __init__(self, catalog: Catalog, request: Request) -> None:
        self._catalog, self._request, self.prefix = catalog, request, request.prefix
        self._wholes: dict[str, Whole] = {}
        self._writing: Writing | None = None

    def sound(self, plans: t.Sequence[DiskPlan], since: Manifest | None) -> list[DiskPlan]:
        """Look up the hashes that all blocks of incremental disks had; a disk of which the store cannot say them is a
        full one."""
        sound = []
        self._wholes = {}
        for plan in plans:
            if plan.kind == INCREMENTAL and since is not None:
                try:
                    self._wholes[plan.disk.name] = self._catalog.whole_of(since.backup, plan.disk.name)
                except NovaliteError:
                    plan = dataclasses.replace(plan, kind=FULL, reason=DAMAGED.format(since.backup))
            sound.append(plan)
        return sound

    @contextlib.contextmanager
    def writing(self) -> t.Iterator[None]:
        """Store objects, which are forgotten after an error."""
        with Writing(self._catalog.store, self._request.owner, self._request.backup) as self._writing:
            yield

    def add(self, disk: SavedDisk, header: Header, rows: t.Iterator[Block]) -> None:
        """Store what an export has to say of a disk, and what its blocks are now."""
        whole = self._wholes[disk.name] = Whole(disk.size, self._wholes.get(disk.name))
        t.cast(Writing, self._writing).add(disk, header, rows, whole)

    def finish(self, manifest: Manifest) -> Manifest:
        """Store the manifest."""
        manifest = t.cast(Writing, self._writing).finish(manifest)
        self._catalog.keep(manifest, self._wholes)
        return manifest


@dataclasses.dataclass(frozen=True)
class Taken:
    """A backup that was taken, and the bytes that were read of its disks for that."""

    manifest: Manifest
    read: int


def take(connection: libvirt.virConnect, request: Request, store: Store) -> Taken:
    """Take a backup. It goes on from the newest one, as far as the disks can tell what changed since; else their whole
    content is taken, and the manifest says why. Raises NovaliteError: nothing of it is in the store then, and the next
    one goes on from where this one would have."""
    with exclusive(request):
        catalog = Catalog(store, request.owner)
        store.forget(catalog.left_over())
        if request.backup in catalog.names():
            raise NovaliteError(
                f"backup of {request.owner} cannot be taken: backup {request.backup} is there already: give the new "
                "one another name"
            )
        parent = catalog.load(catalog.names()[-1]) if catalog.names() else None
        return take_to(connection, request, ToStore(catalog, request), parent)


@contextlib.contextmanager
def exclusive(request: Request) -> t.Iterator[None]:
    """Hold the locks by which one backup or copy of a server or volume is taken at a time."""
    with contextlib.ExitStack() as locks:
        for name in sorted({request.server, request.owner} - {""}):
            locks.enter_context(locked(f"backup-{name}", timeout=LOCK_TIMEOUT))
        yield


def take_to(connection: libvirt.virConnect, request: Request, receiver: Receiver, parent: Manifest | None) -> Taken:
    """Have a receiver get the disks, as they changed since `parent`, whose content it has. Raises NovaliteError."""
    domain = _domain(connection, request)
    with _clear(f"backup of {request.owner} cannot be taken"):
        if domain is None:
            return _stopped([request.volume] if request.volume else [], "", request, receiver, parent)
        if domain.isActive():
            request.scratch.prepare()
            return _running(domain, request, receiver, parent)
        definition = domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)
        return _stopped(_disks(request, definition), definition, request, receiver, parent)


def _domain(connection: libvirt.virConnect, request: Request) -> libvirt.virDomain | None:
    """The domain that has the disks, running or not; None for a volume that no guest has open."""
    if request.volume is None:
        return connection.lookupByUUIDString(request.server)
    domain = lifecycle.lookup(connection, request.server) if request.server else None
    return domain if domain is not None and domain.isActive() and _disks(request, domain.XMLDesc(0)) else None


def _disks(request: Request, definition: str) -> list[Disk]:
    """The disks in a domain's XML that the backup takes."""
    disks = domain_xml.disks_of(definition, request.paths)
    return [disk for disk in disks if request.volume is None or disk.identity == request.volume.identity]


@contextlib.contextmanager
def _clear(problem: str) -> t.Iterator[None]:
    try:
        yield
    except (libvirt.libvirtError, OSError) as error:
        raise NovaliteError(f"{problem}: {error}") from None


def _running(domain: libvirt.virDomain, request: Request, receiver: Receiver, parent: Manifest | None) -> Taken:
    live.end_left_over(domain)
    definition = domain.XMLDesc(0)
    disks = _disks(request, definition)
    if not disks:
        raise NovaliteError(f"domain {request.server} has none of the disks that are to be taken: see virsh domblklist")
    reason = ASKED if request.full else receiver.first
    since: Manifest | None = None if request.full else parent
    if receiver.keeps_parent:  # those of runs that came to nothing, or that another one followed
        live.forget_checkpoints(domain, None if since is None else since.checkpoint, receiver.prefix)
    if since is not None and not live.known_again(domain, since):
        reason = LOST.format(since.backup)
        since = None
    try:
        return _read_running(domain, request, receiver, domain_xml.plan(disks, since, reason), since, definition)
    except _Refused:
        if since is None:
            raise
        plans = domain_xml.plan(disks, None, LOST.format(since.backup))
        return _read_running(domain, request, receiver, plans, None, definition)


class _Refused(NovaliteError):
    """libvirt, or a disk that shrank, refuses what changed since the checkpoint."""


def _read_running(
    domain: libvirt.virDomain,
    request: Request,
    receiver: Receiver,
    plans: t.Sequence[DiskPlan],
    since: Manifest | None,
    definition: str,
) -> Taken:
    plans = receiver.sound(plans, since)
    checkpoint = receiver.prefix + request.backup if any(plan.disk.can_have_bitmap for plan in plans) else None
    with contextlib.ExitStack() as stack:
        stack.enter_context(receiver.writing())
        if not receiver.keeps_parent:
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
                    _add(receiver, manifest, plan, opened, since)
                    read += opened.read
        manifest = receiver.finish(manifest)
    if not receiver.keeps_parent:
        live.forget_checkpoints(domain, checkpoint, receiver.prefix)
    return Taken(manifest, read)


def _drop(domain: libvirt.virDomain, checkpoint: str | None) -> None:
    """Remove the checkpoint of a backup that failed. One that stays is removed after the next one."""
    with contextlib.suppress(libvirt.libvirtError):
        mine = live.checkpoints(domain, "").get(checkpoint or "")
        if mine is not None:
            mine.delete(0)


def _stopped(
    disks: t.Sequence[Disk], definition: str, request: Request, receiver: Receiver, parent: Manifest | None
) -> Taken:
    """Take a backup of disks that nobody writes to. The bitmaps of the last checkpoint go on: they tell more than what
    changed since this backup, and no less. A disk that has none gets one, and so does each for a receiver that keeps
    the last one, too."""
    bases = {disk.name: request.bases.get(disk.source) for disk in disks}
    bitmaps = {disk.name: {each.name: each for each in stopped.look(disk, bases[disk.name])} for disk in disks}
    since = None if request.full else parent
    plans = []
    for plan in domain_xml.plan(disks, since, ASKED if request.full else receiver.first):
        bitmap = bitmaps[plan.disk.name].get(since.checkpoint or "") if since is not None else None
        if plan.kind == INCREMENTAL and since is not None and (bitmap is None or not bitmap.is_sound):
            plan = dataclasses.replace(plan, kind=FULL, reason=LOST.format(since.backup))
        plans.append(plan)
    plans = receiver.sound(plans, since)
    goes_on = any(plan.kind == INCREMENTAL for plan in plans)
    since = since if goes_on else None
    begins = since is None or receiver.keeps_parent
    checkpoint = receiver.prefix + request.backup if since is None or begins else since.checkpoint
    manifest = _manifest(request, since, checkpoint, CRASH, definition)
    kept = since.checkpoint if since is not None and receiver.keeps_parent else None
    read = 0
    with receiver.writing():
        for plan in plans:
            disk = plan.disk
            if (plan.kind == FULL or begins) and disk.can_have_bitmap:
                for name in bitmaps[disk.name]:
                    if name.startswith(receiver.prefix) and name != kept:
                        stopped.remove_bitmap(disk, name)
                stopped.add_bitmap(disk, str(checkpoint))
        for plan in plans:
            from_bitmap = since.checkpoint if since is not None and plan.kind == INCREMENTAL else None
            with stopped.opened(plan.disk, bases[plan.disk.name], from_bitmap) as opened:
                _add(receiver, manifest, plan, opened, since)
                read += opened.read
        manifest = receiver.finish(manifest)
    return Taken(manifest, read)


def _manifest(request: Request, since: Manifest | None, checkpoint: str | None, consistency: str, xml: str) -> Manifest:
    parent = since.backup if since is not None else None
    created = int(time.time() * 1000)
    names = request.backup, request.owner, parent, checkpoint
    version = tpm.version_of(xml) if request.volume is None else None
    state = tpm.read(request.server, version) if version is not None else None
    return Manifest(*names, created, consistency, xml, (), request.firmware, state)


def _add(receiver: Receiver, manifest: Manifest, plan: DiskPlan, opened: Export, since: Manifest | None) -> None:
    """Have the receiver get what an export has to say of a disk. Raises _Refused for one that is smaller than it
    was."""
    disk = plan.disk
    if plan.kind == INCREMENTAL and since is not None and domain_xml.shrunk(opened.size, since.disk(disk.name)):
        raise _Refused(f"disk {disk.name} is smaller than in backup {since.backup}: take a full backup")
    has_bitmap = disk.can_have_bitmap
    saved = SavedDisk(disk.name, disk.identity, opened.size, plan.kind, plan.reason, has_bitmap, None, UNCHANGED, "")
    receiver.add(saved, manifest.header(saved), opened.blocks())


def scratch_directory(state_dir: str) -> str:
    """The directory for what guests overwrite during backups."""
    return os.path.join(state_dir, "backup-scratch")
