#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: console_output
short_description: The end of the console logs of this host's guests
version_added: 0.1.0
author:
  - novalite contributors (@novalite)
description:
  - Reads the last lines that guests wrote to their consoles, also of those that do not run.
  - Every character is the guest's own choice, escape sequences for terminals among them. Take care where you print it.
extends_documentation_fragment:
  - novalite.cloud.state_dir
  - novalite.cloud.looks
options:
  uuids:
    description: UUIDs of the instances.
    type: list
    elements: str
    required: true
  lines:
    description: How many lines of each. All that O(max_bytes) hold if it is left out.
    type: int
  max_bytes:
    description: How many bytes of each at most, up to 1048576.
    type: int
    default: 65536
"""

EXAMPLES = r"""
- name: Read what a guest said last
  novalite.cloud.console_output:
    uuids: [6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11]
    lines: 20
  register: said
"""

RETURN = r"""
console:
  description: The text of each instance, by its UUID. Empty where a guest never started.
  type: dict
  returned: success
  sample: {6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11: "login: "}
"""

import os
import uuid

from ..module_utils._domain.lifecycle_console import MAX_BYTES, tail
from ..module_utils._errors import NovaliteError
from ..module_utils._host.files import STATE_DIR
from ..module_utils._host.module import HostCall, Result, run_host_module

LIMIT = 1 << 20  # what one task should carry home
ARGUMENT_SPEC = {
    "uuids": {"type": "list", "elements": "str", "required": True},
    "lines": {"type": "int"},
    "max_bytes": {"type": "int", "default": MAX_BYTES},
    "state_dir": {"type": "path", "default": STATE_DIR},
}


def _log_of(state_dir: str, instance: str) -> str:
    try:
        name = str(uuid.UUID(instance))  # a path is made of it
    except ValueError:
        raise NovaliteError(f"{instance!r} is not a UUID") from None
    return os.path.join(state_dir, "instances", name, "console.log")


def run(call: HostCall) -> Result:
    state_dir, lines, max_bytes = call.params["state_dir"], call.params["lines"], call.params["max_bytes"]
    if not 1 <= max_bytes <= LIMIT or (lines is not None and lines < 0):
        raise NovaliteError(f"max_bytes {max_bytes}, lines {lines}: use 1 to {LIMIT} bytes and 0 lines or more")
    console = {instance: tail(_log_of(state_dir, instance), lines, max_bytes) for instance in call.params["uuids"]}
    return {"changed": False, "console": console}


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
