# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one way to libvirt on a host: community.libvirt's connection, without its surprises."""

from __future__ import annotations

import dataclasses
import os
import shutil
import threading
import typing as t

from .._errors import NovaliteError
from . import rule_races

try:
    import libvirt
    from ansible_collections.community.libvirt.plugins.module_utils.libvirt import LibvirtConnection
except ImportError as error:  # reported by connect(), so that a module can still say what else it knows
    IMPORT_ERROR: str | None = str(error)
else:
    IMPORT_ERROR = None

DEFAULT_URI = "qemu:///system"
ANSWER_TIMEOUT = 10.0  # seconds; a healthy daemon answers in hundredths

T = t.TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Daemon:
    """A daemon that answers for QEMU's guests: its name, which is its systemd unit's, too, and its socket's path."""

    name: str
    socket: str


# libvirt's one daemon for everything, as Debian and Ubuntu have it, or the modular one for QEMU, as EL 9 and 10 have it
VIRTQEMUD = Daemon("virtqemud", "/run/libvirt/virtqemud-sock")
LIBVIRTD = Daemon("libvirtd", "/run/libvirt/libvirt-sock")
DAEMONS = {daemon.name: daemon for daemon in (VIRTQEMUD, LIBVIRTD)}


class _RunCommand:
    """community.libvirt's connection wants a module, for this one method: it asks for `uname -r`."""

    @staticmethod
    def run_command(command: str) -> tuple[int, str, str]:
        return 0, os.uname().release, ""


def local_daemon() -> Daemon:
    """The daemon that libvirt's client on this host asks for qemu:///system: the modular one if its socket exists, else
    the other (remoteGetUNIXSocket in libvirt's src/remote/remote_sockets.c). With no socket, the one installed."""
    for daemon in DAEMONS.values():
        if os.path.exists(daemon.socket):
            return daemon
    return VIRTQEMUD if shutil.which(VIRTQEMUD.name, path=f"/usr/sbin:/sbin:{os.defpath}") else LIBVIRTD


def connect(uri: str = DEFAULT_URI) -> libvirt.virConnect:
    """A virConnect to `uri`. Raises NovaliteError, with what to do, when the binding or the daemon is missing."""
    if IMPORT_ERROR is not None:
        raise NovaliteError(
            f"libvirt's Python binding cannot be used by this interpreter ({IMPORT_ERROR}); install python3-libvirt "
            "on the host and let ansible_python_interpreter be the system's python3"
        )
    # Without a handler libvirt prints every error to stderr, where Ansible takes it for a module's traceback.
    libvirt.registerErrorHandler(lambda context, error: None, None)
    answers: list[libvirt.virConnect | Exception] = []

    def open_connection() -> None:
        try:
            answers.append(LibvirtConnection(uri, _RunCommand()).conn)
        except Exception as error:  # raised in a thread, it would be nobody's
            answers.append(error)

    # libvirt.open() waits for ever for a daemon that is there and hangs, and no signal of Python's ends that wait.
    # A thread that is left behind in it ends with the module's process.
    opening = threading.Thread(target=open_connection, daemon=True)
    opening.start()
    opening.join(ANSWER_TIMEOUT)
    name = local_daemon().name
    if not answers:
        raise NovaliteError(
            f"{name} on this host did not answer at {uri} within {ANSWER_TIMEOUT:g} s; restart it "
            f"(systemctl restart {name}) and run again"
        )
    answer = answers[0]
    if isinstance(answer, Exception):
        raise NovaliteError(
            f"{name} on this host does not answer at {uri}: {answer}; start it (systemctl start {name}) and run again"
        )
    return answer


def with_filters(act: t.Callable[[], T]) -> T:
    """Return what `act` returns: a call in which libvirt may write the rules of network filters, as a start does. It is
    called again where they failed in a race with another program's rules. Raises libvirt's errors."""
    return rule_races.again(act, _is_race)


def _is_race(error: Exception) -> bool:
    """Tell whether a command for rules failed in libvirt; its other errors come from other parts of it."""
    return isinstance(error, libvirt.libvirtError) and error.get_error_domain() == libvirt.VIR_FROM_FIREWALL
