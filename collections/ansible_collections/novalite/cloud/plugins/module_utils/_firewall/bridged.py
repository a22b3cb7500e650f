# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Whether the kernel shows bridged packets to iptables at all: without that every chain here is bypassed."""

from __future__ import annotations

import contextlib
import os

from .._command import CommandError, run
from .._errors import NovaliteError

DIRECTORY = "/proc/sys/net/bridge"
SWITCHES = ("bridge-nf-call-iptables", "bridge-nf-call-ip6tables")


def missing(check_mode: bool = False, directory: str = DIRECTORY) -> dict[str, str]:
    """The switches that are not 1, with their value ("absent" without br_netfilter, which is loaded if possible)."""
    if not os.path.isdir(directory) and not check_mode:
        with contextlib.suppress(CommandError):
            run(["modprobe", "br_netfilter"])
    values = {f"net.bridge.{name}": _read(os.path.join(directory, name)) for name in SWITCHES}
    return {name: value for name, value in values.items() if value != "1"}


def ensure(wrong: dict[str, str], directory: str = DIRECTORY) -> None:
    """Set the named switches to 1 and read them back. Raises NovaliteError when one stays off."""
    for name in wrong:
        path = os.path.join(directory, name.rpartition(".")[2])
        try:
            with open(path, "w", encoding="ascii") as handle:
                handle.write("1\n")
        except OSError:
            pass
        value = _read(path)
        if value != "1":
            raise NovaliteError(
                f"{name} is {value} and cannot be set to 1: bridged packets would bypass every security group; "
                "load br_netfilter and set it to 1 on this host"
            )


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as handle:
            return handle.read().strip()
    except OSError:
        return "absent"
