#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: call_diagram
short_description: Draw an instance's real launch as a call diagram
version_added: 0.1.0
description:
  - Returns the calls of an instance's last launch with their times, as its action kept them, and the picture of them in
    the style of Nova's boot call diagram. Changes nothing.
  - Components are boxes, calls are lines between them in the order of time. Each has the step's number in "OpenStack
    Nova internals of instance launching", Nova's method, the module that does it here, and the seconds.
extends_documentation_fragment: [novalite.cloud.looks, novalite.cloud.ledger, novalite.cloud.ledger.project]
options:
  server:
    description: Name or UUID of the instance.
    type: str
    required: true
  project:
    description: Name of the instance's project.
seealso:
  - module: novalite.cloud.ledger_step
  - module: novalite.cloud.cloud_info
"""

EXAMPLES = r"""
- name: Draw how web was launched
  novalite.cloud.call_diagram:
    server: web
  register: novalite_calls
"""

RETURN = r"""
launch:
  description:
    - The launch. Each of its C(calls) has C(operation) (a module, C(request), C(job) or C(host_steps)), C(at) in
      seconds since the epoch, C(seconds), C(host) if it was on one, and C(failed) if it failed.
  returned: success
  type: dict
  sample:
    uuid: 0ec646dc-b658-4c3b-9810-d4325c05b2d0
    name: web
    host: hv1
    calls: [{"operation": "bridge", "at": 1795594802.809, "seconds": 0.054, "host": "hv1"}]
svg:
  description: The picture, as SVG.
  returned: success
  type: str
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
