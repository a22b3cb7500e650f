# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""A way from one compute host to another for the length of one move, and for nothing else.

The source makes a key that never leaves it; the destination lets it in for one purpose: to unpack files into one
directory, or to reach the sockets of a live migration. The key says itself when it ends, so that one which a killed run
left behind opens nothing the next day. Everything goes through the ssh daemon that Ansible itself comes by: no port is
opened, and host keys are told by Ansible instead of being trusted at first sight.
"""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import re
import shutil
import socket
import time
import typing as t

from .._command import run
from .._errors import NovaliteError
from .._host import locked, write_atomically
from . import layout

# Where AppArmor and SELinux let a confined QEMU make sockets at all; a socket's path has at most 107 bytes.
RUN_DIR = "/run/libvirt/qemu/novalite"
INCOMING = "incoming"  # in the state directory: what is on its way, by instance
LIFETIME = 12 * 3600  # seconds
PREFIX = "novalite-move-"
FILES, TUNNEL = "files", "tunnel"
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_PUBLIC_KEY = re.compile(r"ssh-ed25519 [A-Za-z0-9+/]+={0,2}\Z")
_HOST_KEY = re.compile(r"(ssh-|ecdsa-)[a-z0-9@.-]+ [A-Za-z0-9+/]+={0,2}\Z")
QEMU_USERS = ("libvirt-qemu", "qemu")


def directory_of(move: str) -> str:
    """Where a host keeps what belongs to one move."""
    if not _ID.match(move):
        raise NovaliteError(f"'{move}' is not the id of a move")
    return os.path.join(RUN_DIR, move)


def staging_of(state_dir: str, uuid: str) -> str:
    """Where the files of an instance arrive."""
    return os.path.join(state_dir, INCOMING, os.path.basename(layout.instance_dir(state_dir, uuid)))


def offer(moves: t.Sequence[t.Mapping[str, t.Any]]) -> dict[str, str]:
    """On the source: a key for each move. Returns the public keys by the moves' ids."""
    found = {}
    for move in moves:
        directory = directory_of(move["id"])
        _make_run_dir()
        with contextlib.suppress(FileExistsError):
            os.mkdir(directory, 0o700)
        key = os.path.join(directory, "key")
        if not os.path.exists(f"{key}.pub"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(key)
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key])
        with open(f"{key}.pub", encoding="ascii") as handle:
            found[move["id"]] = " ".join(handle.read().split()[:2])
    return found


def accept(
    moves: t.Sequence[t.Mapping[str, t.Any]], keys: t.Mapping[str, str], purpose: str, state_dir: str
) -> list[str]:
    """On the destination: let these keys in, each for its own move. Returns this host's own keys."""
    layout.prepare_state_dir(state_dir)
    lines = {}
    for move in moves:
        key = keys.get(move["id"], "")
        if not _PUBLIC_KEY.match(key):
            raise NovaliteError(f"instance {move['uuid']}: its source has no key for the move")
        lines[f"{PREFIX}{move['id']}"] = f"{_options(move, purpose, state_dir)} {key} {PREFIX}{move['id']}"
        if purpose == FILES:
            staging = staging_of(state_dir, move["uuid"])
            os.makedirs(os.path.dirname(staging), mode=0o700, exist_ok=True)
            shutil.rmtree(staging, ignore_errors=True)
            os.mkdir(staging, 0o700)
        else:
            _qemus_own(directory_of(move["id"]))
    _change_authorized(lambda kept: [*(line for line in kept if _mark(line) not in lines), *lines.values()])
    return host_keys()


def close(moves: t.Sequence[t.Mapping[str, t.Any]], state_dir: str) -> bool:
    """On either host: let nobody in any more, and leave nothing. Returns whether there was anything."""
    going = {f"{PREFIX}{move['id']}" for move in moves}
    changed = _change_authorized(lambda kept: [line for line in kept if _mark(line) not in going])
    for move in moves:
        for directory in (directory_of(move["id"]), staging_of(state_dir, move["uuid"])):
            if os.path.isdir(directory):
                shutil.rmtree(directory)
                changed = True
    return changed


def stale() -> list[str]:
    """The moves' marks of keys that are still let in here."""
    return sorted(mark for mark in map(_mark, _read_authorized()) if mark)


