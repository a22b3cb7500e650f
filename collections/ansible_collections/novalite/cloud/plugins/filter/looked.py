# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: looked
short_description: What looks at hosts found, by the names of the hosts
version_added: 0.1.0
author: [novalite contributors (@novalite)]
description:
  - The novalite playbooks' own way to tell what looks at compute hosts found. One task looks, and its result is all
    that there is of each host. A task more on each would take as long as the look.
positional: _input, hostvars, about
options:
  _input:
    description: Names of hosts.
    type: list
    elements: str
    required: true
  hostvars:
    description: The variable C(hostvars), with what M(novalite.cloud.host_steps) returned as C(novalite_looked).
    type: dict
    required: true
  about:
    description:
      - V(hosts) is what the step C(host_look) returned. A host that answered and failed is alive, with guests that
        nobody knows.
      - V(others) is what the step C(peer_look) said of hosts that did not answer before.
    type: str
    choices: [hosts, others]
    default: hosts
"""

EXAMPLES = r"""
- name: Show the looks at two hosts
  ansible.builtin.debug:
    msg: "{{ ['hv1', 'hv2'] | novalite.cloud.looked(hostvars) }}"
"""

RETURN = r"""
_value:
  description: Name of each host, and what was found. Hosts that did not answer are left out.
  type: dict
"""

import collections.abc as c

from ..module_utils._json import JsonMapping, JsonObject

# numbers of the steps: the first one tells a host the epoch
LOOK = 1
WORDS = 2


def looked(hosts: c.Iterable[str], hostvars: JsonMapping, about: str = "hosts") -> JsonObject:
    """`{host: what was found}` by the task that looked; a host that did not answer is left out."""
    read = _look if about == "hosts" else _words
    by_host = {host: read(hostvars[host].get("novalite_looked") or {}) for host in hosts if host in hostvars}
    return {host: value for host, value in by_host.items() if value is not None}


def _look(done: JsonMapping) -> JsonMapping | None:
    # a task that ran into its timeout had no answer, whatever the host does
    if not done or done.get("unreachable") or "timedout" in done:
        return None
    return {"libvirt": False} if done.get("failed") else done["steps"][LOOK]["result"]


def _words(done: JsonMapping) -> c.Sequence[JsonMapping] | None:
    steps = done.get("steps") or ()
    return None if done.get("failed") or len(steps) <= WORDS else steps[WORDS]["result"]["words"]


class FilterModule:
    def filters(self) -> dict[str, c.Callable[..., JsonObject]]:
        return {"looked": looked}
