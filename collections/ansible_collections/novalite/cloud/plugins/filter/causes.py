# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: causes
short_description: What failed, as one message that a terminal has room for
version_added: 0.1.0
author: [novalite contributors (@novalite)]
description:
  - The novalite playbooks' own way to say at the end of a run why servers or volumes failed. Each of them has its own
    words, too, as a fault or an error.
positional: _input, rest
options:
  _input:
    description: The message of each.
    type: list
    elements: str
    required: true
  rest:
    description: Where the messages are that there is no room for.
    type: str
    default: novalite show says of each why
"""

EXAMPLES = r"""
- name: Say what failed
  ansible.builtin.fail:
    msg: "{{ novalite_recorded.errors | map(attribute='message') | novalite.cloud.causes }}"
"""

RETURN = r"""
_value:
  description: The first messages, of at least one of them, and how many more there are.
  type: str
  sample: "'web-1': its host does not answer; and 41 more: novalite show says of each why"
"""

import collections.abc as c

from ..module_utils._model.plain_text import shortened

LONGEST = 600  # characters of messages: Ansible's own screen shows them twice
REST = "novalite show says of each why"


def causes(messages: c.Iterable[str], rest: str = REST) -> str:
    """Join as many of the messages as there is room for, the same one once."""
    left = list(dict.fromkeys(map(str, messages)))
    text = shortened(left.pop(0), LONGEST) if left else ""
    while left and len(text) + len(left[0]) <= LONGEST:
        text += f"; {left.pop(0)}"
    return f"{text}; and {len(left)} more: {rest}" if left else text


class FilterModule:
    def filters(self) -> dict[str, c.Callable[..., str]]:
        return {"causes": causes}
