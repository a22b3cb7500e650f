# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Injection into a guest: decided from what is there, so that a second time there is nothing to do.

The bytes are Nova's (nova/virt/disk/api.py): the comment above a key, 0700 and 0600, restorecon for SELinux guests.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from .._disk import layout
from .._errors import NovaliteError
from .._json import JsonMapping, JsonObject
from . import guest_network
from .guest_network import Nic
from .guest_root import Entry, GuestRoot

MAX_FILE = 256 << 10  # bytes
PASSWD, SHADOW = "/etc/passwd", "/etc/shadow"
PASSWD_FIELDS, SHADOW_FIELDS = 7, 9
MAX_ID = 1 << 32
# crypt(5): an identifier, parameters and salt, the hash; none of it can end a field or a line of etc/shadow
_HASH = re.compile(r"\$[0-9a-z]{1,8}\$[A-Za-z0-9./=,$]{1,400}\Z")
KEY_COMMENT = "# The following ssh key was injected by Nova"
EXIT = re.compile(rb"\s*exit(\s+\d+)?\s*;?\s*(#.*)?$")
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
    """Content that one instance must find in its root file system. `partition` as in find_partition."""

    uuid: str
    keys: tuple[str, ...] = ()
    user: str = "root"
    hostname: str | None = None
    partition: int | str | None = None
    files: tuple[File, ...] = ()
    nics: tuple[Nic, ...] = ()  # none: the guest's network configuration stays as it is
    password_hash: str | None = None  # crypt(5), for `user`
    password_optional: bool = False  # the guest may have no line for it
    volume: JsonMapping | None = None  # what it starts from, instead of a disk of its own
    disk: str = layout.DISK  # the file's name

    def __post_init__(self) -> None:
        for key in self.keys:
            if not key.strip() or "\n" in key.strip() or "\0" in key:
                raise NovaliteError(f"instance {self.uuid}: a public key must be one line of text")
        if self.password_hash is not None and not is_hash(self.password_hash):
            raise NovaliteError(f"instance {self.uuid}: its password hash is not of the form $id$salt$hash (crypt(5))")


@dataclasses.dataclass(frozen=True)
class Step:
    """Difference in the guest's files: `after` must stand where `before` (None: nothing) is."""

    path: str
    before: Entry | None
    after: Entry
    secret: bool = False  # its content stays out of diffs


def plan(guest: GuestRoot, request: Request) -> list[Step]:
    """Steps that are missing in `guest`, in the order to write them. Reads only. Raises NovaliteError."""
    if (request.keys or request.hostname or request.nics or request.password_hash) and guest.directory("/etc") is None:
        raise NovaliteError(
            "the guest has no /etc: this is not a root file system; correct the image's property os_partition"
        )
    steps = [*_plan_keys(guest, request)] if request.keys else []
    if request.hostname:
        steps += _plan_text(guest, "/etc/hostname", f"{request.hostname}\n")
    if request.nics:
        steps += _plan_network(guest, request.nics)
    if request.password_hash:
        steps += _plan_password(guest, request.user, request.password_hash, request.password_optional)
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


def describe(entry: Entry | None, secret: bool) -> JsonObject | None:
    """An entry for a diff."""
    if entry is None:
        return None
    shown: JsonObject = {"mode": f"{entry.mode:04o}", "owner": f"{entry.uid}:{entry.gid}"}
    if entry.data is not None and secret:
        shown["content"] = f"{len(entry.data)} bytes, not shown"
    elif entry.data is not None:
        shown["content"] = entry.data.decode(errors="replace").splitlines()
    return shown


def expected_paths(request: Request) -> list[str]:
    """Paths that would be written into a guest whose disk does not exist yet (check mode)."""
    home = "/root" if request.user == "root" else f"~{request.user}"
    return [
        *([f"{home}/.ssh", f"{home}/.ssh/authorized_keys"] if request.keys else []),
        *(["/etc/hostname"] if request.hostname else []),
        *(["network configuration"] if request.nics else []),
        *([SHADOW] if request.password_hash else []),
        *(file.path for file in request.files),
    ]


def _plan_keys(guest: GuestRoot, request: Request) -> t.Iterator[Step]:
    uid, gid, home = find_account(guest, request.user)
    directory = f"{home}/.ssh"
    path = f"{directory}/authorized_keys"
    after = Entry(0o700, uid, gid)
    if guest.directory(home) is None:
        yield Step(home, None, after)
    before = guest.directory(directory)
    if before != after:
        yield Step(directory, before, after)
    old = guest.read(path)
    present = {line.strip() for line in (old.data or b"").split(b"\n")} if old else set()
    new = [key.strip() for key in dict.fromkeys(request.keys) if key.strip().encode() not in present]
    added = "".join(f"\n{KEY_COMMENT}\n{key}\n" for key in new).encode()
    entry = Entry(0o600, uid, gid, ((old.data or b"") if old else b"") + added)
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
    last = [lines.pop()] if lines and EXIT.match(lines[-1]) else []
    data = b"\n".join([*lines, SELINUX_COMMENT.encode(), command, *last]) + b"\n"
    yield Step(path, old, Entry(0o700, data=data))


