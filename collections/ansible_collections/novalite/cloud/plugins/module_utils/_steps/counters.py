# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `counters`: read what a host, and each of novalite's guests that run on it, have counted so far.

Processor time, memory, bytes of disks and networks, and the kernel's pressure stall information. Nothing is changed. A
guest whose backup runs is left out where libvirt is older than 10.8, which may crash then.
"""

from __future__ import annotations

from .._host.libvirt_connection import DEFAULT_URI
from .._host.module import HostCall, Result
from .._samples import counters

ARGUMENT_SPEC = {"uri": {"type": "str", "default": DEFAULT_URI}}


def run(call: HostCall) -> Result:
    """Return `changed`, and `counters`, as the step `samples` of the ledger takes them: `host` and each of `guests`
    (with its `uuid`) have `run`, `clock` and `values`; `complaints` says what could not be read."""
    return {"changed": False, "counters": counters.look(call.params["uri"])}
