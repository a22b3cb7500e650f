# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A way from one compute host to another for the length of one move, and for nothing else.

The source makes a key that never leaves it; the destination lets it in for one purpose: to unpack files into one
directory, or to reach the sockets of a live migration. The key says itself when it ends, so that one which a killed run
left behind opens nothing the next day. Everything goes through the ssh daemon that Ansible itself comes by: no port is
opened, and host keys are told by Ansible instead of being trusted at first sight. Where Ansible does not log in as
root, neither does the source: its key opens a gate of root's own (gate.py), as the user by whom Ansible comes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import glob
import os
import pwd
import re
import shlex
import shutil
import socket
import string
import subprocess
import sys
import time
import typing as t

from .. import _keepalive
from .._disk import daemon, layout
from .._errors import NovaliteError
from .._guest import authorized_keys
from .._host.command import run
from .._host.files import instance_dir, remove_file, write_atomically
from .._host.own_directory import make_own
from .._host.places import ssh_session
from .._host.waiting import wait_until
from .._json import JsonMapping, JsonObject
from .._relay import TO_PATH
from . import gate

# Where AppArmor and SELinux let a confined QEMU make sockets at all; a socket's path has at most 107 bytes.
RUN_DIR = "/run/libvirt/qemu/novalite"
LIFETIME = 12 * 3600  # seconds
TUNNEL_TIMEOUT = 40.0  # seconds
PREFIX = "novalite-move-"
FILES, TUNNEL = "files", "tunnel"
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_PUBLIC_KEY = re.compile(r"ssh-ed25519 [A-Za-z0-9+/]+={0,2}\Z")
_HOST_KEY = re.compile(r"(ssh-|ecdsa-)[a-z0-9@.-]+ [A-Za-z0-9+/]+={0,2}\Z")
_LOGIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+\\-]{0,63}\Z")
_MINUTE = "%Y%m%d%H%M"  # sshd's form, in the host's time
_EXPIRY = re.compile(r'expiry-time="([0-9]{12})"')
ROOT = "root"
SSH_PORT = 22
QEMU_USERS = ("libvirt-qemu", "qemu")


class Move(t.TypedDict):
    """Move as both its hosts know it: its `id`, the instance's `uuid`, and the destination."""

    id: str
    uuid: str
    to_host: str
    to_address: str


@dataclasses.dataclass(frozen=True)
class Door:
    """Access of a source to a destination: its sshd at `address` and `port`, known by `host_keys`, which lets `login`
    in."""

    address: str
    host_keys: tuple[str, ...]
    login: str = ROOT
    port: int = SSH_PORT


def doors(moves: t.Sequence[Move], opened: t.Mapping[str, JsonMapping]) -> dict[str, Door]:
    """The doors of the moves' destinations, by their names; `opened` is what each of these said of its own (door()).
    Raises NovaliteError."""
    by_host = {}
    for move in moves:
        there = opened.get(move["to_host"]) or {}
        if not there.get("host_keys"):
            raise NovaliteError(f"instance {move['uuid']}: host {move['to_host']} has let nobody in for the move")
        login, port = there.get("login") or ROOT, int(there.get("port") or SSH_PORT)
        by_host[move["to_host"]] = Door(move["to_address"], tuple(there["host_keys"]), login, port)
    return by_host


def door(login: str) -> JsonObject:
    """Return what a source has to know of this destination's door, for doors(). The port is that of the sshd by which
    Ansible came, as the host itself sees it: whoever translates ports on Ansible's way is on no source's."""
    session = ssh_session(os.environ)
    return {"host_keys": host_keys(), "login": login, "port": int(session[3]) if session else SSH_PORT}


def directory_of(move: str) -> str:
    """Directory of a host for all that belongs to one move. Raises NovaliteError."""
    if not _ID.match(move):
        raise NovaliteError(f"'{move}' is not the id of a move")
    return os.path.join(RUN_DIR, move)


def staging_of(state_dir: str, uuid: str) -> str:
    """Directory where the files of an instance arrive."""
    return os.path.join(state_dir, layout.INCOMING, os.path.basename(instance_dir(state_dir, uuid)))


def offer(moves: t.Sequence[Move]) -> dict[str, str]:
    """Make a key for each move, on its source. Returns the public keys by the moves' ids."""
    keys = {}
    for move in moves:
        directory = directory_of(move["id"])
        _make_run_dir()
        with contextlib.suppress(FileExistsError):
            os.mkdir(directory, 0o700)
        key = os.path.join(directory, "key")
        if not os.path.exists(f"{key}.pub"):
            remove_file(key)
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key])
        with open(f"{key}.pub", encoding="ascii") as handle:
            keys[move["id"]] = " ".join(handle.read().split()[:2])
    return keys


