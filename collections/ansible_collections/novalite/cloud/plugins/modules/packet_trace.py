#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: packet_trace
short_description: Walk a packet through the chains of a compute host
version_added: 0.1.0
author:
  - novalite contributors (@novalite)
description:
  - Reads the host's tables C(filter) and C(security) with their counters, and follows the first packet of a connection
    through the chains, rule by rule, as the kernel would. Sends nothing and changes nothing.
  - Rules that are not novalite's are followed, too. Where one asks for something that is not known here, it is passed
    over, and the verdict is uncertain.
  - libvirt's network filters, address translation, and what a guest's own firewall does are not on this way.
attributes:
  check_mode:
    description: Nothing is changed anyway.
    support: full
  diff_mode:
    description: There is no difference.
    support: none
options:
  packets:
    description: The packets, as M(novalite.cloud.reachability) returns them with C(trace=true).
    type: list
    elements: dict
    required: true
    suboptions:
      source:
        description: Its source address.
        type: str
        required: true
      destination:
        description: Its destination address.
        type: str
        required: true
      protocol:
        description: Its protocol by number. Left out, one that no rule names.
        type: int
      port:
        description: Its destination port, or ICMP type.
        type: int
      code:
        description: Its ICMP code.
        type: int
      source_port:
        description: Its source port.
        type: int
      hook:
        description: V(FORWARD) for what goes to or comes from guests, V(OUTPUT) for what the host itself sends them.
        type: str
        choices: [FORWARD, INPUT, OUTPUT]
        default: FORWARD
      interface_in:
        description: The bridge or interface that it comes in by.
        type: str
        default: ""
      interface_out:
        description: The bridge or interface that it leaves by.
        type: str
        default: ""
      device_in:
        description: The port of a bridge that it comes in by.
        type: str
        default: ""
      device_out:
        description: The port of a bridge that it leaves by, where it is bridged.
        type: str
        default: ""
      host:
        description: The host, which RV(walks) repeats.
        type: str
      answer:
        description: The number of the answer that it belongs to, which RV(walks) repeats.
        type: int
  backend:
    description: Which of the host's two iptables to read.
    type: str
    choices: [auto, nft, legacy]
    default: auto
"""

EXAMPLES = r"""
- name: Follow a connection to a guest
  novalite.cloud.packet_trace:
    packets:
      - {source: 10.20.0.5, destination: 10.20.0.6, protocol: 6, port: 22, interface_in: br100, interface_out: br100,
         device_in: eth1, device_out: tap898e353d-b9}
"""

RETURN = r"""
walks:
  description:
    - For each packet the C(verdict), whether it is C(accepted), whether that is C(certain), the rules that C(passed) it
      on, with their counters, and all of it in C(lines).
  returned: success
  type: list
  elements: dict
  sample:
    - verdict: ACCEPT
      accepted: true
      certain: true
      lines:
        - "filter FORWARD: -j nova-local  (12 packets, 1008 bytes)"
        - "filter nova-inst-2: -j nova-sg-1  (3 packets, 180 bytes)"
        - "filter nova-sg-1: -p tcp -m tcp --dport 22 -j ACCEPT  (3 packets, 180 bytes)"
        - ACCEPT
"""

from ..module_utils._firewall import follow
from ..module_utils._host.module import HostCall, Result, run_host_module

_TEXT = {"type": "str", "default": ""}
ARGUMENT_SPEC = {
    "packets": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "source": {"type": "str", "required": True},
            "destination": {"type": "str", "required": True},
            "protocol": {"type": "int"},
            "port": {"type": "int"},
            "code": {"type": "int"},
            "source_port": {"type": "int"},
            "hook": {"type": "str", "choices": ["FORWARD", "INPUT", "OUTPUT"], "default": "FORWARD"},
            "interface_in": _TEXT,
            "interface_out": _TEXT,
            "device_in": _TEXT,
            "device_out": _TEXT,
            "host": {"type": "str"},
            "answer": {"type": "int"},
        },
    },
    "backend": {"type": "str", "choices": ["auto", "nft", "legacy"], "default": "auto"},
}


def run(call: HostCall) -> Result:
    return {"walks": follow.walks(call.params["packets"], call.params["backend"])}


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
