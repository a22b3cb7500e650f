#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: server_state
short_description: Record what became of instances
version_added: 0.1.0
description:
  - The last step of a launch and of a termination. Records outcomes, and gives back the claims and addresses of what
    failed or is gone.
  - Every transition expects a state, and is refused for that server alone when the server is in another one, because
    its deletion was asked for meanwhile, for example. The same outcome twice changes nothing the second time.
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.server_outcomes
options:
  max_attempts:
    description: How many hosts may try to build a server, the first one included.
    type: int
    default: 3
seealso:
  - module: novalite.cloud.server
  - module: novalite.cloud.server_info
"""

EXAMPLES = r"""
- name: Record what the hosts reported
  novalite.cloud.server_state:
    outcomes:
      - uuids: [5e9ffd77-49b4-4c87-9a1f-8ed1d6ff5a0c]
        state: active
        host: hv1
      - uuids: [0a7f0f0c-3a55-4a55-8f7c-5f8d7a2f1c11]
        state: retry
        host: hv2
        reason: image cache is full
  register: recorded
"""

RETURN = r"""
instances:
  description: The instances as they are now, as M(novalite.cloud.server) returns them.
  returned: success
  type: list
  elements: dict
retry:
  description: Those of RV(instances) that are to be scheduled again.
  returned: success
  type: list
  elements: dict
errors:
  description:
    - The servers that failed, and those whose outcome was refused, with the reason.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the server, or its UUID if the ledger does not know it.
      type: str
    uuid:
      description: UUID of the server.
      type: str
    message:
      description: The reason.
      type: str
failures:
  description: The messages of RV(errors), each once.
  returned: success
  type: list
  elements: str
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