def _plan_text(guest: GuestRoot, path: str, text: str, mode: int = 0o644) -> t.Iterator[Step]:
    """The whole of a file; the mode is for one that is not there yet."""
    before = guest.read(path)
    if before is None or before.data != text.encode():
        yield Step(path, before, Entry(before.mode if before else mode, data=text.encode()))


def _plan_network(guest: GuestRoot, nics: t.Sequence[Nic]) -> t.Iterator[Step]:
    """Plan the network's configuration in the one way that the guest has. netplan comes first: it drives the others.
    Debian's systemd brings networkd's directory along, so that counts only where nothing else is there."""
    if guest.directory(guest_network.NETPLAN) is not None:
        # 0600: netplan complains about files that others can read
        yield from _plan_text(guest, f"{guest_network.NETPLAN}/90-nova.yaml", guest_network.netplan(nics), 0o600)
    elif not guest.is_link(guest_network.NETWORKD_WANTED) and guest.directory("/etc/network") is not None:
        yield from _plan_text(guest, guest_network.INTERFACES, guest_network.interfaces(nics))
        text = guest_network.resolv_conf(nics)
        if text is not None and not guest.is_link(guest_network.RESOLV_CONF):  # a link is somebody's who keeps it
            yield from _plan_text(guest, guest_network.RESOLV_CONF, text)
    elif guest.directory(guest_network.NETWORKD) is not None:
        for nic in nics:
            path = f"{guest_network.NETWORKD}/{guest_network.FIRST}{nic.name}.network"
            yield from _plan_text(guest, path, guest_network.networkd(nic))
    else:
        raise NovaliteError(
            "the guest has none of /etc/netplan, /etc/network and /etc/systemd/network to write its "
            "addresses to; use a network with DHCP, or a config drive"
        )


def _plan_password(guest: GuestRoot, user: str, password_hash: str, optional: bool) -> t.Iterator[Step]:
    """Another password in the user's line, and nothing else: a line of our making would have to guess its ages."""
    before = guest.read(SHADOW)
    lines = (before.data or b"").split(b"\n") if before else []
    number = _line_of(lines, user, SHADOW_FIELDS)
    if number is None and optional:
        return
    if before is None:
        raise NovaliteError(f"the guest has no {SHADOW} to write the password of '{user}' to")
    if number is None:
        raise _unknown(user, SHADOW)
    fields = lines[number].split(b":")
    fields[1] = password_hash.encode()
    lines[number] = b":".join(fields)
    data = b"\n".join(lines)
    if data != before.data:
        yield Step(SHADOW, before, dataclasses.replace(before, data=data), secret=True)


def is_hash(text: str) -> bool:
    return _HASH.match(text) is not None


def find_account(guest: GuestRoot, user: str) -> tuple[int, int, str]:
    """Uid, gid and home of `user` after the guest's own etc/passwd. Raises NovaliteError for one that is not there."""
    passwd = guest.read(PASSWD, follow=True)
    lines = (passwd.data or b"").split(b"\n") if passwd else []
    number = _line_of(lines, user, PASSWD_FIELDS)
    if number is None and user != "root":
        raise _unknown(user, PASSWD)
    fields = lines[number].split(b":") if number is not None else [b""] * PASSWD_FIELDS
    home = fields[5].decode(errors="surrogateescape").rstrip("/")
    if user == "root":
        return 0, 0, home or "/root"
    if not (fields[2].isdigit() and fields[3].isdigit() and home):
        raise NovaliteError(f"the guest's {PASSWD} has no proper ids and home for user '{user}'")
    uid, gid = int(fields[2]), int(fields[3])
    if max(uid, gid) >= MAX_ID - 1:
        raise NovaliteError(f"the guest's {PASSWD} has impossible ids for user '{user}'")
    return uid, gid, home


def _line_of(lines: t.Sequence[bytes], user: str, count: int) -> int | None:
    """The number of the line of `user`, counted from 0; one that has not `count` fields is none."""
    for number, line in enumerate(lines):
        fields = line.split(b":")
        if len(fields) == count and fields[0] == user.encode():
            return number
    return None


def _unknown(user: str, path: str) -> NovaliteError:
    return NovaliteError(f"the guest has no user '{user}' in its {path}; correct the image's property os_admin_user")
