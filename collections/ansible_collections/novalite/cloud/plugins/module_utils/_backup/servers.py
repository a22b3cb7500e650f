# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups of the servers of this host: taken, proven, brought back in their place, removed.

Each server has a repository of its own in the store, so that none waits for another. A backup that is brought back is
first fetched to a snapshot beside the disks, every block of it compared, while the guest may run; then the disks are
replaced as those of a snapshot are, and the files that were there stay until it is known that the guest runs.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
import os
import shutil
import typing as t
import zlib

from .._disk import layout
from .._domain.volumes import LiveGuests
from .._errors import NotFoundError, NovaliteError
from .._host.files import instance_dir, is_uuid, read_text, sync, write_atomically
from .._host.module import Result, each_for_itself
from .._host.own_directory import make_own
from .._json import JsonMapping, JsonObject
from .._snapshots import server_snapshots
from . import compact, domain_xml, manifest, replay, sandbox, tpm
from .catalog import Catalog
from .former_disks import TPM, FormerDisks
from .live import Scratch
from .manifest import Manifest, SavedDisk, record_of
from .store import Restic
from .take import Request, scratch_directory, take

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

TAKEN, FETCHED, RESTORED, SETTLED, UNDONE, VERIFIED, ABSENT = STATES = (
    *("taken", "fetched", "restored", "settled", "undone", "verified", "absent"),
)
STORED = (TAKEN, FETCHED, VERIFIED, ABSENT)  # states for which the store is asked
_KEPT_FREE = 20  # of how many parts of the file system a guest's writes during a backup leave one free


@dataclasses.dataclass(frozen=True)
class Spec:
    """The backup `backup_id`, taken of the server `source` (None: of the same), of or for the server `uuid`, with the
    `volumes` that this one has, as step volume_disk takes them. Those that are `replaced` go once it is taken; one that
    is verified is booted as well where `boot_timeout` says how many seconds its guest gets to be up. `run` tells one
    restore from another, also of the same backup."""

    uuid: str
    backup_id: str
    source: str | None = None
    volumes: t.Sequence[JsonMapping] = ()
    full: bool = False
    replaced: t.Sequence[str] = ()
    boot_timeout: float | None = None
    run: str | None = None

    @property
    def server(self) -> str:
        """The server whose backups it is among."""
        return self.source or self.uuid

    @property
    def snapshot(self) -> server_snapshots.Spec:
        """The snapshot that it is fetched to."""
        return server_snapshots.Spec(self.uuid, self.backup_id, self.volumes)


@dataclasses.dataclass
class Done:
    """Result of one backup: what was done (in check mode: would be), the fields of the record that are known anew, the
    `records` of other backups that changed with it, those that are `removed` with it, what became of it when it was
    booted (`boot`, as sandbox.Booted), and `error`, why it was not done."""

    uuid: str
    backup_id: str
    action: str = "none"
    record: JsonObject = dataclasses.field(default_factory=dict)
    records: list[JsonObject] = dataclasses.field(default_factory=list)
    removed: list[str] = dataclasses.field(default_factory=list)
    complaints: list[str] = dataclasses.field(default_factory=list)
    boot: JsonObject | None = None
    error: str | None = None


@dataclasses.dataclass(frozen=True)
class Place:
    """The store at `path`, a directory or restic's `sftp:user@host:path`, opened by `key`; and this host's own
    directory."""

    path: str
    key: str = dataclasses.field(repr=False)
    state_dir: str

    def store(self, server: str) -> Restic:
        """The repository of a server. Raises NovaliteError for a directory that is not there: it may be a mount."""
        if not is_uuid(server):
            raise NovaliteError(f"'{server}' is not the UUID of a server: name one as the ledger has it")
        if not self.path.startswith("sftp:") and not os.path.isdir(self.path):
            raise NovaliteError(f"the store {self.path} is not there: mount it, or make the directory on every host")
        cache = os.path.join(self.state_dir, "backup-cache")
        make_own(cache, links=True)
        return Restic(f"{self.path.rstrip('/')}/{server}", self.key, cache)

    def scratch(self) -> str:
        """The directory for what is on the way, of this host's own."""
        directory = scratch_directory(self.state_dir)
        make_own(directory, 0o711, links=True)
        return directory

    def known(self, server: str) -> Restic:
        """The repository of a server that has backups, opened. Raises NovaliteError."""
        store = self.store(server)
        if store.is_missing:
            raise NotFoundError(
                f"the store {self.path} has no backups of server {server}: give the store that has them"
            )
        store.prepare()
        return store


