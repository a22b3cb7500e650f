#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cloud_info
short_description: Show the whole cloud
version_added: 0.1.0
description:
  - Returns the compute hosts and how full they are, the networks, the instances, and the security groups that they
    carry; if asked for, as a picture. Changes nothing.
extends_documentation_fragment: [novalite.cloud.looks, novalite.cloud.ledger]
options:
  project:
    description:
      - Name of the project whose instances, and whose networks, are shown. Without it, those of all.
      - How full the hosts are is always said of all.
    type: str
  picture:
    description: Whether to return RV(dot).
    type: bool
    default: false
seealso:
  - module: novalite.cloud.server_info
  - module: novalite.cloud.security_group_info
"""

EXAMPLES = r"""
- name: Look at the cloud
  novalite.cloud.cloud_info:
    picture: true
  register: novalite_cloud
"""

RETURN = r"""
behind:
  description: Why nothing may be changed until C(ledger_rebuild.yml) has asked all hosts; null for a ledger that is
    up to date.
  returned: success
  type: str
hosts:
  description:
    - The compute hosts, with C(name), C(zone), C(up), C(down_reason), C(enabled), C(disabled_reason), and of C(vcpus),
      C(memory_mb) and C(disk_gb) what is claimed and what may be.
  returned: success
  type: list
  elements: dict
networks:
  description: The networks, with the number of addresses in use (C(used)) and of those there are (C(size)).
  returned: success
  type: list
  elements: dict
servers:
  description: The instances, in short. C(networks) and C(security_groups) are ids.
  returned: success
  type: list
  elements: dict
security_groups:
  description: The security groups that they carry, with C(rules) and the number of C(members).
  returned: success
  type: list
  elements: dict
dot:
  description: The picture, in graphviz's language.
  returned: with O(picture=true)
  type: str
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
