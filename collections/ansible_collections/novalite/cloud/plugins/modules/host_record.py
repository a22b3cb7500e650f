#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_record
short_description: Keep on a hypervisor, or read there, what the ledger says of its instances
version_added: 0.1.0
description:
  - A step of playbooks such as C(reconcile.yml) and C(ledger_rebuild.yml).
  - Writes for each instance a file C(record.json) in its directory, for each adopted one C(adopted/<uuid>.json), for
    some of those that are shelved, and so on no host, C(shelved/<uuid>.json), and C(host-record.json) for the host. A
    ledger that is lost is made again from these by M(novalite.cloud.ledger_rebuild). M(novalite.cloud.disk) writes the
    file of a new instance.
  - An action plug-in of the same name reads on the controller what is to be written.
  - The files have mode 0600. No passwords, tokens, keys or user data are in them.
extends_documentation_fragment:
  - novalite.cloud.ledger.home
  - novalite.cloud.ledger.host
  - novalite.cloud.state_dir
  - novalite.cloud.libvirt
attributes:
  check_mode:
    support: full
    description: Nothing is written.
  diff_mode:
    support: none
    description: What is written is a copy of what the ledger says, and no change of the host.
  action:
    support: partial
    description: The ledger is read on the controller, the files are written there.
options:
  state:
    description:
      - V(present) writes the files. An instance without a directory here is passed over.
      - V(read) returns what is in them, and what of novalite's is on the host. The ledger is not opened.
    type: str
    choices: [present, read]
    default: present
  records:
    description: For each instance, by its UUID, the text that is kept. The action plug-in gives it.
    type: dict
    default: {}
  adopted:
    description: For each adopted instance, by its UUID, the text that is kept. The action plug-in gives it.
    type: dict
    default: {}
  shelved:
    description:
      - For each shelved instance that this host keeps the record of, by its UUID, the text that is kept. Those of
        others of the same ledger are removed. The action plug-in gives it.
    type: dict
  host_record:
    description: The text that is kept for the host. The action plug-in gives it.
    type: str
seealso:
  - module: novalite.cloud.ledger_rebuild
"""

EXAMPLES = r"""
- name: Read what the host keeps of the ledger
  novalite.cloud.host_record:
    state: read
  register: kept
"""

RETURN = r"""
written:
  description: The UUIDs of the instances whose files were written, and C(host-record.json).
  returned: O(state=present)
  type: list
  elements: str
records:
  description: For each instance, adopted and shelved ones among them, by its UUID, the text that is kept.
  returned: O(state=read)
  type: dict
host_record:
  description: The text that is kept for the host, or null.
  returned: O(state=read)
  type: str
marks:
  description: For each ledger that left one on the host, by its identity, C(mark), and C(host), its name for the host.
  returned: O(state=read)
  type: dict
found:
  description: What carries novalite's names or metadata on the host.
  returned: O(state=read)
  type: dict
"""

from ..module_utils._drift.host_scan import ARGUMENT_SPEC as LOOK_ARGUMENTS
from ..module_utils._drift.host_scan import scan
from ..module_utils._host_mark import marks_here
from ..module_utils._host_module import HostCall, Result, run_host_module
from ..module_utils._records import read_records, write_records

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["present", "read"], "default": "present"},
    "records": {"type": "dict", "default": {}},
    "adopted": {"type": "dict", "default": {}},
    "shelved": {"type": "dict"},
    "host_record": {"type": "str"},
    **{name: LOOK_ARGUMENTS[name] for name in ("home", "ledger_url", "name", "state_dir", "uri")},
}


def run(call: HostCall) -> Result:
    params, state_dir = call.params, call.params["state_dir"]
    if params["state"] == "read":
        look = scan(state_dir, params["uri"])
        return {"changed": False, "found": look, "marks": marks_here(state_dir), **read_records(state_dir)}
    written = []
    if not call.check_mode:
        elsewhere = params["adopted"], params["shelved"]
        written = write_records(state_dir, params["records"], params["host_record"], *elsewhere)
    return {"changed": False, "written": written}


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
