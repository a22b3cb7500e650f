#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: firewall_plan
short_description: Works out what the firewall of every compute host must hold
version_added: 0.1.0
description:
  - Turns what the ledger knows of all instances into the arguments of M(novalite.cloud.firewall), for each compute
    host. Hosts without instances are among them, so that what is left on these can be taken away.
  - Reads the ledger, changes nothing.
extends_documentation_fragment: [novalite.cloud.looks, novalite.cloud.ledger]
options:
  hosts:
    description: The compute hosts. All that the ledger knows without this.
    type: list
    elements: str
seealso:
  - module: novalite.cloud.firewall
  - module: novalite.cloud.security_group
"""

EXAMPLES = r"""
- name: Work out what every host's firewall must hold
  novalite.cloud.firewall_plan:
  register: novalite_plan
"""

RETURN = r"""
hosts:
  description: >-
    For each compute host the arguments RV(ignore:instances), RV(ignore:security_groups), RV(ignore:zones),
    RV(ignore:bridges) and RV(ignore:serving) of M(novalite.cloud.firewall).
  returned: always
  type: dict
  sample: {"hv1": {"instances": [], "security_groups": [], "zones": [], "bridges": [], "serving": []}}
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