def ensure(
    specs: t.Sequence[Spec],
    state: str,
    place: Place,
    connect: t.Callable[[], libvirt.virConnect],
    check_mode: bool = False,
    warn: t.Callable[[str], None] = lambda warning: None,
) -> list[Done]:
    """Bring each backup into its `state` (of STATES), one after the other: what failed says so in its own `error`."""
    done = []
    for spec in specs:
        result = Done(spec.uuid, spec.backup_id)
        try:
            work = {TAKEN: _take, FETCHED: _fetch, RESTORED: _restore, VERIFIED: _verify, ABSENT: _delete}
            if state in work:
                work[state](spec, result, place, connect, check_mode, warn)
            elif not check_mode:
                _put_back(spec, place, connect) if state == UNDONE else _former(spec, place).forget()
        except (NovaliteError, OSError, libvirt.libvirtError) as error:
            result.error = f"instance {spec.uuid}: {error}"
        done.append(result)
    return done


def result_of(entries: t.Sequence[JsonObject], changes: JsonMapping) -> Result:
    """Return what a step returns of these `entries`, results of backups, and of the `changes` that it shows. Raises
    HostModuleError with the same where an entry has an `error`."""
    diff = {"before": dict.fromkeys(changes), "after": changes} if changes else {}
    result = {"changed": bool(changes), "backups": entries, "diff": diff}
    return each_for_itself(result, (entry["error"] for entry in entries))


_Connect = t.Callable[[], "libvirt.virConnect"]
_Warn = t.Callable[[str], None]


def _take(spec: Spec, done: Done, place: Place, connect: _Connect, check_mode: bool, warn: _Warn) -> None:
    done.action = "take"
    if check_mode:
        return
    store = place.store(spec.uuid)
    store.prepare()
    disks = server_snapshots.disks_of(spec.snapshot, place.state_dir)
    bases = {disk.path: disk.base for disk in disks if disk.base is not None}
    firmware = read_firmware(os.path.join(instance_dir(place.state_dir, spec.uuid), layout.NVRAM))
    request = Request(spec.backup_id, spec.uuid, scratch_of(place), bases, full=spec.full, firmware=firmware)
    taken = take(connect(), request, store)
    done.record = {**record_of(taken.manifest), "moved": taken.read}
    try:
        _tidy_up(spec, done, store)
    except NovaliteError as error:  # the backup is there all the same, and the next one tries again
        warn(f"backup {spec.backup_id} was taken, and those that it replaces are there still: {error}")


def scratch_of(place: Place) -> Scratch:
    """The room for what a guest overwrites during its backup."""
    directory = place.scratch()
    room = os.statvfs(directory)
    reserve = room.f_frsize * room.f_blocks // _KEPT_FREE
    return Scratch(directory, max(0, room.f_frsize * room.f_bavail - reserve), reserve)


def _tidy_up(spec: Spec, done: Done, store: Restic) -> None:
    """Remove what the backup replaces, and make a full one of it when it needs many others."""
    catalog = Catalog(store, spec.uuid)
    changed: set[str] = set()
    for name in spec.replaced:
        if name in catalog.names():
            changed.update(compact.delete(store, spec.uuid, name))
            catalog.refresh()
        done.removed.append(name)
    if compact.is_due(catalog.chain(spec.backup_id)):
        compact.make_full(store, spec.uuid, spec.backup_id)
        catalog.refresh()
    done.record.update(record_of(catalog.load(spec.backup_id)))
    done.records = [record_of(catalog.load(name)) for name in sorted(changed - {spec.backup_id, *spec.replaced})]
    if spec.replaced:
        store.prune(compact.PRUNE_TIMEOUT)


