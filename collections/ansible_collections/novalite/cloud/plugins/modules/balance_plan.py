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
  - The load of a host is the mean of what is claimed of its cores, memory and disk. The score of a cluster is the
    standard deviation of the loads, V(0.0) when all are equal.
  - Each move is one that the scheduler's filters allow, with the groups and hints of the instances. Hosts that are down
    or disabled neither give nor take.
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
    description: By how much a move must lower the score.
    type: float
    default: 0.001
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
    commands:
      description: What makes the move, one command.
      type: list
      elements: str
msg:
  description: The result in one line.
  returned: success
  type: str
  sample: 3 moves would bring the score from 0.1820 to 0.0210
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
