#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: metadata_proxy
short_description: Pass guests' questions at 169.254.169.254 on to the metadata service
version_added: 0.1.0
description:
  - Runs one haproxy for each network of a compute host. It answers at C(169.254.169.254), port 80, those guests that
    are on its bridge, and passes their questions on to the metadata service with a signature that says on which
    network, and from which address, they were asked. What a guest says about itself is removed.
  - Its file, which holds this host's key, is below C(/var/lib/novalite/metadata/<bridge>) and readable by root only.
  - Guests reach the address because their default gateway is the host. The address is on the loopback device of the
    host, or of the network's namespace.
  - The host's key is derived on the controller, by an action plug-in of the same name, from C(metadata.secret) in the
    ledger's home. That file is made at the first use; the metadata service reads the same one.
requirements:
  - haproxy >= 2.2, with OpenSSL and network namespaces, and iproute2 on the compute host
extends_documentation_fragment:
  - novalite.cloud.changes
  - novalite.cloud.libvirt
  - novalite.cloud.mark
  - novalite.cloud.changes.state
attributes:
  diff_mode:
    description: Shows each proxy's configuration before and after, without the key.
options:
  networks:
    description: The networks that are to have a proxy.
    type: list
    elements: dict
    default: []
    suboptions:
      bridge:
        description: The bridge that guests of the network are connected to. It must exist.
        type: str
        required: true
      namespace:
        description: The network namespace that holds the host's address on the bridge, the host's own when left out.
        type: str
      network:
        description: UUID of the network.
        type: str
        required: true
  bridges:
    description: The bridges whose proxies are to go, with O(state=absent).
    type: list
    elements: str
    default: []
  url:
    description: Where the metadata service is, such as V(http://192.0.2.10:8775). Required with O(state=present).
    type: str
  host:
    description: Name of this compute host in the ledger, its inventory hostname when left out.
    type: str
  state_dir:
    description: novalite's directory on the host; the proxies' files go into C(metadata) in it.
    type: path
    default: /var/lib/novalite
  state:
    description:
      - V(absent) ends the proxies of O(bridges) and of O(networks) and removes all that belongs to them. The proxy of a
        bridge that has users stays (RV(kept)), as M(novalite.cloud.router) has it.
  home:
    description:
      - Directory on the controller that holds the ledger and C(metadata.secret).
      - Defaults to the variable C(novalite_home), then to the environment variable E(NOVALITE_HOME) of the
        C(ansible-playbook) process, then to C(/var/lib/novalite).
    type: path
  key:
    description: This host's key, in hex. The action plug-in derives it; it is not for playbooks.
    type: str
"""

EXAMPLES = r"""
- name: Let the guests of one network ask
  novalite.cloud.metadata_proxy:
    url: http://192.0.2.10:8775
    networks:
      - bridge: br10000
        namespace: nova-br10000
        network: 5f0c6ad8-5e8f-4ef5-a0d6-2f0d1ad1b5c2

- name: End it
  novalite.cloud.metadata_proxy:
    bridges: [br10000]
    state: absent
"""

RETURN = r"""
diff:
  description: The proxies that changed, C(before) and C(after), by bridge.
  returned: changed
  type: dict
kept:
  description: The bridges whose proxies stay although they were to go, and what uses them.
  returned: with O(state=absent)
  type: dict
  sample: {br100: [tap0a1b2c3d-4e]}
"""

from ..module_utils._errors import NovaliteError
from ..module_utils._host.files import STATE_DIR
from ..module_utils._host.libvirt_connection import DEFAULT_URI
from ..module_utils._host.module import HostCall, Result, run_host_module
from ..module_utils._network import haproxy, metadata_proxy, ownership

NETWORK_SPEC = {
    "bridge": {"type": "str", "required": True},
    "namespace": {"type": "str"},
    "network": {"type": "str", "required": True},
}
ARGUMENT_SPEC = {
    "networks": {"type": "list", "elements": "dict", "default": [], "options": NETWORK_SPEC},
    "bridges": {"type": "list", "elements": "str", "default": []},
    "url": {"type": "str"},
    "host": {"type": "str"},
    "ledger": {"type": "str"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "uri": {"type": "str", "default": DEFAULT_URI},
    "state_dir": {"type": "path", "default": STATE_DIR},
    "home": {"type": "path"},
    "key": {"type": "str", "no_log": True},
}
SPEC_RULES = {"required_if": [("state", "present", ("url",))]}


def run(call: HostCall) -> Result:
    params = call.params
    proxies = haproxy.parse(params["networks"])
    mark = ownership.of_ledger(params["ledger"])
    if params["state"] == "absent":
        bridges = dict.fromkeys([*map(haproxy.parse_bridge, params["bridges"]), *(proxy.bridge for proxy in proxies)])
        return metadata_proxy.remove(list(bridges), call.check_mode, params["state_dir"], mark, params["uri"])
    try:
        key = bytes.fromhex(params["key"] or "")
    except ValueError:
        key = b""
    if len(key) != 32 or not params["host"]:
        raise NovaliteError("there is no key for this host: run metadata_proxy as a task, which brings one")
    service = metadata_proxy.Service(haproxy.parse_upstream(params["url"]), params["host"], key, mark)
    return metadata_proxy.ensure(proxies, service, call.check_mode, params["state_dir"])


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run, **SPEC_RULES)


if __name__ == "__main__":
    main()
