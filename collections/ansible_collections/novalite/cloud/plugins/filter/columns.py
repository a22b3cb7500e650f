# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: columns
short_description: Lines of a table of records
version_added: 0.1.0
author: [novalite contributors (@novalite)]
description:
  - The novalite playbooks' own way to show what they found or made.
positional: _input, fields
options:
  _input:
    description: The records.
    type: list
    elements: dict
    required: true
  fields:
    description: Names of the fields to show, each an argument of its own.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Show which address leads to which server
  ansible.builtin.debug:
    msg: "{{ novalite_floating.floating_ips | novalite.cloud.columns('address', 'server') }}"
"""

RETURN = r"""
_value:
  description: A head, and a line for each record, in their order.
  type: list
  elements: str
  sample: ["ADDRESS      SERVER", "192.0.2.129  web-1"]
"""

import collections.abc as c

from ..module_utils._json import JsonMapping
from ..module_utils._model import text_table


def columns(records: c.Iterable[JsonMapping], *fields: str) -> list[str]:
    """Return the `fields` of the records, lined up under a head."""
    rows = [["-" if record.get(field) is None else str(record[field]) for field in fields] for record in records]
    return text_table.lined_up([[field.upper() for field in fields], *rows])


class FilterModule:
    def filters(self) -> dict[str, c.Callable[..., list[str]]]:
        return {"columns": columns}
