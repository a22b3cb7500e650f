# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `orphans`: find what is left on a hypervisor of instances that are not there.

A hypervisor that breaks in the middle of a build cannot undo it. The instance is built elsewhere, and what it left
behind is to be removed when the hypervisor is back. Lists, on the hypervisor, what carries novalite's names or
metadata. The action (`plugin_utils/_host_scan_action.py`) then compares it with the ledger on the controller, and
works out what the role `reclaim` is to take away. Only what belonged to instances of this ledger is taken for left
over. The host's own addresses in networks that it does not serve any more are given back in the ledger; nothing else
is changed.
"""

from __future__ import annotations

from .._drift import host_scan
from .._host.module import HostCall, Result

ARGUMENT_SPEC = host_scan.ARGUMENT_SPEC


def run(call: HostCall) -> Result:
    """Return `changed`, and
    * `plan`: what is left, as the role `reclaim` takes it
    * `left`: whether there is anything left
    * `seen`: what the host has of each instance (`sights`), and its `volumes`, as `whereabouts` takes it
    * `began`: when the look began, by the controller's monotonic clock
    * `contested`: what stays although the ledger has it elsewhere, each with `uuid`, `name`, the reason (`why`), and
      the host that would have to be asked (`ask`)
    * `proofs`: the `proof` by which something is in `plan`, and the reason in words (`why`), by the instance's UUID
    * `unrecorded_copies`: UUIDs of servers of whose copies of disks here the ledger does not know
    * `unknown`: domains with novalite's metadata that this ledger never heard of, each with `uuid` and `name`
    * `found`: what carries novalite's names or metadata on the host, left over or not
    """
    return {"changed": False, "found": host_scan.scan(call.params["state_dir"], call.params["uri"])}
