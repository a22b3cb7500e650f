# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Owner of the security groups of a host: one ledger at a time.

The chains are named after the numbers that a ledger gives its instances and groups, and another ledger counts from 1
as well. So the first ledger that brings chains has the host until the last of them is gone; a second one is refused
before it changes any.
"""

from __future__ import annotations

import contextlib
import os

from .._errors import ConflictError
from .._host.command import CommandError, run
from .._host.files import read_text, write_atomically
from .._host.own_directory import make_own
from .._network import ownership
from .._network.ownership import Mark, Owner

FILE = "/var/lib/novalite/firewall/owner"  # beside the chains that are kept for the next boot
_CHAINS = (":nova-inst-", ":nova-sg-")


def is_others(mark: Mark) -> str | None:
    """The text of the mark of another ledger that has chains on this host; None where the host is free or ours."""
    text = _read()
    if mark.ledger is None or mark.owner(text) is not Owner.OTHER_LEDGER or not _chains():
        return None
    return text


def take(mark: Mark) -> None:
    """Write down that this ledger has chains here. Raises ConflictError when another one has."""
    if mark.ledger is None:
        return  # by hand: whoever does that knows whose the host is
    other = is_others(mark)
    if other is not None:
        raise ConflictError(
            f"this host carries security groups of another ledger ({other}), which would be changed: a host belongs to "
            "one ledger at a time; take another host, or move that ledger's guests away first"
        )
    if _read() != mark.text:
        make_own(os.path.dirname(FILE), links=True)
        write_atomically(FILE, f"{mark.line}\n")


def _read() -> str | None:
    return ownership.of_file((read_text(FILE) or "").splitlines())


def _chains() -> bool:
    """Tell whether there is a chain of some instance or group."""
    for command in ("iptables-save", "ip6tables-save"):
        with contextlib.suppress(CommandError):
            if any(line.startswith(_CHAINS) for line in run([command, "-t", "filter"]).stdout.splitlines()):
                return True
    return False