def accept(
    moves: t.Sequence[Move], keys: t.Mapping[str, str], purpose: str, state_dir: str, login: str = ROOT
) -> JsonObject:
    """Let these keys in, each for its own move, on the destination, where `login` may log in. Returns its door()."""
    layout.prepare_state_dir(state_dir)
    lines = {}
    for move in moves:
        key = keys.get(move["id"], "")
        if not _PUBLIC_KEY.match(key):
            raise NovaliteError(f"instance {move['uuid']}: its source has no key for the move")
        mark = f"{PREFIX}{move['id']}"
        lines[mark] = f"{_options(move, purpose, state_dir)} {key} {mark}"
        if purpose == FILES:
            staging = staging_of(state_dir, move["uuid"])
            make_own(os.path.dirname(staging), links=True)
            shutil.rmtree(staging, ignore_errors=True)
            os.mkdir(staging, 0o700)
        else:
            _qemus_own(directory_of(move["id"]))
        if login != ROOT:
            _make_run_dir()
            private = [path[: -len(".pub")] for path in _host_key_files()]
            gate.open_gate(_gate_of(move), login, lines[mark], purpose == TUNNEL, private)
            lines[mark] = f"{_to_gate(move)} {key} {mark}"
    accepted = {move["id"] for move in moves}

    def let_in(kept: list[str]) -> list[str]:
        return [*(line for line in kept if move_of(line) not in accepted and not is_expired(line)), *lines.values()]

    authorized_keys.change(login, let_in)
    return door(login)


def close(moves: t.Sequence[Move], state_dir: str, login: str = ROOT) -> bool:
    """Let nobody in any more, and leave nothing, on either host of the moves. Where nobody knows a move's `id`, or
    `uuid` (empty), the other one says what goes. Returns whether there was anything."""
    going = {move["id"] for move in moves if move["id"]}
    if os.path.lexists(RUN_DIR):
        _make_run_dir()  # or refuse one that leads elsewhere: much is removed below
    changed = False
    for user in dict.fromkeys((*logins(), login)):  # the login may have been another one when the move began
        changed |= authorized_keys.change(user, lambda kept: [line for line in kept if move_of(line) not in going])
    for move in moves:
        directories = [staging_of(state_dir, move["uuid"])] if move["uuid"] else []
        if move["id"]:
            changed |= gate.close_gate(_gate_of(move))
            directories.append(directory_of(move["id"]))
        for directory in directories:
            if os.path.isdir(directory):
                shutil.rmtree(directory)
                changed = True
    return changed


def logins() -> list[str]:
    """Users of this host in whose authorized_keys a move's line may be: root, whom root came from, and who may use a
    gate that is open."""
    names = [ROOT, os.environ.get("SUDO_USER", ROOT)]
    for path in glob.glob(gate.path_of(os.path.join(RUN_DIR, "*.gate"))):
        with contextlib.suppress(OSError, KeyError):
            names.append(pwd.getpwuid(os.lstat(path).st_uid).pw_name)
    return list(dict.fromkeys(names))


def ssh(move: str, door: Door) -> list[str]:
    """Return the beginning of the command that reaches the destination of this move from its source."""
    directory = directory_of(move)
    for key in door.host_keys:
        if not _HOST_KEY.match(key):
            raise NovaliteError(f"'{key[:40]}' is not a host key")
    if not _LOGIN.match(door.login):
        raise NovaliteError(f"'{door.login[:70]}' is not a user's name")
    known = os.path.join(directory, "known_hosts")
    write_atomically(known, "".join(f"destination {key}\n" for key in door.host_keys), 0o600)
    options = {
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "BatchMode": "yes",
        "UserKnownHostsFile": known,
        "GlobalKnownHostsFile": "/dev/null",
        "HostKeyAlias": "destination",
        "StrictHostKeyChecking": "yes",
        "ControlPath": "none",
        **dict((_keepalive.CONNECT_TIMEOUT, *_keepalive.OPTIONS)),
        "ExitOnForwardFailure": "yes",
    }
    argv = ["ssh", "-F", "/dev/null", "-T", "-i", os.path.join(directory, "key")]
    for name, value in options.items():
        argv += ["-o", f"{name}={value}"]
    outer = [*argv, "-p", str(door.port), "-l", door.login, door.address]
    if door.login == ROOT:
        return outer
    command = shlex.join(outer).replace("%", "%%")  # ssh fills in what follows a percent sign
    return [*argv, "-o", f"ProxyCommand={command}", "-l", ROOT, "destination"]


