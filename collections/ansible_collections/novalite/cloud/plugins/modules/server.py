#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: server
short_description: Record which instances there shall be
version_added: 0.1.0
author:
  - novalite contributors (@novalite)
description:
  - The first step of a launch and of a termination, what Nova's API does before it calls the conductor.
    Looks up and checks everything that is asked for, counts quotas, and records the instances in the ledger with
    their MAC addresses, host names and security groups. Builds nothing.
  - Returns what is still to be built, or to be deleted, for the steps that follow.
  - A server that exists keeps what it was made with. A server that failed is begun again under the same id, UUID and
    MAC addresses.
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.ledger.attributes
options:
  project:
    description: Name of the project that owns the servers.
    type: str
    default: demo
  servers:
    description:
      - The servers, by name.
      - Exactly one of O(servers) and O(uuids) is required.
    type: list
    elements: dict
    suboptions:
      name:
        description:
          - Name of the server, unique in its project. It must be a host name label after RFC 1123, of 1 to 63 letters,
            digits and inner hyphens.
        type: str
        required: true
      count:
        description:
          - How many servers of this kind. V(1) is named O(servers[].name) itself, more are named with V(-1), V(-2) and
            so on behind it. A whole number of at least V(1), which is also the default; V(1000) in one call at most.
          - With O(state=absent), the same names are removed.
        type: raw
      flavor:
        description: Name of the flavor. Required for a server that does not exist yet.
        type: str
      image:
        description: Name of the image. Required for a server that does not exist yet.
        type: str
      key:
        description: Name of the key pair whose public key the server gets.
        type: str
      networks:
        description:
          - The server's networks, one interface for each, in this order. Each item is the name of a network, or a
            dictionary of C(name) and C(fixed_ip), the IPv4 address that the interface shall have.
          - Defaults to the only network that the project sees. It is an error if there are several.
        type: list
        elements: raw
      security_groups:
        description:
          - Names of the server's security groups. Defaults to the group V(default), which is made if it is missing.
        type: list
        elements: str
      availability_zone:
        description: Availability zone that the server shall run in. Any zone if it is left out.
        type: str
      metadata:
        description: The owner's own notes on the server, keys and texts of up to 255 characters.
        type: dict
      hostname:
        description:
          - Host name label of the server, stored in lower case. Defaults to the name. With more than one server, it
            gets the same numbers as the name.
        type: str
      user_data:
        description:
          - What cloud-init and the like in the guest shall read and do, as O(servers[].user_data_encoding) says.
          - The guest gets the bytes of the text, those of a file that is not UTF-8, too, as the lookup plug-in
            P(ansible.builtin.file#lookup) reads it. That cuts off white space at the end unless it is told
            C(rstrip=false).
          - At most 65535 bytes in base64. The guest finds it at the metadata service and on its config drive. It is
            shown to nobody else.
        type: str
      user_data_encoding:
        description: Whether O(servers[].user_data) is the text itself, the default, or V(base64).
        type: str
        choices: [text, base64]
      config_drive:
        description:
          - Whether the server gets a config drive, a small CD with its metadata and user data.
          - It always does where the image's property C(os_config_drive) (or C(img_config_drive)) is V(mandatory). The
            property C(os_config_drive_format) chooses between V(config-2), OpenStack's, and V(nocloud).
          - So it does where the image has not C(os_host_mount=yes), which M(novalite.cloud.image) gives to the
            operator's.
          - A server that starts from a volume gets one unless this is V(false), since nothing is injected into volumes.
        type: bool
      files:
        description:
          - Files that the guest shall have, owned by root. Quotas allow 5 of 10240 bytes each if nothing else is set.
        type: list
        elements: dict
        suboptions:
          path:
            description: The absolute path in the guest.
            type: str
            required: true
          content:
            description: The content. It is shown to nobody.
            type: str
            required: true
          encoding:
            description: What O(servers[].files[].content) is.
            type: str
            choices: [text, base64]
            default: text
      admin_password:
        description:
          - The password of the image's administrator, C(root) unless its property C(os_admin_user) says otherwise.
          - Only its SHA-512 crypt hash is recorded. Without it that user's password stays as the image has it.
        type: str
      volumes:
        description:
          - Volumes that it gets. Of a server that is there they are not looked at.
        type: list
        elements: dict
        suboptions:
          volume:
            description: Name of a volume that there is. If it is left out, one is made.
            type: str
          size:
            description: GiB of the one that is made.
            type: int
          type:
            description: Volume type of the one that is made.
            type: str
          snapshot:
            description: Snapshot that it is made of. It is empty if there is none.
            type: str
          boot:
            description:
              - The server starts from it, without a root disk of its own. One that is made of no snapshot is then made
                of the server's image.
            type: bool
          delete_on_termination:
            description: It goes with the server.
            type: bool
          device:
            description: Its name in the guest, such as V(vdb).
            type: str
      hints:
        description:
          - Hints for the scheduler, in Nova's terms. Whatever is asked for by name must exist.
          - C(group) is the name or UUID of the M(novalite.cloud.server_group) that the server joins.
          - C(same_host) and C(different_host) are names or UUIDs of servers of the project whose hosts are wanted, or
            not. They may be servers of this same call that stand before this one.
          - C(build_near_host_ip) and C(cidr) (V(/24) when left out) ask for a host whose address is in that network.
          - C(query) is a condition for Nova's JSON filter, a JSON list such as C([">=", "$free_ram_mb", 1024]).
          - C(host) is the name of the only compute host that will do.
          - Any other hint is handed on for filters and weighers of your own.
        type: dict
      requirements:
        description:
          - Which hosts will do, as an expression over what is known about a host, for example
            V(free_ram_mb >= 4096 and arch == "x86_64").
        type: str
      rank:
        description:
          - Which of them first, as an expression whose higher value wins, for example V(-num_instances). It takes
            effect with the choice V(filter_scheduler) of M(novalite.cloud.scheduler).
        type: str
  uuids:
    description:
      - UUIDs of servers that were recorded before, by the API, of whatever project. Those that are still to be built,
        or to be deleted, are returned; what has come to its end meanwhile is passed over.
      - The caller sees to it that no other run works on them.
    type: list
    elements: str
  state:
    description: Whether the servers shall exist.
    type: str
    choices: [present, absent]
    default: present
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
  - module: novalite.cloud.server_state
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
from ..module_utils._rules import server_options

ARGUMENT_SPEC = {
    "project": {"type": "str", "default": "demo"},
    "servers": {"type": "list", "elements": "dict", "options": server_options.argument_spec(server_options.SERVER)},
    "uuids": {"type": "list", "elements": "str"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "takeover": {"type": "bool", "default": False},
    "build_timeout": {"type": "int", "default": 600},
    "mac_prefix": {"type": "str", "default": "fa:16:3e"},
}
SPEC_RULES: dict = {"mutually_exclusive": [("servers", "uuids")], "required_one_of": [("servers", "uuids")]}


def main() -> None:
    run_module("server", ARGUMENT_SPEC, **SPEC_RULES)


if __name__ == "__main__":
    main()
