#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: server_info
short_description: Show instances
version_added: 0.1.0
description:
  - Returns instances as the ledger knows them, with their interfaces, addresses and security groups. Changes nothing.
extends_documentation_fragment:
  - novalite.cloud.ledger
options:
  name:
    description: Name of a server. A name that is not there gives an empty list.
    type: str
  names:
    description: Names of servers, in addition to O(name).
    type: list
    elements: str
  project:
    description: Name of the project whose servers are shown, C(demo) by default; with O(host), all projects by default.
    type: str
  all_projects:
    description: Show the servers of all projects.
    type: bool
    default: false
  host:
    description: Show only what is on this compute host.
    type: str
  deleted:
    description: Show deleted servers, too.
    type: bool
    default: false
  actions:
    description: Add each server's action log.
    type: bool
    default: false
seealso:
  - module: novalite.cloud.server
"""

EXAMPLES = r"""
- name: Show what runs on a host
  novalite.cloud.server_info:
    all_projects: true
    host: hv1

- name: Why did it fail
  novalite.cloud.server_info:
    name: web
    actions: true
"""

RETURN = r"""
servers:
  description:
    - The instances, oldest first, as M(novalite.cloud.server) returns them. With O(actions=true), each has C(actions)
      besides, newest first, with C(action), C(request_id), C(started_at), C(finished_at), C(message), C(details)
      (the scheduler's reasons, for example) and C(events).
    - C(adopted) is null for those that novalite made. For others (see the step V(server_adopt)) it has
      C(domain), the name in libvirt, and C(disks), each with C(dev), C(bus), C(source), C(format) and C(size) in bytes,
      as the XML declares them.
  returned: success
  type: list
  elements: dict
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