@contextlib.contextmanager
def tunnel(move: Move, door: Door, ours: t.Mapping[str, str], qemus: t.Sequence[str]) -> t.Iterator[str]:
    """Lead sockets in the move's directory to the same names on the destination, by `door`; yields the directory.

    `ours` are names and the paths that they have there. `qemus` are names in the same directory there; QEMU may use
    these, and none but these: libvirt's would make it root on the destination. The tunnel ends with the task, even one
    that is killed, and libvirt on both sides takes note. Raises NovaliteError when the destination does not let us in.
    """
    directory = directory_of(move["id"])
    for_qemu = [os.path.join(directory, name) for name in qemus]
    paths = {os.path.join(directory, name): there for name, there in ours.items()}
    paths.update((path, path) for path in for_qemu)
    argv = ssh(move["id"], door)
    argv[1:1] = ["-N"]
    for here, there in paths.items():
        remove_file(here)
        argv[1:1] = ["-L", f"{here}:{there}"]
    process = daemon.start(argv, directory)
    try:
        _wait_for(process, list(paths), move, door, directory)
        os.chmod(directory, layout.SEARCHABLE)
        for here in for_qemu:
            _give_to_qemu(here)
        yield directory
    finally:
        daemon.end(process)


def _wait_for(
    process: subprocess.Popen[bytes], sockets: t.Sequence[str], move: Move, door: Door, directory: str
) -> None:
    at = f"{door.address} port {door.port}"
    wait_until(
        lambda: process.poll() is not None or all(os.path.exists(path) for path in sockets),
        TUNNEL_TIMEOUT,
        f"host {move['to_host']} does not answer over ssh at {at}",
        pause=0.05,
    )
    if process.poll() is not None:
        last = " ".join(daemon.error_output(directory).split())[-300:]
        raise NovaliteError(f"host {move['to_host']} cannot be reached over ssh at {at}: {last}")


def host_keys() -> list[str]:
    """The public keys that this host's ssh daemon shows."""
    keys = []
    for path in _host_key_files():
        with open(path, encoding="ascii", errors="replace") as handle:
            keys.append(" ".join(handle.read().split()[:2]))
    if not keys:
        raise NovaliteError(f"{socket.gethostname()} has no /etc/ssh/ssh_host_*_key.pub: how would it be known?")
    return [key for key in keys if _HOST_KEY.match(key)]


def _host_key_files() -> list[str]:
    return sorted(glob.glob("/etc/ssh/ssh_host_*_key.pub"))


def _gate_of(move: Move) -> str:
    return f"{directory_of(move['id'])}.gate"


def _to_gate(move: Move) -> str:
    """Options of the login's key in authorized_keys: it carries what the source and this host's root say, no more."""
    relay = f"exec {sys.executable} -IS -c '{TO_PATH}' {gate.path_of(_gate_of(move))}"
    return f'{_restricted()},command="{relay}"'


def _restricted() -> str:
    until = time.strftime(_MINUTE, time.localtime(time.time() + LIFETIME))
    return f'restrict,expiry-time="{until}"'


def _options(move: Move, purpose: str, state_dir: str) -> str:
    options = [_restricted()]
    if purpose == FILES:
        staging = staging_of(state_dir, move["uuid"])
        if '"' in staging or any(character in string.whitespace for character in staging):
            raise NovaliteError(f"{staging!r} has a character that no state directory should have")
        # whatever the other side asks for, this is what is run
        options.append(f'command="tar --extract --sparse --no-same-owner --file=- --directory={staging}"')
    else:
        # To libvirtd's socket and QEMU's two. sshd cannot be told which, and a permitopen for ports would forbid all
        # sockets; but who reaches libvirtd may do everything anyway.
        options += ["port-forwarding", 'permitlisten="127.0.0.1:1"', 'command="/bin/false"']
    return ",".join(options)


def _make_run_dir() -> None:
    # libvirt may give its own directory on the way to QEMU, which passes through ours.
    make_own(RUN_DIR, layout.SEARCHABLE, via=[user.pw_uid for user in _qemu_users()])


def _qemus_own(directory: str) -> None:
    """A directory in which QEMU may make its sockets."""
    _make_run_dir()
    shutil.rmtree(directory, ignore_errors=True)
    os.mkdir(directory, 0o700)
    if not _give_to_qemu(directory, group=True):
        raise NovaliteError(f"this host has none of the users {', '.join(QEMU_USERS)} that QEMU runs as")


def _give_to_qemu(path: str, group: bool = False) -> bool:
    """Make QEMU's user the owner of `path`, and its `group`; returns whether there is such a user."""
    for user in _qemu_users():
        os.chown(path, user.pw_uid, user.pw_gid if group else -1)
        return True
    return False


def _qemu_users() -> t.Iterator[pwd.struct_passwd]:
    for name in QEMU_USERS:
        with contextlib.suppress(KeyError):
            yield pwd.getpwnam(name)


def move_of(line: str) -> str | None:
    """The id of the move that a line of an authorized_keys is for; None for everybody else's."""
    words = line.split()
    return words[-1][len(PREFIX) :] if words and words[-1].startswith(PREFIX) else None


def is_expired(line: str) -> bool:
    """Tell whether a move's line lets nobody in any more."""
    match = _EXPIRY.search(line)
    return move_of(line) is not None and match is not None and match[1] < time.strftime(_MINUTE)
