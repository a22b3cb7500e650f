#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: server_action
short_description: Begin an action on instances, and record how it ended
version_added: 0.1.0
description:
  - The first and the last step of stopping, starting, rebooting, pausing, unpausing, suspending, resuming, locking and
    unlocking instances, of rescuing and rebuilding them, of making images of them, of shelving them, and of reading
    their consoles. What is unshelved is launched after the first step.
  - An action begins with a compare-and-swap of the instance's task state, so that one of two wins, in the states that
    Nova allows. Returns what each compute host is to be given for it. With O(outcomes), records what came of that.
  - A server that is already what the action would make it is left alone. A reboot always reboots.
  - An instance that is to be deleted is no more the action's. Its outcome is not recorded.
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.ledger.project
  - novalite.cloud.state_dir
options:
  action:
    description:
      - What to do. V(console) is for reading the console log, and changes nothing.
    type: str
    choices:
      - stop
      - start
      - reboot
      - pause
      - unpause
      - suspend
      - resume
      - rescue
      - unrescue
      - rebuild
      - createImage
      - shelve
      - shelveOffload
      - unshelve
      - lock
      - unlock
      - console
    required: true
  servers:
    description:
      - The servers by name, whose action begins here. Each item is a name, or a dictionary of C(name) and C(count), as
        M(novalite.cloud.server) takes it; what else is in it is not looked at.
    type: list
    elements: raw
  uuids:
    description:
      - Instances of any project, whose action was begun before, by the REST API. It goes on with those that are still
        in the task state of O(action); the others are in RV(nothing_to_do).
      - For V(lock), V(unlock) and V(console) nothing needs to have begun.
    type: list
    elements: str
  hard:
    description: Whether a V(reboot) of O(servers) cuts off the power, and starts them anew from their definition.
    type: bool
    default: false
  request:
    description: What else the action on O(servers) is told. What is not given stays as it is.
    type: dict
    suboptions:
      image:
        description: Name of the image that V(rebuild) or V(rescue) takes. By default the one that the server has.
        type: str
      admin_password:
        description: The administrator's password after V(rebuild), or as long as V(rescue) lasts.
        type: str
      key:
        description: Name of the key pair after V(rebuild); an empty one for none.
        type: str
      metadata:
        description: All metadata after V(rebuild).
        type: dict
      user_data:
        description: User data after V(rebuild).
        type: str
      user_data_encoding:
        description: Whether O(request.user_data) is the text itself, the default, or V(base64).
        type: str
        choices: [text, base64]
      files:
        description: Files that V(rebuild) injects, as M(novalite.cloud.server) takes them.
        type: list
        elements: dict
      image_name:
        description:
          - Name of the image that V(createImage) makes. With several servers, the server's name is added. A server that
            this image was made of before is left alone.
        type: str
      properties:
        description: Properties of that image, beside those that it has from the server's own.
        type: dict
      availability_zone:
        description: Zone that V(unshelve) launches the server in. By default the one that it was asked for in.
        type: str
      host:
        description: Compute host that V(unshelve) launches the server on.
        type: str
  reason:
    description: Why the servers are locked, or unlocked.
    type: str
  takeover:
    description:
      - Begin also where another action is under way. Only say so when the run that did it is dead.
    type: bool
    default: false
  action_timeout:
    description: Seconds without a sign of life, after which another run's action counts as dead.
    type: int
    default: 600
  outcomes:
    description: How it went, once for each host. Given this, nothing begins.
    type: list
    elements: dict
    suboptions:
      host:
        description: Name of the compute host.
        type: str
        required: true
      results:
        description:
          - What M(novalite.cloud.domain_power) returned for each domain, or the step V(disk_snapshot) for each
            image. C(untouched) says of a failure that it came before anything happened to the guest.
        type: list
        elements: dict
        default: []
      error:
        description: Why the host did nothing for those that are not in O(outcomes[].results).
        type: str
  plans:
    description:
      - RV(hosts) of the call that began the action. What is in it and in none of the O(outcomes) failed, since its host
        did not even answer.
    type: dict
    default: {}
seealso:
  - module: novalite.cloud.domain_power
  - module: novalite.cloud.console_output
"""

EXAMPLES = r"""
- name: Begin to stop two servers
  novalite.cloud.server_action:
    action: stop
    servers: [web, db]
  register: begun

- name: Record that they are off
  novalite.cloud.server_action:
    action: stop
    plans: "{{ begun.hosts }}"
    outcomes:
      - host: hv1
        results:
          - {uuid: 5e9ffd77-49b4-4c87-9a1f-8ed1d6ff5a0c, state: shutoff}
          - {uuid: 0a7f0f0c-3a55-4a55-8f7c-5f8d7a2f1c11, state: shutoff}

- name: Keep a server as it is
  novalite.cloud.server_action:
    action: lock
    servers: [db]
    reason: it is being backed up
"""

RETURN = r"""
instances:
  description: The instances that the action is under way on, as M(novalite.cloud.server) returns them.
  returned: success
  type: list
  elements: dict
settled:
  description: Those of O(servers) that are already what the action would make them.
  returned: success
  type: list
  elements: dict
nothing_to_do:
  description: Those of O(uuids) on which the action is not under way, and outcomes that came too late.
  returned: success
  type: list
  elements: dict
  contains:
    uuid:
      description: UUID of the instance.
      type: str
    reason:
      description: Why it is left alone.
      type: str
hosts:
  description: The plan of each compute host, by its name.
  returned: success
  type: dict
  contains:
    uuids:
      description: UUIDs of its instances.
      type: list
      elements: str
    domains:
      description: Their domains, as M(novalite.cloud.domain_power) takes them.
      type: list
      elements: dict
    starts:
      description:
        - Whether guests are to start. Then the plan also has what M(novalite.cloud.server_plan) returns for instances
          that exist.
      type: bool
looks:
  description:
    - Where the guests of RV(settled) are, as M(novalite.cloud.power_sync) returns it. They may be in another state
      than the ledger has it.
  returned: when an action began
  type: dict
tell:
  description: What other hosts are told of instances that leave theirs, as M(novalite.cloud.server_plan) returns it.
  returned: when an action began
  type: dict
targets:
  description: The hosts of each play, C(hosts), C(looks) and C(tell), and C(controller), V(localhost) if there are any.
  returned: when an action began
  type: dict
  sample: {"hosts": ["hv1"], "looks": [], "tell": [], "controller": ["localhost"]}
snapshots:
  description: Ids of the snapshots that are to be taken for the images of instances that start from a volume.
  returned: when an action is begun
  type: list
  elements: str
keepers:
  description: The hosts that are to keep the records of the instances, which are on no host now.
  returned: when O(outcomes) of V(shelveOffload) are given
  type: list
  elements: str
orphans:
  description: Files of images whose instance was deleted meanwhile. They are no use to anybody.
  returned: when O(outcomes) is given
  type: list
  elements: str
errors:
  description: The instances whose action failed, C(uuid), C(name) and C(message).
  returned: when O(outcomes) is given
  type: list
  elements: dict
request_id:
  description: Id of the request, as it stands in the servers' action logs.
  returned: when an action began
  type: str
"""

from ..module_utils._ledger_module import run_module

NO_LOG = {"request.admin_password": True, "request.files": True, "request.key": False, "request.user_data": True}
SPEC_RULES: dict = {
    "required_one_of": [("servers", "uuids", "outcomes")],
    "mutually_exclusive": [("servers", "uuids", "outcomes")],
}


def main() -> None:
    run_module(DOCUMENTATION, NO_LOG, **SPEC_RULES)


if __name__ == "__main__":
    main()
