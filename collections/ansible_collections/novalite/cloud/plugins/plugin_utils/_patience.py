# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's patience with a host that says nothing: ssh's keep-alive, and an end of the waiting for its answer.

By what Ansible's plug-ins offer: an option of the connection, its reset(), and an exception from an alarm, as Ansible's
own keyword `timeout` has it. Tried with ansible-core 2.19.14.
"""

from __future__ import annotations

import contextlib
import glob
import os
import signal
import typing as t

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.connection import ConnectionBase

from ..module_utils import _keepalive
from ..module_utils._host import deadlines


def keep_alive(connection: ConnectionBase) -> None:
    """Have ssh notice a host that falls silent, whatever the user's ansible.cfg says. It takes the first of two values
    of an option: the user's own, where there is one."""
    if connection.transport != "ssh":
        return
    arguments = str(connection.get_option("ssh_extra_args") or "")
    if not arguments.endswith(_keepalive.ARGUMENTS):
        connection.set_option("ssh_extra_args", f"{arguments} {_keepalive.ARGUMENTS}".strip())


@contextlib.contextmanager
def limited(connection: ConnectionBase, seconds: float) -> t.Iterator[None]:
    """Raise AnsibleConnectionFailure where the host that the block asks has not answered after `seconds`: it is
    unreachable then, and the others go on.

    What it is still doing there goes on, up to a limit of its own: only the ssh that waits here is ended, and the next
    one is not led over the connection that has died. Where the host is this machine nobody is lost, and the process
    that waits would be the one that works.
    """
    if connection.transport == "local":
        yield
        return
    before = _children()
    try:
        with deadlines.limited(seconds, f"no answer within {seconds:.0f} s"):
            yield
    except deadlines.OverdueError as error:
        if connection.transport == "ssh":
            for pid in _children() - before:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            with contextlib.suppress(AnsibleError, OSError):
                connection.reset()
        raise AnsibleConnectionFailure(f"the host was lost during the task: {error}") from None


def _children() -> set[int]:
    """The processes that this one has started and that are there. None are known where there is no /proc."""
    own = set()
    for path in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
            _name, _end, fields = file.read().rpartition(")")
            if int(fields.split()[1]) == os.getpid():
                own.add(int(path.split("/")[2]))
    return own
