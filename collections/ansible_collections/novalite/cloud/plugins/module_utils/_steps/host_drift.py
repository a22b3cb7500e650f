# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `host_drift`: find where a hypervisor is not as the ledger says.

Looks, on the hypervisor, at what carries novalite's names or metadata. The action (`plugin_utils/_host_scan_action.py`)
then compares it with the ledger on the controller, and works out what is to be done about each difference. Instances
that something is being done to, or was since the look began, are not judged. Guests that the ledger wants to run and
that do not are marked as being rebooted, so that nobody else is at them; `server_action` is to be told the outcome.
Guests that shut themselves down, or that a person started or paused, are followed in the ledger. Instances whose disk
is gone become errors, and keep their claim. Only what belonged to instances of this ledger is ever to be removed. The
hypervisor itself is not changed.
"""

from __future__ import annotations

from .._drift import host_scan
from .._host.module import HostCall, Result

ARGUMENT_SPEC = {**host_scan.ARGUMENT_SPEC, "removed_days": {"type": "int", "default": 14}}  # in the bin


def run(call: HostCall) -> Result:
    """Return `changed`, and
    * `rows`: the differences, except those that the modules of `keep` find themselves; `host` (the compute host),
      `object` (what differs), `ledger` (what the ledger says), `there` (what is there), `repair` (what is to be done,
      or was)
    * `plan`: what no instance owns, as the role `reclaim` takes it
    * `left`: whether there is anything in `plan`
    * `seen`: what the host has of each instance (`sights`), and its `volumes`, as `whereabouts` takes it
    * `began`: when the look began, by the controller's monotonic clock
    * `contested`: what stays although the ledger has it elsewhere, each with `uuid`, `name`, the reason (`why`), and
      the host that would have to be asked (`ask`)
    * `proofs`: the `proof` by which something is in `plan`, and the reason in words (`why`), by the instance's UUID
    * `unrecorded_copies`: UUIDs of servers of whose copies of disks here the ledger does not know
    * `unknown`: domains with novalite's metadata that this ledger never heard of, each with `uuid` and `name`
    * `keep`: what the host's instances stand on, as the role `spawn` takes it; null with none
    * `images`: images that the cache has lost, as `image_cache` takes them
    * `disks`: disks of which files are missing that can be made again, as `disk` takes them
    * `restore`: instances whose disks a reverted resize did not bring back, as `disk_move` takes moves
    * `forget`: instances with copies of disks that no resize needs, as `disk_move` takes moves
    * `cut_off_moves`: moves that are not under way and have something open here, as `disk_move` takes moves
    * `grow`: disks that may not have the new sizes of their instances yet, as `disk_move` takes them
    * `empty`: days of the bin whose time is over, as `disk` takes `days`
    * `stale_devices`: what is to be detached, as `stale_devices` takes it
    * `define`: domains that are to be defined, as `domain` takes them
    * `restart`: domains that are to be started, as `domain_power` takes them
    * `found`: what carries novalite's names or metadata on the host
    """
    return {"changed": False, "found": host_scan.scan(call.params["state_dir"], call.params["uri"])}
