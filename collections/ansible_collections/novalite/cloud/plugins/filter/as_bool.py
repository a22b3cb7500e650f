# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: as_bool
short_description: A boolean, however the inventory has it
version_added: 0.1.0
author: [novalite contributors (@novalite)]
description:
  - Takes Ansible's words for true and false, and refuses all others, which C(bool) takes for false.
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
    msg: "{{ controller_proxy | novalite.cloud.as_bool }}"
"""

RETURN = r"""
_value:
  description: The boolean.
  type: bool
"""

import collections.abc as c

from ansible.errors import AnsibleFilterError

from ..module_utils._json import Json
from ..plugin_utils import _texts


def as_bool(value: Json) -> bool:
    """Return `value` as a bool. Raises AnsibleFilterError."""
    try:
        return _texts.as_bool(value)
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    def filters(self) -> dict[str, c.Callable[..., bool]]:
        return {"as_bool": as_bool}
