# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sockets of the destination of one live move under the same names on its source, through ssh."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
import typing as t

from .._disk import daemon
from .._errors import NovaliteError
from . import channel

TIMEOUT = 40.0  # seconds


@contextlib.contextmanager
def tunnel(
    move: channel.Move, door: channel.Door, ours: t.Mapping[str, str], qemus: t.Sequence[str]
) -> t.Iterator[str]:
    """Lead sockets in the move's directory to the destination; yields the directory.

    `ours` are names and the paths that they have there. `qemus` are names in the same directory there; QEMU may use
    these, and none but these: libvirt's would make it root on the destination. `door` is the destination's.
    The tunnel ends with the task, even one that is killed, and libvirt on both sides takes note. Raises NovaliteError
    when the destination does not let us in.
    """
    directory = channel.directory_of(move["id"])
    for_qemu = [os.path.join(directory, name) for name in qemus]
    paths = {os.path.join(directory, name): there for name, there in ours.items()}
    paths.update((path, path) for path in for_qemu)
    argv = channel.ssh(move["id"], door)
    argv[1:1] = ["-N"]
    for here, there in paths.items():
        with contextlib.suppress(FileNotFoundError):
            os.unlink(here)
        argv[1:1] = ["-L", f"{here}:{there}"]
    process = daemon.start(argv, directory)
    try:
        _wait_for(process, list(paths), move, directory)
        os.chmod(directory, 0o711)
        for here in for_qemu:
            _qemu_may_use(here)
        yield directory
    finally:
        daemon.end(process)


def _wait_for(process: subprocess.Popen[bytes], sockets: t.Sequence[str], move: channel.Move, directory: str) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not all(os.path.exists(socket) for socket in sockets):
        if process.poll() is not None:
            last = " ".join(daemon.said(directory).split())[-300:]
            raise NovaliteError(f"host {move['to_host']} cannot be reached over ssh at {move['to_address']}: {last}")
        if time.monotonic() > deadline:
            raise NovaliteError(f"host {move['to_host']} does not answer over ssh at {move['to_address']}")
        time.sleep(0.05)


def _qemu_may_use(path: str) -> None:
    for user in channel.QEMU_USERS:
        with contextlib.suppress(LookupError):
            shutil.chown(path, user)
            return
