#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_mark
short_description: Tell which machine a host is, and keep a ledger's mark on it
version_added: 0.1.0
description:
  - A step of playbooks such as C(compute_nodes.yml) and C(compute_node_rename.yml).
  - Every task of this collection on a host compares the machine with what the ledger has of it before it does anything,
    and leaves a mark in C(<state_dir>/ledgers/<identity of the ledger>.json). Where Ansible runs modules its own way
    (pipelining is off, the task is delegated or asynchronous), it is this module that does so.
extends_documentation_fragment:
  - novalite.cloud.ledger.home
  - novalite.cloud.ledger.host
  - novalite.cloud.state_dir
attributes:
  check_mode:
    support: full
    description: No mark is left, or removed.
  diff_mode:
    support: none
    description: A mark is a random number.
  action:
    support: partial
    description: The ledger is read on the controller, the mark is kept on the host.
options:
  state:
    description:
      - V(read) returns which machine this is, and the marks that it carries. Nothing is compared.
      - V(present) compares, and leaves a mark.
      - V(absent) compares, and removes the ledger's mark, as for a host that leaves the cloud.
    type: str
    choices: [read, present, absent]
    default: read
  former:
    description: A name that the ledger had for this host before it was renamed.
    type: str
  expected:
    description: What the ledger has of the host. The action plug-in gives it.
    type: dict
"""

EXAMPLES = r"""
- name: Ask which machine the host is
  novalite.cloud.host_mark:
  register: machine
"""

RETURN = r"""
identity:
  description: >-
    What tells this machine from others: C(machine_id) and C(product_uuid), as far as they can be read.
  returned: O(state=read)
  type: dict
marks:
  description: For each ledger that left one here, by its identity, C(mark), and C(host), its name for this host.
  returned: O(state=read)
  type: dict
ledgers:
  description: The identities of the ledgers that have guests here.
  returned: O(state=read)
  type: list
  elements: str
seen:
  description: How the comparison went.
  returned: O(state=present) and where O(expected) is there
  type: dict
"""

import dataclasses

from ..module_utils._domain import ledgers
from ..module_utils._host import mark
from ..module_utils._host.files import STATE_DIR
from ..module_utils._host.module import HostCall, Result, run_host_module

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["read", "present", "absent"], "default": "read"},
    "name": {"type": "str"},
    "former": {"type": "str"},
    "expected": {"type": "dict"},
    "state_dir": {"type": "path", "default": STATE_DIR},
    # As in the documentation fragment `ledger`, of which a hypervisor can make nothing.
    "home": {"type": "path"},
    "ledger_url": {"type": "str", "no_log": True},
}


def run(call: HostCall) -> Result:
    state, state_dir = call.params["state"], call.params["state_dir"]
    if state == "read":
        here = {"marks": mark.marks_here(state_dir), "ledgers": ledgers.with_guests()}
        return {"changed": False, "identity": mark.identity_of(), **here}
    if call.params["expected"] is None:  # no ledger: nothing to compare with
        return {"changed": False}
    expected = mark.Expected.of(call.params["expected"])
    if state == "absent":
        return {"changed": mark.forget(expected.ledger, state_dir, call.check_mode)}
    return {"changed": False, "seen": dataclasses.asdict(mark.meet(expected, state_dir, call.check_mode))}


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
