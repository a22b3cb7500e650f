#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: server_interface
short_description: Begin to attach or detach network interfaces of instances, and record how it ended
version_added: 0.1.0
description:
  - The first and the last step of giving an instance that is there another network interface, or of taking one away.
  - An interface that is to come has its address before its host is asked to plug it in; one that is to go keeps it
    until its host has pulled it out. An instance has one such change at a time.
  - With O(outcomes), records what came of it. What could not be plugged in gives its address back.
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.ledger.project
  - novalite.cloud.state_dir
  - novalite.cloud.ledger.state
options:
  state:
    description: Whether the interfaces shall be there.
  interfaces:
    description:
      - The interfaces. One that is as O(state) says is left alone.
    type: list
    elements: dict
    suboptions:
      server:
        description: Name of the server.
        type: str
        required: true
      network:
        description: Name of the network. One of this and O(interfaces[].port) says which interface it is.
        type: str
      port:
        description: UUID of a port that the project made in the Network API, or of an interface that there is.
        type: str
      fixed_ip:
        description: The IPv4 address on the network. Left out, any.
        type: str
  uuids:
    description:
      - Instances of any project with an interface whose change the REST API began. Others are left alone.
    type: list
    elements: str
  plans:
    description: What was returned as RV(hosts). What is in it and in no outcome failed.
    type: dict
  outcomes:
    description: How it went on each host.
    type: list
    elements: dict
    suboptions:
      host:
        description: The compute host.
        type: str
        required: true
      results:
        description: What the step V(domain_interfaces) returned as C(domains).
        type: list
        elements: dict
      error:
        description: What kept the host from it.
        type: str
seealso:
  - module: novalite.cloud.host_step
"""

EXAMPLES = r"""
- name: Begin to give a server an interface in another network
  novalite.cloud.server_interface:
    interfaces:
      - server: web
        network: storage
  register: begun

- name: Record that it has it
  novalite.cloud.server_interface:
    plans: "{{ begun.hosts }}"
    outcomes:
      - host: hv1
        results:
          - {uuid: 5e9ffd77-49b4-4c87-9a1f-8ed1d6ff5a0c}
"""

RETURN = r"""
instances:
  description: The instances that change, as M(novalite.cloud.server) returns them.
  returned: success
  type: list
  elements: dict
hosts:
  description:
    - The plan of each compute host, by its name. Each has C(uuids), C(domains) as the step V(domain_interfaces)
      takes them, and what the role P(novalite.cloud.interfaces#role) does before and after.
  returned: success
  type: dict
peers:
  description: What other hosts of the networks are told, as in what M(novalite.cloud.server_plan) returns.
  returned: success
  type: dict
firewall:
  description: What each host's firewall is to be told after the change, as M(novalite.cloud.firewall_plan) returns it.
  returned: when O(outcomes) is given
  type: dict
targets:
  description: >-
    The hosts of each play, C(hosts), C(peers) and C(firewall), and C(controller), V(localhost) if there is something to
    record, or, with O(outcomes), an error to tell.
  returned: success
  type: dict
  sample: {"hosts": ["hv1"], "peers": [], "controller": ["localhost"]}
errors:
  description: The instances on which it failed, C(uuid), C(name) and C(message).
  returned: success
  type: list
  elements: dict
"""

from ..module_utils._ledger_module import run_module

SPEC_RULES: dict = {
    "required_one_of": [("interfaces", "uuids", "outcomes")],
    "mutually_exclusive": [("interfaces", "uuids", "outcomes")],
}


def main() -> None:
    run_module(DOCUMENTATION, **SPEC_RULES)


if __name__ == "__main__":
    main()
