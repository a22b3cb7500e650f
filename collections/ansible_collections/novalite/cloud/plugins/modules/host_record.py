#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_record
short_description: Keep on a hypervisor, or read there, what the ledger says of its instances
version_added: 0.1.0
author:
  - novalite contributors (@novalite)
description:
  - A step of the playbooks C(reconcile.yml) and C(ledger_rebuild.yml).
  - Writes for each instance a file C(record.json) in its directory, and C(host-record.json) for the host. A ledger that
    is lost is made again from these by M(novalite.cloud.ledger_rebuild). M(novalite.cloud.disk) writes the file of a
    new instance.
  - The files have mode 0600. No passwords, tokens, keys or user data are in them.
extends_documentation_fragment:
  - novalite.cloud.state_dir
  - novalite.cloud.libvirt
attributes:
  check_mode:
    support: full
    description: Nothing is written.
  diff_mode:
    support: none
    description: What is written is a copy of what the ledger says.
options:
  state:
    description:
      - V(present) writes O(records) and O(host_record). An instance without a directory here is passed over.
      - V(read) returns them, and what of novalite's is on the host.
    type: str
    choices: [present, read]
    default: present
  records:
    description: For each instance, by its UUID, the text that is kept.
    type: dict
    default: {}
  host_record:
    description: The text that is kept for the host.
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
  description: For each instance, by its UUID, the text that is kept.
  returned: O(state=read)
  type: dict
host_record:
  description: The text that is kept for the host, or null.
  returned: O(state=read)
  type: str
found:
  description: What carries novalite's names or metadata on the host.
  returned: O(state=read)
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._errors import NovaliteError
from ..module_utils._presence import HOST_ARGUMENTS, look
from ..module_utils._records import read_records, write_records


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "read"], "default": "present"},
            "records": {"type": "dict", "default": {}},
            "host_record": {"type": "str"},
            **HOST_ARGUMENTS,
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        if params["state"] == "read":
            found = look(params["state_dir"], params["uri"])
            module.exit_json(changed=False, found=found, **read_records(params["state_dir"]))
        written = []
        if not module.check_mode:
            written = write_records(params["state_dir"], params["records"], params["host_record"])
    except NovaliteError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, written=written)


if __name__ == "__main__":
    main()
