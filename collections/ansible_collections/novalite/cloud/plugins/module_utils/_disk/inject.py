# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""What is written into a guest: decided from what is there, so that a second time there is nothing to do.

The bytes are Nova's (nova/virt/disk/api.py): the comment above a key, 0700 and 0600, restorecon for SELinux guests.
"""

from __future__ import annotations

import dataclasses
import hashlib
import typing as t

from .._errors import NovaliteError
from .guest_root import Entry, GuestRoot

MAX_FILE = 256 << 10  # bytes
MAX_ID = 1 << 32
KEY_COMMENT = "# The following ssh key was injected by Nova"
SELINUX_COMMENT = "# Added by Nova to ensure injected ssh keys have the right context"


@dataclasses.dataclass(frozen=True)
class File:
    """A file that must be in the guest, owned by root: an absolute path, at most 256 KiB, a mode as 0o644."""

    path: str
    content: bytes
    mode: int = 0o644

    def __post_init__(self) -> None:
        if len(self.content) > MAX_FILE:
            raise NovaliteError(f"file {self.path} has {len(self.content)} bytes; at most {MAX_FILE} are injected")
        if not 0 <= self.mode <= 0o7777:
            raise NovaliteError(f"file {self.path}: {self.mode:#o} is not the mode of a file")


@dataclasses.dataclass(frozen=True)
class Request:
    """What one instance must find in its root file system. `partition` as in find_partition."""

    uuid: str
    keys: tuple[str, ...] = ()
    user: str = "root"
    hostname: str | None = None
    partition: int | None = None
    files: tuple[File, ...] = ()

    def __post_init__(self) -> None:
        for key in self.keys:
            if not key.strip() or "\n" in key.strip() or "\0" in key:
                raise NovaliteError(f"instance {self.uuid}: a public key must be one line of text")


@dataclasses.dataclass(frozen=True)
class Step:
    """One thing that differs: `after` must stand where `before` (None: nothing) is."""

    path: str
    before: Entry | None
    after: Entry
    secret: bool = False  # the content of user files stays out of diffs


@dataclasses.dataclass(frozen=True)
class Account:
    uid: int
    gid: int
    home: str


def plan(guest: GuestRoot, request: Request) -> list[Step]:
    """What is missing in `guest`, in the order to write it. Reads only. Raises NovaliteError."""
    if (request.keys or request.hostname) and guest.directory("/etc") is None:
        raise NovaliteError("the guest has no /etc: this is not a root file system; "
                            "correct the image's property os_partition")
    steps = [*_plan_keys(guest, request)] if request.keys else []
    if request.hostname:
        before = guest.read("/etc/hostname")
        wanted = f"{request.hostname}\n".encode()
        if before is None or before.data != wanted:
            steps.append(Step("/etc/hostname", before, Entry(before.mode if before else 0o644, data=wanted)))
    for file in request.files:
        before = guest.read(file.path)
        after = Entry(file.mode, data=file.content)
        if before != after:
            steps.append(Step(file.path, before, after, secret=True))
    return steps


def apply(guest: GuestRoot, steps: t.Sequence[Step]) -> None:
    """Carry out `steps`; everything is on the disk (fsync) on return. Raises NovaliteError."""
    for step in steps:
        if step.after.data is None:
            guest.make_directory(step.path, step.after)
        else:
            guest.write(step.path, step.after)


def describe(entry: Entry | None, secret: bool) -> dict[str, t.Any] | None:
    """An entry for a diff."""
    if entry is None:
        return None
    shown: dict[str, t.Any] = {"mode": f"{entry.mode:04o}", "owner": f"{entry.uid}:{entry.gid}"}
    if entry.data is not None and secret:
        shown["sha256"] = hashlib.sha256(entry.data).hexdigest()
    elif entry.data is not None:
        shown["content"] = entry.data.decode(errors="replace").splitlines()
    return shown


def expected_paths(request: Request) -> list[str]:
    """What would be written into a guest whose disk does not exist yet (check mode)."""
    home = "/root" if request.user == "root" else f"~{request.user}"
    return [
        *([f"{home}/.ssh", f"{home}/.ssh/authorized_keys"] if request.keys else []),
        *(["/etc/hostname"] if request.hostname else []),
        *(file.path for file in request.files),
    ]


def _plan_keys(guest: GuestRoot, request: Request) -> t.Iterator[Step]:
    account = _account(guest, request.user)
    directory = f"{account.home}/.ssh"
    path = f"{directory}/authorized_keys"
    if guest.directory(account.home) is None:
        yield Step(account.home, None, Entry(0o700, account.uid, account.gid))
    before = guest.directory(directory)
    after = Entry(0o700, account.uid, account.gid)
    if before != after:
        yield Step(directory, before, after)
    old = guest.read(path)
    present = {line.strip() for line in (old.data or b"").split(b"\n")} if old else set()
    new = [key.strip() for key in dict.fromkeys(request.keys) if key.strip().encode() not in present]
    added = "".join(f"\n{KEY_COMMENT}\n{key}\n" for key in new).encode()
    entry = Entry(0o600, account.uid, account.gid, ((old.data or b"") if old else b"") + added)
    if old != entry:
        yield Step(path, old, entry)
    if guest.directory("/etc/selinux") is not None:
        yield from _plan_restorecon(guest, directory)


def _plan_restorecon(guest: GuestRoot, directory: str) -> t.Iterator[Step]:
    """Nova's way: rc.local gives the new files their label at the first boot."""
    # On Red Hat's systems /etc/rc.local is a link into /etc/rc.d.
    path = "/etc/rc.d/rc.local" if guest.directory("/etc/rc.d") is not None else "/etc/rc.local"
    command = f"restorecon -RF {directory.lstrip('/')} 2>/dev/null || :".encode()
    old = guest.read(path)
    lines = ((old.data or b"") if old else b"#!/bin/sh\n").split(b"\n")
    if command in lines:
        return
    while lines and not lines[-1].strip():
        lines.pop()
    # Nova appends, and its line is never reached where the script ends in `exit 0`.
    last = [lines.pop()] if lines and lines[-1].strip() == b"exit 0" else []
    data = b"\n".join([*lines, SELINUX_COMMENT.encode(), command, *last]) + b"\n"
    yield Step(path, old, Entry(0o700, data=data))


def _account(guest: GuestRoot, user: str) -> Account:
    passwd = guest.read("/etc/passwd", follow=True)
    for line in ((passwd.data or b"") if passwd else b"").split(b"\n"):
        fields = line.split(b":")
        if len(fields) == 7 and fields[0] == user.encode():
            return _parse_account(fields, user)
    if user == "root":
        return Account(0, 0, "/root")
    raise NovaliteError(f"the guest has no user '{user}' in its /etc/passwd; "
                        "correct the image's property os_admin_user")


def _parse_account(fields: t.Sequence[bytes], user: str) -> Account:
    home = fields[5].decode(errors="surrogateescape").rstrip("/")
    if user == "root":
        return Account(0, 0, home or "/root")
    if not (fields[2].isdigit() and fields[3].isdigit() and home):
        raise NovaliteError(f"the guest's /etc/passwd has no proper ids and home for user '{user}'")
    uid, gid = int(fields[2]), int(fields[3])
    if max(uid, gid) >= MAX_ID - 1:
        raise NovaliteError(f"the guest's /etc/passwd has impossible ids for user '{user}'")
    return Account(uid, gid, home)
