# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The disks of a running guest as they are at one moment: libvirt's backup job in pull mode, which is always ended."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
import time
import typing as t

from .._errors import ConflictError, NovaliteError
from .._host.own_directory import make_own, opened_own, own_entry
from . import domain_xml
from .domain_xml import DiskPlan
from .manifest import CRASH, FILESYSTEM, Manifest

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

ABORT_TIMEOUT = 60.0  # seconds
AGENT_TIMEOUT = 10  # seconds that a guest's agent has for an answer
_LOOK = 0.5  # seconds between two looks at the scratch files
# Where libvirt's profile for AppArmor lets QEMU make a socket, if its name ends so (virt-aa-helper)
SOCKETS = "/run/libvirt/novalite"
_SOCKET = "b.tunnelmigrate.dest."  # short: a path of a socket has 107 characters at most


@dataclasses.dataclass(frozen=True)
class Scratch:
    """Room for what the guest overwrites during a backup: at most `limit` bytes in `directory`, whose file system
    keeps `reserve` bytes free."""

    directory: str
    limit: int
    reserve: int

    def prepare(self) -> None:
        """Have the directory, root's own, which QEMU may pass through."""
        make_own(self.directory, mode=0o711, links=True)

    def path(self, server: str, disk: str) -> str:
        """The file for a disk."""
        return os.path.join(self.directory, f"{server}.{disk}")

    def complaint(self, server: str, disks: t.Iterable[str]) -> str | None:
        """Say why a backup has to end now, if it has."""
        used = 0
        for disk in disks:
            with contextlib.suppress(FileNotFoundError):
                used += os.stat(self.path(server, disk)).st_blocks * 512
        if used > self.limit:
            return f"the guest overwrote {used} bytes meanwhile: back up when it writes less, or allow {used * 2}"
        status = os.statvfs(self.directory)
        if status.f_bavail * status.f_frsize < self.reserve:
            return f"{self.directory} has less than {self.reserve} bytes left: make room there, and back up again"
        return None


@dataclasses.dataclass(frozen=True)
class Job:
    """A running job: the socket at which it is read, and the consistency of what is read there."""

    socket: str
    consistency: str


def end_left_over(domain: libvirt.virDomain) -> bool:
    """End the job of a run of ours that was killed; returns whether there was one. Raises ConflictError for the job of
    somebody else."""
    try:
        xml = domain.backupGetXMLDesc()
    except libvirt.libvirtError as error:
        if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN_BACKUP:
            return False
        raise
    if not (domain_xml.socket_of(xml) or "").startswith(f"{SOCKETS}/"):
        raise ConflictError(f"another backup of domain {domain.UUIDString()} is under way: wait for it, and run again")
    _end(domain)
    return True


def known_again(domain: libvirt.virDomain, parent: Manifest) -> bool:
    """Have libvirt know the checkpoint of `parent`, whose bitmaps came with the disks; returns whether it does."""
    xml = domain_xml.checkpoint_again(parent)
    if parent.checkpoint in checkpoints(domain, ""):
        return True
    if xml is None:
        return False
    flags = libvirt.VIR_DOMAIN_CHECKPOINT_CREATE_REDEFINE | libvirt.VIR_DOMAIN_CHECKPOINT_CREATE_REDEFINE_VALIDATE
    try:
        domain.checkpointCreateXML(xml, flags)
    except libvirt.libvirtError:  # it looked for the bitmaps, and did not find all of them
        return False
    return True


def checkpoints(domain: libvirt.virDomain, prefix: str = domain_xml.PREFIX) -> dict[str, libvirt.virDomainCheckpoint]:
    """The checkpoints that novalite made in a domain, by name."""
    known = {checkpoint.getName(): checkpoint for checkpoint in domain.listAllCheckpoints(0)}
    return {name: known[name] for name in known if name.startswith(prefix)}


def forget_checkpoints(domain: libvirt.virDomain, but: str | None, prefix: str = domain_xml.PREFIX) -> None:
    """Remove the checkpoints that novalite made in an active domain, with their bitmaps, `but` this one. Of one with a
    broken bitmap libvirt can forget the record alone."""
    for name, checkpoint in checkpoints(domain, prefix).items():
        if name != but:
            try:
                checkpoint.delete(0)
            except libvirt.libvirtError:
                with contextlib.suppress(libvirt.libvirtError):
                    checkpoint.delete(libvirt.VIR_DOMAIN_CHECKPOINT_DELETE_METADATA_ONLY)


