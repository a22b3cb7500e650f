#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: server_wait
short_description: Waits until guests answer
version_added: 0.1.0
author: [novalite contributors (@novalite)]
description:
  - Runs on a compute host and waits until the ssh server (or another service that speaks first) of each given guest has
    sent its banner.
  - A connection alone is no answer, since a port forwarder accepts before its guest is up.
attributes:
  check_mode:
    description: Can run in check_mode and return changed status prediction without modifying target.
    support: full
  diff_mode:
    description: Will return details on what has changed (or possibly needs changing in check_mode).
    support: none
options:
  guests:
    description: The guests to wait for, all at once.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name for the error message.
        type: str
        required: true
      address:
        description: IPv4 or IPv6 address.
        type: str
        required: true
      namespace:
        description: The network namespace from which the guest is reached, if its network is an isolated one.
        type: str
  port:
    description: TCP port.
    type: int
    default: 22
  banner:
    description: What the service's first bytes must be.
    type: str
    default: SSH-
  timeout:
    description: Seconds to wait for all of them.
    type: int
    default: 300
"""

EXAMPLES = r"""
- name: Wait for the guests of this host
  novalite.cloud.server_wait:
    guests:
      - {name: web, address: 10.20.0.3}
"""

RETURN = r"""
answered:
  description: Seconds after which each guest answered, by name.
  type: dict
  returned: always
  sample: {web: 4.2}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._errors import NovaliteError
from ..module_utils._launch import wait


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "guests": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {
                    "name": {"type": "str", "required": True},
                    "address": {"type": "str", "required": True},
                    "namespace": {"type": "str"},
                },
            },
            "port": {"type": "int", "default": 22},
            "banner": {"type": "str", "default": "SSH-"},
            "timeout": {"type": "int", "default": 300},
        },
        supports_check_mode=True,
    )
    if module.check_mode:
        module.exit_json(changed=False, answered={})
    try:
        answered = wait.wait_for_banner(
            [wait.Guest(**guest) for guest in module.params["guests"]],
            module.params["port"],
            module.params["banner"],
            module.params["timeout"],
        )
    except NovaliteError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, answered=answered)


if __name__ == "__main__":
    main()
