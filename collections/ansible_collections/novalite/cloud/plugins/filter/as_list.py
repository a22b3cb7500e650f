# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: as_list
short_description: A list, however the inventory has it
version_added: 0.1.0
author: [novalite contributors (@novalite)]
description:
  - One name is a list of one. A text may be C(a, b) or C([a, b]), as inventories by INI have lists.
positional: _input
options:
  _input:
    description: The value of an option.
    type: raw
    required: true
"""

EXAMPLES = r"""
- name: Show it
  ansible.builtin.debug:
    msg: "{{ compute_node_reach_users | novalite.cloud.as_list }}"
"""

RETURN = r"""
_value:
  description: The list.
  type: list
  elements: raw
"""

import collections.abc as c

from ansible.errors import AnsibleFilterError

from ..module_utils._json import Json
from ..plugin_utils import _texts


def as_list(value: Json) -> list[Json]:
    """Return `value` as a list. Raises AnsibleFilterError."""
    try:
        return _texts.as_list(value)
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    def filters(self) -> dict[str, c.Callable[..., list[Json]]]:
        return {"as_list": as_list}
