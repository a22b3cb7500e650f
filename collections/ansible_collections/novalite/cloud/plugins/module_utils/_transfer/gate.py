# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A way past a login that is not root's, for the length of one move: an ssh session inside of an ssh session.

Whoever logs in to this host instead of root must neither read the disks that arrive nor reach libvirtd, who may do
everything. So the key of a move brings the login to one unix socket and no further, and behind the socket root has an
sshd of its own (`sshd -i`) that lets in the same key for the move's one purpose. The login carries what it cannot read
or change. No port is opened, and the host's own sshd goes on to refuse root.

The process that listens ends with the move, when its directory is removed, or when nobody came for IDLE seconds.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import time
import typing as t

from .._disk.syscalls import MS_BIND, mount, with_private_mounts
from .._errors import NovaliteError
from .._guest.authorized_keys import account
from .._host.files import opened, remove_file, write_atomically

IDLE = 3600.0  # seconds without a session
MOST = 8  # sessions at a time; a move has one
POLL = 0.2  # seconds
END_TIMEOUT = 15.0
LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
SSHD_PATH = "/usr/sbin:/sbin:/usr/local/sbin:/usr/bin"
# sshd without PAM refuses an account that is locked, as root is where nobody logs in as root; with PAM its session
# would be the host's own idea of a login. So it sees a shadow file that has nobody but root, with no password.
SHADOW = "root:*:1::::::\n"
# AllowTcpForwarding: sshd that forbids ports forbids sockets, too, whatever it is told of these.
CONFIG = """\
AuthorizedKeysFile {directory}/authorized_keys
AuthenticationMethods publickey
AllowUsers root
PermitRootLogin forced-commands-only
AllowTcpForwarding {forwarding}
AllowStreamLocalForwarding {forwarding}
AllowAgentForwarding no
X11Forwarding no
PermitTunnel no
PermitTTY no
PermitUserRC no
UsePAM no
UseDNS no
PidFile none
"""


def path_of(directory: str) -> str:
    """The socket of the gate in `directory`."""
    return os.path.join(directory, "socket")


def open_gate(directory: str, login: str, line: str, sockets: bool, host_keys: t.Iterable[str]) -> None:
    """Let the key of `line`, one of an authorized_keys, in through a socket in `directory` that only `login` may use;
    of a gate that is open, change it. Raises NovaliteError.

    `sockets`: it may reach unix sockets of this host. `host_keys` are the files of this host's private keys.
    """
    user = account(login)
    sshd = shutil.which("sshd", path=SSHD_PATH)
    if sshd is None:
        raise NovaliteError(f"sshd is in none of {SSHD_PATH} (package openssh-server)")
    with contextlib.suppress(FileExistsError):
        os.mkdir(directory, 0o700)
    config = CONFIG.format(directory=directory, forwarding="local" if sockets else "no")
    config += "".join(f"HostKey {path}\n" for path in host_keys)
    for name, text in (("authorized_keys", f"{line}\n"), ("shadow", SHADOW), ("sshd_config", config)):
        write_atomically(os.path.join(directory, name), text, 0o600)
    with opened(os.path.join(directory, "lock"), LOCK_FLAGS) as lock:
        if not _taken(lock):
            _start(directory, lock, sshd, user.pw_uid)
    os.chmod(directory, 0o711)  # the login passes through; everything but the socket is root's


def close_gate(directory: str) -> bool:
    """Remove the gate in `directory`; returns when nobody is left in it, and whether there was one."""
    going = f"{directory}.going"
    shutil.rmtree(going, ignore_errors=True)
    try:
        os.rename(directory, going)  # the process looks for it, and ends
    except FileNotFoundError:
        return False
    with opened(os.path.join(going, "lock"), LOCK_FLAGS) as lock:
        deadline = time.monotonic() + END_TIMEOUT
        while _taken(lock):
            if time.monotonic() > deadline:
                os.kill(int(os.pread(lock, 20, 0)), signal.SIGKILL)  # whoever holds the lock wrote who it is
                break
            time.sleep(POLL / 4)
    shutil.rmtree(going)
    return True


def _taken(lock: int) -> bool:
    """Try to take the lock; tell whether somebody else holds it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _start(directory: str, lock: int, sshd: str, uid: int) -> None:
    """Fork the process that listens. It inherits the lock, which the kernel keeps until it has ended."""
    path = path_of(directory)
    remove_file(path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        os.chown(path, uid, -1)
        os.chmod(path, 0o600)
        listener.listen(MOST)
        child = os.fork()
        if child == 0:
            _run_apart(lambda: _serve(listener, directory, sshd, uid), lock, listener)
        os.waitpid(child, 0)


def _run_apart(work: t.Callable[[], None], lock: int, listener: socket.socket) -> t.NoReturn:
    """Do `work` in a process that has nothing of the module's: not its parent, its session, nor its files."""
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.chdir("/")
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        kept = sorted((lock, listener.fileno()))
        for low, high in zip([3, *(number + 1 for number in kept)], [*kept, os.sysconf("SC_OPEN_MAX")]):
            os.closerange(low, high)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        with_private_mounts(work)
    finally:
        os._exit(0)


def _serve(listener: socket.socket, directory: str, sshd: str, uid: int) -> None:
    mount(os.path.join(directory, "shadow"), "/etc/shadow", "", MS_BIND)
    argv = [sshd, "-i", "-f", os.path.join(directory, "sshd_config"), "-E", os.path.join(directory, "log")]
    ours = os.stat(directory).st_ino
    sessions: list[subprocess.Popen[bytes]] = []
    until = time.monotonic() + IDLE
    try:
        while time.monotonic() < until and _inode(directory) == ours:
            ready, _writable, _failed = select.select([listener], [], [], POLL)
            sessions = [session for session in sessions if session.poll() is None]
            if sessions:
                until = time.monotonic() + IDLE
            if not ready:
                continue
            connection, _address = listener.accept()
            with connection:
                if _peer(connection) == uid and len(sessions) < MOST:
                    both = connection.fileno()
                    sessions.append(
                        subprocess.Popen(
                            argv, stdin=both, stdout=both, stderr=subprocess.DEVNULL, start_new_session=True
                        )
                    )
    finally:
        for session in sessions:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(session.pid, signal.SIGKILL)
            session.wait()
        if _inode(directory) == ours:  # nobody closed it
            shutil.rmtree(directory)


def _inode(directory: str) -> int | None:
    with contextlib.suppress(OSError):
        status = os.lstat(directory)
        return status.st_ino if stat.S_ISDIR(status.st_mode) else None
    return None


def _peer(connection: socket.socket) -> int:
    """The uid of whoever connected."""
    credentials = struct.Struct("3i")  # struct ucred of unix(7): pid, uid, gid
    answer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, credentials.size)
    return int(credentials.unpack(answer)[1])
