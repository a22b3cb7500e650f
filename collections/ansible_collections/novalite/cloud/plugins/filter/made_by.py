# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: made_by
short_description: The part of a build's plan that its steps have made
version_added: 0.1.0
author: [novalite contributors (@novalite)]
description:
  - The way of the role P(novalite.cloud.spawn#role) to undo what this very run made, and nothing that it found.
positional: _input, steps
options:
  _input:
    description: The plan of a build on one host, as the step V(server_plan) returns it.
    type: dict
    required: true
  steps:
    description: RV(novalite.cloud.host_steps#module:steps) of the build. Empty where the answer of the host was lost.
    type: list
    elements: dict
    required: true
seealso:
  - module: novalite.cloud.host_steps
"""

EXAMPLES = r"""
- name: Take back what was built
  ansible.builtin.include_role:
    name: novalite.cloud.reclaim
  vars:
    reclaim_plan: "{{ spawn_plan | novalite.cloud.made_by(spawn_failure.steps | default([])) }}"
    spawn_failure: "{{ ansible_failed_result.invocation | default({}) }}"
"""

RETURN = r"""
_value:
  description: The plan, as the role P(novalite.cloud.reclaim#role) takes it.
  type: dict
"""

from ..module_utils._plan.undo import made_by


class FilterModule:
    def filters(self) -> dict[str, object]:
        return {"made_by": made_by}
