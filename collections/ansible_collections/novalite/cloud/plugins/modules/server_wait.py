#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: server_wait
short_description: Waits until guests answer
version_added: 0.1.0
author: [novalite contributors (@novalite)]
description:
  - Runs on a compute host and waits until the ssh server (or another service that speaks first) of each given guest has
    sent its banner, or until its guest agent answers.
  - A connection alone is no answer, since a port forwarder accepts before its guest is up.
  - A guest that does not answer is left as it is. The module fails then, and says what is in the way.
extends_documentation_fragment: [novalite.cloud.libvirt, novalite.cloud.looks]
options:
  guests:
    description: The guests to wait for, all at once.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name for the error message.
        type: str
        required: true
      address:
        description: IPv4 or IPv6 address. A guest without one cannot answer over ssh.
        type: str
      namespace:
        description: The network namespace from which the guest is reached, if its network is an isolated one.
        type: str
      domain:
        description: Name of the guest's domain in libvirt, for its guest agent.
        type: str
      agent:
        description: Whether the guest has a channel for a guest agent.
        type: bool
        default: false
      hindrance:
        description: Why the compute host cannot reach the guest's ssh server. Where it is known, nobody waits for it.
        type: str
  wait_for:
    description: Who must answer, the ssh server (or what speaks first on O(port)) or the guest agent.
    type: str
    choices: [ssh, agent]
    default: ssh
  port:
    description: TCP port.
    type: int
    default: 22
  banner:
    description: What the service's first bytes must be.
    type: str
    default: SSH-
  timeout:
    description: Seconds to wait for all of them.
    type: int
    default: 300
"""

EXAMPLES = r"""
- name: Wait for the guests of this host
  novalite.cloud.server_wait:
    guests:
      - {name: web, address: 10.20.0.3}
"""

RETURN = r"""
answered:
  description: Seconds after which each guest answered, by name.
  type: dict
  returned: always
  sample: {web: 4.2}
silent:
  description: The guests that did not answer, and what is in the way.
  type: list
  elements: dict
  returned: always
  sample:
    - name: db
      address: 10.20.0.4
      reason: it is up, but nothing listens on TCP port 22 (waited for 300 s)
      message: "db (10.20.0.4): it is up, but nothing listens on TCP port 22 (waited for 300 s)"
"""

import dataclasses

from ..module_utils._errors import NovaliteError
from ..module_utils._host.libvirt_connection import DEFAULT_URI, connect
from ..module_utils._host.module import HostCall, HostModuleError, Result, run_host_module
from ..module_utils._ssh import wait

ARGUMENT_SPEC = {
    "guests": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "name": {"type": "str", "required": True},
            "address": {"type": "str"},
            "namespace": {"type": "str"},
            "domain": {"type": "str"},
            "agent": {"type": "bool", "default": False},
            "hindrance": {"type": "str"},
        },
    },
    "wait_for": {"type": "str", "choices": ["ssh", "agent"], "default": "ssh"},
    "port": {"type": "int", "default": 22},
    "banner": {"type": "str", "default": "SSH-"},
    "timeout": {"type": "int", "default": 300},
    "uri": {"type": "str", "default": DEFAULT_URI},
}


def run(call: HostCall) -> Result:
    if call.check_mode:
        return {"changed": False, "answered": {}, "silent": []}
    params, timeout = call.params, call.params["timeout"]
    guests = [wait.Guest(**guest) for guest in params["guests"]]
    try:
        if params["wait_for"] == "agent":
            waited = wait.wait_for_agent(guests, connect(params["uri"]), timeout)
        else:
            waited = wait.wait_for_ssh(guests, params["port"], params["banner"], timeout)
    except NovaliteError as error:
        waited = wait.Waited({}, tuple(wait.Silence(guest.name, guest.address, str(error)) for guest in guests))
    result = {
        "changed": False,
        "answered": waited.answered,
        "silent": [{**dataclasses.asdict(silence), "message": silence.message} for silence in waited.silent],
    }
    if waited.silent:
        raise HostModuleError(f"no answer from {'; '.join(silence.message for silence in waited.silent)}", **result)
    return result


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
