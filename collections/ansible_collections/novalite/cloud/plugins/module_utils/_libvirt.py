# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""The one way to libvirt on a host: community.libvirt's connection, without its surprises."""

from __future__ import annotations

import typing as t

from ._command import CommandError, run
from ._errors import NovaliteError

try:
    import libvirt
    from ansible_collections.community.libvirt.plugins.module_utils.libvirt import LibvirtConnection
except ImportError as error:  # reported by connect(), so that a module can still say what else it knows
    IMPORT_ERROR: str | None = str(error)
else:
    IMPORT_ERROR = None

DEFAULT_URI = "qemu:///system"
ANSWER_TIMEOUT = 10.0  # seconds; a healthy libvirtd answers in hundredths


class _RunCommand:
    """community.libvirt's connection wants a module, for this one method (it asks for `uname -r`)."""

    @staticmethod
    def run_command(command: str) -> tuple[int, str, str]:
        return tuple(run(command.split()))  # type: ignore[return-value]


def connect(uri: str = DEFAULT_URI) -> t.Any:
    """A virConnect to `uri`. Raises NovaliteError, with what to do, when the binding or libvirtd is missing."""
    if IMPORT_ERROR is not None:
        raise NovaliteError(
            f"libvirt's Python binding cannot be used by this interpreter ({IMPORT_ERROR}); install python3-libvirt "
            "on the host and let ansible_python_interpreter be the system's python3"
        )
    try:
        # libvirt.open() waits for ever for a libvirtd that is there and hangs, and no signal of Python's ends that wait
        run(["virsh", "--quiet", "--connect", uri, "version", "--daemon"], timeout=ANSWER_TIMEOUT)
    except CommandError as error:
        if error.rc == 124:
            raise NovaliteError(
                f"libvirtd on this host did not answer at {uri} within {ANSWER_TIMEOUT:g} s; restart it and run again"
            ) from None
    # Without a handler libvirt prints every error to stderr, where Ansible takes it for a module's traceback.
    libvirt.registerErrorHandler(lambda context, error: None, None)
    try:
        return LibvirtConnection(uri, _RunCommand()).conn
    except libvirt.libvirtError as error:
        raise NovaliteError(
            f"libvirtd on this host does not answer at {uri}: {error.get_error_message()}; start it "
            "(systemctl start libvirtd) and run again"
        ) from None
