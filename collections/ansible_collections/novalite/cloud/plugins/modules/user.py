#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: user
short_description: Manage users of the API and their roles in projects
version_added: 0.1.0
description:
  - Makes, changes and removes users in the ledger. Playbooks need none; the REST API asks its callers who they are.
  - Passwords are kept as hashes. A password that is the user's already changes nothing.
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.ledger.state
options:
  users:
    description: The users, by name.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the user.
        type: str
        required: true
      password:
        description:
          - Password of the user. Left out, a new user has none, and no password is right.
          - A new password makes the user's tokens void.
        type: str
      update_password:
        description: Whether O(users[].password) replaces another one, or is for a user who has none yet.
        type: str
        choices: [always, on_create]
        default: always
      enabled:
        description: Whether the user can do anything. To disable one makes its tokens void. A new user is enabled.
        type: bool
      description:
        description: A text about the user.
        type: str
      email:
        description: Address of the user, for people; novalite sends nothing.
        type: str
      default_project:
        description: Name of the project that a token is for when none is named.
        type: str
      roles:
        description:
          - All roles that the user has. Others are taken away, at once, from tokens that exist, too.
          - Left out, the roles stay as they are.
        type: list
        elements: dict
        suboptions:
          project:
            description: Name of the project.
            type: str
            required: true
          role:
            description:
              - What the user is there. V(reader) sees, V(member) makes and changes what is the project's own.
              - V(manager) may migrate the project's servers as well, to wherever there is room.
              - V(admin) in whichever project may do all that the cloud's operator may, for every project.
            type: str
            choices: [reader, member, manager, admin]
            required: true
seealso:
  - module: novalite.cloud.project
"""

EXAMPLES = r"""
- name: Have a user who may launch in one project and look into another
  novalite.cloud.user:
    users:
      - name: ann
        password: "{{ lookup('ansible.builtin.password', 'credentials/ann', length=24) }}"
        default_project: demo
        roles:
          - {project: demo, role: member}
          - {project: ci, role: reader}

- name: Remove one, with its tokens and credentials
  novalite.cloud.user:
    users:
      - name: ann
    state: absent
"""

RETURN = r"""
users:
  description: The users that were named, as they are now, without passwords. Empty with O(state=absent).
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Id of the user, 32 hexadecimal digits.
      type: str
    name:
      description: Name of the user.
      type: str
    enabled:
      description: Whether the user can do anything.
      type: bool
    description:
      description: A text about the user.
      type: str
    email:
      description: Address of the user.
      type: str
    default_project:
      description: Name of the project that a token is for when none is named.
      type: str
    roles:
      description: The user's roles.
      type: list
      elements: dict
      contains:
        project:
          description: Name of the project.
          type: str
        role:
          description: What the user is there.
          type: str
  sample:
    - id: 0f0e0d0c0b0a09080706050403020100
      name: ann
      enabled: true
      description: ""
      email: null
      default_project: demo
      roles: [{project: demo, role: member}]
"""

from ..module_utils._ledger_module import run_module

NO_LOG = {"users.password": True, "users.update_password": False}


def main() -> None:
    run_module(DOCUMENTATION, NO_LOG)


if __name__ == "__main__":
    main()
