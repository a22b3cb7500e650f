# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Print the interfaces that a guest's agent tells of, as JSON: a program that ssh runs on a host, by its text.

Arguments: the domain's UUID, libvirt's URI, the seconds that the agent has to answer.
"""

from __future__ import annotations

import json
import sys


def main(uuid: str, uri: str, timeout: str) -> None:
    import libvirt  # here: the controller, which sends this, may be without it

    try:
        domain = libvirt.open(uri).lookupByUUIDString(uuid)
        domain.agentSetResponseTimeout(int(timeout), 0)
        interfaces = domain.interfaceAddresses(libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_AGENT, 0)
    except libvirt.libvirtError as error:
        raise SystemExit(error.get_error_message()) from None
    json.dump(interfaces or {}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
