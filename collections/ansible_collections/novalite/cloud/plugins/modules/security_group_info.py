#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: security_group_info
short_description: Show security groups, their rules and who carries them
version_added: 0.1.0
description:
  - Returns the security groups that the ledger knows, and if asked for a graph of what they let through.
extends_documentation_fragment: [novalite.cloud.looks, novalite.cloud.ledger, novalite.cloud.ledger.project]
options:
  project:
    description: Name of the project whose groups are shown.
  all_projects:
    description: Show the groups of all projects.
    type: bool
    default: false
  picture:
    description: Whether to return RV(dot).
    type: bool
    default: false
seealso:
  - module: novalite.cloud.security_group
  - module: novalite.cloud.reachability
"""

EXAMPLES = r"""
- name: Show the groups
  novalite.cloud.security_group_info:
    picture: true
  register: novalite_groups
"""

RETURN = r"""
security_groups:
  description: The groups, with RV(ignore:rules) and the names of the instances that carry them, RV(ignore:servers).
  returned: success
  type: list
  elements: dict
dot:
  description: The groups as a graph in graphviz's language.
  returned: with O(picture=true)
  type: str
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