def ssh(move: str, host_keys_of: t.Sequence[str], address: str) -> list[str]:
    """On the source: the beginning of the command that reaches the destination of this move."""
    directory = directory_of(move)
    for key in host_keys_of:
        if not _HOST_KEY.match(key):
            raise NovaliteError(f"'{key[:40]}' is no host key")
    known = os.path.join(directory, "known_hosts")
    write_atomically(known, "".join(f"destination {key}\n" for key in host_keys_of), 0o600)
    options = {
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "BatchMode": "yes",
        "UserKnownHostsFile": known,
        "GlobalKnownHostsFile": "/dev/null",
        "HostKeyAlias": "destination",
        "StrictHostKeyChecking": "yes",
        "ControlPath": "none",
        "ConnectTimeout": "30",
        "ServerAliveInterval": "15",
        "ExitOnForwardFailure": "yes",
    }
    argv = ["ssh", "-F", "/dev/null", "-T", "-i", os.path.join(directory, "key")]
    for name, value in options.items():
        argv += ["-o", f"{name}={value}"]
    return [*argv, f"root@{address}"]


def host_keys() -> list[str]:
    """The public keys that this host's ssh daemon shows."""
    found = []
    for path in sorted(glob.glob("/etc/ssh/ssh_host_*_key.pub")):
        with open(path, encoding="ascii", errors="replace") as handle:
            found.append(" ".join(handle.read().split()[:2]))
    if not found:
        raise NovaliteError(f"{socket.gethostname()} has no /etc/ssh/ssh_host_*_key.pub: how would it be known?")
    return [key for key in found if _HOST_KEY.match(key)]


def _options(move: t.Mapping[str, t.Any], purpose: str, state_dir: str) -> str:
    until = time.strftime("%Y%m%d%H%M", time.localtime(time.time() + LIFETIME))
    options = ["restrict", f'expiry-time="{until}"']
    if purpose == FILES:
        staging = staging_of(state_dir, move["uuid"])
        if '"' in staging or any(character.isspace() for character in staging):
            raise NovaliteError(f"{staging!r} has a character that no state directory should have")
        # whatever the other side asks for, this is what is run
        options.append(f'command="tar --extract --sparse --no-same-owner --file=- --directory={staging}"')
    else:
        # To libvirtd's socket and QEMU's two. sshd cannot be told which, and a permitopen for ports would forbid all
        # sockets; but who reaches libvirtd may do everything anyway.
        options += ["port-forwarding", 'permitlisten="127.0.0.1:1"', 'command="/bin/false"']
    return ",".join(options)


def _make_run_dir() -> None:
    os.makedirs(RUN_DIR, exist_ok=True)
    os.chmod(RUN_DIR, layout.SEARCHABLE)  # whatever the umask; QEMU passes through


def _qemus_own(directory: str) -> None:
    """A directory in which QEMU may make its sockets."""
    _make_run_dir()
    shutil.rmtree(directory, ignore_errors=True)
    os.mkdir(directory, 0o700)
    for name in QEMU_USERS:
        with contextlib.suppress(KeyError):
            user = pwd.getpwnam(name)
            os.chown(directory, user.pw_uid, user.pw_gid)
            return
    raise NovaliteError(f"this host has none of the users {', '.join(QEMU_USERS)} that QEMU runs as")


def _mark(line: str) -> str | None:
    """The mark of a line of ours; None for everybody else's."""
    words = line.split()
    return words[-1] if words and words[-1].startswith(PREFIX) else None


def _authorized_path() -> str:
    return os.path.join(pwd.getpwuid(0).pw_dir, ".ssh", "authorized_keys")


def _read_authorized() -> list[str]:
    try:
        with open(_authorized_path(), encoding="utf-8", errors="surrogateescape") as handle:
            return handle.read().splitlines()
    except FileNotFoundError:
        return []


def _change_authorized(change: t.Callable[[list[str]], list[str]]) -> bool:
    with locked("authorized-keys"):
        before = _read_authorized()
        after = change(before)
        if after == before:
            return False
        path = _authorized_path()
        with contextlib.suppress(FileExistsError):
            os.mkdir(os.path.dirname(path), 0o700)
        text = "".join(f"{line}\n" for line in after)
        write_atomically(path, text.encode("utf-8", "surrogateescape"), 0o600)
        return True
