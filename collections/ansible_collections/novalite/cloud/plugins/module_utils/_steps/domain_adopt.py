# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `domain_adopt`: describe a domain that somebody else made, and put novalite's mark on it or take it away.

A step of the playbooks `adopt.yml` and `release.yml`. Nothing of the domain is changed but its metadata, and no guest
is restarted.
"""

from __future__ import annotations

import dataclasses

from .._domain import adopt
from .._drift.host_facts import existing
from .._errors import NotFoundError
from .._host.files import STATE_DIR
from .._host.libvirt_connection import DEFAULT_URI, connect
from .._host.module import HostCall, Result
from .._host.records import forget_adopted

ARGUMENT_SPEC = {
    # Name or UUID of the domain. One that libvirt forgets when it ends (transient) is refused.
    "domain": {"type": "str", "required": True},
    # The element `instance` that `server_adopt` made for it. Required with `marked`.
    "mark": {"type": "str"},
    # `described` says what the domain is and changes nothing. `marked` puts `mark` into its metadata, in its persistent
    # XML and, while it runs, in its live one. `unmarked` takes it away from there. A domain that does not exist any
    # more is unmarked. What the host keeps about it (see `host_record`) goes, too, if `domain` is a UUID.
    "state": {"type": "str", "choices": ["described", "marked", "unmarked"], "default": "described"},
    "state_dir": {"type": "path", "default": STATE_DIR},
    "uri": {"type": "str", "default": DEFAULT_URI},
}
SPEC_RULES = {"required_if": [("state", "marked", ["mark"])]}


def run(call: HostCall) -> Result:
    """Return `changed`, and
    * `domain`: what it is; `uuid` (its UUID), `name` (its name), `state` (`running`, `paused`, `shutoff`, `saved` and
      so on), `vcpus` (the most virtual CPUs that it may have), `memory_mb` (the most memory that it may have, in MiB),
      `disk_gb` (giB that its disks may come to take of the file system of `state_dir`), `disks` (its disks as the XML
      declares them, each with `dev`, `bus`, `source`, `format` and `size`, what the guest sees, in bytes. No format is
      probed), `nics` (its interfaces, each with `mac`, `bridge`, `network` (libvirt's), `device` and `addresses`, the
      IPv4 addresses that the guest's agent, libvirt's leases or the host's ARP table know), `marked` (whether it
      carries the mark of a ledger), `adopted_by` (the identity of the ledger whose mark says that it was adopted, or
      null)
    """
    params, connection = call.params, connect(call.params["uri"])
    try:
        domain = adopt.find(connection, params["domain"])
    except NotFoundError:
        if params["state"] == "unmarked":
            return {"changed": _forget(call)}
        raise
    if params["state"] == "described":
        description = adopt.describe(connection, domain, existing(params["state_dir"]))
        return {"changed": False, "domain": dataclasses.asdict(description)}
    if params["state"] == "marked":
        adopt.check_element(params["mark"])
        changed, before, after = adopt.mark(domain, params["mark"], call.check_mode)
    else:
        before, after = adopt.unmark(connection, domain, call.check_mode), None
        forgotten = _forget(call)
        changed = before is not None or forgotten
    result: Result = {"changed": changed}
    if call.diff:
        result["diff"] = {"before": f"{before or ''}\n", "after": f"{after or ''}\n"}
    return result


def _forget(call: HostCall) -> bool:
    """Remove what the host keeps of the ledger's record of the domain; return whether there was something."""
    named = call.params["domain"].lower()
    return adopt.is_uuid(named) and forget_adopted(call.params["state_dir"], named, call.check_mode)
