#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: live_migration
short_description: Move running domains from this host to others that share no disk with it
version_added: 0.1.0
description:
  - Runs on the source. Memory and disks go to the destination while the guests run; they stop for a moment only.
  - The task fails when one of them cannot be moved, after all others were.
  - Everything goes through ssh, with the key that M(novalite.cloud.disk_move) made and the destination let in. QEMU and
    libvirt's daemons listen on unix sockets alone.
  - What the guests meet on their networks, and their base images, must be on the destination already.
author:
  - novalite contributors (@novalite)
extends_documentation_fragment:
  - novalite.cloud.state_dir
  - novalite.cloud.libvirt
attributes:
  check_mode:
    support: full
    description: Says that it would move the domains, and does nothing.
  diff_mode:
    support: none
    description: The guests are as before, only elsewhere.
options:
  moves:
    description: The moves, as RV(novalite.cloud.server_migration#module:hosts) has them.
    type: list
    elements: dict
    required: true
  domains:
    description: The domains as they are to be defined on their destinations, with C(uuid) and C(xml).
    type: list
    elements: dict
    required: true
  doors:
    description: The RV(novalite.cloud.disk_move#module:door) of each destination, by its name.
    type: dict
    default: {}
  daemons:
    description:
      - The name of each destination's libvirt daemon, V(virtqemud) or V(libvirtd), by the name of the host, as
        RV(novalite.cloud.disk_move#module:libvirt_daemon) says it.
      - The two hosts of a move need not have the same one.
    type: dict
    required: true
  bandwidth:
    description: MiB per second that the move may take, V(0) for no limit.
    type: int
    default: 0
  auto_converge:
    description: Whether a guest that changes its memory quicker than it can be sent is slowed down.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Move a guest while it runs
  novalite.cloud.live_migration:
    moves:
      - uuid: 6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11
        id: 0d2f9a3e-7a39-4f57-9a43-1f0a3c1f6a55
        domain_name: instance-00000007
        to_host: hv2
        to_address: 192.0.2.12
    domains:
      - uuid: 6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11
        xml: "{{ lookup('ansible.builtin.file', 'instance-00000007.xml') }}"
    doors: {hv2: {host_keys: ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB2Q0bG9wYmFzZTY0ZW5jb2RlZGtleWRhdGE0"]}}
    daemons: {hv2: virtqemud}
"""

RETURN = r"""
moves:
  description: One entry for each of O(moves), in the same order.
  returned: always
  type: list
  elements: dict
  contains:
    uuid:
      description: UUID of the domain.
      type: str
    error:
      description: Why it was not moved, or null.
      type: str
    here:
      description: Whether it runs on this host now, null when nobody can say.
      type: bool
    seconds:
      description: How long it took.
      type: float
done:
  description: UUIDs of the domains that were moved.
  returned: always
  type: list
  elements: str
here:
  description: UUIDs of those that are known to run on this host now.
  returned: always
  type: list
  elements: str
"""

from ..module_utils._domain import lifecycle_migrate
from ..module_utils._errors import NovaliteError
from ..module_utils._host import STATE_DIR
from ..module_utils._host_module import HostCall, HostModuleError, Result, each_for_itself, run_host_module
from ..module_utils._libvirt import DEFAULT_URI, connect
from ..module_utils._transfer.channel import doors

ARGUMENT_SPEC = {
    "moves": {"type": "list", "elements": "dict", "required": True},
    "domains": {"type": "list", "elements": "dict", "required": True},
    "doors": {"type": "dict", "default": {}},
    "daemons": {"type": "dict", "required": True},
    "bandwidth": {"type": "int", "default": 0},
    "auto_converge": {"type": "bool", "default": True},
    "state_dir": {"type": "path", "default": STATE_DIR},
    "uri": {"type": "str", "default": DEFAULT_URI},
}


def run(call: HostCall) -> Result:
    params = call.params
    if call.check_mode:
        return {"changed": bool(params["moves"]), "moves": [], "done": [], "here": []}
    try:
        moved = lifecycle_migrate.migrate(
            connect(params["uri"]),
            params["moves"],
            {domain["uuid"]: domain["xml"] for domain in params["domains"]},
            doors(params["moves"], params["doors"]),
            daemons=params["daemons"],
            bandwidth=params["bandwidth"],
            auto_converge=params["auto_converge"],
            state_dir=params["state_dir"],
        )
    except NovaliteError as error:
        raise HostModuleError(str(error), moves=[], done=[], here=[]) from error
    result = {
        "changed": any(move["error"] is None for move in moved),
        "moves": moved,
        "done": [move["uuid"] for move in moved if move["error"] is None],
        "here": [move["uuid"] for move in moved if move["here"] is True],
    }
    return each_for_itself(result, (move["error"] for move in moved))


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