def read_firmware(path: str) -> str | None:
    """Read the variables of a UEFI guest's firmware, as a manifest has them; None of a guest with a BIOS."""
    try:
        with open(path, "rb") as handle:
            return base64.b64encode(zlib.compress(handle.read())).decode()
    except FileNotFoundError:  # a guest with a BIOS
        return None


def _verify(spec: Spec, done: Done, place: Place, connect: _Connect, check_mode: bool, warn: _Warn) -> None:
    done.action = "verify"
    if check_mode:
        return
    try:
        catalog = Catalog(place.known(spec.server), spec.server)
    except NovaliteError as error:  # which says nothing of the backup
        raise NovaliteError(f"backup {spec.backup_id}, all disks cannot be verified: {error}") from None
    if spec.boot_timeout is not None:
        _boot(spec, spec.boot_timeout, done, place, catalog, connect)
        return
    done.complaints = replay.verify(catalog, spec.backup_id, place.scratch())
    if done.complaints:
        raise NovaliteError("; ".join(done.complaints))


def _boot(spec: Spec, timeout: float, done: Done, place: Place, catalog: Catalog, connect: _Connect) -> None:
    booting = sandbox.Booting(connect(), spec.uuid, scratch_of(place), place.state_dir, timeout)
    try:
        booted = sandbox.boot(booting, catalog, spec.backup_id)
    except sandbox.DamagedError as error:
        done.complaints = [str(error)]
        raise
    done.boot = dataclasses.asdict(booted)
    if booted.error is not None:
        raise NovaliteError(f"backup {spec.backup_id} is whole, and {booted.error}")


def _delete(spec: Spec, done: Done, place: Place, connect: _Connect, check_mode: bool, warn: _Warn) -> None:
    changed = compact.remove(place.store(spec.server), spec.server, spec.backup_id, check_mode)
    if changed is not None:
        done.action, done.records = "delete", [record_of(saved) for saved in changed]


# --- brought back -----------------------------------------------------------------------------------------------------


def _fetch(spec: Spec, done: Done, place: Place, connect: _Connect, check_mode: bool, warn: _Warn) -> None:
    """Make a snapshot of the backup, beside the disks. A guest that runs goes on."""
    done.action = "restore"
    store = place.known(spec.server)
    catalog = Catalog(store, spec.server)
    needed = catalog.chain(spec.backup_id)
    saved = needed[-1]
    domain = connect().lookupByUUIDString(spec.uuid)
    definition = domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE)
    disks = _matched(spec, saved, definition, place.state_dir)
    version = tpm.version_of(definition)
    directory = server_snapshots.snapshot_dir(place.state_dir, spec.snapshot)
    if check_mode:
        return
    if domain.isActive():  # what an earlier restore kept is of no use any more
        _former(spec, place).forget()
    part = directory + server_snapshots.PART
    for path in (directory, part):
        if layout.is_directory(path):
            shutil.rmtree(path)
    layout.make_searchable(os.path.dirname(directory), part)
    try:
        room = sum(
            each.written.data for disk in saved.disks for _backup, each in manifest.disk_chain(needed, disk.name)
        )
        server_snapshots.check_room(room, part, f"backup {spec.backup_id}")
        paths = {name: os.path.join(part, disk.name) for name, disk in disks.items()}
        replay.restore(catalog, spec.backup_id, paths)
        for path in paths.values():
            sync(path, 0o400)
        if saved.firmware is not None:
            write_atomically(os.path.join(part, layout.NVRAM), zlib.decompress(base64.b64decode(saved.firmware)), 0o600)
        if saved.tpm is not None and version == tpm.version_of(saved.definition):
            write_atomically(os.path.join(part, f"{TPM}{version}"), saved.tpm, 0o600)
        sizes = {disk.name: saved.disk(name).size for name, disk in disks.items()}
        said = {"disks": sizes, "consistency": saved.consistency}
        write_atomically(os.path.join(part, server_snapshots.MANIFEST), json.dumps(said), 0o600)
        sync(part)
        os.rename(part, directory)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def _matched(spec: Spec, saved: Manifest, definition: str, state_dir: str) -> dict[str, server_snapshots.Disk]:
    """Find the disk of the server that each disk of the backup is brought back to, by its serial number or, of another
    server, by its place. Raises NovaliteError."""
    there = domain_xml.disks_of(definition)
    own = {disk.path: disk for disk in server_snapshots.disks_of(spec.snapshot, state_dir)}
    disks: dict[str, server_snapshots.Disk] = {}
    for each in saved.disks:
        serial = next((disk for disk in there if disk.identity == each.identity), None)
        place = serial or next((disk for disk in there if disk.name == each.name), None)
        if place is not None and place is not serial and spec.server == spec.uuid and is_uuid(each.identity):
            raise NotFoundError(  # it would write over another volume, whose data nobody meant
                f"disk {each.name} of backup {spec.backup_id} is volume {each.identity}, and the server has another "
                "volume there: attach that one first, or make a new volume of the disk (restore-volume)"
            )
        disk = own.get(place.source) if place is not None else None
        if disk is None or disk in disks.values():
            raise NotFoundError(
                f"backup {spec.backup_id} has a disk {each.name}, and the server has none in its place: "
                "attach a volume there first"
            )
        _check_size(spec, each, disk)
        disks[each.name] = disk
    return disks


