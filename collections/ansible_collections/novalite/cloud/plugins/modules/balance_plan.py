#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: balance_plan
short_description: Propose moves that would even out the load of the compute hosts
version_added: 0.1.0
description:
  - Looks for moves of running instances between compute hosts that bring the load of the hosts closer together, and
    returns them with the commands that would make them. Moves nothing.
  - Of its cores, memory and disk, a host has a share that is claimed, and where its guests were measured
    (C(novalite.cloud.samples)), a share of busy cores. The score of a cluster is the sum of the standard deviations of
    these shares, V(0.0) when all hosts are equally loaded.
  - Each move is one that the scheduler's filters allow, with the groups and hints of the instances, and that leaves the
    target within its limits by the highest of what was measured in the last hour. Where the other hosts have room for
    the instances of a host that dies, they have it after each move as well. Hosts that are down or disabled neither
    give nor take.
  - What is locked, has a volume or a snapshot that is on its host alone, or moved a short while ago, stays where it is.
  - The command of each move migrates the server while it runs, its disks included (C(novalite.cloud.live_migrate)).
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.scheduling
options:
  max_moves:
    description: How many moves to propose at most.
    type: int
    default: 20
  min_gain:
    description: By how much a move must lower a score that is below V(0.1). Above, a ten-thousandth is enough.
    type: float
    default: 0.01
  cooldown:
    description: Seconds after the beginning of a move of an instance, in which no other one is proposed for it.
    type: int
    default: 21600
  max_gib:
    description: How many GiB all moves may send together, counting memory and disks whole. Without limit when left out.
    type: int
  max_pressure:
    description:
      - A host in which something waited for cores, memory or disks for more than this share of the last hour takes
        nobody. It is the kernel's pressure stall information.
    type: float
    default: 0.2
seealso:
  - module: novalite.cloud.capacity_info
  - module: novalite.cloud.reserve_info
"""

EXAMPLES = r"""
- name: Ask what would balance the hosts
  novalite.cloud.balance_plan:
    max_moves: 5
  register: balance
"""

RETURN = r"""
score_before:
  description: The score of the hosts as they are.
  returned: success
  type: float
score_after:
  description: The score of the hosts after all moves.
  returned: success
  type: float
moves:
  description: The moves, in the order in which they are to be made.
  returned: success
  type: list
  elements: dict
  contains:
    uuid:
      description: UUID of the instance.
      type: str
    name:
      description: Name of the instance.
      type: str
    project:
      description: Name of its project.
      type: str
    from:
      description: The host it is on.
      type: str
    to:
      description: The host it would go to.
      type: str
    score_before:
      description: The score before this move.
      type: float
    score_after:
      description: The score after it.
      type: float
    moved_mib:
      description: MiB that it sends at most, memory and disks.
      type: int
    why:
      description: What it is good for, in one line.
      type: str
      sample: "hv1 is fuller than hv3: the score falls from 0.1820 to 0.1211, at most 12288 MiB are sent"
    commands:
      description: What makes the move, one command.
      type: list
      elements: str
msg:
  description: The result in one line.
  returned: success
  type: str
  sample: 3 moves would bring the score from 0.1820 to 0.0210, and send at most 36.0 GiB
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
