# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    # What became of servers, for the modules that record it
    DOCUMENTATION = r"""
options:
  outcomes:
    description: What became of which servers.
    type: list
    elements: dict
    default: []
    suboptions:
      uuids:
        description: UUIDs of the servers that it became of.
        type: list
        elements: str
        required: true
      state:
        description:
          - V(active), the guest runs.
          - V(error), it will not be built, or, after a request to delete it, could not be deleted. A server that could
            not be deleted keeps its host, claim and addresses until it is.
          - V(retry), the host failed to build it. The claim is released and the next host may try, until there were
            O(max_attempts).
          - V(deleted), nothing of it is left on its host.
        type: str
        choices: [active, error, retry, deleted]
        required: true
      host:
        description:
          - The compute host that this comes from. It must be the one that the ledger has. Defaults to that one.
        type: str
      reason:
        description:
          - Why it failed, for V(error) and V(retry). It becomes the server's fault, cut to one line of 255 characters.
        type: str
      power_state:
        description: Nova's number of the guest's power state, for V(active). V(1), running, if it is left out.
        type: int
      trip:
        description:
          - RV(novalite.cloud.host_steps#module:trip) of the trip that it comes from. The action of a launch keeps it
            for M(novalite.cloud.call_diagram).
        type: dict
      facts:
        description:
          - What the host said of itself meanwhile, as M(novalite.cloud.compute_host) returns it on it. It is recorded.
        type: dict
      silent:
        description: Guests that run and did not answer, as M(novalite.cloud.server_wait) returns them.
        type: list
        elements: dict
        default: []
  plans:
    description:
      - The plans that the hosts were given, as M(novalite.cloud.server_plan) returns them. A server that was to be
        built and is in none of the O(outcomes) counts as V(retry), since its host did not even say that it failed.
    type: dict
    default: {}
  alone:
    description:
      - Whether the servers were asked for together. When they are of several requests, one of these may have spoiled it
        for the others, and V(error) counts as V(retry).
    type: bool
    default: true
"""
