# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: named
short_description: Lines that name servers or volumes by name, UUID and host
version_added: 0.1.0
author: [novalite contributors (@novalite)]
description:
  - The novalite playbooks' own way to list what they are about to touch.
positional: _input
options:
  _input:
    description: >-
      Records with C(uuid) or C(id), and whichever there are of C(name), C(host) or C(from_host) and C(to_host),
      C(does) and C(reason).
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Name the servers
  ansible.builtin.debug:
    msg: "{{ novalite_request.to_delete | novalite.cloud.named }}"
"""

RETURN = r"""
_value:
  description: A line for each record, in their order.
  type: list
  elements: str
  sample: ["web-1 (5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41) on hv1"]
"""

import collections.abc as c

from ..module_utils._json import JsonMapping


def named(records: c.Iterable[JsonMapping]) -> list[str]:
    """Return a line for each of `records`."""
    return [_line(record) for record in records]


def _line(record: JsonMapping) -> str:
    uuid, name = record.get("uuid") or record["id"], record.get("name")
    line = f"{name} ({uuid})" if name and name != uuid else str(uuid)
    if record.get("to_host"):
        line += f" from {record['from_host']} to {record['to_host']}"
    elif "host" in record:
        line += f" on {record['host'] or 'no host'}"
    if record.get("does"):
        line = f"{record['does'].replace('_', ' ')} {line}"
    return f"{line}: {record['reason']}" if record.get("reason") else line


class FilterModule:
    def filters(self) -> dict[str, c.Callable[[c.Iterable[JsonMapping]], list[str]]]:
        return {"named": named}