def _check_size(spec: Spec, saved: SavedDisk, disk: server_snapshots.Disk) -> None:
    """Raise NovaliteError for a disk of another server that would come to be larger than its flavor says."""
    if spec.source in (None, spec.uuid) or disk.is_block or not os.path.lexists(disk.path):
        return
    if server_snapshots.virtual_size(disk) < saved.size:
        raise NovaliteError(
            f"disk {saved.name} of the backup has {saved.size} bytes, and that of the server has fewer: "
            "give the server a flavor with a disk of at least this size"
        )


def _restore(spec: Spec, done: Done, place: Place, connect: _Connect, check_mode: bool, warn: _Warn) -> None:
    """Give the server, whose guest is off, the disks that were fetched; those that are files are kept beside them."""
    done.action = "restore"
    if check_mode:
        return
    guests = LiveGuests(connect)
    if guests.running(spec.uuid):
        raise NovaliteError("its guest runs, and its disks cannot be replaced: stop it first")
    former = _former(spec, place)
    former.keep()
    directory = server_snapshots.snapshot_dir(place.state_dir, spec.snapshot)
    for version in tpm.VERSIONS:
        state = read_text(os.path.join(directory, f"{TPM}{version}"))
        if state is not None:
            former.replace_tpm(version, state)
    (reverted,) = server_snapshots.ensure([spec.snapshot], "reverted", place.state_dir, guests)
    if reverted.error:
        raise NovaliteError(reverted.error)
    former.end()
    server_snapshots.ensure([spec.snapshot], "absent", place.state_dir, guests)


def _former(spec: Spec, place: Place) -> FormerDisks:
    directory = instance_dir(place.state_dir, spec.uuid)
    disks = server_snapshots.disks_of(spec.snapshot, place.state_dir)
    files = [*(disk.path for disk in disks if not disk.is_block), os.path.join(directory, layout.NVRAM)]
    return FormerDisks(spec.run, spec.uuid, directory, files)


def _put_back(spec: Spec, place: Place, connect: _Connect) -> None:
    """Drop what was fetched, and give the server the disks that it had before this restore replaced them. Raises
    NovaliteError for a guest that runs, which writes to those that it has."""
    shutil.rmtree(server_snapshots.snapshot_dir(place.state_dir, spec.snapshot), ignore_errors=True)
    former = _former(spec, place)
    if not former.can_be_put_back:
        return
    if LiveGuests(connect).running(spec.uuid):
        raise NovaliteError("its guest runs, and its former disks cannot be put back: stop it first")
    former.put_back()