def can_go_on(error: libvirt.libvirtError) -> bool:
    """Tell whether libvirt refused a job for the checkpoint alone, so that a full one may work."""
    return error.get_error_code() in (libvirt.VIR_ERR_CHECKPOINT_INCONSISTENT, libvirt.VIR_ERR_NO_DOMAIN_CHECKPOINT)


@contextlib.contextmanager
def job(
    domain: libvirt.virDomain,
    plans: t.Sequence[DiskPlan],
    since: str | None,
    checkpoint: str | None,
    scratch: Scratch,
    freeze: bool,
) -> t.Iterator[Job]:
    """Begin a job of these disks, incremental ones `since` a checkpoint; the new `checkpoint` is of the same moment.
    The job is ended with the context, and before, when its scratch files have grown too large.

    Raises NovaliteError, and libvirt's errors when it does not begin."""
    definition, server = domain.XMLDesc(0), domain.UUIDString()
    names = [each.disk.name for each in plans]
    with socket_path(server, domain.name(), domain_xml.owner_of(definition)) as socket:
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # of a run that was killed
                os.unlink(scratch.path(server, name))
        xml = domain_xml.backup_xml(plans, since, socket, lambda disk: scratch.path(server, disk))
        frozen = freeze and domain_xml.has_agent(definition) and _freeze(domain)
        try:
            domain.backupBegin(xml, domain_xml.checkpoint_xml(checkpoint, plans) if checkpoint else None, 0)
        finally:
            thawed = frozen and _thaw(domain)
        try:
            with _watched(domain, server, names, scratch):
                yield Job(socket, FILESYSTEM if thawed else CRASH)
        finally:
            _end(domain)


@contextlib.contextmanager
def socket_path(server: str, name: str, owner: tuple[int, int] | None, directory: str = SOCKETS) -> t.Iterator[str]:
    """A path for the socket of one job, in a directory that root made, and QEMU's user alone may enter."""
    with opened_own(directory, make=True, mode=0o711) as fd:
        _remove_socket(fd, server, name)
        os.mkdir(server, 0o700, dir_fd=fd)
        try:
            with own_entry(server, os.O_RDONLY | os.O_DIRECTORY, fd) as own:
                if owner is not None:
                    os.fchown(own, *owner)
            yield os.path.join(directory, server, _SOCKET + name)
        finally:
            _remove_socket(fd, server, name)


def _remove_socket(fd: int, server: str, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        directory = os.open(server, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(_SOCKET + name, dir_fd=directory)
        finally:
            os.close(directory)
        os.rmdir(server, dir_fd=fd)


@contextlib.contextmanager
def _watched(domain: libvirt.virDomain, server: str, names: t.Sequence[str], scratch: Scratch) -> t.Iterator[None]:
    """End the job when its scratch files have grown too large: QEMU would have the guest's writes fail instead."""
    done = threading.Event()
    complaints: list[str] = []

    def watch() -> None:
        while not done.wait(_LOOK):
            complaint = scratch.complaint(server, names)
            if complaint is not None:
                complaints.append(complaint)
                with contextlib.suppress(libvirt.libvirtError):
                    domain.abortJob()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    except NovaliteError as error:
        done.set()
        watcher.join()
        raise NovaliteError(complaints[0] if complaints else _why_ended(domain, error)) from None
    finally:
        done.set()
        watcher.join()


def _why_ended(domain: libvirt.virDomain, error: NovaliteError) -> str:
    with contextlib.suppress(libvirt.libvirtError):
        if domain.isActive():
            return str(error)
    return f"the guest stopped while it was read ({error}): back up again"


def _end(domain: libvirt.virDomain) -> None:
    """Abort the job, if there is still one. Raises NovaliteError if it does not end."""
    deadline = time.monotonic() + ABORT_TIMEOUT
    while True:
        try:
            domain.backupGetXMLDesc()
        except libvirt.libvirtError:  # it ended, with the guest perhaps
            return
        with contextlib.suppress(libvirt.libvirtError):
            domain.abortJob()
        if time.monotonic() > deadline:
            raise NovaliteError(f"the backup of domain {domain.UUIDString()} does not end: look at virsh domjobinfo")
        time.sleep(0.02)


def _freeze(domain: libvirt.virDomain) -> bool:
    try:
        domain.agentSetResponseTimeout(AGENT_TIMEOUT, 0)
        domain.fsFreeze()
    except libvirt.libvirtError:  # its agent does not answer, or cannot: the backup says so
        _thaw(domain)
        return False
    return True


def _thaw(domain: libvirt.virDomain) -> bool:
    """Thaw the guest's file systems; returns whether they were frozen until now."""
    try:
        domain.fsThaw()
    except libvirt.libvirtError:
        return False
    return True
