#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: domain_adopt
short_description: Describe a domain that somebody else made, and put novalite's mark on it or take it away
version_added: 0.1.0
description:
  - A step of the playbooks C(adopt.yml) and C(release.yml).
  - Nothing of the domain is changed but its metadata, and no guest is restarted.
extends_documentation_fragment:
  - novalite.cloud.changes
  - novalite.cloud.state_dir
  - novalite.cloud.libvirt
attributes:
  check_mode:
    description: Nothing is written.
  diff_mode:
    description: Shows the mark before and after.
options:
  domain:
    description: Name or UUID of the domain. One that libvirt forgets when it ends (transient) is refused.
    type: str
    required: true
  mark:
    description: The element C(instance) that M(novalite.cloud.server_adopt) made for it. Required with O(state=marked).
    type: str
  state:
    description:
      - V(described) says what the domain is and changes nothing.
      - V(marked) puts O(mark) into its metadata, in its persistent XML and, while it runs, in its live one.
      - V(unmarked) takes it away from there. A domain that does not exist any more is unmarked. What the host keeps
        about it (see M(novalite.cloud.host_record)) goes, too, if O(domain) is a UUID.
    type: str
    choices: [described, marked, unmarked]
    default: described
seealso:
  - module: novalite.cloud.server_adopt
"""

EXAMPLES = r"""
- name: Describe the domain db
  novalite.cloud.domain_adopt:
    domain: db
  register: described
"""

RETURN = r"""
domain:
  description: What it is.
  type: dict
  returned: success and O(state=described)
  contains:
    uuid:
      description: Its UUID.
      type: str
    name:
      description: Its name.
      type: str
    state:
      description: V(running), V(paused), V(shutoff), V(saved) and so on.
      type: str
    vcpus:
      description: The most virtual CPUs that it may have.
      type: int
    memory_mb:
      description: The most memory that it may have, in MiB.
      type: int
    disk_gb:
      description: GiB that its disks may come to take of the file system of O(state_dir).
      type: int
    disks:
      description: >-
        Its disks as the XML declares them, each with C(dev), C(bus), C(source), C(format) and C(size), what the guest
        sees, in bytes. No format is probed.
      type: list
      elements: dict
    nics:
      description: >-
        Its interfaces, each with C(mac), C(bridge), C(network) (libvirt's), C(device) and C(addresses), the IPv4
        addresses that the guest's agent, libvirt's leases or the host's ARP table know.
      type: list
      elements: dict
    marked:
      description: Whether it carries the mark of a ledger.
      type: bool
    adopted_by:
      description: The identity of the ledger whose mark says that it was adopted, or null.
      type: str
"""

import dataclasses

from ..module_utils._domain import adopt
from ..module_utils._errors import NotFoundError
from ..module_utils._host import STATE_DIR
from ..module_utils._host_facts import existing
from ..module_utils._host_module import HostCall, Result, run_host_module
from ..module_utils._libvirt import DEFAULT_URI, connect
from ..module_utils._records import forget_adopted

ARGUMENT_SPEC = {
    "domain": {"type": "str", "required": True},
    "mark": {"type": "str"},
    "state": {"type": "str", "choices": ["described", "marked", "unmarked"], "default": "described"},
    "state_dir": {"type": "path", "default": STATE_DIR},
    "uri": {"type": "str", "default": DEFAULT_URI},
}
SPEC_RULES = {"required_if": [("state", "marked", ["mark"])]}


def run(call: HostCall) -> Result:
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


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run, **SPEC_RULES)


if __name__ == "__main__":
    main()
