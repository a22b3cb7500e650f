#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: server_migration
short_description: Begin a resize, a migration or an evacuation, commit it, and record how it ended
version_added: 0.1.0
description:
  - The steps on the controller of everything that gives an instance another host or another size.
  - While a move is open, the instance has a claim on both hosts. Which of them it belongs to changes in one
    transaction, when all of its disks have arrived.
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.ledger.project
  - novalite.cloud.state_dir
options:
  state:
    description:
      - V(begin) takes the instances for O(action), claims room for them, and returns the plans of their hosts.
      - V(commit) says of those of O(moves) whose disks have arrived, that their new hosts have them.
      - V(end) records how it went. What did not come up on its destination belongs to its source again.
      - V(interrupted) asks for live migrations that were cut off, of which only their hosts know how they ended.
        V(resolve) records what the hosts said, in O(outcomes).
    type: str
    choices: [begin, commit, end, interrupted, resolve]
    default: begin
  action:
    description: What to do.
    type: str
    choices: [resize, migrate, confirmResize, revertResize, live-migration, evacuate]
    required: true
  servers:
    description:
      - The servers by name, whose move begins here. Each item is a name, or a dictionary of C(name) and C(count), which
        may have its own C(flavor) and C(host).
    type: list
    elements: raw
  uuids:
    description: Instances of any project, whose move was begun before, by the REST API.
    type: list
    elements: str
  from_host:
    description: Move all instances of this compute host, of whatever projects.
    type: str
  returning_to:
    description: Bring back to this compute host the instances that left it for its maintenance.
    type: str
  begin_uuids:
    description: Instances of any project, whose move begins here.
    type: list
    elements: str
  vm_states:
    description: With O(from_host) and O(returning_to), the states of the instances that this is about.
    type: list
    elements: str
  flavor:
    description: Name of the flavor to resize to.
    type: str
  host:
    description: The compute host to move to. Filters and claims hold for it, too. Left out, the scheduler chooses.
    type: str
  same_host:
    description:
      - Whether the instance's own host may be chosen for a resize, V(allowed) when no other can have it.
    type: str
    choices: [allowed, never, only]
  limit_to:
    description: Names of the only compute hosts to consider. All that the ledger knows, when left out.
    type: list
    elements: str
  reason:
    description: Why, kept with the move. V(maintenance) is what C(host_restore.yml) takes back.
    type: str
  compute_hosts:
    description: What M(novalite.cloud.compute_host) found out just now.
    type: list
    elements: dict
    default: []
  options:
    description: Options of the scheduler, as M(novalite.cloud.scheduler) takes them.
    type: dict
    default: {}
  service_down_time:
    description: Seconds after which a compute host that was not seen counts as down.
    type: int
  takeover:
    description: Begin also where another action is under way. Only say so when the run that did it is dead.
    type: bool
    default: false
  action_timeout:
    description: Seconds without a sign of life, after which another run's action counts as dead.
    type: int
    default: 600
  moves:
    description: With O(state=commit) and O(state=end), RV(moves) of the step before.
    type: list
    elements: dict
    default: []
  before:
    description:
      - The same, as the result of the step before, from which RV(moves), RV(targets), RV(lost) and RV(failures) are
        taken. What is returned has the last two of both steps.
    type: dict
    default: {}
  parts:
    description: The ends of each move that have to have said that all is well.
    type: list
    elements: str
    choices: [from_host, to_host]
    default: [from_host, to_host]
  outcomes:
    description: How it went, once for each host. One that said nothing failed.
    type: list
    elements: dict
    default: []
    suboptions:
      host:
        description: Name of the compute host.
        type: str
        required: true
      error:
        description: Why it failed, or null.
        type: str
      done:
        description: UUIDs of the guests that moved while they ran.
        type: list
        elements: str
        default: []
      here:
        description: UUIDs of those that did not, and of which the host knows that they run on it.
        type: list
        elements: str
        default: []
      domains:
        description: What became of the domains, C(uuid) and C(state).
        type: list
        elements: dict
        default: []
"""

EXAMPLES = r"""
- name: Begin to resize a server
  novalite.cloud.server_migration:
    action: resize
    servers: [web]
    flavor: m1.small
  register: begun

- name: Confirm it
  novalite.cloud.server_migration:
    action: confirmResize
    servers: [web]
  register: begun
"""

RETURN = r"""
moves:
  description: What moves, from where to where.
  returned: success
  type: list
  elements: dict
settled:
  description: Those of O(servers) that are already as O(action) would make them.
  returned: with O(state=begin)
  type: list
  elements: dict
nothing_to_do:
  description: Those of O(uuids) on which O(action) is not under way, each with the C(reason).
  returned: with O(state=begin)
  type: list
  elements: dict
hosts:
  description: What each compute host has to do, by its name.
  returned: with O(state=begin) and O(state=interrupted)
  type: dict
targets:
  description:
    - The hosts of each play. For each step of the role P(novalite.cloud.move#role) those that take it, and as C(peers),
      those that are told afterwards; C(hosts) is all of RV(hosts), and C(controller) V(localhost) if there are any.
    - The steps V(dest_rollback) and V(restore) have hosts when something is lost.
  returned: success, but for O(state=resolve)
  type: dict
  sample:
    {"stop": ["hv1"], "dest_open_channel": ["hv2"], "peers": [], "hosts": ["hv1", "hv2"], "controller": ["localhost"]}
done:
  description: UUIDs of the instances for which it went well.
  returned: with O(state=commit) and O(state=end)
  type: list
  elements: str
lost:
  description: Those of O(moves) for which it did not, in this step and in those before it.
  returned: with O(state=commit) and O(state=end)
  type: list
  elements: dict
lost_uuids:
  description: UUIDs of RV(lost).
  returned: with O(state=commit) and O(state=end)
  type: list
  elements: str
lost_here:
  description: Those of RV(lost_uuids) that are known to be where they were. Of the others only their hosts can tell.
  returned: with O(state=commit) and O(state=end)
  type: list
  elements: str
unused:
  description:
    - What of networks no other instance uses on each host now, by its name. C(leave) is of those that are gone from
      there, C(build) of those that did not arrive. It takes the place of the same in RV(hosts), which is older.
  returned: with O(state=end)
  type: dict
errors:
  description: Why, for each that failed, C(uuid), C(name) and C(message).
  returned: success
  type: list
  elements: dict
failures:
  description: The same, in this step and in those before it.
  returned: with O(state=commit) and O(state=end)
  type: list
  elements: dict
"""

from ..module_utils._ledger_module import run_module

SPEC_RULES: dict = {"mutually_exclusive": [("servers", "uuids", "from_host", "returning_to", "begin_uuids")]}


def main() -> None:
    run_module(DOCUMENTATION, **SPEC_RULES)


if __name__ == "__main__":
    main()
