# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: by_host
short_description: What hosts have in a variable, by their names
version_added: 0.1.0
author: [novalite contributors (@novalite)]
description:
  - The novalite playbooks' own way to put together on the controller what the compute hosts said.
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
  default:
    description: The value for hosts that have none. They are left out, when there is no default.
    type: raw
"""

EXAMPLES = r"""
- name: Show which daemon each host has
  ansible.builtin.debug:
    msg: "{{ ['hv1', 'hv2'] | novalite.cloud.by_host(hostvars, 'move_accepted.libvirt_daemon', default='') }}"
"""

RETURN = r"""
_value:
  description: Name of each host, and its value.
  type: dict
"""

import collections.abc as c

from ..module_utils._json import Json, JsonMapping, JsonObject


def by_host(hosts: c.Iterable[str], hostvars: JsonMapping, path: str, default: Json = None) -> JsonObject:
    """`{host: value}` of what is at `path` in each host's variables; without a `default`, of hosts that have it."""
    values = {host: _value(hostvars[host], path) if host in hostvars else None for host in hosts}
    filled = {host: default if value is None else value for host, value in values.items()}
    return {host: value for host, value in filled.items() if value is not None}


def _value(variables: Json, path: str) -> Json:
    for name in path.split("."):
        if not isinstance(variables, c.Mapping) or name not in variables:
            return None
        variables = variables[name]
    return variables


class FilterModule:
    def filters(self) -> dict[str, c.Callable[..., JsonObject]]:
        return {"by_host": by_host}
