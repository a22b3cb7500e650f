#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: server
short_description: Record which instances there shall be
version_added: 0.1.0
description:
  - The first step of a launch and of a termination, what Nova's API does before it calls the conductor.
    Looks up and checks everything that is asked for, counts quotas, and records the instances in the ledger with
    their MAC addresses, host names and security groups. Builds nothing.
  - Returns what is still to be built, or to be deleted, for the steps that follow.
  - A server that exists keeps what it was made with. A server that failed is begun again under the same id, UUID and
    MAC addresses.
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.nouns.server
  - novalite.cloud.ledger.state
  - novalite.cloud.ledger.project
options:
  project:
    description: Name of the project that owns the servers.
  servers:
    description:
      - The servers, by name.
      - Exactly one of O(servers) and O(uuids) is required.
    type: list
    elements: dict
  uuids:
    description:
      - UUIDs of servers that were recorded before, by the API, of whatever project. Those that are still to be built,
        or to be deleted, are returned; what has come to its end meanwhile is passed over.
      - The caller sees to it that no other run works on them.
    type: list
    elements: str
  user_id:
    description:
      - Id of the user for whom the servers are made. Key pairs of this user go before those that the project shares.
      - The API's jobs say so; a playbook's servers are nobody's.
    type: str
  state:
    description: Whether the servers shall exist.
  takeover:
    description:
      - Take over servers that another run is still building. Only say so when that run is dead.
    type: bool
    default: false
  build_timeout:
    description: Seconds without a sign of life, after which a server that another run was building is taken over.
    type: int
    default: 600
  mac_prefix:
    description:
      - First three octets of the MAC addresses of new interfaces, from the part of the range that nobody has to ask the
        IEEE for.
      - The rest is random, and no two interfaces in the ledger have the same.
    type: str
    default: "fa:16:3e"
seealso:
  - module: novalite.cloud.scheduler
  - module: novalite.cloud.fixed_ip
  - module: novalite.cloud.server_info
  - module: novalite.cloud.ledger_step
"""

EXAMPLES = r"""
- name: Ask for three web servers and a database
  novalite.cloud.server:
    servers:
      - name: web
        count: 3
        flavor: m1.tiny
        image: ami-tiny
        key: test
      - name: db
        flavor: m1.small
        image: ami-tiny
        networks:
          - name: private
            fixed_ip: 10.20.0.50
        security_groups: [default, database]
        hints:
          different_host: [web-1]
  register: asked

- name: Ask for a server that cloud-init sets up
  novalite.cloud.server:
    servers:
      - name: app
        flavor: m1.small
        image: debian-12
        key: test
        config_drive: true
        user_data: "{{ lookup('ansible.builtin.file', 'app.yml') }}"
        admin_password: "{{ vault_app_password }}"
  no_log: true
  register: asked

- name: Ask for an end of the web servers
  novalite.cloud.server:
    servers:
      - name: web
        count: 3
    state: absent
  register: asked
"""

RETURN = r"""
to_build:
  description:
    - The instances that are to be scheduled and built, new ones and those that are begun again.
    - An instance that was taken over from a run that died may have a host already.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Number of the instance, never used again.
      type: int
    uuid:
      description: UUID of the instance.
      type: str
    name:
      description: Name of the server.
      type: str
    hostname:
      description: Host name label of the guest.
      type: str
    domain_name:
      description: Name of the libvirt domain.
      type: str
    project:
      description: C(id) and C(name) of the project.
      type: dict
    host:
      description: Name of the compute host, or null.
      type: str
    alternates:
      description: Compute hosts to turn to when that one fails.
      type: list
      elements: str
    vm_state:
      description: One of V(building), V(active), V(stopped), V(error), V(deleted).
      type: str
    task_state:
      description: What is being done to the instance, or null when it is at rest.
      type: str
    power_state:
      description: Nova's number, V(0) none, V(1) running, V(4) shut down.
      type: int
    flavor:
      description: The flavor, as it was when the server was asked for.
      type: dict
    image:
      description: The image, as it was when the server was asked for.
      type: dict
    key:
      description: C(name) and C(public_key) of the key pair, or null.
      type: dict
    availability_zone:
      description: The zone that was asked for, or null.
      type: str
    metadata:
      description: The owner's own notes.
      type: dict
    attempts:
      description: Compute hosts that failed to build the instance.
      type: list
      elements: str
    request:
      description:
        - The hints for the scheduler, with C(requirements) and C(rank) among them. Groups and servers are UUIDs.
      type: dict
    security_groups:
      description: The security groups with their rules.
      type: list
      elements: dict
    nics:
      description: The interfaces, with MAC, addresses and network.
      type: list
      elements: dict
    fault:
      description: What went wrong, C(code), C(message) and C(created), or null.
      type: dict
    created_at:
      description: When the server was asked for, in seconds since the epoch.
      type: int
    updated_at:
      description: When the record changed last, in seconds since the epoch.
      type: int
    launched_at:
      description: When the server first ran, in seconds since the epoch, or null.
      type: int
    terminated_at:
      description: When the server was deleted, in seconds since the epoch, or null.
      type: int
existing:
  description: The instances that are there already and were left alone, as in RV(to_build).
  returned: success
  type: list
  elements: dict
to_delete:
  description: The instances that are to be deleted from their hosts, as in RV(to_build).
  returned: success
  type: list
  elements: dict
differences:
  description: Where a server that exists was made with something else than what is asked for now.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the server.
      type: str
    field:
      description: V(flavor), V(image) or V(key).
      type: str
    requested:
      description: Name of what is asked for.
      type: str
    actual:
      description: Name of what the server has, or null.
      type: str
request_id:
  description: Id of the request in the servers' action logs.
  returned: when something is to be built or deleted
  type: str
  sample: req-0e1c6a4c-6f0e-4a66-9d3e-1f6a3b0a9d52
"""

from ..module_utils._ledger_module import run_module
from ..module_utils._rules.options import no_log
from ..module_utils._rules.server_options import SERVER

NO_LOG = no_log(SERVER, "servers.")
SPEC_RULES: dict = {"mutually_exclusive": [("servers", "uuids")], "required_one_of": [("servers", "uuids")]}


def main() -> None:
    run_module(DOCUMENTATION, NO_LOG, **SPEC_RULES)


if __name__ == "__main__":
    main()
