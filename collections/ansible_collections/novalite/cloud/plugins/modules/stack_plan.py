#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: stack_plan
short_description: Compare a cloud that is described in one document with the ledger
version_added: 0.1.0
description:
  - Validates a document that describes flavors, images, networks, keys, security groups, server groups and servers of a
    project, and works out what stands between it and the ledger. C(playbooks/stack.yml) carries that out.
  - Only what the document says is compared. What it leaves out of a record or a server stays as it is.
  - Whatever is planned is rehearsed in the ledger and rolled back. What the ledger would refuse, because a name is
    unknown, a range overlaps or a quota is exceeded, is refused with the plan, before anything was changed.
  - Errors name the line and the column of the document.
extends_documentation_fragment:
  - novalite.cloud.ledger
options:
  path:
    description:
      - The YAML file that holds the document, at its top or under the key C(stack).
      - As a task, templates in it are resolved with the variables of the play.
    type: path
  document:
    description: The document itself. One of O(path) and O(document) is required.
    type: dict
  phase:
    description:
      - V(plan) changes nothing.
      - V(records) makes and changes the project, and all that servers refer to, in one transaction. It is
        refused as a whole if a server needs a new instance and O(replace) does not allow it.
      - V(removals) removes the records that are to go, once the servers that used them are gone.
    type: str
    choices: [plan, records, removals]
    default: plan
  replace:
    description: Whether a server that has to be made anew (another image, flavor, network) may be deleted for it.
    type: bool
    default: false
  prune:
    description:
      - Whether to remove what the document does not name any more. Only what the same stack made goes.
      - The document's own C(prune) counts without it.
    type: bool
  takeover:
    description: Take over servers that another run is still building. Only say so when that run is dead.
    type: bool
    default: false
seealso:
  - module: novalite.cloud.server
  - module: novalite.cloud.server_plan
"""

EXAMPLES = r"""
- name: What would change?
  novalite.cloud.stack_plan:
    path: cloud.yml
  register: stack

- name: Say it
  ansible.builtin.debug:
    msg: "{{ stack.table }}"
"""

RETURN = r"""
pending:
  description: Number of items in the plan.
  returned: success
  type: int
plan:
  description: What is to be done, in order.
  returned: success
  type: list
  elements: dict
  contains:
    action:
      description: V(+) makes, V(~) changes, V(-/+) deletes and makes anew, V(-) removes.
      type: str
    kind:
      description: V(server), V(project), V(flavor), V(image), V(network), V(keypair) or another kind of record.
      type: str
    name:
      description: Its name.
      type: str
    changes:
      description: The fields, each with what is there (C(before)) and what shall be (C(after)).
      type: list
      elements: dict
    note:
      description: Why, where that is not plain.
      type: str
summary:
  description: Number of items by action.
  returned: success
  type: dict
  sample: {"+": 2, "~": 0, "-/+": 0, "-": 1}
in_words:
  description: The same for people.
  returned: success
  type: str
  sample: 2 to add, 1 to remove
table:
  description: The plan as lines of text.
  returned: success
  type: list
  elements: str
stack:
  description: Name of the stack.
  returned: success
  type: str
project:
  description: Name of its project.
  returned: success
  type: str
records:
  description: How much of the plan is for O(phase=records).
  returned: success
  type: int
removals:
  description: How much of the plan is for O(phase=removals).
  returned: success
  type: int
launch:
  description: The servers to launch, as O(novalite.cloud.server#module:servers) takes them.
  returned: success
  type: list
  elements: dict
terminate:
  description: UUIDs of the servers to delete.
  returned: success
  type: list
  elements: str
volumes:
  description:
    - UUIDs of volumes that hosts have to make or to delete, for C(playbooks/volumes.yml). Empty with O(phase=plan).
  returned: success
  type: list
  elements: str
security_groups:
  description: Groups that change, and servers that join and leave some, for C(playbooks/security_groups.yml).
  returned: success
  type: dict
refused:
  description: Servers that need a new instance, which O(replace) does not allow.
  returned: success
  type: list
  elements: str
unnamed:
  description: Servers of the stack that the document does not name any more and that nobody asked to remove.
  returned: success
  type: list
  elements: str
report:
  description: The plan without what is there to carry it out, for whoever wants it as JSON.
  returned: success
  type: dict
has_secrets:
  description: Whether RV(launch) holds passwords, files or user data.
  returned: success
  type: bool
"""

from ..module_utils._ledger_module import run_module

SPEC_RULES: dict = {"required_one_of": [("path", "document")]}


def main() -> None:
    run_module(DOCUMENTATION, **SPEC_RULES)


if __name__ == "__main__":
    main()
