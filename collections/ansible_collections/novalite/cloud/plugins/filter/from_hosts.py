# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: from_hosts
short_description: What hosts have in a variable, as a list
version_added: 0.1.0
author: [novalite contributors (@novalite)]
description:
  - The novalite playbooks' own way to hand the outcomes of the compute hosts to a module on the controller.
  - A host without the variable, or with an empty one, is left out. It did not answer, for example.
positional: _input, hostvars, path
options:
  _input:
    description: Names of hosts, or a dictionary with such names as its keys.
    type: list
    elements: str
    required: true
  hostvars:
    description: The variable C(hostvars).
    type: dict
    required: true
  path:
    description: Name of the variable. After a dot, the name of something in it, for example V(spawn_waited.silent).
    type: str
    required: true
seealso:
  - plugin: novalite.cloud.by_host
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Record how it went
  novalite.cloud.ledger_step:
    step: server_action
    args:
      action: stop
      plans: "{{ novalite_begun.hosts }}"
      outcomes: "{{ novalite_begun.hosts | novalite.cloud.from_hosts(hostvars, 'power_outcome') }}"
"""

RETURN = r"""
_value:
  description: The values, in the order of the hosts. Where they are lists, all of their items.
  type: list
"""

import collections.abc as c

from ..module_utils._json import Json, JsonMapping
from .by_host import by_host


def from_hosts(hosts: c.Iterable[str], hostvars: JsonMapping, path: str) -> list[Json]:
    """Values at `path` in the variables of `hosts`, without the empty ones; a list gives its items."""
    values = [value for value in by_host(hosts, hostvars, path).values() if value]
    return [item for value in values for item in (value if isinstance(value, list) else [value])]


class FilterModule:
    def filters(self) -> dict[str, c.Callable[..., list[Json]]]:
        return {"from_hosts": from_hosts}
